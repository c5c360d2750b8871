"""Reductions of tensors and what is fused with them, against NumPy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import has
from treadle.core import dtypes
from treadle.graph.groups import Group
from treadle.graph.realize import watchers

AXES = [
    ((), None), ((1,), 0), ((7,), None), ((1009,), -1), ((3, 0), 0), ((5, 1, 7), 1), ((5, 7), 0),
    ((3, 4, 5), (2, 0)), ((3, 4, 5), 1), ((2, 3), ()),
]  # fmt: skip


@pytest.fixture
def kernels():
    """The kernels that run."""
    seen: list[Group] = []
    watchers.append(seen.append)
    yield seen
    watchers.remove(seen.append)


def close(found, expected, rtol=2e-6, atol=1e-5):
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol, atol)


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_axes(device, rng, shape, axis):
    x = rng.standard_normal(shape).astype(np.float32)
    t, wide = td.asarray(x), x.astype(np.float64)
    for keepdims in (False, True):
        where = {"axis": axis, "keepdims": keepdims}
        close(td.sum(t, **where), wide.sum(**where))
        close(td.mean(t, **where), wide.mean(**where))
        close(td.std(t, **where), wide.std(**where))
        close(td.max(t, **where), x.max(**where), 0, 0)
        close(td.all(t > 0, **where), (x > 0).all(**where))
        if not isinstance(axis, tuple):
            close(td.argmin(t, **where), x.argmin(**where))


@pytest.mark.parametrize("dtype", dtypes.ALL_DTYPES, ids=str)
def test_dtypes(device, rng, dtype):
    """Small integers are added up in the default integer; halves in float32."""
    if not has(device, dtype):
        return
    x = rng.integers(0, 3, (3, 37)).astype(dtype.numpy)
    wide = x.astype(np.complex128 if dtype.kind == "complex" else np.float64)
    t = td.asarray(x)
    integer = td.int32 if device.backend == "webgpu" else td.int64
    unsigned = td.uint32 if device.backend == "webgpu" else td.uint64
    if dtype is td.uint32 and has(device, td.uint64):
        unsigned = td.uint64  # which no sum of a few billions leaves
    of = {"bool": integer, "int": integer, "uint": unsigned}.get(dtype.kind, dtype)
    total = td.sum(t, axis=1)
    assert total.dtype is (dtype if dtype.is_integer and dtype.itemsize == 8 else of)
    np.testing.assert_array_equal(total.numpy().astype(wide.dtype), wide.sum(1))
    assert td.count_nonzero(t).item() == np.count_nonzero(x)
    np.testing.assert_array_equal(td.any(t, axis=0).numpy(), x.astype(bool).any(0))
    if dtype.kind != "complex":
        assert td.argmax(t).dtype is integer
        assert td.argmax(t).item() == wide.argmax()
        assert td.max(t).dtype is dtype
        assert td.mean(t).dtype is (dtype if dtype.kind == "float" else td.float32)
        assert td.mean(t).item() == pytest.approx(wide.mean(), rel=8e-3)
        assert td.var(t, correction=1).item() == pytest.approx(wide.var(ddof=1), rel=8e-3)


def test_dtype_is_given(device):
    x = td.asarray([1.75, 2.75, -3.5], dtype=td.float32)
    assert td.sum(x, dtype=td.int32).item() == 0
    y = td.asarray([200, 100], dtype=td.uint8)
    assert td.sum(y, dtype=td.uint8).item() == 300 - 256
    assert td.prod(y, dtype=td.float32).item() == 20000.0
    with pytest.raises(td.errors.DtypeError, match="imaginary"):
        td.sum(td.asarray([1j]), dtype=td.float32)


def test_nothing_to_reduce(device):
    empty = td.zeros((2, 0))
    assert td.sum(empty, axis=1).tolist() == [0.0, 0.0]
    assert td.prod(empty).item() == 1.0
    assert td.all(empty).item() is True
    assert td.any(empty).item() is False
    assert td.logsumexp(empty, axis=1).tolist() == [-math.inf, -math.inf]
    for value in (td.mean(empty), td.var(empty), td.std(td.ones(3), correction=3)):
        assert math.isnan(value.item())
    for function in (td.max, td.min, td.argmax, td.argmin):
        with pytest.raises(ValueError, match="no elements"):
            function(empty, axis=1)
    assert td.max(empty, axis=0).shape == (0,)


def test_special_values(device):
    nan, inf = math.nan, math.inf
    x = np.array([[1, nan, 3], [4, 4, 2], [inf, nan, nan], [-0.0, 0.0, -0.0], [-inf] * 3])
    t = td.asarray(x.astype(np.float32))
    for name in ("argmax", "argmin", "max", "min", "sum"):
        with np.errstate(invalid="ignore"):
            for axis in (0, 1, None):
                close(getattr(td, name)(t, axis=axis), getattr(x, name)(axis=axis))
    y = td.asarray([[inf, 1.0], [-inf, -inf], [nan, 1.0], [1000.0, 1000.0]])
    close(td.logsumexp(y, axis=1), [inf, -inf, nan, 1000 + math.log(2)])


def test_axes_that_are_none(device):
    x = td.ones((2, 3))
    with pytest.raises(IndexError, match="from -2 to 1"):
        td.sum(x, axis=2)
    with pytest.raises(ValueError, match="twice"):
        td.sum(x, axis=(0, -2))
    with pytest.raises(TypeError, match="an axis is an integer"):
        td.argmax(x, axis=(0, 1))
    with pytest.raises(td.errors.DtypeError, match="no order"):
        td.max(td.asarray([1j]))


def test_methods(device):
    x = td.asarray([[1.0, 5.0], [4.0, 2.0]])
    assert x.sum(0).tolist() == [5.0, 7.0]
    assert x.max(dim=1, keepdim=True).tolist() == [[5.0], [4.0]]
    assert x.mean().item() == 3.0
    assert x.cumsum(axis=1).tolist() == x.cumulative_sum(1).tolist() == [[1.0, 6.0], [4.0, 6.0]]
    with pytest.raises(TypeError, match="give one of them"):
        x.sum(axis=0, dim=0)


def softmax(x, axis):
    powers = td.exp(x - td.max(x, axis=axis, keepdims=True))
    return powers / td.sum(powers, axis=axis, keepdims=True)


def normalized(x, axis, of=td):
    middle, spread = of.mean(x, axis=axis, keepdims=True), of.std(x, axis=axis, keepdims=True)
    return (x - middle) / (spread + 1e-3)


@pytest.mark.parametrize(("shape", "axis"), [((2, 1), 1), ((13, 103), 1), ((13, 103), 0)], ids=str)
def test_rows_are_one_kernel(device, rng, kernels, shape, axis):
    x = rng.standard_normal(shape).astype(np.float32)
    t, wide = td.asarray(x), x.astype(np.float64)
    powers = np.exp(wide)
    shares = powers / powers.sum(axis, keepdims=True)
    for found, expected in [
        (softmax(t, axis), shares),
        (t - td.logsumexp(t, axis=axis, keepdims=True), np.log(shares)),
        (normalized(t, axis), normalized(wide, axis, np)),
        (td.var(t, axis=axis) * 2 + 1, wide.var(axis) * 2 + 1),
        (td.logsumexp(t, axis=axis), np.log(powers.sum(axis))),
    ]:
        kernels.clear()
        close(found, expected, 1e-4)
        assert len(kernels) == 1


@pytest.mark.parametrize("axis", [(0, 1), (2, 0), (1, 2), None], ids=str)
def test_rows_of_several_axes(device, rng, kernels, axis):
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    found = normalized(td.asarray(x), axis)
    close(found, normalized(x.astype(np.float64), axis, np), 1e-4)
    assert len(kernels) == 1


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None], ids=str)
@pytest.mark.parametrize("view", ["sliced", "turned", "spread"])
def test_reductions_of_views(device, rng, view, axis):
    x = rng.standard_normal((6, 7, 4)).astype(np.float32)
    t = td.asarray(x)
    if view == "sliced":
        x, t = x[::-2, 1:6, ::3], t[::-2, 1:6, ::3]
    elif view == "turned":
        x, t = x[:, ::-1].reshape(42, 4)[:, :2], t[:, ::-1].reshape(42, 4)[:, :2]
    else:
        x, t = x[0, 1, 2] + 0 * x[:, :1], t[0, 1, 2] + 0 * t[:, :1]
    close(td.sum(t, axis=axis), x.sum(axis, dtype=np.float64))
    close(t - td.mean(t, axis=axis, keepdims=True), x - x.mean(axis, keepdims=True), 1e-4)
    if not isinstance(axis, tuple):
        close(td.argmax(t, axis=axis), x.argmax(axis))


def test_reductions_of_reductions(device, rng):
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    t, wide = td.asarray(x), x.astype(np.float64)
    close(td.max(td.sum(t, axis=1), axis=0), wide.sum(1).max(0))
    close(td.sum(td.sum(t, axis=0)), wide.sum())
    close(td.mean(td.std(t, axis=-1), axis=-1), wide.std(-1).mean(-1))
    both = td.sum(t, axis=(1, 2), keepdims=True) * td.sum(t, axis=(0, 2), keepdims=True)
    close(both, wide.sum((1, 2), keepdims=True) * wide.sum((0, 2), keepdims=True))
    square = t[0, :4]  # a row's sum, spread over rows rather than columns
    close(square + td.sum(square, axis=1), wide[0, :4] + wide[0, :4].sum(1))


def test_sums_lose_little(device, rng):
    if "ptx" in device.id:  # an evaluator is too slow for so many
        return
    assert td.sum(td.ones(1 << 24)).item() == float(1 << 24)
    x = np.abs(rng.standard_normal(1_000_003)).astype(np.float32)
    t, wide = td.asarray(x), x.astype(np.float64)
    assert td.sum(t).item() == pytest.approx(wide.sum(), rel=1e-6)
    assert td.std(t + 1000).item() == pytest.approx(
        (x + np.float32(1000)).std(dtype="f8"), rel=1e-5
    )
