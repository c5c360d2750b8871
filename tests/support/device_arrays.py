"""Device arrays for tests of the kernel library, and numbers to put in."""

from __future__ import annotations

import numpy as np

import treadle as td
from treadle.core import dtypes
from treadle.runtime.arrays import DeviceArray

_NEEDS = {"float64": "float64", "int64": "int64", "uint64": "int64", "complex128": "float64"}


def on(device: td.Device, data) -> DeviceArray:
    """NumPy data on a device."""
    array = DeviceArray.allocate(device, dtypes.as_dtype(data.dtype), data.shape)
    array.upload(data)
    return array


def has(device: td.Device, dtype: dtypes.DType) -> bool:
    """Whether a device has a dtype."""
    _ = device.handle  # features are exact once the device is open
    need = _NEEDS.get(dtype.name)
    return need is None or need in device.features


def drawn(rng: np.random.Generator, dtype: dtypes.DType, shape: tuple[int, ...]):
    """Many equal elements, both ends of the range, and what is special."""
    if dtype.kind == "bool":
        return rng.random(shape) < 0.5
    small = rng.integers(0, 20, shape).astype(dtype.numpy)
    if dtype.is_integer:
        low, high = dtypes.integer_range(dtype)
        ends = rng.integers(low, high, shape, dtype.numpy, endpoint=True)
        return np.where(rng.random(shape) < 0.5, small, ends)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, 1e-7, -1e-7], dtype.numpy)
    return np.where(rng.random(shape) < 0.5, small, rng.choice(special, shape))
