"""Passes of a Fourier transform by blocks of threads, each of which has several lines.

Some threads, a tile's lanes, share a line. Each holds the elements of one butterfly of a stage or
of a few; between stages the elements are in shared memory. A stage reads all of them before it
overwrites any.

Neighbouring threads have neighbouring lines where these lie side by side in memory, otherwise
neighbouring elements of one line. Where a line has so few lanes that their accesses would be
scattered, the block moves its elements between memory and shared memory in order.

A convolution is two transforms by one block: the second one takes its radices in reverse order, so
that its first butterflies are of the elements that threads have from the last ones of the first.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.butterflies import butterfly, order, times
from treadle.kernels.device_code.fourier_passes import (
    Lines,
    Pass,
    Steps,
    finisher,
    loader,
    near_factor,
    stages,
    starter,
    untangled,
)
from treadle.lang.decorators import Function, Kernel

_GAP = 16  # elements between gaps in shared memory, which has so many banks for pairs of numbers
COALESCED = 8  # lanes whose adjacent elements are two memory sectors


class Tile(NamedTuple):
    """What a block does: so many lines, with so many lanes each."""

    lines: int
    lanes: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.lines * self.lanes


class _Layout(NamedTuple):
    """Where element k of a line is in shared memory: at line * line_step + g * step, with a gap
    after every 16 elements in g, if `gaps`, and k = g otherwise."""

    gaps: bool
    line_step: int
    step: int
    size: int


def shared_elements(what: Pass, tile: Tile) -> int:
    """How many elements a block has in shared memory."""
    return _layout(what, tile).size if _exchanges(what, tile) else 1


def _exchanges(what: Pass, tile: Tile) -> bool:
    staged = _staged(tile, what.read_across) or _staged(tile, what.write_across)
    return len(what.radices) > 1 or what.write == "half" or staged


def _staged(tile: Tile, across: bool) -> bool:
    """Whether elements are moved in order, because the lanes of a line have too few neighbours."""
    return not across and tile.lanes < COALESCED and tile.lines > 1


@functools.cache
def _layout(what: Pass, tile: Tile) -> _Layout:
    """Without bank conflicts where that can be had."""
    n, first = what.length, what.radices[0]
    gaps = first % 4 == 0 and n > first
    length = n + n // _GAP if gaps else n
    if what.read_across and what.write_across:
        return _Layout(gaps, 1, tile.lines, length * tile.lines)
    if what.read_across or what.write_across:
        wanted = max(_GAP // tile.lines, 1)
    elif _staged(tile, False):
        wanted = length % _GAP | 1
    else:
        wanted = tile.lanes if tile.lanes < _GAP else 0
    if tile.lines > 1 and wanted:
        length += (wanted - length) % _GAP
    return _Layout(gaps, length, 1, length * tile.lines)


@functools.cache
def block_transformer(what: Pass, tile: Tile) -> Kernel:
    """A kernel whose blocks transform some lines each, which are neighbours: of the four
    coordinates the inner one counts fastest."""
    pair = td.vec2[what.component]
    room, own_room = shared_elements(what, tile), _own_room(what.radices, tile)
    first_stage, through = _first_stage(what, tile), _through(what, tile, 1)
    last_stage, untangle = _last_stage(what, tile), _untangle_stage(what, tile)

    @td.kernel(checked=False)
    def transform_block(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole, sign, scale
    ):
        own = td.local(own_room, pair)
        shared = td.shared(room, pair)
        first_stage(x, before, after, out, read, write, lines, whole, sign, scale, own, shared)
        through(twiddles, own, shared)
        last_stage(twiddles, after, out, write, lines, whole, scale, own, shared)
        untangle(after, out, write, lines, whole, scale, own, shared)

    return transform_block


@functools.cache
def block_convolver(what: Pass, tile: Tile) -> Kernel:
    """The same for two transforms, with a multiplication by a spectrum (and a conjugation) in
    between; there are two stages or more."""
    pair = td.vec2[what.component]
    back = reversed_pass(what)
    room, own_room = convolver_elements(what, tile), _own_room(what.radices, tile)
    first_stage, through = _first_stage(what, tile), _through(what, tile, 1)
    turn, through_back = _turn(what, tile), _through(back, tile, 1)
    last_stage, untangle = _last_stage(back, tile), _untangle_stage(back, tile)

    @td.kernel(checked=False)
    def convolve_block(
        x, before, twiddles, spectrum, twiddles_back, after, out, read: Steps, write: Steps,
        lines: Lines, whole, sign, scale,
    ):  # fmt: skip
        own = td.local(own_room, pair)
        turned = td.local(own_room, pair)
        shared = td.shared(room, pair)
        first_stage(x, before, after, out, read, write, lines, whole, sign, scale, own, shared)
        through(twiddles, own, shared)
        turn(twiddles, spectrum, read, lines, own, turned, shared)
        through_back(twiddles_back, own, shared)
        last_stage(twiddles_back, after, out, write, lines, whole, scale, own, shared)
        untangle(after, out, write, lines, whole, scale, own, shared)

    return convolve_block


def reversed_pass(what: Pass) -> Pass:
    """The second of two transforms."""
    return what._replace(radices=what.radices[::-1])


def convolver_elements(what: Pass, tile: Tile) -> int:
    """How many elements a block of `block_convolver` has in shared memory."""
    return max(shared_elements(what, tile), shared_elements(reversed_pass(what), tile))


def _own_room(radices: tuple[int, ...], tile: Tile) -> int:
    """Elements that a thread holds at once."""
    n = math.prod(radices)
    return max(-(-n // tile.lanes), *(-(-n // (radix * tile.lanes)) * radix for radix in radices))


@functools.cache
def _line_of(tile: Tile, across: bool) -> Function:
    """Which line of its block a thread works on."""
    lines, lanes = tile

    @td.func
    def line_of(thread):
        return td.i32(0) if lines == 1 else thread % lines if across else thread // lanes

    return line_of


@functools.cache
def _lane_of(tile: Tile, across: bool) -> Function:
    """The number of a thread among those of its line."""
    lines, lanes = tile

    @td.func
    def lane_of(thread):
        return thread if lines == 1 else thread // lines if across else thread % lanes

    return lane_of


@functools.cache
def _spot(layout: _Layout) -> Function:
    """The index in shared memory of an element of a line."""
    gaps, line_step, step, _ = layout

    @td.func
    def spot(line, k):
        return line * line_step + (k + k // _GAP if gaps else k) * step

    return spot


@functools.cache
def _spots(layout: _Layout, hop: int, group: int = 0) -> Function:
    """The index in shared memory of the element r * hop after element `start` of a line. `start` is
    less than `hop` beyond a multiple of `group`, if that is not 0. Where gaps allow it, all are one
    index and a constant."""
    spot = _spot(layout)
    is_even = not layout.gaps or hop % _GAP == 0
    if group and _GAP % hop == 0:
        is_even = is_even or group % _GAP == 0 or _GAP % group == 0
    gaps, step = layout.gaps, layout.step

    @td.func
    def spots(line, start, r):
        if is_even:
            distance = r * hop
            return spot(line, start) + (distance + distance // _GAP if gaps else distance) * step
        return spot(line, start + r * hop)

    return spots


@functools.cache
def _mover_in(what: Pass, tile: Tile) -> Function:
    """Reads the elements of a block in order, to shared memory."""
    n, threads, held = what.length, tile.threads, tile.lines
    load, start_of, is_next = loader(what), starter(what), what.read_next
    spot, pair = _spot(_layout(what, tile)), td.vec2[what.component]
    iterations = -(-n * held // threads)

    @td.func
    def move_in(x, before, read, lines, whole, sign, own, shared):
        first = td.block_idx.x * held
        count = td.minimum(held, lines.count - first) * n
        for p in td.static_range(iterations):  # all are loaded before the first is needed
            each = p * threads + td.thread_idx.x
            line = each // n
            value = pair(0.0, 0.0)
            if each < count:
                start = start_of(first + line, lines, read)
                k = each - line * n
                place = start.place + (k if is_next else k * read.place_k)
                at = start.origin + (place if is_next else place * read.unit)
                value = load(x, before, start.origin, at, place, read, whole, sign)
            own[p] = value
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = each // n
            if (p + 1) * threads <= n * held or each < n * held:
                shared[spot(line, each - line * n)] = own[p]
        td.sync_threads()

    return move_in


@functools.cache
def _mover_out(what: Pass, tile: Tile) -> Function:
    """Writes the elements of a block in order, from shared memory."""
    n, threads, held = what.length, tile.threads, tile.lines
    behind = stages(what.radices)[-1].behind
    finish, start_of, common = finisher(what), starter(what), near_factor(what)
    spot, is_next = _spot(_layout(what, tile)), what.write_next
    iterations = -(-n * held // threads)

    @td.func
    def move_out(out, after, write, lines, scale, own, shared):
        td.sync_threads()
        first = td.block_idx.x * held
        count = td.minimum(held, lines.count - first) * n
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = each // n
            if (p + 1) * threads <= n * held or each < n * held:
                own[p] = shared[spot(line, each - line * n)]
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = each // n
            k = each - line * n
            r = k // behind
            q = k - r * behind
            if each < count:
                start = start_of(first + line, lines, write)
                place = start.place
                at = start.origin + (place if is_next else place * write.unit)
                near = common(after, start.a, lines.along_a, q)
                finish(
                    out, after, start.origin, at, place, start.a, lines.along_a, near, write, q, r,
                    own[p], scale,
                )  # fmt: skip

    return move_out


@functools.cache
def _first_stage(what: Pass, tile: Tile) -> Function:
    """The first stage, from the array."""
    radix, _, reach, _ = stages(what.radices)[0]
    lanes, held = tile.lanes, tile.lines
    iterations, uneven = -(-reach // lanes), reach % lanes != 0
    moved = _staged(tile, what.read_across)
    ends = len(what.radices) == 1 and what.write != "half"
    apply_butterfly, load = butterfly(radix, what.component), loader(what)
    line_of, lane_of = _line_of(tile, what.read_across), _lane_of(tile, what.read_across)
    start_of, is_next = starter(what), what.read_next
    layout = _layout(what, tile)
    spots = _spots(layout, reach)
    move_in, keep = _mover_in(what, tile), _exchanger(what, tile, 0)
    write_out = _writer(what, tile)

    @td.func
    def first_stage(x, before, after, out, read, write, lines, whole, sign, scale, own, shared):
        line = line_of(td.thread_idx.x)
        lane = lane_of(td.thread_idx.x)
        if moved:
            move_in(x, before, read, lines, whole, sign, own, shared)
            for p in td.static_range(iterations):
                j = p * lanes + lane
                if not uneven or j < reach:
                    for r in td.static_range(radix):
                        own[p * radix + r] = shared[spots(line, j, r)]
            td.sync_threads()
        else:
            number = td.block_idx.x * held + line
            if number < lines.count:
                start = start_of(number, lines, read)
                origin = start.origin
                for p in td.static_range(iterations):
                    j = p * lanes + lane
                    if not uneven or j < reach:
                        at = origin + start.place
                        place = start.place
                        if is_next:
                            at += j
                            place += j
                        else:
                            place += j * read.place_k
                            at = origin + place * read.unit
                        for r in td.static_range(radix):
                            distance = r * reach
                            further = distance
                            if not is_next:
                                distance = distance * read.place_k
                                further = distance * read.unit
                            own[p * radix + r] = load(
                                x, before, origin, at + further, place + distance, read, whole,
                                sign,
                            )  # fmt: skip
        for p in td.static_range(iterations):
            apply_butterfly(own, p * radix)
        if ends:
            write_out(out, after, write, lines, line, lane, own, scale, shared)
        else:
            keep(line, lane, own, shared)

    return first_stage


@functools.cache
def _exchanger(what: Pass, tile: Tile, number: int) -> Function:
    """Writes the elements of a stage's butterflies to shared memory."""
    radix, behind, reach, _ = stages(what.radices)[number]
    lanes = tile.lanes
    iterations, uneven = -(-reach // lanes), reach % lanes != 0
    places = order(radix)
    spots = _spots(_layout(what, tile), behind, behind * radix)

    @td.func
    def keep(line, lane, own, shared):
        for p in td.static_range(iterations):
            j = p * lanes + lane
            if not uneven or j < reach:
                q = j % behind
                for r in td.static_range(radix):
                    shared[spots(line, (j - q) * radix + q, r)] = own[p * radix + places[r]]

    return keep


@functools.cache
def _writer(what: Pass, tile: Tile) -> Function:
    """Writes the elements of the last stage's butterflies to the array."""
    radix, _, reach, _ = stages(what.radices)[-1]
    lanes, held = tile.lanes, tile.lines
    iterations, uneven = -(-reach // lanes), reach % lanes != 0
    places, finish, common = order(radix), finisher(what), near_factor(what)
    start_of, is_next = starter(what), what.write_next
    moved = _staged(tile, what.write_across)
    keep, move_out = _exchanger(what, tile, len(what.radices) - 1), _mover_out(what, tile)

    @td.func
    def write_out(out, after, write, lines, line, lane, own, scale, shared):
        if moved:
            keep(line, lane, own, shared)
            move_out(out, after, write, lines, scale, own, shared)
        else:
            number = td.block_idx.x * held + line
            if number < lines.count:
                start = start_of(number, lines, write)
                at = start.origin + (start.place if is_next else start.place * write.unit)
                for p in td.static_range(iterations):
                    q = p * lanes + lane
                    if not uneven or q < reach:
                        near = common(after, start.a, lines.along_a, q)
                        for r in td.static_range(radix):
                            finish(
                                out, after, start.origin, at, start.place, start.a, lines.along_a,
                                near, write, q, r, own[p * radix + places[r]], scale,
                            )  # fmt: skip

    return write_out


@functools.cache
def _through(what: Pass, tile: Tile, number: int) -> Function:
    """The stages from a number to the last but one. All elements are read before any is
    overwritten."""
    if number >= len(what.radices) - 1:
        return _no_stage
    step, keep = _middle(what, tile, number), _exchanger(what, tile, number)
    line_of, lane_of = _line_of(tile, what.write_across), _lane_of(tile, what.write_across)
    further = _through(what, tile, number + 1)

    @td.func
    def through(twiddles, own, shared):
        line = line_of(td.thread_idx.x)
        lane = lane_of(td.thread_idx.x)
        td.sync_threads()
        step(twiddles, line, lane, own, shared)
        td.sync_threads()
        keep(line, lane, own, shared)
        further(twiddles, own, shared)

    return through


@td.func
def _no_stage(twiddles, own, shared):
    pass


@functools.cache
def _last_stage(what: Pass, tile: Tile) -> Function:
    """The last stage of several, to the array; or, before `_untangle_stage`, to shared memory."""

    @td.func
    def nothing(twiddles, after, out, write, lines, whole, scale, own, shared):
        pass

    number = len(what.radices) - 1
    if not number:
        return nothing
    step, keep = _middle(what, tile, number), _exchanger(what, tile, number)
    write_out = _writer(what, tile)
    line_of, lane_of = _line_of(tile, what.write_across), _lane_of(tile, what.write_across)
    ends, moved = what.write != "half", _staged(tile, what.write_across)

    @td.func
    def last_stage(twiddles, after, out, write, lines, whole, scale, own, shared):
        line = line_of(td.thread_idx.x)
        lane = lane_of(td.thread_idx.x)
        td.sync_threads()
        step(twiddles, line, lane, own, shared)
        if not ends or moved:
            td.sync_threads()
        if ends:
            write_out(out, after, write, lines, line, lane, own, scale, shared)
        else:
            keep(line, lane, own, shared)

    return last_stage


@functools.cache
def _turn(what: Pass, tile: Tile) -> Function:
    """The last stage of the first of two transforms, and the first stage of the second one, which
    is of the products' conjugates."""
    number = len(what.radices) - 1
    radix, behind, reach, _ = stages(what.radices)[-1]
    lanes, held = tile.lanes, tile.lines
    iterations, uneven = -(-reach // lanes), reach % lanes != 0
    step, keep = _middle(what, tile, number), _exchanger(reversed_pass(what), tile, 0)
    apply_butterfly, product = butterfly(radix, what.component), times(what.component)
    line_of, lane_of = _line_of(tile, what.write_across), _lane_of(tile, what.write_across)
    places, pair, start_of = order(radix), td.vec2[what.component], starter(what)

    @td.func
    def turn(twiddles, spectrum, read, lines, own, turned, shared):
        line = line_of(td.thread_idx.x)
        lane = lane_of(td.thread_idx.x)
        td.sync_threads()
        step(twiddles, line, lane, own, shared)
        number = td.block_idx.x * held + line
        if number < lines.count:
            place = start_of(number, lines, read).place
            for p in td.static_range(iterations):
                q = p * lanes + lane
                if not uneven or q < reach:
                    for r in td.static_range(radix):
                        value = product(
                            own[p * radix + places[r]], spectrum[place + q + r * behind]
                        )
                        turned[p * radix + r] = pair(value.x, -value.y)
        for p in td.static_range(iterations):
            apply_butterfly(turned, p * radix)
        td.sync_threads()
        keep(line, lane, turned, shared)

    return turn


@functools.cache
def _middle(what: Pass, tile: Tile, number: int) -> Function:
    """Reads the elements of a stage's butterflies from shared memory, and transforms them."""
    radix, behind, reach, table = stages(what.radices)[number]
    lanes = tile.lanes
    iterations, uneven = -(-reach // lanes), reach % lanes != 0
    apply_butterfly, product = butterfly(radix, what.component), times(what.component)
    spots = _spots(_layout(what, tile), reach)

    @td.func
    def step(twiddles, line, lane, own, shared):
        for p in td.static_range(iterations):
            j = p * lanes + lane
            if not uneven or j < reach:
                q = j % behind
                own[p * radix] = shared[spots(line, j, 0)]
                for r in td.static_range(1, radix):
                    root = twiddles[table + (r - 1) * behind + q]
                    own[p * radix + r] = product(shared[spots(line, j, r)], root)
        for p in td.static_range(iterations):
            apply_butterfly(own, p * radix)

    return step


@functools.cache
def _untangle_stage(what: Pass, tile: Tile) -> Function:
    """Computes transforms of real numbers from those of their pairs, which are in shared memory.
    After a convolution the result is there without its last factors, and with the length `whole`.
    """

    @td.func
    def nothing(factors, out, write, lines, whole, scale, own, shared):
        pass

    if what.write != "half":
        return nothing
    n, threads, held, across = what.length, tile.threads, tile.lines, what.write_across
    is_part = what.chirp
    iterations = -(-(n // 2 + 1) * held // threads)
    spot, write_both = _spot(_layout(what, tile)), untangled(what.component)
    start_of, is_next = starter(what), what.write_next
    product, pair = times(what.component), td.vec2[what.component]

    @td.func
    def element(line, k, factors, shared):
        value = shared[spot(line, k)]
        if is_part:
            made = product(value, factors[k])
            value = pair(made.x, -made.y)
        return value

    @td.func
    def untangle(factors, out, write, lines, whole, scale, own, shared):
        length = whole if is_part else n
        parts = length // 2 + 1
        td.sync_threads()
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = each % held if across else each // parts
            k = each // held if across else each % parts
            number = td.block_idx.x * held + line
            if each < parts * held and number < lines.count:
                origin = start_of(number, lines, write).origin
                unit = 1 if is_next else write.unit
                write_both(
                    out, origin + k * unit, origin + (length - k) * unit,
                    element(line, k, factors, shared),
                    element(line, length - k if k > 0 else 0, factors, shared),
                    factors[(length if is_part else 0) + k], scale,
                )  # fmt: skip

    return untangle
