"""Devices that allow no more than a phone's GPU does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import treadle as td
from tests.device.conftest import rng  # noqa: F401 - a fixture
from tests.support.small_devices import small_device


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the two sizes Dawn has the smaller one, whose threads are folded more."""
    if not config.option.markexpr:  # all of it
        return
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_left_out(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return item.path.stem == "test_64_invocations" and parameters.get("device") == "dawn"


@pytest.fixture(params=["webgpu", "dawn"])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    """The small devices of the test's file: `THREADS` invocations a workgroup."""
    try:
        found = small_device(request.module.THREADS, request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found
