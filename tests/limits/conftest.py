"""Devices that allow no more than a phone's GPU does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import treadle as td
from tests.device.conftest import rng  # noqa: F401 - a fixture
from tests.support.small_devices import small_device


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    """The small device of the test's file: `THREADS` invocations a workgroup."""
    found = small_device(request.module.THREADS)
    with td.use_device(found):
        yield found
