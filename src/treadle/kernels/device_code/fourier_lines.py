"""Passes of a Fourier transform for the CPU: each thread transforms a line by itself.

The threads of a block are the lanes of vectors, so a butterfly works on whole vectors, whatever its
radix. Between stages the elements are in local arrays of the thread. The last block starts early
enough that all its threads have a line, and computes some lines a second time: that is cheaper than
a test for each lane.
"""

from __future__ import annotations

import functools

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
)
from treadle.lang.decorators import Function, Kernel

LANES = 16  # threads of a block


@functools.cache
def column_transformer(what: Pass, guarded: bool) -> Kernel:
    """A kernel for lines that lie side by side in what is read or written: those of a block have
    one `b` and outer coordinate. `guarded`: there are fewer than `LANES` of these."""
    pair, transform, plain = td.vec2[what.component], _line(what), what.plain
    room, more, widest = _rooms(what)

    @td.kernel(checked=False)
    def transform_columns(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole, sign, scale
    ):
        own = td.local(widest, pair)
        kept = td.local(room, pair)
        spare = td.local(more, pair)
        columns = lines.along_a * lines.inner
        groups = (columns + (LANES - 1)) // LANES
        row = td.block_idx.x // groups
        first = (td.block_idx.x - row * groups) * LANES
        column = (first if guarded else td.minimum(first, columns - LANES)) + td.thread_idx.x
        if not guarded or column < columns:
            o = row // lines.along_b
            b = row - o * lines.along_b
            a = column if plain else column // lines.inner
            i = 0 if plain else column - a * lines.inner
            transform(
                x, before, twiddles, after, out, read, write, whole, sign, scale, o, b, column, a,
                i, lines.along_a, own, kept, spare,
            )  # fmt: skip

    return transform_columns


@functools.cache
def line_transformer(what: Pass, guarded: bool) -> Kernel:
    """A kernel for lines that lie anywhere. `guarded`: there are fewer than `LANES`."""
    pair, transform = td.vec2[what.component], _line(what)
    room, more, widest = _rooms(what)

    @td.kernel(checked=False)
    def transform_lines(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole, sign, scale
    ):
        own = td.local(widest, pair)
        kept = td.local(room, pair)
        spare = td.local(more, pair)
        first = td.block_idx.x * LANES
        line = (first if guarded else td.minimum(first, lines.count - LANES)) + td.thread_idx.x
        if not guarded or line < lines.count:
            quotient = line // lines.inner
            i = line - quotient * lines.inner
            further = quotient // lines.along_a
            a = quotient - further * lines.along_a
            o = further // lines.along_b
            b = further - o * lines.along_b
            transform(
                x, before, twiddles, after, out, read, write, whole, sign, scale, o, b, 0, a, i,
                lines.along_a, own, kept, spare,
            )  # fmt: skip

    return transform_lines


