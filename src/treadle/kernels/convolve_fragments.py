"""Convolutions by fragments: which ones, their tiles and their launches."""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.core.dtypes import DType, i32
from treadle.core.dtypes import float32 as f32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.convolve_plans import (
    Axis,
    Channels,
    PaddedAxis,
    passed,
    passed_paddings,
    places_of,
    plain,
)
from treadle.kernels.device_code.convolution_packing import (
    IMAGE_THREADS,
    PAD_THREADS,
    image_packer,
    pad_image,
    weight_packer,
)
from treadle.kernels.device_code.fragment_convolution import (
    MOST_TAPS,
    fragment_convolver,
    interleaver,
    part_adder,
)
from treadle.kernels.device_code.fragment_convolution_weights import (
    fragment_weight_summer,
    tabulate_windows,
    weight_adder,
)
from treadle.kernels.device_code.fragment_pipeline import depth_of, piece_of
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.launching import flat, new
from treadle.kernels.matrix_check import usable_products
from treadle.kernels.tuned_tiles import TileKind, best_tile
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

# What devices multiply, by the dtype of images.
FACTORS = {"f16": "f16", "bf16": "bf16", "f32": "tf32"}
FEWEST_OUTPUTS = 8  # of a group: a tile would be mostly empty with fewer
# The largest first: rows (output channels) and columns (positions) of a block, depth in elements of
# two bytes, rows and columns of a warp, stages.
TILES = (
    FragmentTile(128, 128, 32, 64, 64, 4),
    FragmentTile(64, 128, 32, 32, 64, 4),
    FragmentTile(64, 64, 32, 32, 32, 4),
    FragmentTile(32, 128, 32, 32, 32, 4),
    FragmentTile(16, 128, 64, 16, 32, 3),
    FragmentTile(32, 64, 32, 16, 32, 4),
    FragmentTile(32, 32, 32, 16, 16, 3),
)
WEIGHT_TILES = (
    FragmentTile(128, 128, 64, 64, 64, 3),
    FragmentTile(64, 128, 32, 32, 64, 4),
    FragmentTile(64, 64, 64, 32, 32, 3),
    FragmentTile(32, 128, 64, 32, 32, 3),
    FragmentTile(16, 128, 64, 16, 32, 3),
    FragmentTile(32, 32, 32, 16, 16, 3),
)
# Of float32 numbers, whose words are read one by one from more addresses, a warp has less.
WEIGHT_TILES_OF_TF32 = (FragmentTile(128, 128, 32, 64, 32, 4), *WEIGHT_TILES[1:])
_FEWEST_STEPS = 8  # of a split
_FULL_BLOCKS = 264  # for which an inner axis is split
_NOT_PADDED = (PaddedAxis(1, 1, 0, 1, 1, 0),) * 3
_BUSY_BLOCKS = 96  # with fewer, smaller tiles keep more of a card at work


def suits(
    device: Device,
    dtype: DType,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    rounded: bool,
) -> bool:
    """Whether fragments convolve: what they take, and what their tiles are not mostly empty for.
    `rounded`: float32 numbers may be rounded to TF32."""
    factors = FACTORS.get(dtype.short)
    if factors is None or (dtype is f32 and not rounded) or factors not in usable_products(device):
        return False
    taps = max(sum(axis.taps for axis in axes) for axes in phases)
    return channels.outs >= FEWEST_OUTPUTS and channels.ins > 0 and taps <= MOST_TAPS


def images_at_once(dtype: DType, channels: int, x: DeviceArray) -> int:
    """How many images, with so many channels in a group, can be indexed when they are packed."""
    image = x.size // x.shape[0] // channels * padded_to(channels, piece_of(dtype))
    return (MOST_NARROW - 1) // max(image, 1)


