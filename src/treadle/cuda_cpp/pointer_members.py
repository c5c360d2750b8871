"""The members of the caller's structs that are pointers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.cuda_cpp.program import (
    PointerSlot,
)
from treadle.cuda_cpp.python_values import (
    Mismatch,
    described,
    fields_of,
    is_gap,
    is_union,
)
from treadle.ir.types import Struct


def field_names(type: Struct) -> list[str]:
    return [one.name for one in type.fields if not is_gap(one)]


def pointed(slot: PointerSlot, item: Any) -> list[Any]:
    """What the pointers of a slot point to in one element."""
    given = member_of(slot, item)
    if not slot.many or not given:
        return given
    found = flat(given[0])
    if not isinstance(given[0], (list, tuple)) or len(found) != slot.count:
        raise Mismatch(
            f"has {slot.words}, but {described(given[0])} was given: pass a list of {slot.count}"
        )
    return found


def member_of(slot: PointerSlot, item: Any) -> list[Any]:
    """The value of a slot's member in one element; none if it is in a union that has another."""
    type: Any = slot.owner
    for name in slot.path:
        if is_union(type):
            return [item[name]] if isinstance(item, Mapping) and set(item) == {name} else []
        names = field_names(type)
        item = fields_of(item, names)[names.index(name)]
        type = type.field_type(name)
    return [item]


def flat(value: Any) -> list[Any]:
    """The items of nested lists."""
    if not isinstance(value, (list, tuple)):
        return [value]
    return [one for item in value for one in flat(item)]


def is_index(value: Any) -> bool:
    """Whether a value is the index of an element in its own list, which stands for a pointer."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
