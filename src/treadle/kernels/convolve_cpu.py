"""Convolutions on the CPU: the sizes of spans and slabs, and the table of offsets."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, i32
from treadle.kernels.convolve_plans import Axis, Channels, passed, plain
from treadle.kernels.device_code.convolution_cpu import (
    LANES,
    Span,
    Strip,
    strip_packer,
    strips,
)
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, new, packed
from treadle.kernels.tables import table_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed

_SLAB_BYTES = 1 << 19  # of a block's slab, so that it stays in its cache
_NEAREST_BYTES = 20480  # of the part of a slab that is multiplied at a time
LONG_SPAN = 16  # times as many positions are in a span as registers take, or more
BUSY = 8  # blocks for each thread
FEWEST = 0.5  # of the positions with gaps must be outputs, or positions have no gaps
# Output channels and vectors of positions that are summed in registers, by bytes of these and of
# elements.
REGISTERS = {(64, 4): (8, 3), (64, 8): (8, 1), (32, 4): (4, 1), (32, 8): (2, 1)}


class _Places(NamedTuple):
    """How the places of an axis are distributed to planes: their remainders modulo the stride, and
    for each tap its remainder's number and how many places farther on it reads."""

    remainders: tuple[int, ...]
    of_tap: tuple[int, ...]
    farther: tuple[int, ...]

    @property
    def most(self) -> int:
        """Of the places that a tap reads farther on."""
        return max(self.farther, default=0)


class _Layout(NamedTuple):
    """How blocks work: the kernel, spans and slabs, and what makes the kernel's table."""

    strip: Strip
    span: Packed
    spans: int
    scratch: int  # elements of a block's memory
    channels: int  # of the input that a slab has
    entries: Callable[[], np.ndarray[Any, Any]]