def padded_to(count: int, step: int) -> int:
    """The count, up to a multiple."""
    return -(-count // step) * step


def packed_image(
    x: DeviceArray,
    groups: int,
    ins: int,
    paddings: tuple[PaddedAxis, ...] | None = None,
    exact: bool = False,
    more: int = 0,
) -> DeviceArray:
    """An image (batch, groups * ins, …) as (batch, …, groups, ins), with zeros up to a whole number
    of pieces of channels; padded along its axes, if that is said. Unless it is `exact`, float32
    numbers are rounded to TF32. Behind a padded image are the zeros of so many `more` places."""
    dtype = plain(x.dtype)
    padded = padded_to(ins, piece_of(dtype))
    batch, plane = x.shape[0], math.prod(x.shape[2:])
    places = batch * plane
    if paddings is not None:
        places = places_of(paddings, batch) * math.prod(each.remainders for each in paddings)
        places += more
    out = new(x, dtype, places * groups * padded)
    of_group = padded // piece_of(dtype)
    pieces = next(each for each in (8, 4, 2, 1) if of_group % each == 0)
    tiles = -(-plane // (4 * IMAGE_THREADS // pieces))
    lanes = 4 if plane % 4 == 0 and x.offset % 4 == 0 else 1
    grid = tiles * batch, of_group // pieces * groups
    axes = passed_paddings(paddings or _NOT_PADDED)
    if paddings is not None:
        size = groups * padded // 4
        lines = (places - more) // paddings[2].length
        pad_image(dtype)[lines, PAD_THREADS](out, axes, batch, size, more * size)
    image_packer(dtype, pieces, lanes, paddings is not None, exact)[grid, IMAGE_THREADS](
        flat(x), out, groups, ins, padded, plane, tiles, batch, axes
    )
    return out


def by_fragments(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    tile: FragmentTile | None = None,
) -> None:
    """Blocks make tiles of the result, of a packed image and packed weights."""
    image = packed_image(x, channels.groups, channels.ins)

    def fill(axes: tuple[Axis, ...], part: DeviceArray) -> None:
        _fill(image, weight, bias, part, out.shape[0], axes, channels, tile)

    in_phases(out, phases, fill)


def in_phases(
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    fill: Callable[[tuple[Axis, ...], DeviceArray], None],
) -> None:
    """Have a result filled for each remainder of the strides."""
    steps = [axis.out_step for axis in phases[0]]
    if len(phases) == 1 or len(phases) < math.prod(steps):
        for axes in phases:
            fill(axes, out)
        return
    # Results of each remainder of the strides are stored row by row, then all of them are brought
    # together: elements that are not neighbours would be stored one by one.
    counts = [max(axes[at].outputs for axes in phases) for at in range(3)]
    rows = out.shape[0] * out.shape[1]
    size = rows * math.prod(counts)
    dtype = plain(out.dtype)
    parts = new(out, dtype, len(phases) * size)
    for number, axes in enumerate(phases):
        own = [
            axis._replace(outputs=count, out_start=0, out_step=1, out_size=count)
            for axis, count in zip(axes, counts, strict=True)
        ]
        fill(tuple(own), parts.view((size,), (1,), number * size))
    last = [axis._replace(outputs=n) for axis, n in zip(phases[0], counts, strict=True)]
    places = [axis.out_size for axis in last]
    interleaver(dtype).launch(
        (rows * places[0] * places[1], places[2]), parts, flat(out), passed(tuple(last)), size, rows
    )


def _fill(
    image: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    batch: int,
    axes: tuple[Axis, ...],
    channels: Channels,
    tile: FragmentTile | None,
) -> None:
    """The places of a result that these axes have, of a packed image."""
    groups, ins, outs, in_step, out_step, group_step = channels
    dtype = plain(out.dtype)
    padded = padded_to(ins, piece_of(dtype))
    places = math.prod(axis.outputs for axis in axes)
    positions = batch * places
    taps = math.prod(axis.taps for axis in axes)
    chosen = tile or tile_for(image.device, outs, positions * groups, taps * padded)
    if tile is None:
        sizes = outs, taps * padded, positions * groups
        chosen = best_tile(image.device, TUNED_FRAGMENTS, dtype.short, sizes, chosen)
    depth = depth_of(chosen, dtype)
    deep = padded_to(taps * padded, depth)
    weights = new(image, dtype, groups * outs * deep)
    weight_packer(dtype).launch(
        groups * outs * padded, flat(weight), weights, passed(axes), outs, ins, padded, deep,
        out_step, in_step, group_step, groups * outs,
    )  # fmt: skip
    whole = all(axis.out_step == 1 and axis.outputs == axis.out_size for axis in axes)
    lanes = 4 if whole and places % 4 == 0 and out.offset % 4 == 0 else 1
    tiles = -(-outs // chosen.rows)
    blocks = tiles * -(-positions // chosen.columns)
    chunk = chunk_for(depth, deep, blocks * groups) if whole else deep
    parts = -(-deep // chunk)
    if parts * out.size >= MOST_NARROW:
        parts, chunk = 1, deep
    into = flat(out) if parts == 1 else new(image, f32, parts * out.size)
    addend = flat(weight if bias is None else bias)
    kernel = fragment_convolver(dtype, chosen, bias is not None and parts == 1, lanes, parts > 1)
    kernel[(blocks, groups, parts), chosen.threads](
        weights, image, addend, into, passed(axes), batch, groups, outs, padded, deep, tiles,
        chunk, out.size,
    )  # fmt: skip
    if parts > 1:
        part_adder(dtype, bias is not None).launch(
            out.size, into, addend, flat(out), parts, out.size, groups * outs, places
        )


def chunk_for(depth: int, deep: int, blocks: int) -> int:
    """How much of the inner axis a block does: all of it, or less where so few blocks leave a card
    idle."""
    steps = deep // depth
    parts = min(_FULL_BLOCKS // blocks, steps // _FEWEST_STEPS)
    return deep if parts < 2 else -(-steps // parts) * depth


def weights_by_fragments(
    x: DeviceArray,
    gradient: DeviceArray,
    out: DeviceArray,
    axes: tuple[Axis, ...],
    groups: int,
    tile: FragmentTile | None = None,
) -> None:
    """Blocks sum a split of all positions for a tile of the weights; then splits are added up."""
    dtype = plain(out.dtype)
    ins, outs = x.shape[1] // groups, gradient.shape[1] // groups
    padded, out_padded = (padded_to(each, piece_of(dtype)) for each in (ins, outs))
    batch, taps = x.shape[0], math.prod(axis.taps for axis in axes)
    positions = batch * math.prod(axis.outputs for axis in axes)
    weights = taps * padded
    chosen = tile or weight_tile_for(x.device, dtype, outs, weights, groups * positions)
    depth = depth_of(chosen, dtype)
    row_tiles, column_tiles = -(-outs // chosen.rows), -(-weights // chosen.columns)
    blocks = row_tiles * column_tiles * groups
    splits = max(min(_FULL_BLOCKS // blocks, positions // (_FEWEST_STEPS * depth)), 1)
    length = padded_to(-(-positions // splits), depth)
    splits = -(-positions // length)
    entries = positions + 2 * depth
    table = new(x, i32, 2 * entries)
    tabulate_windows.launch(entries, table, passed(axes), batch, groups * padded // 4, entries)
    summed = new(x, f32, splits * groups * outs * weights)
    fragment_weight_summer(dtype, chosen)[
        (row_tiles * column_tiles, groups, splits), chosen.threads
    ](
        packed_image(gradient, groups, outs), packed_image(x, groups, ins), table, summed,
        passed(axes), groups, outs, padded, out_padded, row_tiles, positions, length,
    )  # fmt: skip
    size = groups * outs * weights
    weight_adder(dtype).launch(size, summed, flat(out), splits, size, taps, ins, padded)


def weight_tile_for(
    device: Device, dtype: DType, outs: int, weights: int, positions: int
) -> FragmentTile:
    """The largest tile that the device's limits allow and that is not mostly empty, of as many as
    the positions can be split for."""
    tiles = WEIGHT_TILES_OF_TF32 if dtype is f32 else WEIGHT_TILES
    fitting = [tile for tile in tiles if tile.rows < 2 * max(outs, 9) and _fits(device, tile, 0)]
    for tile in fitting:
        blocks = _blocks(tile, outs, weights) * positions // (_FEWEST_STEPS * tile.depth)
        if tile.columns < 2 * weights and blocks >= _BUSY_BLOCKS:
            return tile
    return (fitting or tiles)[-1]


def tile_for(device: Device, outs: int, positions: int, inner: int) -> FragmentTile:
    """The largest tile that the device's limits allow, that is not mostly empty, and of which there
    are enough, the inner axis being split."""
    fitting = [
        tile
        for tile in TILES
        if tile.rows < 2 * max(outs, 9) and _fits(device, tile, 4 * tile.columns)
    ]
    for tile in fitting:
        parts = max(inner // (2 * _FEWEST_STEPS * tile.depth), 1)
        if _blocks(tile, outs, positions) * parts >= _BUSY_BLOCKS:
            return tile
    return (fitting or TILES)[-1]


def _fits(device: Device, tile: FragmentTile, more: int) -> bool:
    """Whether a block can have a tile and `more` bytes of shared memory."""
    shared = tile.shared_bytes(2) + more
    limits = device.limits
    return tile.threads <= limits.max_threads_per_block and shared <= limits.max_shared_memory


def _blocks(tile: FragmentTile, outs: int, positions: int) -> int:
    return -(-outs // tile.rows) * -(-positions // tile.columns)


def _fits_forward(device: Device, tile: FragmentTile) -> bool:
    return _fits(device, tile, 4 * tile.columns)


TUNED_FRAGMENTS = TileKind("convolutions", 1, "fragments", FragmentTile, _fits_forward)
