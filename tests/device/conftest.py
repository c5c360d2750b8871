"""One suite for every device: `device` is each of those present, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.dawn import dawn_device
from treadle.drivers.cuda.library import driver_installed

# How each is found. The same physical device through OpenGL, or Dawn, is a device of its own here.
_FOUND: dict[str, Callable[[], td.Device]] = {
    "cpu": lambda: td.device("cpu"),
    "webgpu": lambda: td.device("webgpu"),
    "webgpu-gl": lambda: td.device("webgpu", api="gl"),
    "dawn": dawn_device,
}
if driver_installed():  # else there is nothing to say in each of a thousand skips
    _FOUND["cuda"] = lambda: td.device("cuda")
_MARKS = {"cuda": pytest.mark.cuda}


@pytest.fixture(params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in _FOUND])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    try:
        found = _FOUND[request.param]()
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh numbers at every run; the seed is in the output of a failing test."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    return np.random.default_rng(seed)
