"""Images and weights as convolutions by instructions for small matrices read them: the channels of
a group are neighbours, with zeros up to a whole number of pieces of 16 bytes.

An image may keep its places in their order, or be *padded*: zeros lie before and behind the places
of each axis, so that a window that goes beyond the image reads zeros wherever it begins. The zeros
behind a line are those before the next one. Of an axis with a stride, places with one remainder are
neighbours. So a tap is, for all windows of all images, the same distance from where they begin.

float32 numbers that are multiplied as TF32 are rounded to it here.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.fragment_pipeline import piece_of
from treadle.lang.decorators import Function, Kernel

IMAGE_THREADS = 128  # of a block of `image_packer`, each with a piece of four places
PAD_THREADS = 64  # of a block of `pad_image`


@td.struct
class Padding:
    """How an axis is padded: of its `size` places, those with one remainder modulo `stride` follow
    `before` zeros, and `length` places belong to a line. There are lines for so many `remainders`,
    one or all of them; `remainder` is the one."""

    size: td.i32
    stride: td.i32
    before: td.i32
    length: td.i32
    remainders: td.i32
    remainder: td.i32


@td.struct
class Paddings:
    """Those of three axes."""

    z: Padding
    y: Padding
    x: Padding


@td.func
def _placed(along, i):
    """The remainder and the place of an element of an axis; a negative place for one that no window
    reads."""
    quotient = i
    remainder = 0
    if along.stride > 1:
        quotient = td.i32(td.u32(i) // td.u32(along.stride))
        remainder = i - quotient * along.stride
    place = quotient + along.before
    if place >= along.length:
        place = -1
    if along.remainders == 1:
        if remainder != along.remainder:
            place = -1
        remainder = 0
    return remainder, place


@td.func
def _elements(along, remainder):
    """Where the elements with a remainder begin and end in a line."""
    first = along.remainder if along.remainders == 1 else remainder
    count = (along.size - first + along.stride - 1) // along.stride
    return along.before, td.minimum(along.before + count, along.length)


@td.func
def _read_from(axis, padding, j):
    """The remainder and the place that tap j of an axis reads for the window at place 0."""
    i = axis.start + j * axis.dilation
    quotient = i // padding.stride  # rounded down
    remainder = i - quotient * padding.stride
    return (0 if padding.remainders == 1 else remainder), quotient + padding.before


@td.func
def start_of(axes, paddings, tap):
    """What a tap reads for the window at place 0 of a padded image: the number of the remainders,
    and the place among those of these remainders."""
    lines = tap // axes.x.taps
    jz = lines // axes.y.taps
    rz, iz = _read_from(axes.z, paddings.z, jz)
    ry, iy = _read_from(axes.y, paddings.y, lines - jz * axes.y.taps)
    rx, ix = _read_from(axes.x, paddings.x, tap - lines * axes.x.taps)
    number = (rz * paddings.y.remainders + ry) * paddings.x.remainders + rx
    return number, (iz * paddings.y.length + iy) * paddings.x.length + ix


@td.func
def distance_of(axes, paddings, places, tap):
    """How far the place that a tap reads in a padded image is from where a window begins, of which
    there are so many `places` for each of the remainders."""
    number, at = start_of(axes, paddings, tap)
    return number * places + at


@functools.cache
def _rounder(dtype: DType, exact: bool = False) -> Function:
    """The element as products have it: unless it is `exact`, a float32 number is the nearest TF32
    number."""
    single = dtype is td.f32 and not exact

    @td.func
    def rounded(value):
        if not single:
            return value
        bits = td.bitcast(value, td.u32)
        nearest = (bits + td.u32(0x1000)) & td.u32(0xFFFFE000)
        return td.bitcast(td.where(td.isnan(value), td.u32(0x7FC00000), nearest), td.f32)

    return rounded


@functools.cache
def image_packer(
    dtype: DType, pieces: int, lanes: int, padded_axes: bool = False, exact: bool = False
) -> Kernel:
    """A kernel that packs images (batch, groups, ins, plane) as (batch, plane, groups, padded): a
    block packs some pieces at some places. A thread loads the channels of a piece at four places;
    they are neighbours in memory, and loaded at once, with four `lanes`. With `padded_axes` the
    image is padded; `pad_image` writes the zeros. `exact`: float32 numbers are not rounded."""
    piece = piece_of(dtype)
    quads = IMAGE_THREADS // pieces  # of places
    vec = td.vec4[dtype]
    read: object = vec if lanes == 4 else dtype
    parts = piece // 4
    rounded = _rounder(dtype, exact)

    @td.func
    def within(axes, batch, image, place):
        """The place in a padded image, negative if no window reads it."""
        # Unsigned, since that division is short.
        line = td.u32(place) // td.u32(axes.x.size)
        z = line // td.u32(axes.y.size)
        rz, iz = _placed(axes.z, td.i32(z))
        ry, iy = _placed(axes.y, td.i32(line - z * td.u32(axes.y.size)))
        rx, ix = _placed(axes.x, place - td.i32(line) * axes.x.size)
        number = (rz * axes.y.remainders + ry) * axes.x.remainders + rx
        to = ((number * batch + image) * axes.z.length + iz) * axes.y.length + iy
        to = to * axes.x.length + ix
        return -1 if iz < 0 or iy < 0 or ix < 0 else to

    @td.kernel(checked=False)
    def pack_image(
        x: td.Array[read], out: td.Array[vec], groups: td.i32, ins: td.i32, padded: td.i32,
        plane: td.i32, tiles: td.i32, batch: td.i32, axes: Paddings,
    ):  # fmt: skip
        tile = td.shared(4 * IMAGE_THREADS * parts, vec)
        targets = td.shared(4 * quads if padded_axes else 1, td.i32)
        t = td.thread_idx.x
        image = td.block_idx.x // tiles
        first = (td.block_idx.x - image * tiles) * (4 * quads)
        of_group = padded // (pieces * piece)
        group = td.block_idx.y // of_group
        channel = (td.block_idx.y - group * of_group) * (pieces * piece)
        quad = t % quads
        near = t // quads
        if padded_axes:
            for begin in td.static_range(0, 4 * quads, IMAGE_THREADS):
                if begin + t < 4 * quads:
                    targets[begin + t] = within(axes, batch, image, first + begin + t)
        at = ((image * groups + group) * ins + channel + near * piece) * plane + first + quad * 4
        found = td.local(piece, vec)
        for c in td.static_range(piece):
            found[c] = vec(0)
            if channel + near * piece + c < ins:
                if lanes == 4:
                    if first + quad * 4 < plane:
                        found[c] = x[(at + c * plane) // 4]
                else:
                    if first + quad * 4 < plane:
                        found[c].x = x[at + c * plane]
                    if first + quad * 4 + 1 < plane:
                        found[c].y = x[at + c * plane + 1]
                    if first + quad * 4 + 2 < plane:
                        found[c].z = x[at + c * plane + 2]
                    if first + quad * 4 + 3 < plane:
                        found[c].w = x[at + c * plane + 3]
        # Pieces of a place are permuted by its quad's number, so that those of eight quads are in
        # different banks.
        for k in td.static_range(parts):
            a, b, c, d = found[k * 4], found[k * 4 + 1], found[k * 4 + 2], found[k * 4 + 3]
            to = (quad * 4 * pieces + (near ^ (quad % pieces))) * parts + k
            tile[to] = vec(rounded(a.x), rounded(b.x), rounded(c.x), rounded(d.x))
            to += pieces * parts
            tile[to] = vec(rounded(a.y), rounded(b.y), rounded(c.y), rounded(d.y))
            to += pieces * parts
            tile[to] = vec(rounded(a.z), rounded(b.z), rounded(c.z), rounded(d.z))
            to += pieces * parts
            tile[to] = vec(rounded(a.w), rounded(b.w), rounded(c.w), rounded(d.w))
        td.sync_threads()
        for v in td.static_range(4):
            item = t + v * IMAGE_THREADS
            near = item % pieces
            place = item // pieces
            if first + place < plane:
                to = image * plane + first + place
                if padded_axes:
                    to = targets[place]
                source = (place * pieces + (near ^ (place // 4 % pieces))) * parts
                if to >= 0:
                    to = (to * groups + group) * (padded // 4) + channel // 4 + near * parts
                    for k in td.static_range(parts):
                        out[to + k] = tile[source + k]

    return pack_image


@functools.cache
def pad_image(dtype: DType) -> Kernel:
    """A kernel that writes the zeros of padded images, a block those of a line, whose places have
    `size` vec4s each, and behind the last one so many `more` vec4s."""
    vec = td.vec4[dtype]

    @td.kernel(checked=False)
    def write_zeros(
        out: td.Array[vec], axes: Paddings, batch: td.i32, size: td.i32, more: td.i32
    ):  # fmt: skip
        line = td.block_idx.x
        t = td.thread_idx.x
        stack = line // axes.y.length
        y = line - stack * axes.y.length
        number = stack // axes.z.length
        z = stack - number * axes.z.length
        number //= batch
        across = number // axes.x.remainders
        rx = number - across * axes.x.remainders
        rz = across // axes.y.remainders
        ry = across - rz * axes.y.remainders
        begin, end = _elements(axes.x, rx)
        first, last = _elements(axes.y, ry)
        if y < first or y >= last:
            end = begin
        first, last = _elements(axes.z, rz)
        if z < first or z >= last:
            end = begin
        at = line * axes.x.length * size
        for k in range(t, begin * size, PAD_THREADS):
            out[at + k] = vec(0)
        for k in range(end * size + t, axes.x.length * size, PAD_THREADS):
            out[at + k] = vec(0)
        if line == td.grid_dim.x - 1:
            at += axes.x.length * size
            for k in range(t, more, PAD_THREADS):
                out[at + k] = vec(0)

    return write_zeros


@functools.cache
def weight_packer(dtype: DType) -> Kernel:
    """A kernel that packs weights as (groups, outs, taps, padded), with zeros up to `depth`
    elements for each output channel; of taps only those that the axes use, in their order."""
    rounded = _rounder(dtype)

    @td.kernel(checked=False)
    def pack_weights(
        weight, out, axes: Axes, outs: td.i32, ins: td.i32, padded: td.i32, depth: td.i32,
        out_step: td.i32, in_step: td.i32, group_step: td.i32, lines: td.i32,
    ):  # fmt: skip
        # A thread packs all taps of a channel, which are near each other.
        i = td.grid(1)
        line = i // padded
        channel = i - line * padded
        if line < lines:
            group = line // outs
            source = group * group_step + (line - group * outs) * out_step + channel * in_step
            to = line * depth + channel
            for jz in range(axes.z.taps):
                plane = (axes.z.first + jz * axes.z.step) * axes.y.kernel
                for jy in range(axes.y.taps):
                    at = (plane + axes.y.first + jy * axes.y.step) * axes.x.kernel + axes.x.first
                    for jx in range(axes.x.taps):
                        value = dtype(0)
                        if channel < ins:
                            value = rounded(weight[source + at + jx * axes.x.step])
                        out[to] = value
                        to += padded
            while to < (line + 1) * depth:
                out[to] = dtype(0)
                to += padded

    return pack_weights
