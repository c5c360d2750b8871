"""Convolutions along one to three axes, and transposed ones.

Arrays are (batch, channels, axes…), weights (outputs, inputs of a group, axes…); of transposed
convolutions (inputs, outputs of a group, axes…). Fewer than three axes are three, the first of
which have one place.

A transposed convolution is the gradient of a convolution with respect to its input, so
`convolve_transposed` takes the shape of its result's axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels import convolve_products, winograd
from treadle.kernels.convolve_cpu import in_strips
from treadle.kernels.convolve_cpu_weights import suits_strips, weights_in_strips
from treadle.kernels.convolve_fragments import (
    by_fragments,
    images_at_once,
    suits,
    weights_by_fragments,
)
from treadle.kernels.convolve_groups import by_groups, chosen, weights_by_groups, weights_chosen
from treadle.kernels.convolve_plans import (
    Axis,
    Channels,
    along_of,
    passed,
    phases_of,
    plain,
    three_axes,
)
from treadle.kernels.device_code import convolution, convolution_weights
from treadle.kernels.device_code.convolution import MOST_JOINED, Tile
from treadle.kernels.device_code.convolution_cpu import NEAR
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, zeros
from treadle.kernels.tuned_tiles import TileKind, best_tile
from treadle.lang.decorators import Kernel
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device

Extents = tuple[int, ...]


@for_any_sizes
def convolve(
    x: DeviceArray,
    weight: DeviceArray,
    *more: Any,
) -> DeviceArray:
    """The convolution of x by weights (which are not flipped): with `stride`, `padding` (zeros
    before each axis), `dilation`, `groups` and `extents` (of the result's axes) as options. Then
    may come whether float32 numbers may be `rounded` to TF32.

    `bias`, if it is not left out, comes before the options and is added.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="cpu")
    >>> weight = td.asarray([[[1.0, 10.0]]], device="cpu")
    >>> convolve(x._array, weight._array, (1,), (0,), (1,), 1, (3,)).to_host().tolist()
    [[[21.0, 32.0, 43.0]]]
    """
    bias, (stride, padding, dilation, groups, extents, *rounded) = _split_bias(more)
    given = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, extents, strict=True)
    axes = tuple([along_of(*of_axis) for of_axis in given])
    outs, ins = weight.shape[:2]
    taps = math.prod(weight.shape[2:])
    channels = Channels(groups, ins, outs // groups, taps, ins * taps, outs // groups * ins * taps)
    out = new(x, plain(x.dtype), x.shape[0], outs, *extents)
    _run(x, weight, bias, out, [axes], channels, any(rounded))
    return out


@for_any_sizes
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
    bias, (stride, padding, dilation, groups, extents, *rounded) = _split_bias(more)
    phases: list[tuple[Axis, ...]] = [()]
    given = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, extents, strict=True)
    for of_axis in given:
        phases = [(*axes, along) for axes in phases for along in phases_of(*of_axis)]
    ins, outs = weight.shape[:2]
    taps = math.prod(weight.shape[2:])
    channels = Channels(groups, ins // groups, outs, outs * taps, taps, ins // groups * outs * taps)
    out = new(x, plain(x.dtype), x.shape[0], outs * groups, *extents)
    reached = [axes for axes in phases if all(axis.taps for axis in axes)]
    if len(reached) < len(phases) and out.size:
        # Outputs that no tap reaches are the bias; all others are overwritten.
        rows = x.shape[0] * outs * groups
        fill = convolution.bias_filler(plain(x.dtype), bias is not None)
        places = out.size // rows
        addend = 0 if bias is None else flat(bias)
        fill.launch((rows, places), addend, flat(out), outs * groups, places)
    _run(x, weight, bias, out, reached, channels, any(rounded))
    return out


@for_any_sizes
def weight_gradient(
    x: DeviceArray,
    gradient: DeviceArray,
    stride: Extents,
    padding: Extents,
    dilation: Extents,
    groups: int,
    extents: Extents,
    rounded: bool = False,
) -> DeviceArray:
    """The gradient of a convolution's weights, whose kernel has these `extents`, from its input and
    the gradient of its result. Of a transposed convolution it is that with x and gradient changed.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="cpu")
    >>> ones = td.ones((1, 1, 3), device="cpu").realize()
    >>> weight_gradient(x._array, ones._array, (1,), (0,), (1,), 1, (2,)).to_host().tolist()
    [[[6.0, 9.0]]]
    """
    batch, outs, *places = gradient.shape
    ins, dtype = x.shape[1] // groups, plain(x.dtype)
    out = new(x, dtype, outs, ins, *extents)
    if not out.size or not gradient.size:
        return zeros(x, dtype, *out.shape)
    given = zip(x.shape[2:], extents, stride, padding, dilation, places, strict=True)
    one = Axis(1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1)
    axes = (*[one] * (5 - len(x.shape)), *[along_of(*of_axis) for of_axis in given])
    if serial_threads(x.device) and suits_strips(axes, ins):
        weights_in_strips(x, gradient, out, axes, groups)
        return out
    if serial_threads(x.device):
        # The same convolution with roles exchanged: the batch is summed over like channels, output
        # positions are the taps.
        swapped = _swapped(x, batch, groups, ins, ins, groups * batch, *x.shape[2:])
        steps = dilation, padding, stride
        swapped_gradient = _swapped(gradient, batch, 1, outs, outs, batch, *places)
        made = convolve(swapped, swapped_gradient, *steps, groups, extents)
        return _swapped(made, ins, 1, outs, *out.shape)
    taps = math.prod(extents)
    channels = Channels(groups, ins, outs // groups, taps, 0, 0)
    if suits(x.device, dtype, [axes], channels, rounded) and all(
        images_at_once(dtype, each // groups, array) >= batch
        for each, array in ((x.shape[1], x), (outs, gradient))
    ):
        how = weights_chosen(x.device, dtype, axes, channels, batch)
        if how is not None:
            weights_by_groups(x, gradient, out, axes, groups, how)
        else:
            weights_by_fragments(x, gradient, out, axes, groups)
        return out
    if not rounded and convolve_products.suits(x.device, dtype, axes, channels, batch):
        convolve_products.weights_by_products(x, gradient, out, axes)
        return out
    positions, weights = batch * math.prod(places), ins * math.prod(extents)
    tile = tile_for(x.device, dtype, outs // groups, weights * positions // _SHORTEST)
    tiles = -(-outs // groups // tile.rows)
    columns = -(-weights // tile.columns)
    splits = min(-(-_SPLITS // (columns * tiles * groups)), -(-positions // _SHORTEST))
    length = -(-positions // (splits * tile.depth)) * tile.depth
    splits = -(-positions // length)
    summed = new(x, wide(dtype), splits, out.size)
    summer = convolution_weights.weight_summer(dtype, tile._replace(copies=1))
    summer[(columns, groups * tiles, splits), tile.threads](
        flat(x), flat(gradient), flat(summed), passed(axes), batch, groups, ins, outs // groups,
        tiles, length,
    )  # fmt: skip
    convolution_weights.adder(dtype).launch(out.size, flat(summed), flat(out), splits, out.size)
    return out


def _swapped(x: DeviceArray, first: int, middle: int, last: int, *shape: int) -> DeviceArray:
    """An array of axes (first, middle, last, …) as (last, middle, first, …), in this shape."""
    out = new(x, plain(x.dtype), *shape)
    inner = x.size // (first * middle * last)
    convolution_weights.swap.launch(
        (first * middle * last, inner), flat(x), flat(out), first, middle, last, inner
    )
    return out


def _split_bias(more: tuple[Any, ...]) -> tuple[DeviceArray | None, tuple[Any, ...]]:
    return (more[0], more[1:]) if isinstance(more[0], DeviceArray) else (None, more)


def check_sizes(
    device: Device, dtype: DType, x: Extents, weight: Extents, extents: Extents, outs: int
) -> None:
    """ShapeError if one image, its result or the weights are more than a kernel can index."""
    images = {"an input": math.prod(x[1:]), "a result": outs * math.prod(extents)}
    for what, size in (*images.items(), ("weights", math.prod(weight))):
        if size > (most := _most(device, dtype)):
            raise ShapeError(
                f"an input of shape {x} and weights of shape {weight} make {what} of {size} "
                f"elements{'' if what == 'weights' else ' for each of the batch'}, and a "
                f"convolution on {device.id} counts to {most}: convolve parts"
            )


def most_images(device: Device, dtype: DType, *shapes: Extents) -> int:
    """How many images `weight_gradient` takes at once, of arrays of these shapes."""
    largest = max(math.prod(shape[1:]) for shape in shapes)
    return max(_most(device, dtype) // max(largest, 1), 1)


def _most(device: Device, dtype: DType) -> int:
    """Elements of an array that a kernel sees."""
    counted = NEAR if serial_threads(device) else MOST_NARROW - 1
    return min(counted, device.limits.max_binding_size // dtype.itemsize)


def _run(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
    rounded: bool,
) -> None:
    """As many images at a time as kernels can index."""
    if not out.size or not phases:
        return
    dtype = plain(x.dtype)
    runner: Callable[..., None] = in_strips if serial_threads(x.device) else _on_gpu
    images = out.shape[0]
    most = _most(x.device, dtype)
    at_once = max(most // (max(x.size, out.size) // images), 1)
    if not weight.size:  # no channels: a binding must not be empty; no kernel reads this element
        x, weight = new(x, dtype, out.shape[0]), new(x, dtype, 1)
    threes = [three_axes(axes) for axes in phases]
    if suits(x.device, dtype, threes, channels, rounded):
        packed = images_at_once(dtype, channels.ins, x)
        if packed:
            runner, at_once = by_fragments, min(at_once, packed)
        how = chosen(x.device, dtype, threes, channels, min(images, at_once))
        if how is not None:
            runner = partial(by_groups, how=how)
    elif winograd.suits(x.device, dtype, threes, channels, images):
        runner = winograd.by_winograd
    if images <= at_once:
        runner(x, weight, bias, out, threes, channels)
        return
    for first in range(0, images, at_once):
        some = [_images(array, first, min(at_once, images - first)) for array in (x, out)]
        runner(some[0], weight, bias, some[1], threes, channels)


def _images(array: DeviceArray, first: int, count: int) -> DeviceArray:
    """Some of an array's images."""
    if count == array.shape[0]:
        return array
    shape, image = (count, *array.shape[1:]), array.size // array.shape[0]
    return array.view(shape, packed_strides(shape), array.offset + first * image)


