"""Public names that are imported when they are first used (PEP 562).

A package that exports names says in a table which module has each, and this is all that importing
the package costs. `tools/stubs.py` writes the same table as a stub, with imports, for type checkers
and editors.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import RLock, get_ident
from types import MappingProxyType
from typing import Any, NoReturn

from treadle.core import forks

_PAUSE = 1e-3  # seconds between looks at whether other threads are done


class _Running:
    """The deferred imports that run now, by thread; for `forks` a lock, which is taken where no
    other thread imports. In a child that is forked while another thread imports a module, that
    module stays locked for ever."""

    def __init__(self) -> None:
        self._gate = RLock()  # held for moments, and by a thread that forks
        self._threads: Counter[int] = Counter()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """While this thread imports."""
        me = get_ident()
        with self._gate:
            self._threads[me] += 1
        try:
            yield
        finally:
            with self._gate:
                self._threads[me] -= 1
                if not self._threads[me]:
                    del self._threads[me]

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Keep other threads from importing, once none does."""
        limit = time.monotonic() + timeout
        while True:
            if self._gate.acquire(blocking=False):
                if not self._threads.keys() - {get_ident()}:
                    return True
                self._gate.release()
            if not blocking or (timeout >= 0 and time.monotonic() >= limit):
                return False
            time.sleep(_PAUSE)

    def release(self) -> None:
        """Let them import again."""
        self._gate.release()

    def _at_fork_reinit(self) -> None:
        self._gate._at_fork_reinit()  # type: ignore[attr-defined]
        self._threads = Counter({me: n for me, n in self._threads.items() if me == get_ident()})


_running = _Running()
forks.adopt(_running)
# For imports in functions that several threads may call first.
importing = _running.one_more

# What to write instead of names that modules lack, by the modules.
_elsewhere: dict[str, Mapping[str, str]] = {}


class _Advising:
    """What Python asks for a module that has not been found: for one that other libraries have the
    error says what to use, as for attributes."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Never finds one."""
        package, _, last = name.rpartition(".")
        advice = _elsewhere.get(package, {}).get(last)
        if advice is not None:
            # Without the attribute `name`: `from package import last` would ignore the error.
            raise ModuleNotFoundError(f"{package!r} has no {last!r}: {advice}")


Exports = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def exports(
    module: str,
    names: Mapping[str, str],
    submodules: str = "",
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> Exports:
    """`__all__`, `__getattr__` and `__dir__` of a module.

    `names` has the exported names by the module that defines them, `submodules` the public modules
    of a package, each as one text. `elsewhere` has what to write for names that other libraries
    have and this module lacks. No name is that of another submodule of the package: importing
    that one would replace what the name stands for.
    """
    places = {name: place for place, each in names.items() for name in each.split()}
    modules = frozenset(submodules.split())
    if elsewhere:
        _elsewhere[module] = elsewhere
        if _Advising not in sys.meta_path:
            sys.meta_path.append(_Advising)
    listed = sorted([*places, *modules])

    def find(name: str) -> Any:
        """The value of a name, imported now, and from here on an attribute of the module."""
        place = places.get(name)
        if place is not None:
            with importing():
                value = getattr(__import__(place, fromlist=(name,)), name)
        elif name in modules:
            with importing():
                value = import_module(f"{module}.{name}")
        elif name in elsewhere:
            raise AttributeError(f"module {module!r} has no attribute {name!r}: {elsewhere[name]}")
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
        with importing():
            there = import_module(module)
        value = getattr(there, table)[self._function] if table else getattr(there, self._function)
        value = property(value) if self._is_property else value
        setattr(self._owner, self._name, value)
        return value

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self.found().__get__(instance, owner)


class Elsewhere:
    """An attribute that a class lacks and that others have under this name: the error says what to
    write."""

    def __init__(self, advice: str) -> None:
        self._advice = advice

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: {self._advice}"
        )


class DeferredProperty(DeferredAttribute):
    """A property, which objects cannot replace before it is used either."""

    def __init__(self, place: str, function: str) -> None:
        super().__init__(place, function, is_property=True)

    def __set__(self, instance: object, value: object) -> None:
        self.found().__set__(instance, value)
