"""Arguments for pointers in memory: `T **`, and arrays of structs with pointers in them.

All that pointers of one kind point to becomes one array: the arrays themselves if they lie in one
memory, else a copy of them. A pointer is its offset in that array, in bytes, and a 1; null is
zeros.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.cuda_cpp.program import Direct, KernelInstance, PointerSlot, Table
from treadle.cuda_cpp.python_values import Mismatch, described, fields_of, is_gap, record_of
from treadle.cuda_cpp.variables import storage_of
from treadle.ir.signature import DeclaredPointer
from treadle.ir.types import Struct, Void, size_of
from treadle.runtime.arrays import DeviceArray, is_array_type
from treadle.runtime.arrays import numpy_dtype as numpy_of
from treadle.runtime.devices import Stream
from treadle.runtime.windows import LEAST

_MOST_BYTES = (1 << 31) - 1
_NULL = (0, 0)

Words = tuple[int, int]
Step = Callable[[Stream | None], None]


@dataclass(slots=True)
class Tables:
    """What is done before and after a launch for pointers in memory."""

    before: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)


def fill_table(
    made: list[Any], tables: Tables, instance: KernelInstance, layout: Table, value: Any
) -> None:
    """Set the arguments of a launch for a pointer to pointers, or to structs with pointers."""
    if value is None:
        return  # null, like all that it would lead to
    items = _items(layout, value)
    _fill(made, tables, instance, layout, items, [(items, at) for at in range(len(items))])


def _fill(
    made: list[Any],
    tables: Tables,
    instance: KernelInstance,
    layout: Table,
    items: Sequence[Any],
    owners: Sequence[tuple[Any, int]],
) -> None:
    """`fill_table` for some elements; `owners` are the caller's lists that they are in."""
    words, pointed = [], []
    for slot in layout.slots:
        rows, known = _placed(
            made, tables, instance, slot, [_pointed(slot, item) for item in items]
        )
        words.append(rows)
        pointed.append(known)
    dtype, inner = storage_of(layout.element)
    host = np.zeros((len(items), *inner), numpy_of(dtype))
    for at, item in enumerate(items):
        own = {slot.path: found[at] for slot, found in zip(layout.slots, words, strict=True)}
        if isinstance(layout.element, Struct):
            host[at] = record_of(layout.element, _with_words(layout.element, item, own, ()))
        else:
            host[at] = own[()]
    made[layout.position] = host
    before = host.copy()
    tables.after.append(
        lambda stream: _back(instance, layout, items, owners, host, before, pointed)
    )


# --- structs -------------------------------------------------------------------------------------


def _items(layout: Table, value: Any) -> Sequence[Any]:
    """The elements of an array with pointers in it. One struct may stand for an array of one."""
    is_array = is_array_type(type(value)) or isinstance(value, np.ndarray)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return value
    if isinstance(layout.element, Struct) and not is_array:
        return [value]
    if not isinstance(layout.element, Struct) and is_array and len(value.shape) > 1:
        return [value[at] for at in range(value.shape[0])]
    wanted = "a list of structs" if isinstance(layout.element, Struct) else "a list of arrays"
    raise Mismatch(f"is {layout.type}, but {described(value)} was given: pass {wanted}")


def _names(type: Struct) -> list[str]:
    return [one.name for one in type.fields if not is_gap(one)]


def _pointed(slot: PointerSlot, item: Any) -> list[Any]:
    """What the pointers of a slot point to in one element."""
    type: Any = slot.owner
    for name in slot.path:
        names = _names(type)
        item = fields_of(item, names)[names.index(name)]
        type = type.field_type(name)
    if not slot.many:
        return [item]
    count = slot.count
    if not isinstance(item, (list, tuple)) or len(item) != count:
        raise Mismatch(f"has {slot.words}, but {described(item)} was given: pass a list of {count}")
    return list(item)


def _with_words(
    type: Struct, item: Any, words: Mapping[tuple[str, ...], Any], path: tuple[str, ...]
) -> dict[str, Any]:
    """A struct with the words of its pointers in their places."""
    names = _names(type)
    made = {}
    for name, value in zip(names, fields_of(item, names), strict=True):
        inner = (*path, name)
        if inner in words:
            found = words[inner]
            made[name] = found
        elif any(each[: len(inner)] == inner for each in words):
            part = type.field_type(name)
            assert isinstance(part, Struct)
            made[name] = _with_words(part, value, words, inner)
        else:
            made[name] = value
    return made


