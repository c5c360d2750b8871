"""Passes of a Fourier transform by threads that work together: a block has some lines.

Between stages elements are in shared memory. A stage reads all of them before it writes any in
their place.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.butterflies import butterfly, order, times
from treadle.kernels.device_code.fouriering import (
    Lines,
    Pass,
    Steps,
    finisher,
    loader,
    stages,
    start_of,
    untangled,
)
from treadle.lang.kernel import Function, Kernel

_GAP = 16


class Tile(NamedTuple):
    """What a block does: so many lines, with so many threads. With `gaps` the lines have an unused
    element after 16, so that threads do not meet in memory banks."""

    lines: int
    threads: int
    gaps: bool


@functools.cache
def block_transformer(what: Pass, tile: Tile) -> Kernel:
    """A kernel whose blocks transform some lines each, which are neighbours: of the four
    coordinates the inner one counts fastest."""
    n, pair = what.length, td.vec2[what.component]
    size, threads = n * tile.lines, tile.threads
    parts = stages(what.radices)
    several = len(parts) > 1
    room = size + size // _GAP if tile.gaps else size
    own_room = max(-(-size // (stage.radix * threads)) * stage.radix for stage in parts)
    begin, go_on = _begin_together(what, tile), _rest_together(what, tile, 1)
    several = several or what.write == "half"

    @td.kernel(checked=False)
    def transform_together(
        x, before, twiddles, after, out, outer_read, b_read, a_read, place_b_read, place_a_read,
        place_k_read, limit_read, outer_write, b_write, a_write, place_b_write, place_a_write,
        place_k_write, limit_write, count, along_b, along_a, inner, whole, sign, real, imaginary,
    ):  # fmt: skip
        own = td.local(own_room, pair)
        shared = td.shared(room if several else 1, pair)
        read = Steps(
            outer_read, b_read, a_read, place_b_read, place_a_read, place_k_read, inner, limit_read
        )
        write = Steps(
            outer_write, b_write, a_write, place_b_write, place_a_write, place_k_write, inner,
            limit_write,
        )  # fmt: skip
        lines = Lines(count, along_b, along_a, inner)
        scale = pair(real, imaginary)
        begin(x, before, after, out, read, write, lines, whole, sign, scale, own, shared)
        go_on(twiddles, after, out, write, lines, scale, own, shared)

    return transform_together


@functools.cache
def _spot(n: int, tile: Tile, across: bool) -> Function:
    """Where in shared memory an element of a line is."""
    lines, gaps = tile.lines, tile.gaps

    @td.func
    def spot(line, k):
        at = line * n + k
        if across:
            at = k * lines + line
        if gaps:
            at += at // _GAP
        return at

    return spot


@functools.cache
def _line_of(many: int, lines: int, across: bool) -> Function:
    """Which line a butterfly belongs to, of those of a block."""

    @td.func
    def line_of(butterfly):
        return butterfly % lines if across else butterfly // many

    return line_of


@functools.cache
def _number_of(many: int, lines: int, across: bool) -> Function:
    """Which one of its line's a butterfly is."""

    @td.func
    def number_of(butterfly):
        return butterfly // lines if across else butterfly % many

    return number_of


