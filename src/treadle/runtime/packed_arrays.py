"""Several arrays of a launch in one buffer, where a kernel takes more than its device binds.

Arrays that share a buffer are one binding, each with its offset in it, on every device. So a launch
with too many buffers copies some of them to one, runs with arrays that lie there, and copies what
the kernel writes back. Arrays that shared memory before still do: all arrays of a buffer move
together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.dtypes import uint8
from treadle.core.errors import TooManyArrays
from treadle.core.sizes import fixed
from treadle.drivers import base
from treadle.ir.definition import KernelDefinition
from treadle.ir.signature import DeclaredArray, DeclaredPointer
from treadle.ir.types import Void, size_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Stream
from treadle.runtime.windows import LEAST, byte_bounds

_WRITTEN_COST = 4  # of a byte that the kernel writes: it is copied twice, and stays writable
_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes of a buffer, and where they lie in the common one."""

    buffer: base.Buffer
    start: int
    size: int
    place: int
    written: bool


@dataclass(frozen=True, slots=True)
class PackedArrays:
    """The arrays that take the places of others in a launch, by position."""

    arrays: Mapping[int, DeviceArray]
    common: DeviceArray
    stretches: tuple[Stretch, ...]

    def copy_in(self, to: Stream) -> None:
        """Copy the arrays to the common buffer."""
        for one in self.stretches:
            to.handle.copy(one.buffer, one.start, self.common.buffer, one.place, one.size)

    def copy_back(self, to: Stream) -> None:
        """Copy what the kernel writes to the arrays."""
        for one in self.stretches:
            if one.written:
                to.handle.copy(self.common.buffer, one.place, one.buffer, one.start, one.size)


def pack(
    definition: KernelDefinition, arrays: Mapping[int, DeviceArray], found: TooManyArrays
) -> PackedArrays | None:
    """The arrays of a launch, by position, with so many in one buffer that its kernel can be bound:
    those that are copied most cheaply. None if the device cannot bind a buffer of that size.

    `found` says how many bindings there are, and the positions that the kernel writes.
    """
    sharing: dict[base.Buffer, list[int]] = {}
    for position, array in arrays.items():
        sharing.setdefault(array.buffer, []).append(position)
    ranges = {
        buffer: _range(definition, positions, arrays) for buffer, positions in sharing.items()
    }
    written = {
        buffer: not found.written.isdisjoint(positions) for buffer, positions in sharing.items()
    }
    cheapest = sorted(
        sharing, key=lambda each: ranges[each].size * (_WRITTEN_COST if written[each] else 1)
    )
    chosen = set(cheapest[: found.bindings - found.most + 1])
    device = next(iter(arrays.values())).device
    stretches: dict[base.Buffer, Stretch] = {}
    end = 0
    for buffer in sharing:
        if buffer in chosen:
            one = ranges[buffer]
            place = -(-end // one.unit) * one.unit
            stretches[buffer] = Stretch(buffer, one.start, one.size, place, written[buffer])
            end = place + one.size
    end = -(-end // LEAST) * LEAST
    if end > min(device.limits.max_binding_size, device.limits.max_buffer_size):
        return None
    common = DeviceArray.allocate(device, uint8, (end,))
    moved = {
        position: _moved(arrays[position], stretch, common)
        for buffer, stretch in stretches.items()
        for position in sharing[buffer]
    }
    return PackedArrays(moved, common, tuple(stretches.values()))


@dataclass(frozen=True, slots=True)
class _Range:
    """The bytes of a buffer that arrays have; places in the common buffer are multiples of `unit`
    apart from them."""

    start: int
    size: int
    unit: int


def _range(
    definition: KernelDefinition, positions: Sequence[int], arrays: Mapping[int, DeviceArray]
) -> _Range:
    items = [_items_of(definition, position, arrays[position]) for position in positions]
    unit = math.lcm(LEAST, *items)
    bounds = [fixed(byte_bounds(arrays[at])) for at in positions if fixed(arrays[at].size)]
    bounds = bounds or [(0, 4)]
    start = min(low for low, _ in bounds) // unit * unit
    end = max(high for _, high in bounds)
    size = min(-(-(end - start) // LEAST) * LEAST, arrays[positions[0]].buffer.size - start)
    return _Range(start, size, math.lcm(_ALIGNMENT, unit))


def _items_of(definition: KernelDefinition, position: int, array: DeviceArray) -> int:
    """The bytes that an offset of an array is a multiple of: of its items, or of the elements that
    its kernel takes them for."""
    declared = definition.parameters[position].declared
    element = None
    if isinstance(declared, (DeclaredArray, DeclaredPointer)):
        element = declared.element
    wanted = 1 if element is None or isinstance(element, Void) else size_of(element)
    return math.lcm(array.dtype.itemsize, wanted)


def _moved(array: DeviceArray, stretch: Stretch, common: DeviceArray) -> DeviceArray:
    by = (stretch.place - stretch.start) // array.dtype.itemsize
    shape, strides, offset = fixed((array.shape, array.strides, array.offset))
    empty = 0 in shape
    return DeviceArray(
        array.device,
        common.storage,
        array.dtype,
        shape,
        strides,
        0 if empty else offset + by,
        array.key.read_only,
    )


def in_place(arguments: Sequence[Any], packed: PackedArrays) -> tuple[Any, ...]:
    """A launch's arguments with the packed arrays in their places."""
    return tuple(packed.arrays.get(position, one) for position, one in enumerate(arguments))
