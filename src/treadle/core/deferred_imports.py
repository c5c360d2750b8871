"""Public names that are imported when they are first used (PEP 562).

A package that exports names says in a table which module has each, and this is all that importing
the package costs. `tools/stubs.py` writes the same table as a stub, with imports, for type checkers
and editors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Exports = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def exports(module: str, names: Mapping[str, str], submodules: str = "") -> Exports:
    """`__all__`, `__getattr__` and `__dir__` of a module.

    `names` has the exported names by the module that defines them, `submodules` the public modules
    of a package, each as one text. No name is that of another submodule of the package: importing
    that one would replace what the name stands for.
    """
    places = {name: place for place, each in names.items() for name in each.split()}
    modules = frozenset(submodules.split())
    listed = sorted([*places, *modules])

    def find(name: str) -> Any:
        """The value of a name, imported now, and from here on an attribute of the module."""
        place = places.get(name)
        if place is not None:
            value = getattr(__import__(place, fromlist=(name,)), name)
        elif name in modules:
            value = import_module(f"{module}.{name}")
        else:
            # With the module in it, Python suggests names that are spelled nearly the same.
            raise AttributeError(
                f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module]
            )
        setattr(sys.modules[module], name, value)
        return value

    def shown() -> list[str]:
        """The exported names, imported or not, and what Python adds to a module."""
        special = (each for each in vars(sys.modules[module]) if each.startswith("__"))
        return sorted({*special, *listed})

    return listed, find, shown


class DeferredAttribute:
    """A method, operator or property of a class that is imported when it is first used, and then
    takes this one's place in the class.

    `place` is the module that has it, or `module:TABLE` for an entry of a table there.
    """

    def __init__(self, place: str, function: str, *, is_property: bool = False) -> None:
        self._place = place
        self._function = function
        self._is_property = is_property

    def add_to(self, owner: type, name: str) -> None:
        """Make it the attribute of a class."""
        if name in vars(owner):
            raise AssertionError(f"{owner.__name__}.{name} is there already")
        self._owner, self._name = owner, name
        setattr(owner, name, self)

    def found(self) -> Any:
        """What the class has from here on."""
        module, _, table = self._place.partition(":")
        there = import_module(module)
        value = getattr(there, table)[self._function] if table else getattr(there, self._function)
        value = property(value) if self._is_property else value
        setattr(self._owner, self._name, value)
        return value

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self.found().__get__(instance, owner)


class DeferredProperty(DeferredAttribute):
    """A property, which objects cannot replace before it is used either."""

    def __init__(self, place: str, function: str) -> None:
        super().__init__(place, function, is_property=True)

    def __set__(self, instance: object, value: object) -> None:
        self.found().__set__(instance, value)
