"""Libraries that take any array of the Array API, on the CPU and on a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td

# SciPy reads it when it is imported, which the tests do later.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture(params=["cpu", "webgpu"])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    try:
        found = td.device(request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@pytest.fixture
def data() -> np.ndarray:
    """Twenty points in three dimensions."""
    return np.random.default_rng(7).standard_normal((20, 3)).astype(np.float32)
