"""One array for all that pointers of one kind point to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.cuda_cpp.pointer_records import Step, Tables
from treadle.cuda_cpp.program import (
    PointerSlot,
)
from treadle.cuda_cpp.python_values import (
    Mismatch,
    described,
)
from treadle.runtime.arrays import DeviceArray, is_array_type
from treadle.runtime.devices import Stream
from treadle.runtime.windows import LEAST

_MOST_BYTES = (1 << 31) - 1


def joined(
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
