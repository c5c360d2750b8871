"""The table of ways to hold a value around a function, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Held = tuple[Callable[[], Any], Callable[[Any], None]]
HOLDERS: dict[str, Callable[[Any], Held]] = {}


def holder(make: Callable[[Any], Held]) -> Callable[[Any], Held]:
    HOLDERS[make.__name__] = make
    return make


class Plain:
    held: Any = None

    def __init__(self, value=None):
        self.held = value

    def read(self):
        return self.held

    def __call__(self):
        return self.read()


def setter(owner, name="held"):
    return lambda new: setattr(owner, name, new)
