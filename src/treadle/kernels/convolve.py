"""Convolutions along one to three axes, and transposed ones.

Arrays are (batch, channels, axes…), weights (outputs, inputs of a group, axes…); of transposed
convolutions (inputs, outputs of a group, axes…). Fewer than three axes are three, the first of
which have one place.

A transposed convolution is the gradient of a convolution with respect to its input, so
`convolve_transposed` takes the shape of its result's axes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import convolving
from treadle.kernels.device_code.convolving import Along, Tile
from treadle.kernels.device_code.convolving_alone import LANES, NEAR, Strip, strip_packer, strips
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import alone, flat, new
from treadle.runtime.arrays import DeviceArray

Extents = tuple[int, ...]
_SLAB_BYTES = 49152  # of a CPU block's slab
_BUSY_ALONE = 32  # blocks that keep a CPU busy


class Axis(NamedTuple):
    """What `Along` has, on the host."""

    size: int
    outputs: int
    stride: int
    start: int
    dilation: int
    taps: int
    first: int
    step: int
    kernel: int
    out_start: int
    out_step: int
    out_size: int


class _Channels(NamedTuple):
    """How many there are in each group, and where weights of neighbours lie."""

    groups: int
    ins: int
    outs: int
    in_step: int
    out_step: int
    group_step: int


def convolve(
    x: DeviceArray,
    weight: DeviceArray,
    *more: Any,
) -> DeviceArray:
    """The convolution of x by weights (which are not flipped): with `stride`, `padding` (zeros
    before each axis), `dilation`, `groups` and `extents` (of the result's axes) as options.

    `bias`, if it is not left out, comes before the options and is added.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="cpu")
    >>> weight = td.asarray([[[1.0, 10.0]]], device="cpu")
    >>> convolve(x._array, weight._array, (1,), (0,), (1,), 1, (3,)).to_host().tolist()
    [[[21.0, 32.0, 43.0]]]
    """
    bias, (stride, padding, dilation, groups, extents) = _apart(more)
    given = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, extents, strict=True)
    axes = tuple([_along(*of_axis) for of_axis in given])
    outs, ins = weight.shape[:2]
    taps = math.prod(weight.shape[2:])
    channels = _Channels(groups, ins, outs // groups, taps, ins * taps, outs // groups * ins * taps)
    out = new(x, _plain(x.dtype), x.shape[0], outs, *extents)
    _run(x, weight, bias, out, [axes], channels)
    return out


def convolve_transposed(
    x: DeviceArray,
    weight: DeviceArray,
    *more: Any,
) -> DeviceArray:
    """What a convolution of `stride`, `padding`, `dilation` and `groups` that gives an array like x
    has as the gradient of its input, whose axes have these `extents`.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0]]], device="cpu")
    >>> weight = td.asarray([[[1.0, 10.0]]], device="cpu")
    >>> convolve_transposed(x._array, weight._array, (2,), (0,), (1,), 1, (5,)).to_host().tolist()
    [[[1.0, 10.0, 2.0, 20.0, 0.0]]]
    """
    bias, (stride, padding, dilation, groups, extents) = _apart(more)
    phases: list[tuple[Axis, ...]] = [()]
    given = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, extents, strict=True)
    for of_axis in given:
        phases = [(*axes, along) for axes in phases for along in _phases(*of_axis)]
    ins, outs = weight.shape[:2]
    taps = math.prod(weight.shape[2:])
    channels = _Channels(
        groups, ins // groups, outs, outs * taps, taps, ins // groups * outs * taps
    )
    out = new(x, _plain(x.dtype), x.shape[0], outs * groups, *extents)
    _run(x, weight, bias, out, phases, channels)
    return out


def _apart(more: tuple[Any, ...]) -> tuple[DeviceArray | None, tuple[Any, ...]]:
    return (more[0], more[1:]) if isinstance(more[0], DeviceArray) else (None, more)


def _passed(axes: tuple[Axis, ...]) -> list[Any]:
    """Axes as a kernel takes them."""
    return [Along(*axis) for axis in axes]


def _plain(dtype: Any) -> DType:
    assert isinstance(dtype, DType)
    return dtype


def _along(size: int, kernel: int, stride: int, padding: int, dilation: int, extent: int) -> Axis:
    return Axis(
        size, extent, stride, -padding, dilation, kernel, 0, 1, kernel, 0, 1, extent
    )  # fmt: skip


def _phases(
    size: int, kernel: int, stride: int, padding: int, dilation: int, extent: int
) -> list[Axis]:
    """A transposed axis: for each rest of (output place + padding) divided by the stride, the taps
    that reach places of the input from there.

    Input i adds weight k to output i * stride - padding + k * dilation. So output o takes weight k
    of input (o + padding - k * dilation) / stride, if there is no rest; from one such k to the next
    are stride / gcd(stride, dilation) steps, and as many places back as dilation / gcd.
    """
    common = math.gcd(stride, dilation)
    step, back = stride // common, dilation // common
    found = []
    for first in range(min(stride, extent)):
        taps = [k for k in range(kernel) if (first + padding - k * dilation) % stride == 0]
        last = taps[-1] if taps else 0  # which reaches the least place of the input
        start = (first + padding - last * dilation) // stride
        count = -(-(extent - first) // stride)
        found.append(
            Axis(size, count, 1, start, back, len(taps), last, -step, kernel, first, stride, extent)
        )
    return found


def _run(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: _Channels,
) -> None:
    if not out.size:
        return
    largest = max(x.size, weight.size, out.size)
    most = NEAR if alone(x.device) else MOST_NARROW
    if largest >= most:
        raise ShapeError(
            f"{largest} elements are too many for one convolution, which counts to {most}: "
            "convolve parts of the batch"
        )
    runner = _in_strips if alone(x.device) else _in_tiles
    missing = (Axis(1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1),) * (5 - len(x.shape))
    if not x.size:  # no channels: an element that nobody reads
        x = new(x, _plain(x.dtype), 1)
    if not weight.size:
        weight = new(x, _plain(x.dtype), 1)
    runner(x, weight, bias, out, [(*missing, *axes) for axes in phases], channels)


# --- GPUs ----------------------------------------------------------------------------------------


def _in_tiles(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: _Channels,
) -> None:
    """Blocks make tiles of the result."""
    groups, ins, outs, in_step, out_step, group_step = channels
    batch = out.shape[0]
    dtype = _plain(out.dtype)
    tile = _tile(x, channels)
    tiles = -(-outs // tile.rows)
    taps = math.prod(axis.kernel for axis in phases[0])
    padded = -(-ins // tile.depth) * tile.depth
    packed = new(x, wide(dtype), groups * tiles * taps * padded * tile.rows)
    packer = convolving.packer(wide(dtype), tile.rows, tile.depth)
    if packed.size:
        packer.launch(
            packed.size, flat(weight), packed, outs, ins, taps, tiles, out_step, in_step,
            group_step,
        )  # fmt: skip
    else:
        packed = new(x, wide(dtype), 4)
    kernel = convolving.tiled(dtype, tile, bias is not None)
    for axes in phases:
        positions = batch * math.prod(axis.outputs for axis in axes)
        grid = -(-positions // tile.columns), groups * tiles
        kernel[grid, tile.threads](
            flat(x), packed, 0 if bias is None else flat(bias), flat(out), *_passed(axes), batch,
            groups, ins, outs, tiles,
        )  # fmt: skip


# By the most output channels that they are for. With those of a software adapter its compiler has
# little to do, and they need no more threads than the smallest GPUs allow.
_TILES = (
    (32, Tile(32, 128, 8, 4, 8)),
    (64, Tile(64, 64, 8, 4, 8)),
    (MOST_NARROW, Tile(128, 128, 8, 8, 8)),
)
_SMALL_TILE = Tile(16, 16, 8, 4, 4)


def _tile(x: DeviceArray, channels: _Channels) -> Tile:
    info = x.device.info
    if info.kind == "software" or info.limits.max_threads_per_block < 256:
        return _SMALL_TILE
    tile = next(tile for most, tile in _TILES if channels.outs <= most)
    return tile._replace(copies=2) if info.backend == "cuda" else tile


# --- the CPU -------------------------------------------------------------------------------------


def _in_strips(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: _Channels,
) -> None:
    """Blocks make strips of the result, alone."""
    groups, ins, outs, in_step, out_step, group_step = channels
    dtype = _plain(out.dtype)
    work = wide(dtype)
    batch = out.shape[0]
    for axes in phases:
        strip, length = _strip(axes, outs, work)
        tiles = -(-outs // strip.channels)
        taps = math.prod(axis.taps for axis in axes)
        packed = new(x, work, max(groups * tiles * taps * ins * strip.channels, 1))
        if ins * taps:
            strip_packer(work, strip.channels)[(-(-ins * taps // LANES), tiles, groups), LANES](
                flat(weight), packed, *_passed(axes), outs, ins, out_step, in_step, group_step
            )
        in_row = axes[2].taps if strip.by_lines else 1
        rows = ins * taps // max(in_row, 1)
        slab_rows = strip.slab // length
        partial = out
        if slab_rows < rows and work is not dtype:
            partial = new(out, work, *out.shape)
        width = axes[2].outputs + (max(axes[2].taps, 1) - 1) * axes[2].dilation
        if strip.by_lines:
            positions = batch * axes[0].outputs * axes[1].outputs * width
        else:
            positions = batch * math.prod(axis.outputs for axis in axes)
        blocks = -(-positions // (LANES * strip.vectors))
        parts = min(tiles, max(1, -(-_BUSY_ALONE // (blocks * groups))))
        kernel = strips(dtype, strip)
        kernel[(blocks, groups * parts), LANES](
            flat(x), packed, flat(weight if bias is None else bias), flat(partial), flat(out),
            *_passed(axes), batch, groups, ins, outs, tiles, parts, length, slab_rows,
            int(bias is not None),
        )  # fmt: skip


def _strip(axes: tuple[Axis, ...], outs: int, work: DType) -> tuple[Strip, int]:
    """How blocks work, and the length of a slab's rows."""
    x = axes[2]
    reach = (x.taps - 1) * x.dilation
    width = x.outputs + reach
    vectors = 3 if work.itemsize == 4 else 1
    length = LANES * vectors + reach
    slab = _SLAB_BYTES // work.itemsize
    by_lines = (
        x.taps > 0 and x.stride == 1 and width >= LANES and reach <= x.outputs and length <= slab
    )
    channels = min(8, 1 << (outs - 1).bit_length())
    image = math.prod(axis.outputs for axis in axes)
    whole = all(axis.out_step == 1 and axis.outputs == axis.out_size for axis in axes)
    if by_lines:
        return Strip(channels, vectors, slab, True, x.out_step != 1), length
    apart = not whole or image < LANES
    return Strip(channels, vectors, slab, False, apart), LANES * vectors
