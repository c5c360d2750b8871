"""Convolutions by groups of 128 threads: which ones, their tiles and their launches."""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.core.dtypes import float32 as f32
from treadle.core.limits import MOST_NARROW
from treadle.core.sizes import has_sizes
from treadle.ir.stages import LINE, LINE_BYTES, TURNED_BITS
from treadle.kernels.convolve_fragments import (
    FACTORS,
    in_phases,
    packed_image,
    padded_to,
)
from treadle.kernels.convolve_plans import (
    Axis,
    Channels,
    PaddedAxis,
    paddings_of,
    passed,
    passed_paddings,
    places_of,
    plain,
    windows_of,
)
from treadle.kernels.device_code.convolution_packing import weight_packer
from treadle.kernels.device_code.fragment_convolution import part_adder
from treadle.kernels.device_code.fragment_pipeline import piece_of
from treadle.kernels.device_code.group_convolution import (
    MOST_SHIFTS,
    ConvolutionTile,
    group_convolver,
)
from treadle.kernels.device_code.group_convolution_weights import group_weight_summer
from treadle.kernels.device_code.padded_weight_adder import padded_weight_adder
from treadle.kernels.launching import flat, new
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.tuned_tiles import TileKind, best_tile
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

# The tiles, and how fast a multiprocessor is with them, beside the first one (on an H200).
TILES: dict[ConvolutionTile, float] = {
    ConvolutionTile(128, 256, 1, 4): 1.0,
    ConvolutionTile(128, 128, 1, 5): 0.69,
    ConvolutionTile(64, 384, 2, 3): 0.83,
    ConvolutionTile(64, 256, 1, 2): 0.74,
    ConvolutionTile(64, 128, 1, 6): 0.44,
}
WEIGHT_TILES: dict[ConvolutionTile, float] = {
    ConvolutionTile(128, 256, 1, 4): 1.0,
    ConvolutionTile(128, 128, 1, 5): 0.78,
    ConvolutionTile(64, 256, 1, 4): 0.5,
    ConvolutionTile(64, 128, 1, 6): 0.45,
}
_MOST_SPLITS = 24  # of the places, for a gradient of weights: their sums are stored
_FULL = 0.88  # of the multiprocessors: with more of them at work, more splits are not worth it
_FEWEST_STEPS = 8  # of a part of the inner axis
_MOST_TOGETHER = 2  # blocks that a multiprocessor runs at once
_MOST_WASTE = 1.6  # how much more may be computed than is stored: fragments waste less


class Chosen(NamedTuple):
    """How a convolution is computed: the axes of the padded image, the tile."""

    paddings: tuple[PaddedAxis, ...]
    tile: ConvolutionTile


def chosen(
    device: Device,
    dtype: DType,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    batch: int,
) -> Chosen | None:
    """How groups of threads convolve, float32 numbers as TF32; None where fragments are better, or
    the device has none."""
    if not (device.traits.group_products and phases):
        return None
    machine = machine_of(device)
    if FACTORS.get(dtype.short) not in machine.group_products:
        return None
    if has_sizes((phases, channels, batch)):
        return None
    taps = max(math.prod(axis.taps for axis in axes) for axes in phases)
    if not channels.ins or taps > MOST_SHIFTS:
        return None
    first = choice(machine, dtype, phases, channels, batch)
    if first is None:
        return None
    inner = taps * channels.ins
    sizes = problem_sizes(channels.outs, inner, first.paddings, batch * channels.groups)
    tile = best_tile(device, TUNED_GROUPS, dtype.short, sizes, first.tile)
    return first._replace(tile=tile)


def problem_sizes(
    outs: int, inner: int, paddings: tuple[PaddedAxis, ...], images: int
) -> tuple[int, int, int]:
    """The sizes by which the tuner knows a convolution."""
    return outs, inner, places_of(paddings, images)


def _fits(device: Device, tile: ConvolutionTile) -> bool:
    """Whether a block can have a tile."""
    limits = device.limits
    return tile.threads <= limits.max_threads_per_block and (
        tile.shared_bytes <= limits.max_shared_memory
    )


TUNED_GROUPS = TileKind("convolutions", 1, "groups", ConvolutionTile, _fits)


def depth_of(dtype: DType) -> int:
    """The elements of the inner axis in a tile."""
    return LINE_BYTES // dtype.itemsize


