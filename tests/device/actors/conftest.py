"""Tests with a `mode` run once on devices that have one mode, and in each on the others."""

from __future__ import annotations

import pytest

_SEVERAL_MODES = frozenset({"cpu", "cuda"})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    twice = [item for item in items if _is_repeated(item)]
    if twice:
        config.hook.pytest_deselected(items=twice)
        gone = set(twice)
        items[:] = [item for item in items if item not in gone]


def _is_repeated(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    device = parameters.get("device")
    return parameters.get("mode") == "relaunch" and device not in _SEVERAL_MODES
