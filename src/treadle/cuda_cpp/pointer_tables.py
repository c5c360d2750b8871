"""Arguments for pointers in memory: `T **`, and arrays of structs with pointers in them.

All that pointers of one kind point to becomes one array: the arrays themselves if they lie in one
memory, else a copy of them. A pointer is its offset in that array, in bytes, and the array's
number; null is zeros. Structs that point to structs of their own kind, such as the nodes of a list,
are found by following the pointers; each is in the array once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from treadle.core.errors import DtypeError
from treadle.cuda_cpp.joined_arrays import joined
from treadle.cuda_cpp.pointer_members import field_names, is_index, pointed
from treadle.cuda_cpp.pointer_records import KernelPointer, Pool, Raw, Step, Tables, Words
from treadle.cuda_cpp.pointer_results import write_back
from treadle.cuda_cpp.program import (
    Again,
    Direct,
    KernelInstance,
    PointerSlot,
    Split,
    Table,
    Within,
    number_of_memory,
)
from treadle.cuda_cpp.python_values import (
    Mismatch,
    described,
    fields_of,
    is_union,
    record_of,
)
from treadle.cuda_cpp.variables import storage_of
from treadle.ir.signature import DeclaredPointer
from treadle.ir.types import Array, Struct, Type, Void, size_of
from treadle.runtime.arrays import is_array_type
from treadle.runtime.arrays import numpy_dtype as numpy_of
from treadle.runtime.devices import Stream


def gather(
    made: list[Any], tables: Tables, instance: KernelInstance, layout: Table | Within, value: Any
) -> None:
    """Note what an argument leads to: a pointer to pointers, or to structs with pointers."""
    table = layout.table if isinstance(layout, Within) else layout
    if isinstance(layout, Within):
        made[layout.position] = -1
    if value is None:
        return  # null, like all that it would lead to
    if isinstance(value, Raw):
        if isinstance(layout, Within):
            raise Mismatch(
                f"is {layout.type}, and a kernel passed two pointers to such structs to this one: "
                "pass one, with the other in a struct"
            )
        _fill_raw(made, instance, table, value)
        return
    _add(tables, table, value)
    if isinstance(layout, Within):
        made[layout.position] = tables.pools[table.position].places[id(value)][0] * size_of(
            table.element
        )
    while tables.waiting:
        pool, at = tables.waiting.pop()
        for slot in pool.layout.slots:
            for one in pointed(slot, pool.items[at]):
                _follow(tables, slot, one)


def fill_tables(made: list[Any], tables: Tables, instance: KernelInstance) -> None:
    """Set the arguments of a launch for all that was gathered."""
    places: dict[int, dict[int, int]] = {}
    for position, values in tables.pointed.items():
        declared = instance.parameters[position].declared
        assert isinstance(declared, DeclaredPointer)
        size = 1 if isinstance(declared.element, Void) else size_of(declared.element)
        with _of_argument(instance, position):
            made[position], places[position] = joined(tables, tables.slots[position], values, size)
    for position, pool in tables.pools.items():
        with _of_argument(instance, position):
            host = _records(tables, pool, places)
        made[position] = host
        if pool.layout.length is None:
            tables.after.append(_writer(made, instance, tables, pool, host, places))


@contextmanager
def _of_argument(instance: KernelInstance, position: int) -> Iterator[None]:
    """Errors of values as those of the argument that a parameter of the launch is a part of."""
    try:
        yield
    except Mismatch as error:
        one = instance.parameters[position]
        label = one.label or f"argument {one.name}"
        raise DtypeError(f"{label} of kernel {instance.name} {error}") from None


def _writer(
    made: list[Any],
    instance: KernelInstance,
    found: Tables,
    pool: Pool,
    host: Any,
    places: Mapping[int, Mapping[int, int]],
) -> Step:
    before = host.copy()

    def step(stream: Stream | None) -> None:
        write_back(made, instance, found, pool, host, before, places)

    return step


def tables_of(layouts: Sequence[Any]) -> list[Table]:
    """The tables among the arguments of a kernel, and those that they lead to."""
    found: list[Table] = []
    for one in layouts:
        if isinstance(one, Split):
            found += tables_of([part for _, part in one.parts])
        elif isinstance(one, Table):
            found += [one, *tables_of([slot.layout for slot in one.slots])]
    return found


def pointed_arrays(table: Table, made: Sequence[Any]) -> dict[int, Any]:
    """The arrays of a launch that pointers in a table point into, by number."""
    found: dict[int, Any] = {}
    for slot in table.slots:
        if isinstance(slot.layout, (Direct, Table)):
            found[slot.number] = made[slot.layout.position]
        if isinstance(slot.layout, Table):
            found |= pointed_arrays(slot.layout, made)
    return found


def _fill_raw(made: list[Any], instance: KernelInstance, layout: Table, value: Raw) -> None:
    """The arguments for elements that a kernel had in its memory."""
    made[layout.position] = value.array
    known = {layout.number}
    for slot in layout.slots:
        known.add(slot.number)
        pointed = value.pointed.get(slot.number)
        if isinstance(slot.layout, Direct):
            made[slot.layout.position] = pointed
        elif isinstance(slot.layout, Table) and pointed is not None:
            _fill_raw(made, instance, slot.layout, Raw(pointed, value.pointed))
    missing = [
        key for key, array in value.pointed.items() if array is not None and key not in known
    ]
    if missing and not layout.slots:
        raise Mismatch(f"is {layout.type}, in which pointers of the kernel before have no arrays")


def _add(found: Tables, layout: Table, value: Any) -> None:
    """Add the elements of an array, or one struct, to those of a table."""
    pool = found.pools.setdefault(layout.position, Pool(layout))
    if id(value) in pool.places:
        return
    start = len(pool.items)
    own = _items(layout, value)
    if layout.length not in (None, len(own)):
        raise Mismatch(f"has {layout.length} pointers, but {len(own)} items were given")
    pool.kept.append(value)
    for at, item in enumerate(own):
        pool.items.append(item)
        pool.owners.append((own, at))
        pool.starts.append(start)
        found.waiting.append((pool, start + at))
        if not isinstance(layout.element, Struct) or isinstance(item, tuple):
            continue
        known = pool.places.setdefault(id(item), (start + at, start))
        if known[1] != start:
            raise Mismatch(
                f"has {layout.type} to a {described(item)} that is also given by itself or in "
                "another list: give the list first, or only one of them"
            )
    pool.places.setdefault(id(value), (start, start))


def _follow(found: Tables, slot: PointerSlot, value: Any) -> None:
    """Add what a pointer points to."""
    layout = slot.layout
    if value is None:
        return
    if isinstance(value, KernelPointer):
        found.pointers.append(value)
    elif isinstance(layout, Direct):
        found.pointed.setdefault(layout.position, []).append(value)
        found.slots[layout.position] = slot
    elif isinstance(layout, Table):
        _add(found, layout, value)
    elif isinstance(layout, Again) and not is_index(value):
        _add(found, found.known[layout.position], value)


def _words_of(
    found: Tables,
    pool: Pool,
    at: int,
    slot: PointerSlot,
    value: Any,
    places: Mapping[int, Mapping[int, int]],
) -> Words:
    """A pointer in an element as it is in memory."""
    if value is None:
        return 0, 0
    if isinstance(value, KernelPointer):
        if value.number not in {number_of_memory(f"variable {name}") for name in slot.lasting}:
            raise Mismatch(
                f"has {slot.words}, but a pointer of another kernel to memory that this one does "
                "not use was given"
            )
        return value.offset, value.number
    layout = slot.layout
    if isinstance(layout, Direct):
        return places[layout.position][id(value)], slot.number
    assert isinstance(layout, (Table, Again))
    target = found.pools[layout.position]
    size = size_of(target.layout.element)
    if not is_index(value):
        return target.places[id(value)][0] * size, target.layout.number
    start, count = pool.starts[at], len(pool.owners[at][0])
    if value < 0:
        return 0, 0
    if target is not pool or value >= count:
        raise Mismatch(
            f"has {slot.words}, but {described(value)} was given: an index is from 0 to "
            f"{count - 1}, or -1 for null"
        )
    return (start + int(value)) * size, target.layout.number


def _records(
    found: Tables, pool: Pool, places: Mapping[int, Mapping[int, int]]
) -> np.ndarray[Any, Any]:
    """The elements of a table as they are in memory."""
    layout = pool.layout
    dtype, inner = storage_of(layout.element)
    host = np.zeros((len(pool.items), *inner), numpy_of(dtype))
    for at, item in enumerate(pool.items):
        own: dict[tuple[str, ...], Any] = {}
        for slot in layout.slots:
            given = pointed(slot, item)
            if not given:  # another member of the union has a value
                continue
            words = [_words_of(found, pool, at, slot, one, places) for one in given]
            own[slot.path] = words if slot.many else words[0]
        if isinstance(layout.element, Struct):
            host[at] = record_of(layout.element, _with_words(layout, layout.element, item, own, ()))
        else:
            host[at] = own[()]
    return host


def _items(layout: Table, value: Any) -> Sequence[Any]:
    """The elements of an array with pointers in it. One struct may stand for an array of one."""
    is_array = is_array_type(type(value)) or isinstance(value, np.ndarray)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return value
    if isinstance(layout.element, Struct) and not is_array:
        return [value]
    if isinstance(value, np.ndarray) and value.dtype.names is not None and value.ndim == 1:
        return [value[at] for at in range(len(value))]
    if not isinstance(layout.element, Struct) and is_array and len(value.shape) > 1:
        rows = value.reshape(-1, value.shape[-1])
        return [rows[at] for at in range(rows.shape[0])]
    wanted = "a list of structs" if isinstance(layout.element, Struct) else "a list of arrays"
    raise Mismatch(f"is {layout.type}, but {described(value)} was given: pass {wanted}")


def _with_words(
    layout: Table,
    type: Struct,
    item: Any,
    words: Mapping[tuple[str, ...], Any],
    path: tuple[str, ...],
) -> Any:
    """A struct with the words of its pointers in their places."""
    if is_union(type):
        given = next((words[each] for each in words if each[: len(path)] == path), None)
        if given is None:
            return _bytes_of_union(type, item)
        return np.array(given, np.uint32).tobytes().ljust(size_of(type), b"\0")
    names = field_names(type)
    made = {}
    for name, value in zip(names, fields_of(item, names), strict=True):
        inner = (*path, name)
        if inner in words:
            made[name] = _shaped(type.field_type(name), words[inner])
        elif any(slot.path[: len(inner)] == inner for slot in layout.slots):
            part = type.field_type(name)
            assert isinstance(part, Struct)
            made[name] = _with_words(layout, part, value, words, inner)
        else:
            made[name] = value
    return made


def _shaped(type: Type, words: Any) -> Any:
    """The words of pointers in the shape of an array of them."""
    shape = []
    while isinstance(type, Array):
        shape.append(type.length)
        type = type.element
    return np.array(words, np.uint32).reshape(*shape, 2)


def _bytes_of_union(type: Struct, value: Any) -> Any:
    """A union that has no pointer: its bytes, of which fewer may be given."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    raw = value if isinstance(value, bytes) else np.asarray(value).tobytes()
    if len(raw) > size_of(type) or (
        not isinstance(value, bytes) and np.asarray(value).dtype == object
    ):
        raise Mismatch(
            f"has a union of {size_of(type)} bytes, but {described(value)} was given: pass bytes, "
            "a NumPy array, or a dictionary of the pointer that it is"
        )
    return raw.ljust(size_of(type), b"\0")
