"""Guards: what a trace expects to find around its function, as one generated Python function.

Each guard is an expression that is true as long as nothing has changed. All of a trace's are
compiled into one flat function with the objects as its defaults, since that is what a call pays
for: some tens of nanoseconds for each.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple

import numpy as np

MISSING: Any = object()
_EQUAL = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), range})
PLAIN = _EQUAL | {float, complex}
PASSED = -1
_IN_ONE = 2000  # guards in a generated function


class Guard(NamedTuple):
    """An expression with the objects that stand for `{0}`, `{1}`, … in it. `name` is what people
    call the place, `read` gives what is there now (an expression, too), `value` what was there."""

    test: str
    objects: tuple[Any, ...]
    name: str
    read: str = ""
    value: Any = MISSING
    is_replaced: bool = False  # whether an object was there that others may let go


def same(one: Any, other: Any) -> bool:
    """Whether plain values are equal, of one type, and the same zero; NaN is itself."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _EQUAL:
        return bool(one == other)
    if kind is float or kind is complex:
        return repr(one) == repr(other)
    return isinstance(one, np.generic) and one.tobytes() == other.tobytes()


def is_plain(value: Any) -> bool:
    """Whether a value is compared, and not the object."""
    return type(value) in PLAIN or isinstance(value, np.generic)


def is_number(value: Any) -> bool:
    """Whether a value is a number, or an array of them."""
    return isinstance(value, (int, float, complex, np.generic, np.ndarray)) and (
        type(value) is not bool
    )


def is_alive(guard: Guard, guards: Iterable[Guard]) -> bool:
    """Whether the object that a guard expects is held by more than these guards, which are those of
    one trace: then it may come back to its place."""
    own = sum(
        sum(map(is_, objects, repeat(guard.value)))
        for each in guards
        for objects in (each.objects, (each.value,))
    )
    own += 1  # the defaults of the generated function
    probe = (object(),)
    return sys.getrefcount(guard.value) - sys.getrefcount(probe[0]) + 1 > own


def is_held(value: Any, known: list[Any]) -> bool:
    """Whether anything holds an object but a list, and keys and guards of traces, which are tuples:
    as far as the collector knows."""
    return not all(
        each is known or isinstance(each, (tuple, types.FrameType))
        for each in gc.get_referrers(value)
    )


def same_elements(values: Any, known: list[Any]) -> bool:
    """Whether a sequence has these elements."""
    if len(values) != len(known):
        return False
    return all(map(is_, values, known)) or all(map(same, values, known))


def same_members(values: Any, known: dict[int, Any]) -> bool:
    """Whether a set has these members."""
    if len(values) != len(known):
        return False
    if all(id(each) in known for each in values):
        return True
    return {_told(each) for each in values} == {_told(each) for each in known.values()}


def _told(value: Any) -> Any:
    return (type(value), repr(value)) if is_plain(value) else id(value)


def is_unset(value: Any, slot: Any) -> bool:
    """Whether an object has nothing in a slot of its class."""
    try:
        slot.__get__(value, type(value))
    except AttributeError:
        return True
    return False


def same_subclasses(kind: type, known: list[Any]) -> bool:
    """Whether a class has these subclasses, which are held weakly."""
    return kind.__subclasses__() == [each() for each in known]


def same_numbers(array: Any, known: np.ndarray[Any, Any], data: bytes) -> bool:
    """Whether a NumPy array has this type, shape and content."""
    return (
        array.dtype == known.dtype and array.shape == known.shape and bool(array.tobytes() == data)
    )


def same_bytes(array: Any, data: bytes) -> bool:
    """Whether an array of bytes or numbers has this content."""
    return memoryview(array).tobytes() == data


_HELPERS = {
    "same": same, "same_elements": same_elements, "same_members": same_members,
    "same_numbers": same_numbers, "same_bytes": same_bytes,
    "same_subclasses": same_subclasses, "is_unset": is_unset, "issubclass": issubclass,
    "MISSING": MISSING,
    "all": all, "map": map, "is_": is_, "len": len, "getattr": getattr, "hasattr": hasattr,
    "type": type,
}  # fmt: skip


def checker(guards: Sequence[Guard]) -> Callable[[], int]:
    """A function that gives the number of a guard that does not hold, PASSED if all do."""
    if len(guards) > _IN_ONE:
        parts = [guards[at : at + _IN_ONE] for at in range(0, len(guards), _IN_ONE)]
        checks = [checker(part) for part in parts]

        def check_all() -> int:
            for number, check in enumerate(checks):
                failed = check()
                if failed != PASSED:
                    return number * _IN_ONE + failed
            return PASSED

        return check_all
    names: dict[int, str] = {}
    objects: list[Any] = []
    lines: list[str] = []
    for number, guard in enumerate(guards):
        own = []
        for each in guard.objects:
            name = names.get(id(each))
            if name is None:
                name = names[id(each)] = f"o{len(objects)}"
                objects.append(each)
            own.append(name)
        lines.append(f"        if not ({guard.test.format(*own)}): return {number}")
    check = _compiled(objects, lines)

    def alone() -> int:
        """The number of the first that does not hold, where looking at one fails."""
        for number, guard in enumerate(guards):
            if not holds(guard):
                return number
        return PASSED

    def checked() -> int:
        try:
            return int(check())
        except Exception:  # noqa: BLE001 - what is looked at is not there any more
            return alone()

    return checked


def holds(guard: Guard) -> bool:
    """Whether one guard holds."""
    line = f"        if not ({guard.test.format(*_named(guard))}): return 0"
    try:
        return bool(_compiled(guard.objects, [line])() == PASSED)
    except Exception:  # noqa: BLE001 - it is not there any more
        return False


def now(guard: Guard) -> Any:
    """What is at a guard's place now; MISSING if there is nothing."""
    if not guard.read:
        return MISSING
    line = f"        return {guard.read.format(*_named(guard))}"
    try:
        return _compiled(guard.objects, [line])()
    except Exception:  # noqa: BLE001 - it is not there any more
        return MISSING


def _named(guard: Guard) -> list[str]:
    return [f"o{at}" for at in range(len(guard.objects))]


def _compiled(objects: Sequence[Any], lines: Iterable[str]) -> Callable[[], Any]:
    """A function of these lines, with objects as `o0`, `o1`, …"""
    parameters = ", ".join(f"o{at}=None" for at in range(len(objects)))
    source = [f"def check({parameters}):", *lines, f"        return {PASSED}"]
    space: dict[str, Any] = dict(_HELPERS)
    exec(compile("\n".join(source), "<guards>", "exec"), space)
    check: Any = space.pop("check")  # no cycle: its objects go when it does
    check.__defaults__ = tuple(objects) or None
    return check  # type: ignore[no-any-return]