@functools.cache
def _begin_together(what: Pass, tile: Tile) -> Function:
    """The first stage, from the array."""
    radix, _, reach, _ = stages(what.radices)[0]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    turns, uneven = -(-count // threads), count % threads != 0
    alone, places = len(what.radices) == 1 and what.write != "half", order(radix)
    turn, load = butterfly(radix, what.component), loader(what)
    line_of = _line_of(reach, held, what.read_across)
    number_of = _number_of(reach, held, what.read_across)
    spot, write_line = _spot(n, tile, what.write_across), _line_writer(what)

    @td.func
    def begin(x, before, after, out, read, write, lines, whole, sign, scale, own, shared):
        for p in td.static_range(turns):
            each = p * threads + td.thread_idx.x
            line = line_of(each)
            j = number_of(each)
            number = td.block_idx.x * held + line
            if (not uneven or each < count) and number < lines.count:
                start = start_of(number, lines, read)
                origin, first = start.origin, start.place
                for r in td.static_range(radix):
                    place = first + (j + r * reach) * read.place_k
                    own[p * radix + r] = load(
                        x, before, origin, origin + place * read.unit, place, read, whole, sign
                    )
        for p in td.static_range(turns):
            turn(own, p * radix)
        for p in td.static_range(turns):
            each = p * threads + td.thread_idx.x
            line = line_of(each)
            j = number_of(each)
            if not uneven or each < count:
                if alone:
                    write_line(
                        out, after, td.block_idx.x * held + line, lines, write, 0, own, p * radix,
                        scale,
                    )  # fmt: skip
                else:
                    for r in td.static_range(radix):
                        shared[spot(line, j * radix + r)] = own[p * radix + places[r]]

    return begin


@functools.cache
def _line_writer(what: Pass) -> Function:
    """Writes the elements of a butterfly of the last stage: those from `first` on."""
    radix, behind, _, _ = stages(what.radices)[-1]
    places, finish = order(radix), finisher(what)

    @td.func
    def write_line(out, after, number, lines, write, first, own, base, scale):
        if number < lines.count:
            start = start_of(number, lines, write)
            origin, place = start.origin, start.place
            for r in td.static_range(radix):
                finish(
                    out, after, origin, origin + place * write.unit, place, write,
                    first + r * behind, own[base + places[r]], scale,
                )  # fmt: skip

    return write_line


@functools.cache
def _rest_together(what: Pass, tile: Tile, number: int) -> Function:
    """The stages from a number on. All elements are read before others are written in their
    place."""

    @td.func
    def nothing(twiddles, after, out, write, lines, scale, own, shared):
        pass

    if number >= len(what.radices):
        return _untangle_together(what, tile) if what.write == "half" else nothing
    radix, behind, reach, table = stages(what.radices)[number]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    turns, uneven = -(-count // threads), count % threads != 0
    last = number == len(what.radices) - 1 and what.write != "half"
    places = order(radix)
    turn, product = butterfly(radix, what.component), times(what.component)
    line_of = _line_of(reach, held, what.write_across)
    number_of = _number_of(reach, held, what.write_across)
    spot, write_line = _spot(n, tile, what.write_across), _line_writer(what)
    go_on = _rest_together(what, tile, number + 1)

    @td.func
    def proceed(twiddles, after, out, write, lines, scale, own, shared):
        td.sync_threads()
        for p in td.static_range(turns):
            each = p * threads + td.thread_idx.x
            if not uneven or each < count:
                line = line_of(each)
                j = number_of(each)
                q = j % behind
                own[p * radix] = shared[spot(line, j)]
                for r in td.static_range(1, radix):
                    root = twiddles[table + (r - 1) * behind + q]
                    own[p * radix + r] = product(shared[spot(line, j + r * reach)], root)
        for p in td.static_range(turns):
            turn(own, p * radix)
        if not last:
            td.sync_threads()
        for p in td.static_range(turns):
            each = p * threads + td.thread_idx.x
            if not uneven or each < count:
                line = line_of(each)
                j = number_of(each)
                q = j % behind
                if last:
                    write_line(
                        out, after, td.block_idx.x * held + line, lines, write, q, own, p * radix,
                        scale,
                    )  # fmt: skip
                else:
                    for r in td.static_range(radix):
                        to = (j - q) * radix + q + r * behind
                        shared[spot(line, to)] = own[p * radix + places[r]]
        go_on(twiddles, after, out, write, lines, scale, own, shared)

    return proceed


@functools.cache
def _untangle_together(what: Pass, tile: Tile) -> Function:
    """Makes transforms of real numbers from those of their pairs, which are in shared memory."""
    n, threads, held = what.length, tile.threads, tile.lines
    parts = n // 2 + 1
    turns = -(-parts * held // threads)
    line_of = _line_of(parts, held, what.write_across)
    number_of = _number_of(parts, held, what.write_across)
    spot, write_both = _spot(n, tile, what.write_across), untangled(what.component)

    @td.func
    def untangle(twiddles, roots, out, write, lines, scale, own, shared):
        td.sync_threads()
        for p in td.static_range(turns):
            each = p * threads + td.thread_idx.x
            line = line_of(each)
            k = number_of(each)
            number = td.block_idx.x * held + line
            if each < parts * held and number < lines.count:
                rest = number // lines.inner
                o = rest // lines.along_a
                a = rest - o * lines.along_a
                origin = o * write.outer + a * write.own_a + number - rest * lines.inner
                write_both(
                    out, origin + k * write.unit, origin + (n - k) * write.unit,
                    shared[spot(line, k)], shared[spot(line, n - k if k > 0 else 0)], roots[k],
                    scale,
                )  # fmt: skip

    return untangle
