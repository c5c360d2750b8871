"""Devices that allow no more than a phone's GPU does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import treadle as td
from tests.device.conftest import rng  # noqa: F401 - a fixture
from tests.support.small_devices import small_device


@pytest.fixture(params=["webgpu", "dawn"])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    """The small devices of the test's file: `THREADS` invocations a workgroup."""
    try:
        found = small_device(request.module.THREADS, request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found