# --- GPUs ----------------------------------------------------------------------------------------


def _on_gpu(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
) -> None:
    """Blocks make tiles of the result, or threads few channels of it."""
    groups, ins, outs, in_step, out_step, group_step = channels
    dtype = plain(out.dtype)
    work = wide(dtype)
    taps = math.prod(axis.kernel for axis in phases[0])
    kernel: Kernel
    if outs < _FEWEST_IN_TILES:
        rows, depth, joined = (1 if outs == 1 else 4), 1, False
        threads = columns = _THREADS
        kernel = convolution.direct(dtype, rows, bias is not None)
    else:
        positions = out.shape[0] * math.prod(axis.outputs for axis in phases[0])
        columns_of_all = positions * groups
        tile = tile_for(x.device, dtype, outs, columns_of_all)
        tile = best_tile(x.device, TUNED, work.short, (outs, ins * taps, columns_of_all), tile)
        rows, depth, threads, columns = tile.rows, tile.depth, tile.threads, tile.columns
        joined = ins < depth and ins * taps <= MOST_JOINED and in_step == taps and taps > 1
        joined = joined and max(axis.kernel for axis in phases[0]) < 256
        kernel = convolution.tiled(dtype, tile, bias is not None, joined)
    tiles = -(-outs // rows)
    inner, outer_taps, step = (ins * taps, 1, 1) if joined else (ins, taps, in_step)
    padded = -(-inner // depth) * depth
    weights = new(x, work, max(groups * tiles * outer_taps * padded * rows, rows))
    if inner:
        convolution.packer(work, rows, depth).launch(
            weights.size, flat(weight), weights, outs, inner, outer_taps, tiles, out_step, step,
            group_step,
        )  # fmt: skip
    for axes in phases:
        positions = out.shape[0] * math.prod(axis.outputs for axis in axes)
        kernel[(-(-positions // columns), groups * tiles), threads](
            flat(x), weights, 0 if bias is None else flat(bias), flat(out), passed(axes),
            out.shape[0], groups, ins, outs, tiles,
        )  # fmt: skip


_SPLITS = 512  # blocks that keep a GPU busy
_SHORTEST = 256  # positions of a split
_FEWEST_IN_TILES = 8  # output channels of a group
_THREADS = 64  # of a block of `convolution.direct`
_WIDEST = 8  # bytes of a number that is computed with
_BUSY_BLOCKS = 128  # with fewer, smaller tiles keep more of a GPU at work
# The largest first. `python -m benchmarks.convolution_tiles` measures which is best.
TILES = (
    Tile(128, 128, 8, 8, 8),
    Tile(64, 64, 8, 4, 8),
    Tile(32, 128, 8, 4, 8),
    Tile(32, 32, 8, 4, 4),
)
_SMALL_TILE = Tile(16, 16, 8, 4, 4)  # for the smallest GPUs
# For software adapters. Each place along the depth has branches of its own in the code, of which
# SwiftShader compiles eight for many minutes, and two in half a second.
_SOFTWARE_TILE = Tile(16, 16, 2, 4, 4)


def tile_for(device: Device, dtype: DType, outs: int, columns: int) -> Tile:
    """The largest tile that is not mostly empty, and of which there are enough."""
    if device.traits.software:
        return _SOFTWARE_TILE
    if device.limits.max_threads_per_block < 256:
        return _SMALL_TILE
    fitting = [tile for tile in TILES if tile.rows < 2 * outs and wide(dtype).itemsize == 4]
    busy = (tile for tile in fitting if _blocks(tile, outs, columns) >= _BUSY_BLOCKS)
    tile = next(busy, TILES[-1])
    return tile._replace(copies=2) if device.traits.double_buffers else tile


def _fits(device: Device, tile: Tile) -> bool:
    """Whether a block can have a tile: its threads load whole lines of columns."""
    if tile.threads % tile.columns or tile.depth * tile.columns % tile.threads:
        return False
    shared = tile.copies * tile.depth * (tile.rows + tile.columns + 8) * _WIDEST
    limits = device.limits
    return tile.threads <= limits.max_threads_per_block and shared <= limits.max_shared_memory


TUNED = TileKind("convolutions", 1, "registers", Tile, _fits)


def _blocks(tile: Tile, outs: int, columns: int) -> int:
    return -(-outs // tile.rows) * -(-columns // tile.columns)