def _back(
    instance: KernelInstance,
    layout: Table,
    items: Sequence[Any],
    owners: Sequence[tuple[Any, int]],
    host: Any,
    before: Any,
    pointed: Sequence[Mapping[Words, Any]],
) -> None:
    """Write what a kernel changed to the caller's structs and lists: numbers, and pointers to
    others of the arrays."""
    if host.tobytes() == before.tobytes():
        return
    for slot, known in zip(layout.slots, pointed, strict=True):
        for at, item in enumerate(items):
            new, old = host[at], before[at]
            for name in slot.path:
                new, old = new[name], old[name]
            if (new == old).all():
                continue
            pairs = [(int(one[0]), int(one[1])) for one in new.reshape(-1, 2)]
            target, key = (item, slot.path[-1]) if slot.path else owners[at]
            for name in slot.path[:-1]:
                target = target[name] if isinstance(target, Mapping) else getattr(target, name)
            values = [known.get(pair) for pair in pairs]
            elsewhere = any(pair not in known for pair in pairs)
            if elsewhere or not _set(target, key, values if slot.many else values[0]):
                warnings.warn(
                    f"kernel {instance.name} stored {slot.words} in memory of the caller that "
                    "point elsewhere: they are valid until the kernel ends, and are not passed on",
                    RuntimeWarning,
                    stacklevel=4,
                )
    paths = frozenset(slot.path for slot in layout.slots)
    for at, item in enumerate(items):
        if isinstance(layout.element, Struct):
            _changed(item, host[at], before[at], paths, ())


def _set(target: Any, key: Any, value: Any) -> bool:
    """Set an item or attribute; False if it cannot be."""
    if isinstance(target, (list, MutableMapping)):
        target[key] = value
        return True
    if isinstance(key, str) and hasattr(target, "__dict__"):
        setattr(target, key, value)
        return True
    return False


