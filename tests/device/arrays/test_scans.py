"""Running sums and products against NumPy in float64 or, of integers, exactly."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import has
from treadle.core import dtypes
from treadle.kernels import accumulate

# Rows of one thread, of one tile and of several, which may themselves be several tiles of totals;
# lines across memory, whole and in pieces.
LINES = [
    ((1,), 0), ((0,), 0), ((3, 0), 1), ((3, 0), 0), ((5, 9), 1), ((5, 9), 0), ((2, 103), -1),
    ((2, 2503), 1), ((1031, 3), 0), ((2, 97, 5), 1),
]  # fmt: skip


def running(x, axis, initial, of=np.cumsum):
    """NumPy's, in 64 bits."""
    wide = of(x, axis=axis, dtype={"f": "f8", "c": "c16", "u": "u8"}.get(x.dtype.kind, "i8"))
    if not initial:
        return wide
    first = np.full_like(wide, of is np.cumprod, shape=np.delete(x.shape, axis))
    return np.concatenate([np.expand_dims(first, axis), wide], axis)


@pytest.mark.parametrize(("shape", "axis"), LINES, ids=str)
def test_lines(device, rng, shape, axis):
    x = rng.standard_normal(shape).astype(np.float32)
    t = td.asarray(x)
    for initial in (False, True):
        found = td.cumulative_sum(t, axis=axis, include_initial=initial)
        expected = running(x, axis, initial)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, 1e-5, 3e-5)


@pytest.mark.parametrize("dtype", dtypes.ALL_DTYPES, ids=str)
def test_dtypes(device, rng, dtype):
    """As of sums: small integers in the default one; what does not fit wraps."""
    if not has(device, dtype):
        return
    if dtype.is_integer or dtype.kind == "bool":
        x = rng.integers(-(1 << 31), 1 << 31, (2, 71)).astype(dtype.numpy)
    else:
        x = np.exp(rng.standard_normal((2, 71)) / 16).astype(dtype.numpy)
    if dtype.kind == "complex":
        x = (x * np.exp(1j * rng.standard_normal(x.shape))).astype(dtype.numpy)
    t = td.asarray(x)
    for function, of, initial in [
        (td.cumulative_sum, np.cumsum, False), (td.cumulative_prod, np.cumprod, True),
    ]:  # fmt: skip
        found = function(t, axis=1, include_initial=initial)
        assert found.dtype is td.sum(t).dtype
        wide = x if dtype is not td.bfloat16 else x.astype(np.float32)
        expected = running(wide, 1, initial, of)
        if found.dtype.is_integer:
            np.testing.assert_array_equal(found.numpy(), expected.astype(found.dtype.numpy))
        else:
            tolerance = {2: 1e-2, 4: 2e-6}.get(dtype.component.itemsize, 1e-13)
            result = found.numpy().astype(expected.dtype)
            np.testing.assert_allclose(result, expected, 20 * tolerance, tolerance)


def test_dtype_is_given(device):
    x = td.asarray([100.9, 100.9, 100.9], dtype=td.float32)
    assert td.cumulative_sum(x, dtype=td.int8).tolist() == [100, -56, 44]
    assert td.cumulative_sum(x, dim=0, dtype=td.complex64).dtype is td.complex64
    with pytest.raises(td.errors.DtypeError, match="imaginary"):
        td.cumulative_prod(td.asarray([1j]), dtype=td.float32)
    with pytest.raises(td.errors.DtypeError, match="bool"):
        td.cumulative_sum(x, dtype=td.bool)


def test_axis_is_needed(device):
    with pytest.raises(ValueError, match="along which axis"):
        td.cumulative_sum(td.ones((2, 3)))
    assert td.cumulative_sum(td.ones(())).item() == 1.0  # along the only way there is
    with pytest.raises(IndexError):
        td.cumulative_sum(td.ones(3), axis=1)


def test_views_and_expressions(device, rng):
    x = rng.standard_normal((5, 6)).astype(np.float32)
    t = td.asarray(x)
    found = td.cumulative_sum(t[::-1, 1:4] * 2, axis=0) - t[:, :3]
    expected = np.cumsum(x[::-1, 1:4] * 2, axis=0, dtype=np.float64) - x[:, :3]
    np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-5)


def test_products_of_pieces_do_not_overflow(device):
    if "float64" not in device.features:
        return
    x = np.full(1003, 1e20, np.float32)
    x[::2] = 1e-20
    found = td.cumulative_prod(td.asarray(x)).numpy()
    np.testing.assert_allclose(found[::2], 1e-20, 1e-4)
    np.testing.assert_allclose(found[1::2], 1.0, 1e-4)


def test_long_lines_lose_little(device, rng):
    if "ptx" in device.id:  # an evaluator is too slow for so many
        return
    x = rng.random(1_000_003).astype(np.float32)
    found = td.cumulative_sum(td.asarray(x)).numpy()
    np.testing.assert_allclose(found, np.cumsum(x, dtype=np.float64), 1e-6)
    found = td.cumulative_sum(td.asarray(x[:1_000_002].reshape(-1, 2)), axis=0).numpy()
    expected = np.cumsum(x[:1_000_002].reshape(-1, 2), axis=0, dtype=np.float64)
    np.testing.assert_allclose(found, expected, 1e-6)


def test_more_than_one_launch_takes(device):
    if device.backend == "cpu":
        x = td.zeros(3)._array
        far = type(x)(x.device, x.storage, x.dtype, (1 << 31,), (0,))
        with pytest.raises(td.errors.ShapeError, match="too many"):
            accumulate.accumulate(far, "sum")
