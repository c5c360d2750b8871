"""Gradients of convolutions' weights on the CPU: how positions and channels are distributed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, i32
from treadle.kernels.convolve_cpu import (
    FEWEST,
    LONG_SPAN,
    REGISTERS,
    flat_index,
    offsets,
    places_of,
)
from treadle.kernels.convolve_plans import Axis, passed, plain
from treadle.kernels.device_code.convolution_cpu import LANES, Span
from treadle.kernels.device_code.convolution_cpu_weights import WeightStrip, weight_strips
from treadle.kernels.device_code.convolution_weights import adder
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, new, packed
from treadle.kernels.tables import table_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed

_FEW_INPUTS = 48
_MOST_INPUTS = 16  # channels of the input that a block sums at a time
_MOST_OUTPUTS = 32
_BUSY = 2  # blocks for each thread, whose lanes are added up once each
_VECTORS = 3  # of LANES positions; LONG_SPAN times as many are a span


class _Layout(NamedTuple):
    """How blocks work."""

    strip: WeightStrip
    span: Packed
    spans: int
    scratch: int  # elements of a block's memory
    inputs: int  # channels of the input that a block sums at a time
    share: int  # tiles of output channels that it sums at a time
    entries: Callable[[], np.ndarray[Any, Any]]


def suits_strips(axes: tuple[Axis, ...], inputs: int) -> bool:
    """Whether sums over positions are the faster way: of few input channels in a group, where few
    positions are gaps. Of many channels, a convolution with roles exchanged has longer vectors."""
    if inputs > _FEW_INPUTS:
        return False
    counts = [axis.outputs for axis in axes]
    extents = [axis.outputs + places_of(axis).most for axis in axes]
    return math.prod(counts) >= FEWEST * math.prod(extents)


def weights_in_strips(
    x: DeviceArray, gradient: DeviceArray, out: DeviceArray, axes: tuple[Axis, ...], groups: int
) -> None:
    """Each block sums some channels' weights over a split of all positions."""
    dtype = plain(out.dtype)
    work = wide(dtype)
    batch, ins, outs = x.shape[0], x.shape[1] // groups, gradient.shape[1] // groups
    threads, vector = x.device.handle.threads, x.device.handle.vector_bytes()
    facts = axes, batch, ins, outs, work, vector
    strip, span, spans, scratch, inputs, share, entries = _layout(*facts)
    items = -(-ins // inputs) * -(-outs // (share * strip.channels)) * groups
    splits = min(-(-_BUSY * threads // items), spans)
    blocks = min(items * splits, _BUSY * threads)
    memory = new(x, work, blocks * scratch + LANES)
    table = table_of(x.device, ("convolve weights", facts), i32, entries)
    summed = flat(out) if splits == 1 and work is dtype else new(x, work, splits * out.size)
    weight_strips(dtype, strip)[blocks, LANES](
        flat(x), flat(gradient), memory, summed, table, passed(axes), span,
        batch, groups, ins, outs, inputs, share, splits,
    )  # fmt: skip
    if splits > 1 or work is not dtype:
        adder(dtype).launch(out.size, summed, flat(out), splits, out.size)


@functools.lru_cache(256)
def _layout(
    axes: tuple[Axis, ...], batch: int, ins: int, outs: int, work: DType, vector_bytes: int
) -> _Layout:
    channels, weights = REGISTERS[max(vector_bytes, 32), work.itemsize]
    dealt = [places_of(axis) for axis in axes]
    extents = [axis.outputs + places.most for axis, places in zip(axes, dealt, strict=True)]
    farther = flat_index([places.most for places in dealt], extents)
    rows = max(math.prod(len(places.remainders) for places in dealt), 1)
    positions = batch * math.prod(extents)
    length = max(LONG_SPAN * LANES * _VECTORS, 2 * farther)
    length = -(-min(length, positions) // LANES) * LANES
    row = (-(-(length + farther) // LANES) | 1) * LANES  # odd: rows differ in cache sets
    spans = -(-positions // length)
    inputs = min(ins, _MOST_INPUTS)
    share = -(-min(outs, _MOST_OUTPUTS) // channels)
    taps = math.prod(axis.taps for axis in axes)
    columns = -(-inputs * taps // weights) * weights
    scratch = inputs * rows * row + share * channels * (length + columns * LANES)
    places = extents[2], extents[1], extents[0]
    span = packed(Span, length, spans, row, length + farther, rows, *places, 1, scratch)
    entries = functools.partial(offsets, axes, dealt, extents, True, rows, row, inputs)
    strip = WeightStrip(channels, weights, axes[2].stride > 1)
    return _Layout(strip, span, spans, scratch, inputs, share, entries)