@functools.cache
def row_transformer(what: Pass, radices: tuple[int, ...]) -> Kernel:
    """A kernel whose blocks transform a row each, in two passes: as a matrix whose columns have the
    length of `what`, and its rows that of the other radices. Both are at least `LANES`."""
    component, pair = what.component, td.vec2[what.component]
    first = what._replace(
        write="complex", after=True, two_tables=False, read_across=True, write_across=True,
        write_cut=False, plain=True,
    )  # fmt: skip
    second = Pass(
        radices, component, write=what.write, after=what.after, write_across=True,
        write_cut=what.write_cut, plain=True,
    )  # fmt: skip
    n1, n2 = first.length, second.length
    along, across = _line(first), _line(second)
    room, more, widest = _rooms(first)
    room2, more2, widest2 = _rooms(second)

    @td.kernel(checked=False)
    def transform_rows(
        x, before, twiddles, pass_twiddles, twiddles2, after, out, read: Steps, write: Steps,
        whole, sign, scale,
    ):  # fmt: skip
        own = td.local(widest, pair)
        kept = td.local(room, pair)
        spare = td.local(more, pair)
        own2 = td.local(widest2, pair)
        kept2 = td.local(room2, pair)
        spare2 = td.local(more2, pair)
        between = td.shared(n1 * n2, pair)
        row = td.block_idx.x
        inside = Steps(0, 0, 0, 0, 1, n2, 1, 0)
        one = pair(1.0, 1.0)
        for group in range((n2 + (LANES - 1)) // LANES):
            column = td.minimum(group * LANES, n2 - LANES) + td.thread_idx.x
            along(
                x, before, twiddles, pass_twiddles, between, read, inside, whole, sign, one,
                row, 0, column, column, 0, 1, own, kept, spare,
            )  # fmt: skip
        td.sync_threads()
        lying = Steps(0, 0, n2, 0, 0, 1, 1, 0)
        for group in range((n1 + (LANES - 1)) // LANES):
            line = td.minimum(group * LANES, n1 - LANES) + td.thread_idx.x
            across(
                between, before, twiddles2, after, out, lying, write, whole, component(1.0), scale,
                row, 0, line, line, 0, 1, own2, kept2, spare2,
            )  # fmt: skip

    return transform_rows


def _rooms(what: Pass) -> tuple[int, int, int]:
    """The lengths of a thread's arrays between stages, and of that for a butterfly."""
    count = len(what.radices)
    return what.length if count > 1 else 1, what.length if count > 2 else 1, max(what.radices)


@functools.cache
def _line(what: Pass) -> Function:
    """Transforms a line. `column` is a * inner + i, `count` that of lines along `a`."""
    first_stage, later = _first_stage(what), _later_stages(what, 1)
    read_across, write_across = what.read_across, what.write_across

    @td.func
    def transform(
        x, before, twiddles, after, out, read, write, whole, sign, scale, o, b, column, a, i,
        count, own, kept, spare,
    ):  # fmt: skip
        # Written without a helper, and each name assigned once, so that the vectorizer sees which
        # accesses of neighbouring lanes are adjacent.
        origin_read = o * read.outer + b * read.own_b + a * read.own_a + i
        origin = o * write.outer + b * write.own_b + a * write.own_a + i
        row_read = o * read.outer + b * (read.own_b + read.place_b * read.unit)
        row = o * write.outer + b * (write.own_b + write.place_b * write.unit)
        step_read = read.own_a + read.place_a * read.unit
        step = write.own_a + write.place_a * write.unit
        at_read = row_read + (column if read_across else a * step_read + i)
        at = row + (column if write_across else a * step + i)
        place_read = b * read.place_b + (a if read_across else a * read.place_a)
        place = b * write.place_b + (a if write_across else a * write.place_a)
        first_stage(
            x, before, origin_read, at_read, place_read, read, whole, sign, own, kept,
            after, out, origin, at, place, a, count, write, scale,
        )  # fmt: skip
        later(kept, spare, own, twiddles, after, out, origin, at, place, a, count, write, scale)

    return transform


@functools.cache
def _first_stage(what: Pass) -> Function:
    """The first stage, from the array; with no other, to the array."""
    stage = stages(what.radices)[0]
    radix, reach = stage.radix, stage.reach
    only_stage, places = len(what.radices) == 1, order(radix)
    pair = td.vec2[what.component]
    apply_butterfly, load, finish = butterfly(radix, what.component), loader(what), finisher(what)

    @td.func
    def first_stage(
        x, before, origin, at, place, read, whole, sign, own, kept,
        after, out, origin_out, at_out, place_out, a, count, write, scale,
    ):  # fmt: skip
        one = pair(1.0, 0.0)
        for j in range(reach):
            for r in td.static_range(radix):
                distance = (j + r * reach) * read.place_k
                own[r] = load(
                    x, before, origin, at + distance * read.unit, place + distance, read, whole,
                    sign,
                )  # fmt: skip
            apply_butterfly(own, 0)
            for r in td.static_range(radix):
                if only_stage:
                    finish(
                        out, after, origin_out, at_out, place_out, a, count, one, write, 0, r,
                        own[places[r]], scale,
                    )  # fmt: skip
                else:
                    kept[j * radix + r] = own[places[r]]

    return first_stage


@functools.cache
def _later_stages(what: Pass, number: int) -> Function:
    """The stages from a number on, from one array of the thread to the other; the last one to the
    array."""

    @td.func
    def nothing(kept, spare, own, twiddles, after, out, origin, at, place, a, count, write, scale):
        pass

    if number >= len(what.radices):
        return nothing
    radix, behind, reach, table = stages(what.radices)[number]
    groups, places = reach // behind, order(radix)
    last = number == len(what.radices) - 1
    apply_butterfly, product = butterfly(radix, what.component), times(what.component)
    finish, common = finisher(what), near_factor(what._replace(two_tables=what.two_tables and last))
    later = _later_stages(what, number + 1)

    @td.func
    def proceed(kept, spare, own, twiddles, after, out, origin, at, place, a, count, write, scale):
        for q in range(behind):
            near = common(after, a, count, q)
            for group in range(groups):
                j = group * behind + q
                own[0] = kept[j]
                for r in td.static_range(1, radix):
                    root = twiddles[table + (r - 1) * behind + q]
                    own[r] = product(kept[j + r * reach], root)
                apply_butterfly(own, 0)
                for r in td.static_range(radix):
                    if last:
                        finish(
                            out, after, origin, at, place, a, count, near, write, q, r,
                            own[places[r]], scale,
                        )  # fmt: skip
                    else:
                        spare[group * (behind * radix) + q + r * behind] = own[places[r]]
        later(spare, kept, own, twiddles, after, out, origin, at, place, a, count, write, scale)

    return proceed