def choice(
    machine: Machine,
    dtype: DType,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    batch: int,
) -> Chosen | None:
    """The tile that takes the least time, if all multiprocessors go on together; None where much
    more would be computed than is stored."""
    groups, ins, outs = channels[:3]
    paddings = paddings_of(phases)
    places = places_of(paddings, batch)
    remainders = math.prod(each.remainders for each in paddings)
    if remainders * places * groups * padded_to(ins, piece_of(dtype)) >= MOST_NARROW:
        return None
    stored = batch * max(math.prod(axis.outputs for axis in axes) for axes in phases)
    taps = max(math.prod(axis.taps for axis in axes) for axes in phases)
    depth = depth_of(dtype)
    steps = taps * (padded_to(ins, depth) // depth)
    useful = stored * outs * ins * taps * groups
    best: tuple[float, ConvolutionTile] | None = None
    for tile, rate in TILES.items():
        if tile.threads > machine.most_threads or tile.shared_bytes > machine.shared_bytes:
            continue
        blocks = -(-outs // tile.rows) * -(-places // tile.columns) * groups
        of_tile = tile.rows * tile.columns * steps * depth
        if blocks * of_tile > _MOST_WASTE * useful:
            continue
        at_once = blocks_at_once(machine, tile) or 1
        parts = parts_for(blocks, steps, at_once)
        rounds = -(-blocks * parts // at_once) * at_once / parts
        cost = rounds * of_tile / rate
        if best is None or cost < best[0]:
            best = cost, tile
    return Chosen(paddings, best[1]) if best else None


def blocks_at_once(machine: Machine, tile: ConvolutionTile) -> int:
    """How many blocks a card runs side by side; 0 if that is not known."""
    together = min(machine.shared_bytes // tile.shared_bytes, _MOST_TOGETHER)
    return machine.multiprocessors * together


def parts_for(blocks: int, steps: int, at_once: int) -> int:
    """Into how many parts the inner axis is divided: one, or more where there are so few blocks
    that a card would be idle."""
    return max(min(at_once // max(blocks, 1), steps // _FEWEST_STEPS), 1)


def by_groups(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    how: Chosen,
) -> None:
    """Blocks make tiles of the result, of a padded image and packed weights."""
    image = packed_image(x, channels.groups, channels.ins, how.paddings)
    batch = out.shape[0]

    def fill(axes: tuple[Axis, ...], part: DeviceArray) -> None:
        _fill(image, weight, bias, part, batch, axes, channels, how)

    in_phases(out, phases, fill)


def _fill(
    image: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    batch: int,
    axes: tuple[Axis, ...],
    channels: Channels,
    how: Chosen,
) -> None:
    """The places of a result that these axes have, of a padded image."""
    groups, ins, outs, in_step, out_step, group_step = channels
    paddings, tile = how
    dtype = plain(out.dtype)
    depth = depth_of(dtype)
    padded, within = padded_to(ins, piece_of(dtype)), padded_to(ins, depth)
    taps = math.prod(axis.taps for axis in axes)
    deep, steps = taps * within, taps * within // depth
    weights = new(image, dtype, groups * outs * deep)
    weight_packer(dtype).launch(
        groups * outs * within, flat(weight), weights, passed(axes), outs, ins, within, deep,
        out_step, in_step, group_step, groups * outs,
    )  # fmt: skip
    places = places_of(paddings, batch)
    blocks = -(-outs // tile.rows) * -(-places // tile.columns) * groups
    whole = all(axis.out_step == 1 and axis.outputs == axis.out_size for axis in axes)
    at_once = blocks_at_once(machine_of(image.device), tile) or blocks
    parts = parts_for(blocks, steps, at_once) if whole else 1
    if parts * out.size >= MOST_NARROW:
        parts = 1
    chunk = -(-steps // parts)
    parts = -(-steps // chunk)
    pairs = dtype.itemsize == 2 and parts == 1 and paddings[2].length % 2 == 0
    pairs = pairs and all(
        number % 2 == 0 for number in (axes[2].outputs, axes[2].out_size, out.offset)
    )
    pairs = pairs and (axes[2].out_start, axes[2].out_step) == (0, 1)
    into = flat(out) if parts == 1 else new(image, f32, parts * out.size)
    addend = flat(weight if bias is None else bias)
    kernel = group_convolver(dtype, tile, bias is not None and parts == 1, pairs, parts > 1)
    total = places * math.prod(each.remainders for each in paddings)
    kernel[min(blocks * parts, at_once), tile.threads](
        weights, image, addend, into, passed(axes), passed_paddings(paddings), batch, groups, outs,
        padded, deep, groups * padded, outs * deep, places, total, chunk, parts, out.size,
    )  # fmt: skip
    if parts > 1:
        inner = math.prod(axis.outputs for axis in axes)
        part_adder(dtype, bias is not None).launch(
            out.size, into, addend, flat(out), parts, out.size, groups * outs, inner
        )


# --- the gradient of weights ---------------------------------------------------------------------


def weights_chosen(
    device: Device, dtype: DType, axes: tuple[Axis, ...], channels: Channels, batch: int
) -> Chosen | None:
    """How groups of threads compute the gradient of weights; None where fragments are better, for
    numbers of 32 bits, or if the device has none."""
    if not device.traits.group_products or has_sizes((axes, channels, batch)):
        return None
    if dtype.itemsize * 8 != TURNED_BITS:
        return None
    machine = machine_of(device)
    if FACTORS.get(dtype.short) not in machine.group_products:
        return None
    groups, ins, outs = channels[:3]
    paddings = paddings_of([axes])
    places, remainders = places_of(paddings, batch), math.prod(each.remainders for each in paddings)
    taps = math.prod(axis.taps for axis in axes)
    piece = piece_of(dtype)
    pitch = padded_to(places, piece)
    image = remainders * pitch * groups * padded_to(ins, piece)
    gradient = pitch * groups * padded_to(outs, piece)
    within, depth = padded_to(ins, LINE), depth_of(dtype)
    if max(image, gradient, _MOST_SPLITS * groups * outs * taps * within) >= MOST_NARROW:
        return None
    stored = batch * math.prod(axis.outputs for axis in axes)
    steps = -(-places // depth)
    useful = stored * outs * ins * taps * groups
    best: tuple[float, ConvolutionTile] | None = None
    for tile, rate in WEIGHT_TILES.items():
        if tile.threads > machine.most_threads or tile.shared_bytes > machine.shared_bytes:
            continue
        blocks = -(-outs // tile.rows) * -(-taps * within // tile.columns) * groups
        of_tile = tile.rows * tile.columns * steps * depth
        if blocks * of_tile > _MOST_WASTE * useful:
            continue
        at_once = blocks_at_once(machine, tile) or 1
        splits = splits_for(blocks, steps, at_once)
        rounds = -(-blocks * splits // at_once) * at_once / splits
        cost = rounds * of_tile / rate
        if best is None or cost < best[0]:
            best = cost, tile
    return Chosen(paddings, best[1]) if best else None


def splits_for(blocks: int, steps: int, at_once: int) -> int:
    """Into how many splits the places are divided: as few as keep most of a card busy."""
    best = 1, 0.0
    for splits in range(1, min(_MOST_SPLITS, max(steps // _FEWEST_STEPS, 1)) + 1):
        rounds = -(-blocks * splits // at_once)
        full = blocks * splits / (rounds * at_once)
        if full > best[1]:
            best = splits, full
        if full >= _FULL:
            break
    return best[0]


def weights_by_groups(
    x: DeviceArray,
    gradient: DeviceArray,
    out: DeviceArray,
    axes: tuple[Axis, ...],
    groups: int,
    how: Chosen,
) -> None:
    """Blocks sum a split of all places for a tile of the weights; then splits are added up."""
    paddings, tile = how
    dtype, batch = plain(out.dtype), x.shape[0]
    ins, outs = x.shape[1] // groups, gradient.shape[1] // groups
    depth, within = depth_of(dtype), padded_to(ins, LINE)
    taps = math.prod(axis.taps for axis in axes)
    deep, places = taps * within, places_of(paddings, batch)
    remainders = math.prod(each.remainders for each in paddings)
    padded, out_padded = (padded_to(each, piece_of(dtype)) for each in (ins, outs))
    image = packed_image(x, groups, ins, paddings)
    slopes = packed_image(gradient, groups, outs, windows_of(axes, paddings))
    far, out_far = groups * padded, groups * out_padded
    blocks = -(-outs // tile.rows) * -(-deep // tile.columns)
    steps = -(-places // depth)
    at_once = blocks_at_once(machine_of(x.device), tile) or blocks * groups
    length = -(-steps // splits_for(blocks * groups, steps, at_once))
    splits = -(-steps // length)
    size = groups * outs * deep
    summed = new(x, f32, splits * size)
    group_weight_summer(dtype, tile)[(blocks, groups, splits), tile.threads](
        slopes, image, summed, passed(axes), passed_paddings(paddings), groups, outs, padded,
        out_padded, far, out_far, deep, places, remainders * places, length,
    )  # fmt: skip
    padded_weight_adder(dtype).launch(
        size, summed, slopes, image, flat(out), passed(axes), passed_paddings(paddings), batch,
        splits, size, taps, taps, groups * outs, ins, within, outs, places,
        far, 1, padded, places * far, out_far, 1, out_padded,
    )  # fmt: skip
