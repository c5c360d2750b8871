"""Guards: what must hold around a function for its trace, as one generated Python function.

Each guard is an expression that is true as long as nothing has changed. All guards of a trace are
compiled into one flat function with the objects as its defaults, since every call evaluates them:
some tens of nanoseconds each.
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
_IN_ONE = 2000  # guards in one generated function


class Guard(NamedTuple):
    """An expression with the objects for its `{0}`, `{1}`, … `name` describes the place for
    messages, `read` is an expression for its current value, `value` is the expected one."""

    test: str
    objects: tuple[Any, ...]
    name: str
    read: str = ""
    value: Any = MISSING
    is_replaced: bool = False  # whether the value is an object that others may release


def same(one: Any, other: Any) -> bool:
    """Whether plain values are identical: equal, of one type, and with the same sign of zero; NaN
    is NaN."""
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
    """Whether a value is compared by value, not by identity."""
    return type(value) in PLAIN or isinstance(value, np.generic)


def is_number(value: Any) -> bool:
    """Whether a value is a number, or an array of them."""
    return isinstance(value, (int, float, complex, np.generic, np.ndarray)) and (
        type(value) is not bool
    )


def is_alive(guard: Guard, guards: Iterable[Guard]) -> bool:
    """Whether the object that a guard expects is referenced by more than these guards of one trace:
    then it may return to its place."""
    own = sum(
        sum(map(is_, objects, repeat(guard.value)))
        for each in guards
        for objects in (each.objects, (each.value,))
    )
    own += 1  # the defaults of the generated function
    probe = (object(),)
    return sys.getrefcount(guard.value) - sys.getrefcount(probe[0]) + 1 > own


def is_held(value: Any, known: list[Any]) -> bool:
    """Whether anything references an object except a list, and the keys and guards of traces, which
    are tuples, as far as the garbage collector knows."""
    return not all(
        each is known or isinstance(each, (tuple, types.FrameType))
        for each in gc.get_referrers(value)
    )


def same_elements(values: Any, known: list[Any]) -> bool:
    """Whether a sequence has these elements."""
    if len(values) != len(known):
        return False
    return all(map(is_, values, known)) or all(map(same, values, known))


def same_entries(values: dict[Any, Any], keys: list[Any], known: list[Any]) -> bool:
    """Whether a dict has these objects at these keys, and maybe others."""
    return all(map(is_, map(values.get, keys, repeat(MISSING)), known))


def same_members(values: Any, known: dict[int, Any]) -> bool:
    """Whether a set has these members."""
    if len(values) != len(known):
        return False
    if all(id(each) in known for each in values):
        return True
    return {_member_key(each) for each in values} == {_member_key(each) for each in known.values()}


def _member_key(value: Any) -> Any:
    return (type(value), repr(value)) if is_plain(value) else id(value)


def is_unset(value: Any, slot: Any) -> bool:
    """Whether a slot of an object is unset."""
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
    "same_entries": same_entries,
    "same_numbers": same_numbers, "same_bytes": same_bytes,
    "same_subclasses": same_subclasses, "is_unset": is_unset, "issubclass": issubclass,
    "MISSING": MISSING,
    "all": all, "map": map, "is_": is_, "len": len, "getattr": getattr, "hasattr": hasattr,
    "type": type,
}  # fmt: skip


def checker(guards: Sequence[Guard]) -> Callable[[], int]:
    """A function that returns the number of a guard that does not hold, or PASSED."""
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

    def check_singly() -> int:
        """The number of the first that does not hold, if evaluating one raised."""
        for number, guard in enumerate(guards):
            if not holds(guard):
                return number
        return PASSED

    def checked() -> int:
        try:
            return int(check())
        except Exception:  # noqa: BLE001 - an object or attribute is gone
            return check_singly()

    return checked


def holds(guard: Guard) -> bool:
    """Whether one guard holds."""
    line = f"        if not ({guard.test.format(*_named(guard))}): return 0"
    try:
        return bool(_compiled(guard.objects, [line])() == PASSED)
    except Exception:  # noqa: BLE001 - it is not there any more
        return False


def now(guard: Guard) -> Any:
    """The current value at a guard's place; MISSING if there is none."""
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
    """A function of these lines, with the objects as `o0`, `o1`, …"""
    parameters = ", ".join(f"o{at}=None" for at in range(len(objects)))
    source = [f"def check({parameters}):", *lines, f"        return {PASSED}"]
    space: dict[str, Any] = dict(_HELPERS)
    exec(compile("\n".join(source), "<guards>", "exec"), space)
    check: Any = space.pop("check")  # no cycle: its objects are released with it
    check.__defaults__ = tuple(objects) or None
    return check  # type: ignore[no-any-return]