def in_strips(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
) -> None:
    """Each block computes strips of the result."""
    groups, ins, outs, in_step, out_step, group_step = channels
    dtype = plain(out.dtype)
    work = wide(dtype)
    batch = out.shape[0]
    threads, vector = x.device.handle.threads, x.device.handle.vector_bytes()
    for axes in phases:
        facts = axes, batch, groups, ins, outs, work, threads, vector
        strip, span, spans, scratch, most, entries = _layout(*facts)
        tiles = -(-outs // strip.channels)
        taps = math.prod(axis.taps for axis in axes)
        weights = new(x, work, max(groups * tiles * taps * ins * strip.channels, 1))
        if ins * taps:
            whole = all(axis.taps == axis.kernel and axis.step == 1 for axis in axes)
            packer = strip_packer(work, strip.channels, whole and in_step == taps)
            packer[(-(-ins * taps // LANES), tiles, groups), LANES](
                flat(weight), weights, passed(axes), outs, ins, out_step, in_step, group_step
            )
        partial = new(out, work, out.size) if most < ins and work is not dtype else flat(out)
        table = table_of(x.device, ("convolve", facts), i32, entries)
        parts = _parts(spans * groups, tiles, threads)
        blocks = min(spans * groups * parts, BUSY * threads)
        slab = new(x, work, blocks * scratch + LANES)
        strips(dtype, strip)[blocks, LANES](
            flat(x), weights, flat(weight if bias is None else bias), slab, partial, flat(out),
            table, passed(axes), span, batch, groups, ins, outs, tiles, parts, most,
            int(bias is not None),
        )  # fmt: skip


@functools.lru_cache(256)
def _layout(
    axes: tuple[Axis, ...],
    batch: int,
    groups: int,
    ins: int,
    outs: int,
    work: DType,
    threads: int,
    vector_bytes: int,
) -> _Layout:
    channels, vectors = REGISTERS[max(vector_bytes, 32), work.itemsize]
    channels = min(channels, 1 if outs == 1 else 4 if outs <= 4 else 8)
    dealt = [places_of(axis) for axis in axes]
    counts = [axis.outputs for axis in axes]
    extents = [count + places.most for count, places in zip(counts, dealt, strict=True)]
    gaps = math.prod(counts) >= FEWEST * math.prod(extents)
    strided_out = any(axis.out_step != 1 or axis.outputs != axis.out_size for axis in axes)
    if gaps:
        strided_out = axes[2].out_step != 1
        farther = flat_index([places.most for places in dealt], extents)
        rows = max(math.prod(len(places.remainders) for places in dealt), 1)
    else:
        extents, farther = [1, 1, math.prod(counts)], 0
        rows = max(math.prod(axis.taps for axis in axes), 1)
    strip = Strip(channels, vectors, gaps, gaps and axes[2].stride > 1, strided_out)
    at_once = LANES * vectors
    positions = batch * math.prod(extents)
    length = max(LONG_SPAN * at_once, 2 * farther)
    blocks = BUSY * threads  # each of which should have the same number of spans
    spans = -(-positions * groups // (length * blocks)) * blocks
    length = -(-positions * groups // (spans * at_once)) * at_once
    row = (-(-(length + farther) // LANES) | 1) * LANES  # odd: rows differ in cache sets
    most = max(1, min(ins, _SLAB_BYTES // work.itemsize // (rows * row)))
    most = max(-(-ins // -(-ins // most)), 1) if ins else 1
    spans = -(-positions // length)
    tiles = -(-outs // channels)
    in_part = -(-tiles // _parts(spans * groups, tiles, threads))
    scratch = most * rows * row + in_part * channels * length
    in_channel = math.prod(axis.taps for axis in axes)
    if gaps:
        in_channel = rows * math.prod(len(set(places.farther)) for places in dealt[:2])
    in_channel = max(in_channel, 1) * (at_once + dealt[2].most * gaps + LANES) * work.itemsize
    near = min(max(_NEAREST_BYTES // in_channel, 1), most)
    near = -(-most // -(-most // near))
    places = extents[2], extents[1], extents[0]
    span = packed(Span, length, spans, row, length + farther, rows, *places, near, scratch)
    entries = functools.partial(offsets, axes, dealt, extents, gaps, rows, row, most)
    return _Layout(strip, span, spans, scratch, most, entries)


def _parts(items: int, tiles: int, threads: int) -> int:
    """Into how many parts the output channels of a span are cut, so that all threads are busy."""
    return min(tiles, -(-BUSY * threads // items))


def places_of(axis: Axis) -> _Places:
    """How an axis's places are distributed."""
    places = [tap * axis.dilation for tap in range(axis.taps)]
    remainders = sorted({place % axis.stride for place in places})
    of_tap = [remainders.index(place % axis.stride) for place in places]
    return _Places(
        tuple(remainders), tuple(of_tap), tuple([place // axis.stride for place in places])
    )


def flat_index(index: Sequence[int], extents: Sequence[int]) -> int:
    """The number of a place in three axes of these extents."""
    return (index[0] * extents[1] + index[1]) * extents[2] + index[2]


def offsets(
    axes: tuple[Axis, ...],
    dealt: list[_Places],
    extents: list[int],
    gaps: bool,
    rows: int,
    row: int,
    most: int,
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The remainders of each row of a channel, and the offsets of all products' elements."""
    remainders = (
        list(itertools.product(*[places.remainders for places in dealt])) if gaps else [(0, 0, 0)]
    )
    remainders = (remainders * rows)[:rows]
    taps = itertools.product(*[range(axis.taps) for axis in axes])
    if gaps:
        numbers = [len(places.remainders) for places in dealt]
        of_tap = [
            flat_index([p.of_tap[j] for p, j in zip(dealt, tap, strict=True)], numbers) * row
            + flat_index([p.farther[j] for p, j in zip(dealt, tap, strict=True)], extents)
            for tap in taps
        ]
    else:
        of_tap = [number * row for number, _ in enumerate(taps)]
    of_channel = np.arange(most)[:, None] * (rows * row)
    return np.concatenate(
        [np.ravel(remainders), (of_channel + np.array(of_tap, int)).ravel()]
    ).astype(np.int32)
