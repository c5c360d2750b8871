"""Which tests of the device suite run on a small device."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def device_suite(
    *modules: ModuleType, without: dict[str, str] | None = None
) -> dict[str, Callable[..., Any]]:
    """The modules' tests by name, but those in `without`, which says why."""
    found = {
        name: test
        for module in modules
        for name, test in vars(module).items()
        if name.startswith("test_")
    }
    for name in without or {}:
        del found[name]  # KeyError for a test that is no longer there
    return found
