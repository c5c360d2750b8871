"""What a kernel changed in structs with pointers, written to the caller's."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from treadle.cuda_cpp.pointer_members import is_index, member_of, pointed
from treadle.cuda_cpp.pointer_records import KernelPointer, Pool, Tables, Words
from treadle.cuda_cpp.program import (
    Again,
    Direct,
    KernelInstance,
    PointerSlot,
    Table,
    number_of_memory,
)
from treadle.cuda_cpp.semantics.types import UNION_WORDS
from treadle.ir.types import Struct, size_of


def write_back(
    made: Sequence[Any],
    instance: KernelInstance,
    found: Tables,
    pool: Pool,
    host: Any,
    before: Any,
    places: Mapping[int, Mapping[int, int]],
) -> None:
    """Write what a kernel changed to the caller's structs and lists: numbers, and pointers."""
    if host.tobytes() == before.tobytes():
        return
    layout = pool.layout
    for slot in layout.slots:
        if slot.in_union:
            continue
        for at, item in enumerate(pool.items):
            new, old = host[at], before[at]
            for name in slot.path:
                new, old = new[name], old[name]
            if (new == old).all():
                continue
            pairs = [(int(one[0]), int(one[1])) for one in new.reshape(-1, 2)]
            target, key = (item, slot.path[-1]) if slot.path else pool.owners[at]
            for name in slot.path[:-1]:
                target = target[name] if isinstance(target, Mapping) else getattr(target, name)
            given = pointed(slot, item)
            values = [
                _value_of(made, instance, found, pool, at, slot, pair, places, one)
                for pair, one in zip(pairs, given, strict=True)
            ]
            shaped = _like(member_of(slot, item)[0], values) if slot.many else values[0]
            if any(one is _ELSEWHERE for one in values) or not _set(target, key, shaped):
                warnings.warn(
                    f"kernel {instance.name} stored {slot.words} in memory of the caller that "
                    "point elsewhere: they are valid until the kernel ends, and are not passed on",
                    RuntimeWarning,
                    stacklevel=5,
                )
    paths = frozenset(slot.path for slot in layout.slots if not slot.in_union)
    for at, item in enumerate(pool.items):
        if isinstance(layout.element, Struct):
            _changed(item, host[at], before[at], paths, ())


_ELSEWHERE = object()


def _like(shape: Any, values: Sequence[Any]) -> Any:
    """Values in nested lists of some shape."""
    left = iter(values)

    def build(one: Any) -> Any:
        return [build(each) for each in one] if isinstance(one, (list, tuple)) else next(left)

    return build(shape)


def _value_of(
    made: Sequence[Any],
    instance: KernelInstance,
    found: Tables,
    pool: Pool,
    at: int,
    slot: PointerSlot,
    words: Words,
    places: Mapping[int, Mapping[int, int]],
    given: Any,
) -> Any:
    """What a pointer in memory points to, as the caller has it."""
    offset, number = words
    if not number:
        return -1 if is_index(given) else None
    layout = slot.layout
    if number == slot.number and isinstance(layout, Direct):
        known = {place: one for one, place in places.get(layout.position, {}).items()}
        values = {id(one): one for one in found.pointed.get(layout.position, ())}
        if offset in known:
            return values[known[offset]]
    if isinstance(layout, (Table, Again)) and layout.position in found.pools:
        target = found.pools[layout.position]
        size = size_of(target.layout.element)
        if number == target.layout.number and offset % size == 0:
            index = offset // size
            if index < len(target.items):
                return _element(target, pool, at, index, given)
    if number in {number_of_memory(f"variable {name}") for name in slot.lasting}:
        return KernelPointer(offset, number, found.device)
    for position, parameter in enumerate(instance.parameters):
        if number == number_of_memory(f"{instance.name}({parameter.name})"):
            return _argument_from(made[position], offset)
    return _ELSEWHERE


def _element(target: Pool, pool: Pool, at: int, index: int, given: Any) -> Any:
    """An element as the caller has it: its index, its list, or the struct."""
    owner, place = target.owners[index]
    if isinstance(owner, list) and is_index(given) and target is pool:
        return place if target.starts[index] == pool.starts[at] else _ELSEWHERE
    if isinstance(target.items[index], np.void):
        return _ELSEWHERE
    if place == 0 and not isinstance(target.layout.element, Struct):
        return owner
    return target.items[index] if isinstance(target.layout.element, Struct) else _ELSEWHERE


def _argument_from(array: Any, offset: int) -> Any:
    """An argument of the launch from a place on, in bytes."""
    size = getattr(getattr(array, "dtype", None), "itemsize", 0)
    if not size or offset % size:
        return _ELSEWHERE
    return array if not offset else array.reshape(-1)[offset // size :]


def _set(target: Any, key: Any, value: Any) -> bool:
    """Set an item or attribute; False if it cannot be."""
    if isinstance(target, (list, MutableMapping, np.void)):
        target[key] = value
        return True
    if isinstance(key, str) and hasattr(target, "__dict__"):
        setattr(target, key, value)
        return True
    return False


def _changed(
    item: Any, new: Any, old: Any, pointers: frozenset[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    by_name = isinstance(item, (MutableMapping, np.void))
    if not by_name and not hasattr(item, "__dict__"):
        return  # a tuple
    for name in new.dtype.names:
        inner = (*path, name)
        if (
            inner in pointers
            or not name.isidentifier()
            or new[name].tobytes() == old[name].tobytes()
        ):
            continue
        value: Any
        if new[name].dtype.names == (UNION_WORDS,):
            value = new[name].tobytes()  # of whichever member it is
        elif new[name].dtype.names is not None:
            part = item[name] if by_name else getattr(item, name)
            _changed(part, new[name], old[name], pointers, inner)
            continue
        else:
            value = new[name].copy() if new[name].ndim else new[name].item()
        if by_name:
            item[name] = value
        else:
            setattr(item, name, value)
