"""Passes of a Fourier transform: each transforms lines of one length, wherever their elements lie.

A line is done by Stockham's scheme (see Van Loan, Computational Frameworks for the Fast Fourier
Transform, 1992, chapter 1.7): stage after stage of butterflies, each stage writing so that the
result comes out in order. Between stages elements are in shared memory, and a block has some lines;
or, where threads work alone, in arrays of a thread that has a line of its own.

A line has four coordinates: the outer one, `b`, `a` and the inner one, the last fastest. Where its
elements are read and written `Steps` say. What a transform needs beside its butterflies is done as
elements are read (padding, packing of real numbers, factors) and written (factors, cropping).
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.butterflies import butterfly, order, times
from treadle.lang.kernel import Function, Kernel

LANES = 16  # threads that work alone side by side


@td.struct
class Steps:
    """Where elements lie. Element k of a line has the place p = b * place_b + a * place_a +
    k * place_k along the transformed axis. In the array that is element o * outer + b * own_b +
    a * own_a + i + p * unit; places from `limit` on do not exist."""

    outer: td.i32
    own_b: td.i32
    own_a: td.i32
    place_b: td.i32
    place_a: td.i32
    place_k: td.i32
    unit: td.i32
    limit: td.i32


@td.struct
class Lines:
    """How many there are, in all and along `b`, `a` and the inner coordinate."""

    count: td.i32
    along_b: td.i32
    along_a: td.i32
    inner: td.i32


class Pass(NamedTuple):
    """What a pass does with its lines; the length of a line is the product of `radices`.

    `read` is what elements are made of: "complex", "real"; "pairs" (of neighbouring real numbers);
    "hermitian" (half of a line whose other half is conjugate to it), "halves" (the same, for a line
    of half the length whose result is pairs). `write` is "complex", "real" (parts) or "pairs".
    `before` and `after`: whether elements are multiplied by factors when they are read and written.
    `read_across`, `write_across`: whether elements of neighbouring lines lie side by side (own_a is
    0, place_a 1 and `unit` the extent of the inner coordinate, which `plain` says is 1).
    `read_cut`, `write_cut`: whether some places do not exist.
    """

    radices: tuple[int, ...]
    component: DType
    read: str = "complex"
    write: str = "complex"
    before: bool = False
    after: bool = False
    read_across: bool = False
    write_across: bool = False
    read_cut: bool = False
    write_cut: bool = False
    plain: bool = False

    @property
    def length(self) -> int:
        """Elements of a line."""
        return math.prod(self.radices)


class Tile(NamedTuple):
    """What a block does: so many lines, with so many threads. With `gaps` the lines have an unused
    element after 16, so that threads do not meet in memory banks."""

    lines: int
    threads: int
    gaps: bool


def twiddle_places(radices: tuple[int, ...]) -> tuple[int, ...]:
    """Where in the table the factors of each stage begin: for stage t, behind stages whose radices
    have the product s, factors (r, q) for r from 1 and q < s, which are the roots of unity of s *
    radix to the power r * q. The last number is the length of the table."""
    places, behind = [0], 1
    for radix in radices:
        places.append(places[-1] + (behind * (radix - 1) if behind > 1 else 0))
        behind *= radix
    return tuple(places)


# --- elements ------------------------------------------------------------------------------------


@functools.cache
def _loader(what: Pass) -> Function:
    """Reads the element at a place, which is at `at` in the array; place 0 would be at `origin`.
    `sign` is -1 where the conjugate is wanted; `whole` is the length of the whole transform."""
    component, pair = what.component, td.vec2[what.component]
    product = times(component)
    read, cut = what.read, what.read_cut
    before = what.before and read != "halves"

    @td.func
    def element(x, at, place, steps):
        value = pair(0.0, 0.0)
        if not cut or place < steps.limit:
            value = x[at]
        return value

    @td.func
    def number(x, at, place, steps):
        value = component(0.0)
        if not cut or place < steps.limit:
            value = component(x[at])
        return value

    @td.func
    def load_complex(x, factors, origin, at, place, steps, whole, sign):
        value = element(x, at, place, steps)
        return pair(value.x, value.y * sign)

    @td.func
    def load_real(x, factors, origin, at, place, steps, whole, sign):
        return pair(number(x, at, place, steps), component(0.0))

    @td.func
    def load_pair(x, factors, origin, at, place, steps, whole, sign):
        both = origin + 2 * place * steps.unit
        first = number(x, both, 2 * place, steps)
        return pair(first, number(x, both + steps.unit, 2 * place + 1, steps))

    @td.func
    def load_mirrored(x, factors, origin, at, place, steps, whole, sign):
        near = td.minimum(place, whole - place)
        value = element(x, origin + near * steps.unit, near, steps)
        turn = sign
        if near < place:
            turn = -sign
        return pair(value.x, value.y * turn)

    @td.func
    def load_half(x, factors, origin, at, place, steps, whole, sign):
        far = whole - place
        a = element(x, origin + place * steps.unit, place, steps)
        b = element(x, origin + far * steps.unit, far, steps)
        turn = sign
        if place == 0:  # what is real here may come with another part, which does not count
            turn = component(0.0)
        one = pair(a.x, a.y * turn)
        other = pair(b.x, -b.y * turn)
        turned = product(one - other, factors[place])
        return pair(one.x + other.x - turned.y, -(one.y + other.y + turned.x))

    load = {
        "complex": load_complex, "real": load_real, "pairs": load_pair,
        "hermitian": load_mirrored, "halves": load_half,
    }[read]  # fmt: skip
    if not before:
        return load

    @td.func
    def load_and_multiply(x, factors, origin, at, place, steps, whole, sign):
        return product(load(x, factors, origin, at, place, steps, whole, sign), factors[place])

    return load_and_multiply


@functools.cache
def _storer(what: Pass) -> Function:
    """Writes the element at a place, times `scale`: its first part for real numbers, its second for
    imaginary ones."""
    cut = what.write_cut
    pair = td.vec2[what.component]

    @td.func
    def store_complex(out, origin, at, place, steps, value, scale):
        if not cut or place < steps.limit:
            out[at] = pair(value.x * scale.x, value.y * scale.y)

    @td.func
    def store_real(out, origin, at, place, steps, value, scale):
        if not cut or place < steps.limit:
            out[at] = value.x * scale.x

    @td.func
    def store_pair(out, origin, at, place, steps, value, scale):
        if not cut or 2 * place < steps.limit:
            both = origin + 2 * place * steps.unit
            out[both] = value.x * scale.x
            out[both + steps.unit] = value.y * scale.y

    return {"complex": store_complex, "real": store_real, "pairs": store_pair}[what.write]


@td.func
def _origin(steps, o, b, a, i):
    return o * steps.outer + b * steps.own_b + a * steps.own_a + i


@functools.cache
def _first_at(across: bool) -> Function:
    """Where element 0 of a line is."""

    @td.func
    def beside(steps, o, b, a, i, column):
        return o * steps.outer + b * (steps.own_b + steps.place_b * steps.unit) + column

    @td.func
    def anywhere(steps, o, b, a, i, column):
        place = b * steps.place_b + a * steps.place_a
        return _origin(steps, o, b, a, i) + place * steps.unit

    return beside if across else anywhere


@functools.cache
def _first_place(across: bool) -> Function:
    """The place of element 0 of a line."""

    @td.func
    def beside(steps, b, a):
        return b * steps.place_b + a

    @td.func
    def anywhere(steps, b, a):
        return b * steps.place_b + a * steps.place_a

    return beside if across else anywhere


@functools.cache
def _finisher(what: Pass) -> Function:
    """Writes element k of a line that begins at a place, and at `at` in the array."""
    store, product, after = _storer(what), times(what.component), what.after

    @td.func
    def finish(out, factors, origin, at, place, steps, k, value, scale):
        made = value
        if after:
            made = product(value, factors[place + k * steps.place_k])
        distance = k * steps.place_k
        store(out, origin, at + distance * steps.unit, place + distance, steps, made, scale)

    return finish


class _Stage(NamedTuple):
    """A stage: its butterflies, and where they are in the line."""

    radix: int
    behind: int  # the product of the radices before
    reach: int  # elements from one of a butterfly to the next
    table: int  # where its factors begin


def _stages(radices: tuple[int, ...]) -> list[_Stage]:
    places, n = twiddle_places(radices), math.prod(radices)
    behind, found = 1, []
    for radix, table in zip(radices, places, strict=False):
        found.append(_Stage(radix, behind, n // radix, table))
        behind *= radix
    return found


# --- threads that work alone ---------------------------------------------------------------------


@functools.cache
def line_transformer(what: Pass) -> Kernel:
    """A kernel whose threads transform a line each. A block has `LANES` lines; where they lie side
    by side in what is read or written, it has neighbours of one `b` and outer coordinate."""
    n, pair = what.length, td.vec2[what.component]
    several, many = len(what.radices) > 1, len(what.radices) > 2
    room, more, widest = n if several else 1, n if many else 1, max(what.radices)
    begin = _begin(what)
    go_on = _rest(what, 1)
    first_read, place_read = _first_at(what.read_across), _first_place(what.read_across)
    first_write, place_write = _first_at(what.write_across), _first_place(what.write_across)
    across, plain = what.read_across or what.write_across, what.plain

    @td.func
    def transform(
        x, before, twiddles, after, out, read, write, whole, sign, scale,
        o, b, a, i, column, own, kept, spare,
    ):  # fmt: skip
        origin = _origin(write, o, b, a, i)
        at = first_write(write, o, b, a, i, column)
        place = place_write(write, b, a)
        begin(
            x, before, _origin(read, o, b, a, i), first_read(read, o, b, a, i, column),
            place_read(read, b, a), read, whole, sign.x, own, kept,
            after, out, origin, at, place, write, scale,
        )  # fmt: skip
        go_on(kept, spare, own, twiddles, after, out, origin, at, place, write, scale)

    @td.kernel(checked=False)
    def transform_columns(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole: td.i32,
        sign, scale,
    ):  # fmt: skip
        own = td.local(widest, pair)
        kept = td.local(room, pair)
        spare = td.local(more, pair)
        columns = lines.along_a * lines.inner
        groups = (columns + (LANES - 1)) // LANES
        row = td.block_idx.x // groups
        column = (td.block_idx.x - row * groups) * LANES + td.thread_idx.x
        if column < columns:
            o = row // lines.along_b
            b = row - o * lines.along_b
            a = column
            i = 0
            if not plain:
                a = column // lines.inner
                i = column - a * lines.inner
            transform(
                x, before, twiddles, after, out, read, write, whole, sign, scale,
                o, b, a, i, column, own, kept, spare,
            )  # fmt: skip

    @td.kernel(checked=False)
    def transform_lines(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole: td.i32,
        sign, scale,
    ):  # fmt: skip
        own = td.local(widest, pair)
        kept = td.local(room, pair)
        spare = td.local(more, pair)
        line = td.grid(1)
        if line < lines.count:
            rest = line // lines.inner
            i = line - rest * lines.inner
            further = rest // lines.along_a
            a = rest - further * lines.along_a
            o = further // lines.along_b
            b = further - o * lines.along_b
            transform(
                x, before, twiddles, after, out, read, write, whole, sign, scale,
                o, b, a, i, 0, own, kept, spare,
            )  # fmt: skip

    return transform_columns if across else transform_lines


@functools.cache
def _begin(what: Pass) -> Function:
    """The first stage, from the array; with no other, to the array."""
    stage = _stages(what.radices)[0]
    radix, reach = stage.radix, stage.reach
    alone, places = len(what.radices) == 1, order(radix)
    turn, load, finish = butterfly(radix, what.component), _loader(what), _finisher(what)

    @td.func
    def begin(
        x, before, origin, at, place, read, whole, sign, own, kept,
        after, out, origin_out, at_out, place_out, write, scale,
    ):  # fmt: skip
        for j in range(reach):
            for r in td.static_range(radix):
                distance = (j + r * reach) * read.place_k
                own[r] = load(
                    x, before, origin, at + distance * read.unit, place + distance, read, whole,
                    sign,
                )  # fmt: skip
            turn(own, 0)
            for r in td.static_range(radix):
                if alone:
                    finish(
                        out, after, origin_out, at_out, place_out, write, r,
                        own[places[r]], scale,
                    )  # fmt: skip
                else:
                    kept[j * radix + r] = own[places[r]]

    return begin


@functools.cache
def _rest(what: Pass, number: int) -> Function:
    """The stages from a number on, from one array of the thread to the other; the last one to the
    array."""

    @td.func
    def nothing(kept, spare, own, twiddles, after, out, origin, at, place, write, scale):
        pass

    if number >= len(what.radices):
        return nothing
    radix, behind, reach, table = _stages(what.radices)[number]
    groups, places = reach // behind, order(radix)
    last = number == len(what.radices) - 1
    turn, product, finish = butterfly(radix, what.component), times(what.component), _finisher(what)
    go_on = _rest(what, number + 1)

    @td.func
    def proceed(kept, spare, own, twiddles, after, out, origin, at, place, write, scale):
        for q in range(behind):
            for group in range(groups):
                j = group * behind + q
                own[0] = kept[j]
                for r in td.static_range(1, radix):
                    root = twiddles[table + (r - 1) * behind + q]
                    own[r] = product(kept[j + r * reach], root)
                turn(own, 0)
                for r in td.static_range(radix):
                    if last:
                        finish(
                            out, after, origin, at, place, write, q + r * behind,
                            own[places[r]], scale,
                        )  # fmt: skip
                    else:
                        spare[group * (behind * radix) + q + r * behind] = own[places[r]]
        go_on(spare, kept, own, twiddles, after, out, origin, at, place, write, scale)

    return proceed


# --- threads that work together ------------------------------------------------------------------


@functools.cache
def block_transformer(what: Pass, tile: Tile) -> Kernel:
    """A kernel whose blocks transform some lines each, which are neighbours: of the four
    coordinates the inner one counts fastest."""
    n, pair = what.length, td.vec2[what.component]
    size, threads = n * tile.lines, tile.threads
    stages = _stages(what.radices)
    several = len(stages) > 1
    room = size + size // _GAP if tile.gaps else size
    own_room = max(-(-size // (stage.radix * threads)) * stage.radix for stage in stages)
    begin, go_on = _begin_together(what, tile), _rest_together(what, tile, 1)

    @td.kernel(checked=False)
    def transform_together(
        x, before, twiddles, after, out, read: Steps, write: Steps, lines: Lines, whole: td.i32,
        sign, scale,
    ):  # fmt: skip
        own = td.local(own_room, pair)
        shared = td.shared(room if several else 1, pair)
        begin(x, before, after, out, read, write, lines, whole, sign.x, scale, own, shared)
        go_on(twiddles, after, out, write, lines, scale, own, shared)

    return transform_together


_GAP = 16


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
    radix, _, reach, _ = _stages(what.radices)[0]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    turns, uneven = -(-count // threads), count % threads != 0
    alone, places = len(what.radices) == 1, order(radix)
    turn, load = butterfly(radix, what.component), _loader(what)
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
                rest = number // lines.inner
                i = number - rest * lines.inner
                further = rest // lines.along_a
                a = rest - further * lines.along_a
                o = further // lines.along_b
                b = further - o * lines.along_b
                origin = _origin(read, o, b, a, i)
                first = b * read.place_b + a * read.place_a
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
    radix, behind, _, _ = _stages(what.radices)[-1]
    places, finish = order(radix), _finisher(what)

    @td.func
    def write_line(out, after, number, lines, write, first, own, base, scale):
        if number < lines.count:
            rest = number // lines.inner
            i = number - rest * lines.inner
            further = rest // lines.along_a
            a = rest - further * lines.along_a
            o = further // lines.along_b
            b = further - o * lines.along_b
            origin = _origin(write, o, b, a, i)
            place = b * write.place_b + a * write.place_a
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
        return nothing
    radix, behind, reach, table = _stages(what.radices)[number]
    n, threads, held = what.length, tile.threads, tile.lines
    count = reach * held
    turns, uneven = -(-count // threads), count % threads != 0
    last, places = number == len(what.radices) - 1, order(radix)
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


# --- transforms of real numbers ------------------------------------------------------------------


@functools.cache
def untangler(component: DType) -> Kernel:
    """A kernel that makes the first `half` + 1 elements of a transform of 2 * `half` real numbers
    from that of the pairs of neighbours. A thread makes elements k and `half` - k."""
    pair: Any = td.vec2[component]
    product = times(component)

    @td.kernel(checked=False)
    def untangle(
        z, roots, out, half: td.i32, parts: td.i32, inner: td.i32, threads: td.i32, scale,
    ):  # fmt: skip
        t = td.grid(1)
        if t < threads:
            rest = t // inner
            o = rest // parts
            k = rest - o * parts
            i = t - rest * inner
            start = o * half * inner + i
            mirrored = half - k
            if k == 0:
                mirrored = 0
            a = z[start + k * inner]
            b = z[start + mirrored * inner]
            even = pair(a.x + b.x, a.y - b.y)
            odd = product(pair(a.y + b.y, b.x - a.x), roots[k])
            first = even + odd
            other = odd - even
            to = start + o * inner
            out[to + k * inner] = pair(first.x * scale.x, first.y * scale.y)
            out[to + (half - k) * inner] = pair(-other.x * scale.x, other.y * scale.y)

    return untangle
