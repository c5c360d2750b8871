"""One suite for every device: `device` is each of those present, in turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td

# How each is asked for. The same physical device through OpenGL is a device of its own here.
_ASKED = {
    "cpu": {"spec": "cpu"},
    "webgpu": {"spec": "webgpu"},
    "webgpu-gl": {"spec": "webgpu", "api": "gl"},
}


@pytest.fixture(params=list(_ASKED))
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    try:
        found = td.device(**_ASKED[request.param])
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
