"""Reading, writing and folding at places along an axis, against loops over NumPy arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import has, on
from tests.support.poison import poisoned
from treadle.kernels import scatter

FOLDS = {
    "sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add,
}  # fmt: skip
# The tensor's shape, the index', the axis.
SHAPES = [
    ((7,), (12,), 0),
    ((4, 5), (3, 5), 0),
    ((4, 5), (2, 9), 1),
    ((3, 4, 5), (3, 2, 7), 2),
    ((3, 4, 5), (1, 6, 2), -2),
    ((1, 1), (1, 40), 1),
    ((3, 0), (3, 0), 0),
    ((3, 5), (0, 5), 0),
]


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


def _drawn(rng, case, dtype="float32"):
    shape, picked, axis = case
    x = (rng.standard_normal(shape) * 4).astype(dtype)
    index = rng.integers(-shape[axis], shape[axis], picked) if shape[axis] else np.zeros(picked)
    values = (rng.standard_normal([n + k for k, n in enumerate(picked)]) * 4).astype(dtype)
    return x, index.astype(np.int32), values, axis


def _folded(x, index, values, axis, function):
    """`function` of an element and a value, one after the other; None to replace it."""
    result = x.copy()
    for at in itertools.product(*map(range, index.shape)):
        to = list(at)
        to[axis] = index[at]
        to = tuple(to)
        result[to] = values[at] if function is None else function(result[to], values[at])
    return result


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_gather_and_scatter(device, rng, case):
    x, index, values, axis = _drawn(rng, case)
    t, at, source = td.asarray(x), td.asarray(index), td.asarray(values)
    part = tuple(slice(None) if k == axis % x.ndim else slice(n) for k, n in enumerate(index.shape))
    wanted = np.take_along_axis(x[part], np.where(index < 0, index + x.shape[axis], index), axis)
    np.testing.assert_array_equal(td.gather(t, axis, at).numpy(), wanted)
    wanted = _folded(x, index, values, axis, None)
    np.testing.assert_array_equal(td.scatter(t, axis, at, source).numpy(), wanted)
    np.testing.assert_array_equal(t.numpy(), x)
    t.scatter_(axis, at, source)
    np.testing.assert_array_equal(t.numpy(), wanted)
    wanted = _folded(x, index, np.full_like(values, 3), axis, np.multiply)
    found = td.scatter(td.asarray(x), axis, at, 3.0, reduce="multiply")
    np.testing.assert_allclose(found.numpy(), wanted, 1e-5)


@pytest.mark.parametrize("how", FOLDS)
def test_values_put_together(device, rng, how):
    for dtype in ("float32", "int32", "float16", "uint8"):
        for case in SHAPES[:4]:
            x, index, values, axis = _drawn(rng, case, dtype)
            if dtype == "float32" and how == "amax":
                values.flat[::7] = np.nan
            tensors = td.asarray(x), axis, td.asarray(index), td.asarray(values)
            wide = np.float64 if x.dtype.kind == "f" else x.dtype
            inputs = x.astype(wide), index, values.astype(wide), axis
            wanted = _folded(*inputs, FOLDS[how])
            counts = _folded(np.ones_like(x, np.int64), *inputs[1:3], axis, lambda a, b: a + 1)
            if how == "mean":
                wanted = wanted / counts if wide == np.float64 else wanted // counts.astype(wide)
            found = td.scatter_reduce(*tensors, how)
            assert found.dtype == dtype
            tolerance = 5e-3 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(
                found.numpy(), wanted.astype(dtype), tolerance, 2e-2 if dtype == "float16" else 1e-5
            )


def test_elements_left_out_of_their_own_reduction(device):
    x = td.asarray([9.0, 9.0, 9.0])
    at, values = td.asarray([0, 0, 2]), td.asarray([2.0, 4.0, -1.0])
    for how, wanted in (
        ("sum", [6.0, 9.0, -1.0]), ("prod", [8.0, 9.0, -1.0]), ("amax", [4.0, 9.0, -1.0]),
        ("amin", [2.0, 9.0, -1.0]), ("mean", [3.0, 9.0, -1.0]),
    ):  # fmt: skip
        assert td.scatter_reduce(x, 0, at, values, how, include_self=False).tolist() == wanted


def test_whole_parts(device, rng):
    x = rng.standard_normal((4, 5, 3)).astype(np.float32)
    rows = rng.standard_normal((4, 7, 3)).astype(np.float32)
    at = np.asarray([4, 0, 0, -1, 2, 2, 2], np.int32)
    added = x.copy()
    np.add.at(added, (slice(None), at), 2 * rows)
    found = td.index_add(td.asarray(x), 1, td.asarray(at), td.asarray(rows), alpha=2)
    np.testing.assert_allclose(found.numpy(), added, 1e-5, 1e-5)
    copied = x.copy()
    for k, place in enumerate(at):
        copied[:, place] = rows[:, k]
    found = td.index_copy(td.asarray(x), 1, td.asarray(at), td.asarray(rows))
    np.testing.assert_array_equal(found.numpy(), copied)
    np.testing.assert_array_equal(td.index_select(td.asarray(x), 1, td.asarray(at)), x[:, at])
    filled = x.copy()
    filled[:, at] = 7
    np.testing.assert_array_equal(td.index_fill(td.asarray(x), 1, at.tolist(), 7).numpy(), filled)


def test_masks(device, rng):
    x = rng.standard_normal((4, 5)).astype(np.float32)
    mask = rng.random(5) < 0.5
    t, m = td.asarray(x), td.asarray(mask)
    np.testing.assert_array_equal(td.masked_select(t, m), x[:, mask].reshape(-1))
    np.testing.assert_array_equal(td.masked_fill(t, m, -1.0), np.where(mask, np.float32(-1), x))
    t.masked_fill_(m, td.asarray(2.0))
    np.testing.assert_array_equal(t, np.where(mask, np.float32(2), x))


def test_views_are_read_and_written(device, rng):
    x = rng.standard_normal((6, 8)).astype(np.float32)
    base = td.asarray(x)
    part = base[::2, 1::3].mT
    index = td.asarray([[0, 2, 1]])
    found = td.gather(part, 0, index)
    np.testing.assert_array_equal(found, np.take_along_axis(x[::2, 1::3].T, index.numpy(), 0))
    part.scatter_add_(0, index, td.ones((1, 3)))
    wanted = x[::2, 1::3].T.copy()
    wanted[[0, 2, 1], [0, 1, 2]] += 1
    np.testing.assert_array_equal(base.numpy()[::2, 1::3].T, wanted)


def test_places_in_tensors_that_lie_outside(device):
    at = td.asarray([5, -5, 1])
    x = td.asarray([1.0, 2.0, 3.0])
    assert td.gather(x, 0, at).tolist() == [0.0, 0.0, 2.0]
    assert td.scatter_add(x, 0, at, td.ones(3)).tolist() == [1.0, 3.0, 3.0]
    assert td.scatter_reduce(x, 0, at, td.ones(3) * 9, "prod").tolist() == [1.0, 18.0, 3.0]


def test_refusals(device):
    x = td.ones((2, 3))
    with pytest.raises(td.errors.ShapeError, match=r"\(4,\) has not as many axes .* \(2, 3\)"):
        td.gather(x, 0, td.zeros(4, dtype=td.int32))
    with pytest.raises(td.errors.ShapeError, match=r"\(1, 4\) is longer along axis 1"):
        td.scatter(x, 0, td.zeros((1, 4), dtype=td.int32), 1.0)
    with pytest.raises(td.errors.ShapeError, match=r"\(1, 3\) reaches beyond src"):
        td.scatter(x, 0, td.zeros((1, 3), dtype=td.int32), td.ones((1, 2)))
    with pytest.raises(td.errors.ShapeError, match=r"\(2, 2\), and 3 places along axis 1"):
        td.index_add(x, 1, [0, 1, 1], td.ones((2, 2)))
    with pytest.raises(td.errors.DtypeError, match="integers"):
        td.gather(x, 0, td.ones((1, 1)))
    with pytest.raises(td.errors.DtypeError, match="cast one"):
        td.scatter(x, 0, td.zeros((1, 1), dtype=td.int32), td.ones((1, 1), dtype=td.int32))
    with pytest.raises(IndexError, match="7"):
        td.index_select(x, 0, [7])
    with pytest.raises(ValueError, match="reduce"):
        td.scatter_reduce(x, 0, td.zeros((1, 1), dtype=td.int32), x, "median")


@pytest.mark.parametrize("dtype", [td.i32, td.u32, td.f32, td.i8, td.f16, td.i64, td.f64], ids=str)
def test_adding_to_few_elements(device, rng, monkeypatch, dtype):
    """As GPUs add many values to few elements: blocks add them up in shared memory first."""
    if not has(device, dtype):
        return
    monkeypatch.setattr(scatter, "serial_threads", lambda _: False)
    monkeypatch.setattr(scatter, "_MANY", 1)
    for count, size in [(1, 1), (77, 5), (4099, 127), (9001, 1025)]:
        at = rng.integers(-3, size + 3, count).astype(np.int32)
        inside = (at >= 0) & (at < size)
        for values in (rng.integers(0, 9, count), rng.integers(1, 3, 1)):
            values = values.astype(dtype.numpy)
            wanted = rng.integers(0, 9, size).astype(dtype.numpy)
            target = on(device, wanted)
            if dtype.is_float:
                wanted = wanted.astype(np.float64)
            np.add.at(wanted, at[inside], np.broadcast_to(values, count)[inside])
            scatter.add(target, on(device, at), on(device, values))
            np.testing.assert_array_equal(target.to_host(), wanted)


def test_adding_to_few_elements_keeps_zeros_and_spreads_nan(device, monkeypatch):
    monkeypatch.setattr(scatter, "serial_threads", lambda _: False)
    monkeypatch.setattr(scatter, "_MANY", 1)
    target = on(device, np.array([-0.0, 0.0, 1.0, 2.0], np.float32))
    at = on(device, np.array([2, 3, 3, 2] * 8, np.int32))
    values = on(device, np.array([np.nan, np.inf, np.inf, 1.0] * 8, np.float32))
    scatter.add(target, at, values)
    found = target.to_host()
    np.testing.assert_array_equal(found, [-0.0, 0.0, np.nan, np.inf])
    np.testing.assert_array_equal(np.signbit(found[:2]), [True, False])
