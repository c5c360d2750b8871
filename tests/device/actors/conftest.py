"""Tests with a `mode` run once on devices that have one mode, and in each on the others.

Persistent kernels are run on the CPU, as functions of a thread: the rings' memory is the host's
there, too, and the kernel is the same. Users cannot ask for that: mode "thread" does it better.
"""

from __future__ import annotations

import pytest

import treadle as td

_RESIDENT = "cpu"  # on cards it is the usual mode
_SEVERAL_MODES = frozenset({"cpu", "cuda"})
_NOT_RESIDENT = frozenset({"test_many_blocks", "test_waiting_is_sleeping"})  # on the CPU it polls


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    twice = [item for item in items if _is_repeated(item)]
    if twice:
        config.hook.pytest_deselected(items=twice)
        gone = set(twice)
        items[:] = [item for item in items if item not in gone]


def _is_repeated(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    device, mode = parameters.get("device"), parameters.get("mode")
    if mode == "persistent":
        return device != _RESIDENT or getattr(item, "originalname", "") in _NOT_RESIDENT
    return mode == "relaunch" and device not in _SEVERAL_MODES


@pytest.fixture(params=["usual", "relaunch", "persistent"])
def mode(
    request: pytest.FixtureRequest, device: td.Device, monkeypatch: pytest.MonkeyPatch
) -> str | None:
    """Each mode of a device once."""
    if request.param == "persistent":
        modes = ["thread", "persistent", "relaunch"]
        monkeypatch.setattr("treadle.actors.decorator.modes_of", lambda device: modes)
    return None if request.param == "usual" else str(request.param)