def _changed(
    item: Any, new: Any, old: Any, pointers: frozenset[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    by_name = isinstance(item, MutableMapping)
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
        if new[name].dtype.names is not None:
            part = item[name] if by_name else getattr(item, name)
            _changed(part, new[name], old[name], pointers, inner)
            continue
        value = new[name].copy() if new[name].ndim else new[name].item()
        if by_name:
            item[name] = value
        else:
            setattr(item, name, value)


# --- what pointers point to ----------------------------------------------------------------------


def _placed(
    made: list[Any],
    tables: Tables,
    instance: KernelInstance,
    slot: PointerSlot,
    pointed: Sequence[list[Any]],
) -> tuple[list[Any], dict[Words, Any]]:
    """The words of a slot's pointers in each element, a pair or a list of them; and what words
    point to."""
    values = [value for row in pointed for value in row]
    present = [value for value in values if value is not None]
    layout = slot.layout
    if not present:
        places: dict[int, int] = {}
    elif isinstance(layout, Table):
        places = _of_tables(made, tables, instance, layout, present)
    else:
        assert isinstance(layout, Direct)
        declared = instance.parameters[layout.position].declared
        assert isinstance(declared, DeclaredPointer)
        size = 1 if isinstance(declared.element, Void) else size_of(declared.element)
        made[layout.position], places = _joined(tables, slot, present, size)
    words = iter([_NULL if one is None else (places[id(one)], 1) for one in values])
    rows = [[next(words) for _ in row] for row in pointed]
    known: dict[Words, Any] = {_NULL: None}
    known |= {(places[id(one)], 1): one for one in present}
    return (rows if slot.many else [row[0] for row in rows]), known


def _of_tables(
    made: list[Any],
    tables: Tables,
    instance: KernelInstance,
    layout: Table,
    values: Sequence[Any],
) -> dict[int, int]:
    """Arrays with pointers in them, one after the other; the place of each."""
    items: list[Any] = []
    owners: list[tuple[Any, int]] = []
    places: dict[int, int] = {}
    for value in values:
        if id(value) not in places:
            places[id(value)] = len(items) * size_of(layout.element)
            own = _items(layout, value)
            items += own
            owners += [(own, at) for at in range(len(own))]
    _fill(made, tables, instance, layout, items, owners)
    return places


def _joined(
    tables: Tables, slot: PointerSlot, values: Sequence[Any], size: int
) -> tuple[Any, dict[int, int]]:
    """One array for several, whose elements have `size` bytes, and the place of each in bytes."""
    if all(isinstance(one, np.ndarray) for one in values):
        return _joined_on_host(tables, slot, values, size)
    if all(is_array_type(type(one)) for one in values):
        return _joined_on_device(tables, slot, values, size)
    wrong = next(one for one in values if not isinstance(one, np.ndarray))
    raise Mismatch(
        f"has {slot.words}, but {described(wrong)} was given: pass tensors, or NumPy arrays, for "
        "all of them"
    )


def _places(slot: PointerSlot, sizes: Mapping[Any, int], unit: int) -> tuple[dict[Any, int], int]:
    """Where arrays of some bytes lie in one, and its size."""
    places, end = {}, 0
    for key, size in sizes.items():
        places[key] = end
        end = -(-(end + size) // unit) * unit
    if end > _MOST_BYTES:
        raise Mismatch(f"has {slot.words}, whose arrays have {end:,} bytes: {_MOST_BYTES:,} fit")
    return places, end


def _one_dtype(slot: PointerSlot, values: Sequence[Any]) -> Any:
    dtype = values[0].dtype
    for one in values:
        if one.dtype != dtype:
            raise Mismatch(f"has {slot.words}, but arrays of {dtype} and {one.dtype} were given")
    return dtype


def _joined_on_host(
    tables: Tables, slot: PointerSlot, values: Sequence[np.ndarray[Any, Any]], size: int
) -> tuple[Any, dict[int, int]]:
    dtype = _one_dtype(slot, values)
    arrays = {(one.ctypes.data, one.nbytes): one for one in values}
    for one in values:
        if not one.flags.c_contiguous:
            raise Mismatch(f"has {slot.words}, but {described(one)} with gaps was given: copy it")
    end = 0
    for start, nbytes in sorted(key for key in arrays if key[1]):
        if start < end and not slot.fixed:
            raise Mismatch(
                f"has {slot.words}, but arrays that overlap were given: pass tensors that are "
                "views of one, or one array with offsets into it"
            )
        end = max(end, start + nbytes)
    sizes = {key: one.nbytes for key, one in arrays.items()}
    places, total = _places(slot, sizes, math.lcm(size, dtype.itemsize, 16))
    common = np.zeros(max(total // dtype.itemsize, 1), dtype)
    raw = common.view(np.uint8)
    for key, one in arrays.items():
        raw[places[key] : places[key] + one.nbytes] = one.reshape(-1).view(np.uint8)
    if not slot.fixed:

        def back(stream: Stream | None) -> None:
            for key, one in arrays.items():
                found = raw[places[key] : places[key] + one.nbytes]
                if one.size and found.tobytes() != one.tobytes():
                    one[...] = found.view(dtype).reshape(one.shape)

        tables.after.append(back)
    return common, {id(one): places[one.ctypes.data, one.nbytes] for one in values}


def _joined_on_device(
    tables: Tables, slot: PointerSlot, values: Sequence[Any], size: int
) -> tuple[Any, dict[int, int]]:
    arrays = {id(one): one.__treadle_array__() for one in values}
    dtype = _one_dtype(slot, list(arrays.values()))
    first = next(iter(arrays.values()))
    item = dtype.itemsize
    for one in arrays.values():
        if not one.contiguous:
            raise Mismatch(f"has {slot.words}, but {described(one)} with gaps was given: copy it")
        if one.device is not first.device:
            raise Mismatch(f"has {slot.words}, but tensors of several devices were given")

    def written(stream: Stream | None) -> None:
        for one in values:
            one.__treadle_written__()

    if all(one.buffer is first.buffer and one.offset * item % size == 0 for one in arrays.values()):
        end = max(one.offset + one.size for one in arrays.values())
        if end * item > _MOST_BYTES:
            raise Mismatch(f"has {slot.words}, which lie {end * item:,} bytes into their memory")
        common = first.view((end,), (1,), 0)
        places = {key: one.offset * item for key, one in arrays.items()}
    else:
        common, places = _copied(tables, slot, arrays, size)
    if not slot.fixed:
        tables.after.append(written)
    return common, places


def _copied(
    tables: Tables, slot: PointerSlot, arrays: Mapping[int, DeviceArray], size: int
) -> tuple[DeviceArray, dict[int, int]]:
    """Arrays of several memories in a new one, which are copied there and back."""
    first = next(iter(arrays.values()))
    item = first.dtype.itemsize
    for one in arrays.values():
        if one.offset * item % LEAST:
            raise Mismatch(f"has {slot.words}, but a tensor that begins at an odd place was given")
    sizes = {key: -(-one.size * item // LEAST) * LEAST for key, one in arrays.items()}
    places, total = _places(slot, sizes, math.lcm(size, item, 256))
    common = DeviceArray.allocate(first.device, first.dtype, (max(total // item, 1),))

    def copy(back: bool) -> Step:
        def step(stream: Stream | None) -> None:
            handle = (stream or first.device.default_stream).handle
            for key, one in arrays.items():
                own, other = (one.buffer, one.offset * item), (common.buffer, places[key])
                source, target = (other, own) if back else (own, other)
                if sizes[key]:
                    handle.copy(*source, *target, sizes[key])

        return step

    tables.before.append(copy(False))
    if not slot.fixed:
        tables.after.append(copy(True))
    return common, places
