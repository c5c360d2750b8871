"""Passes of a Fourier transform by blocks of threads, each of which has several lines.

Between stages the elements are in shared memory. A stage reads all of them before it overwrites
any.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.butterflies import butterfly, order, times
from treadle.kernels.device_code.fourier_passes import (
    Lines,
    Pass,
    Steps,
    finisher,
    loader,
    stages,
    start_of,
    untangled,
)
from treadle.lang.decorators import Function, Kernel

_GAP = 16


class Tile(NamedTuple):
    """What a block does: so many lines, with so many threads. With `gaps` the lines are padded
    by an element after 16, against bank conflicts."""

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
    first_stage, later = _first_stage(what, tile), _later_stages(what, tile, 1)
    several = several or what.write == "half"

    @td.kernel(checked=False)
    def transform_block(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole, sign, scale
    ):
        own = td.local(own_room, pair)
        shared = td.shared(room if several else 1, pair)
        first_stage(x, before, after, out, read, write, lines, whole, sign, scale, own, shared)
        later(twiddles, after, out, write, lines, scale, own, shared)

    return transform_block


@functools.cache
def _spot(n: int, tile: Tile, across: bool) -> Function:
    """The index in shared memory of an element of a line."""
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
    """The number of a butterfly in its line."""

    @td.func
    def number_of(butterfly):
        return butterfly // lines if across else butterfly % many

    return number_of


@functools.cache
def _first_stage(what: Pass, tile: Tile) -> Function:
    """The first stage, from the array."""
    radix, _, reach, _ = stages(what.radices)[0]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    iterations, uneven = -(-count // threads), count % threads != 0
    only_stage, places = len(what.radices) == 1 and what.write != "half", order(radix)
    apply_butterfly, load = butterfly(radix, what.component), loader(what)
    line_of = _line_of(reach, held, what.read_across)
    number_of = _number_of(reach, held, what.read_across)
    spot, write_line = _spot(n, tile, what.write_across), _line_writer(what)

    @td.func
    def first_stage(x, before, after, out, read, write, lines, whole, sign, scale, own, shared):
        for p in td.static_range(iterations):
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
        for p in td.static_range(iterations):
            apply_butterfly(own, p * radix)
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = line_of(each)
            j = number_of(each)
            if not uneven or each < count:
                if only_stage:
                    write_line(
                        out, after, td.block_idx.x * held + line, lines, write, 0, own, p * radix,
                        scale,
                    )  # fmt: skip
                else:
                    for r in td.static_range(radix):
                        shared[spot(line, j * radix + r)] = own[p * radix + places[r]]

    return first_stage


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
def _later_stages(what: Pass, tile: Tile, number: int) -> Function:
    """The stages from a number on. All elements are read before any is overwritten."""

    @td.func
    def nothing(twiddles, after, out, write, lines, scale, own, shared):
        pass

    if number >= len(what.radices):
        return _untangle_stage(what, tile) if what.write == "half" else nothing
    radix, behind, reach, table = stages(what.radices)[number]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    iterations, uneven = -(-count // threads), count % threads != 0
    last = number == len(what.radices) - 1 and what.write != "half"
    places = order(radix)
    apply_butterfly, product = butterfly(radix, what.component), times(what.component)
    line_of = _line_of(reach, held, what.write_across)
    number_of = _number_of(reach, held, what.write_across)
    spot, write_line = _spot(n, tile, what.write_across), _line_writer(what)
    later = _later_stages(what, tile, number + 1)

    @td.func
    def proceed(twiddles, after, out, write, lines, scale, own, shared):
        td.sync_threads()
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            if not uneven or each < count:
                line = line_of(each)
                j = number_of(each)
                q = j % behind
                own[p * radix] = shared[spot(line, j)]
                for r in td.static_range(1, radix):
                    root = twiddles[table + (r - 1) * behind + q]
                    own[p * radix + r] = product(shared[spot(line, j + r * reach)], root)
        for p in td.static_range(iterations):
            apply_butterfly(own, p * radix)
        if not last:
            td.sync_threads()
        for p in td.static_range(iterations):
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
        later(twiddles, after, out, write, lines, scale, own, shared)

    return proceed


@functools.cache
def _untangle_stage(what: Pass, tile: Tile) -> Function:
    """Computes transforms of real numbers from those of their pairs, which are in shared memory."""
    n, threads, held = what.length, tile.threads, tile.lines
    parts = n // 2 + 1
    iterations = -(-parts * held // threads)
    line_of = _line_of(parts, held, what.write_across)
    number_of = _number_of(parts, held, what.write_across)
    spot, write_both = _spot(n, tile, what.write_across), untangled(what.component)

    @td.func
    def untangle(twiddles, roots, out, write, lines, scale, own, shared):
        td.sync_threads()
        for p in td.static_range(iterations):
            each = p * threads + td.thread_idx.x
            line = line_of(each)
            k = number_of(each)
            number = td.block_idx.x * held + line
            if each < parts * held and number < lines.count:
                quotient = number // lines.inner
                o = quotient // lines.along_a
                a = quotient - o * lines.along_a
                origin = o * write.outer + a * write.own_a + number - quotient * lines.inner
                write_both(
                    out, origin + k * write.unit, origin + (n - k) * write.unit,
                    shared[spot(line, k)], shared[spot(line, n - k if k > 0 else 0)], roots[k],
                    scale,
                )  # fmt: skip

    return untangle
