"""Tests with a `mode` run once on devices that have one mode, and in each on the others.

Persistent kernels are run on the CPU, as functions of a thread: the rings' memory is the host's
there, too, and the kernel is the same. Users cannot ask for that: mode "thread" does it better.
"""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.environment import is_on

# On a card once it is asked for.
_RESIDENT = {"cpu", "cuda"} if is_on("TREADLE_PERSISTENT_ACTORS") else {"cpu"}
_SEVERAL_MODES = frozenset({"cpu", "cuda"})
_NOT_RESIDENT = frozenset({
    "test_threads_of_a_block", "test_many_blocks", "test_a_pipeline", "test_two_into_one",
    "test_a_full_end_stalls_the_beginning", "test_the_end_of_the_other_one",
    "test_policies_of_receivers",  # of which one drops the oldest
})  # fmt: skip


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
        return device not in _RESIDENT or getattr(item, "originalname", "") in _NOT_RESIDENT
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
