"""How the tiles of a product's factors come to shared memory, in pieces of 16 bytes.

Aligned pieces are copied while the block multiplies; what is not aligned is loaded element by
element, and what is not in memory is computed. Pieces of a line are permuted by the line's number,
so that eight lines are read at once without two of them in one bank. Elements that are not of 16
bits and lie across the inner axis are turned on their way.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import Form, Loading, prologue_of
from treadle.lang import builtins
from treadle.lang.decorators import Function

PIECE = 16  # bytes that are copied at once
BANKS = 8  # pieces in a line of all banks of shared memory


@functools.cache
def _packer(dtype: DType, held: DType) -> Function:
    """A function that makes four words of a local array with the elements of 16 bytes, which are
    `held` in another dtype."""
    size = dtype.itemsize
    per = 4 // size
    bits = {1: td.u8, 2: td.u16, 4: td.u32}[size]
    words = td.vec4[td.u32]

    @td.func
    def packed(found):
        made = td.local(4, td.u32)
        for w in td.static_range(4):
            made[w] = td.u32(td.bitcast(dtype(found[w * per]), bits))
            for e in td.static_range(1, per):
                part = td.u32(td.bitcast(dtype(found[w * per + e]), bits))
                made[w] = made[w] | (part << td.u32(e * 8 * size))
        return words(made[0], made[1], made[2], made[3])

    return packed


class CarriedTile(Protocol):
    """What a carrier has to know of a tile."""

    @property
    def depth(self) -> int:
        """The extent of the inner axis."""
        ...

    @property
    def threads(self) -> int:
        """The threads of a block."""
        ...


class Turned(NamedTuple):
    """Whether lines of shared memory are `along` the inner axis. Where those of memory are not, a
    thread holds so many pieces in registers, to which `fetch` copies, until `put` stores them."""

    along: bool
    held: int
    put: Function


class Carrier(NamedTuple):
    """How a block's threads bring a factor's tile to shared memory: its type in memory, the pieces
    of a thread, of a tile and of a line. `place` computes where a thread reads and writes, `fetch`
    copies; `piece` is where the piece of a line and a place along the inner axis is.

    If it is `held`, `fetch` copies to registers, and `put` from there. Lines are not permuted then,
    but have one more piece each, so that lines below each other are in other banks."""

    read: Any
    loads: int
    size: int
    pieces: int
    place: Function
    fetch: Function
    piece: Function
    put: Function
    turned: Turned


def carrier_of(
    form: Form, loading: Loading, tile: CarriedTile, lines: int, second: bool, held: bool = False
) -> Carrier:
    """How a factor's tile of `lines` rows or columns is carried."""
    inner, lanes, computed, aligned = loading
    dtype, exact, depth, threads = form.dtype, form.exact, tile.depth, tile.threads
    index, whole = td.i64 if form.big else td.i32, form.whole
    held_as = wide(dtype) if computed else dtype
    one: Any = held_as
    vec = td.vec4[held_as]
    per = PIECE // dtype.itemsize  # elements of a piece
    along = inner or per != 8
    turned = along and not inner
    near_extent, far_extent = (depth, lines) if along else (lines, depth)
    pieces = near_extent // per  # of a line of shared memory
    size = pieces * far_extent
    # Where lines are turned, a thread has the pieces of `together` lines, which are loaded at once.
    together = lanes if turned else 1
    loads = -(-size // (threads * together))
    full = size % (threads * together) == 0
    unguarded = exact or computed or lanes == 1 or not aligned
    even = held and threads % pieces == 0
    # The pieces of 128 bytes are in all banks; shorter lines share these.
    lines_of_banks = max(BANKS // pieces, 1)
    permutations = min(pieces, BANKS)
    words = td.vec4[td.u32]
    copy_later, sixteen = builtins.copy_later, builtins.sixteen_bytes
    packed = _packer(dtype, held_as)
    # Steps of the inner axis are counted in loads, as strides are.
    advance = depth // lanes if inner else depth
    quarters = per // 4  # vec4s of a piece

    @td.func
    def permuted(far, near):
        """Where piece `near` of line `far` of shared memory is."""
        if held:
            return far * (pieces + 1) + near
        return far * pieces + (near ^ (far // lines_of_banks % permutations))

    @td.func
    def piece(line, place):
        if along:
            return permuted(line, place // per)
        else:
            return permuted(place, line // per)

    @td.func
    def place(t, base, start, end, line_step, inner_step, at, to, deep, more):
        for v in td.static_range(loads):
            item = t + v * threads
            # The same, so written that what is a thread's own is computed once.
            near = t % pieces if even else item % pieces
            far = t // pieces + v * (threads // pieces) if even else item // pieces * together
            to[v] = permuted(far, near)
            if turned:
                line = td.minimum(start + far, (end - 1) // together * together)
                deep[v] = near * per
                if computed:
                    at[v] = index(line)
                else:
                    at[v] = base + index(line // lanes) * line_step + index(deep[v]) * inner_step
            elif inner:
                # Past the end, the last line is read again; its results are not stored.
                line = start + far if whole else td.minimum(start + far, end - 1)
                deep[v] = near * per
                if computed:
                    at[v] = index(line)
                else:
                    at[v] = base + index(line) * line_step
                    at[v] += index(near * (per // lanes)) * inner_step
            else:
                line = start + near * per
                line = line if whole else td.minimum(line, (end - 1) // per * per)
                deep[v] = far
                more[v] = end - line
                if computed:
                    at[v] = index(line)
                else:
                    at[v] = base + index(line // lanes) * line_step + index(far) * inner_step

    @td.func
    def next_step(v, inner_step, at):
        at[v] += index(advance) if lanes == 4 and inner else index(advance) * inner_step

    @td.func
    def fetch_aligned(x, to_here, slot, t, remaining, line_step, inner_step, at, to, deep, more):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                inside = exact or deep[v] < remaining
                from_here = at[v] if exact else td.where(inside, at[v], index(0))
                if held:
                    # What is beyond the end becomes zeros in `put`, so nothing waits for the load.
                    to_here[v] = sixteen(x, from_here)
                elif exact:
                    copy_later(to_here, slot + to[v], sixteen(x, at[v]))
                else:
                    copy_later(
                        to_here,
                        slot + to[v],
                        td.where(inside, sixteen(x, from_here), words(0)),
                    )
                next_step(v, inner_step, at)

    @td.func
    def fetch_vec4s(x, to_here, slot, t, remaining, line_step, inner_step, at, to, deep, more):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                found = td.local(per, one)
                for q in td.static_range(quarters):
                    four = vec(0)
                    if inner:
                        if deep[v] + 4 * q < remaining:
                            four = x[at[v] + q]
                    elif deep[v] < remaining and 4 * q < more[v]:
                        four = x[at[v] + q]
                    found[4 * q] = four.x
                    found[4 * q + 1] = four.y
                    found[4 * q + 2] = four.z
                    found[4 * q + 3] = four.w
                to_here[v if held else slot + to[v]] = packed(found)
                next_step(v, inner_step, at)

    @td.func
    def fetch_ones(x, to_here, slot, t, remaining, line_step, inner_step, at, to, deep, more):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                found = td.local(per, one)
                for e in td.static_range(per):
                    found[e] = one(0)
                    if inner:
                        if deep[v] + e < remaining:
                            found[e] = x[at[v] + index(e) * inner_step]
                    elif deep[v] < remaining and e < more[v]:
                        found[e] = x[at[v] + index(e) * line_step]
                to_here[v if held else slot + to[v]] = packed(found)
                next_step(v, inner_step, at)

    @td.func
    def fetch_turned(x, to_here, slot, t, remaining, line_step, inner_step, at, to, deep, more):
        for v in td.static_range(loads):
            if full or (t + v * threads) * together < size:
                found = td.local(per * together, one)
                for e in td.static_range(per):
                    for line in td.static_range(together):
                        found[line * per + e] = one(0)
                    if deep[v] + e < remaining:
                        if together == 4:
                            four = x[at[v] + index(e) * inner_step]
                            found[e] = four.x
                            found[per + e] = four.y
                            found[2 * per + e] = four.z
                            found[3 * per + e] = four.w
                        else:
                            found[e] = x[at[v] + index(e) * inner_step]
                own = td.local(per, one)
                for line in td.static_range(together):
                    for e in td.static_range(per):
                        own[e] = found[line * per + e]
                    to_here[v * together + line] = packed(own)
                next_step(v, inner_step, at)

    @td.func
    def put_turned(held_here, to_here, slot, t):
        for v in td.static_range(loads):
            if full or (t + v * threads) * together < size:
                item = t + v * threads
                for line in td.static_range(together):
                    here = permuted(item // pieces * together + line, item % pieces)
                    to_here[slot + here] = held_here[v * together + line]

    loaded = prologue_of(second, vec if lanes == 4 else one)

    @td.func
    def compute_vec4s(to_here, slot, t, remaining, batch, begin, at, to, deep, more):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                found = td.local(per, one)
                line = td.i32(at[v])
                for q in td.static_range(quarters):
                    four = vec(0)
                    if inner:
                        if deep[v] + 4 * q < remaining:
                            four = loaded(batch, line, begin + deep[v] + 4 * q)
                    elif deep[v] < remaining and 4 * q < more[v]:
                        four = loaded(batch, line + 4 * q, begin + deep[v])
                    found[4 * q] = four.x
                    found[4 * q + 1] = four.y
                    found[4 * q + 2] = four.z
                    found[4 * q + 3] = four.w
                to_here[v if held else slot + to[v]] = packed(found)

    @td.func
    def compute_ones(to_here, slot, t, remaining, batch, begin, at, to, deep, more):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                line = td.i32(at[v])
                found = td.local(per, one)
                for e in td.static_range(per):
                    found[e] = one(0)
                    if along:
                        if deep[v] + e < remaining:
                            found[e] = loaded(batch, line, begin + deep[v] + e)
                    elif deep[v] < remaining and e < more[v]:
                        found[e] = loaded(batch, line + e, begin + deep[v])
                to_here[v if held else slot + to[v]] = packed(found)

    @td.func
    def compute_turned(to_here, slot, t, remaining, batch, begin, at, to, deep, more):
        for v in td.static_range(loads):
            if full or (t + v * threads) * 4 < size:
                item = t + v * threads
                line = td.i32(at[v])
                found = td.local(per * 4, one)
                for e in td.static_range(per):
                    four = vec(0)
                    if deep[v] + e < remaining:
                        four = loaded(batch, line, begin + deep[v] + e)
                    found[e] = four.x
                    found[per + e] = four.y
                    found[2 * per + e] = four.z
                    found[3 * per + e] = four.w
                own = td.local(per, one)
                for other in td.static_range(4):
                    for e in td.static_range(per):
                        own[e] = found[other * per + e]
                    here = permuted(item // pieces * 4 + other, item % pieces)
                    to_here[slot + here] = packed(own)

    @td.func
    def put(held_here, to_here, t, remaining, to, deep):
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                if unguarded:
                    to_here[to[v]] = held_here[v]
                else:
                    to_here[to[v]] = td.where(deep[v] < remaining, held_here[v], words(0))

    if computed:
        vectors = compute_turned if turned else compute_vec4s
        fetch = vectors if lanes == 4 else compute_ones
    elif turned:
        fetch = fetch_turned
    elif lanes == 4:
        fetch = fetch_aligned if aligned else fetch_vec4s
    else:
        fetch = fetch_ones
    of_lines = Turned(along, loads * together if turned and not computed else 0, put_turned)
    read: Any = td.vec4[dtype] if lanes == 4 else dtype
    lined = (pieces + 1) * far_extent if held else size
    return Carrier(read, loads, lined, pieces + held, place, fetch, piece, put, of_lines)
