"""Passes of a Fourier transform: what lines of elements are, and how they are read and written.

A line is transformed by Stockham's scheme (see Van Loan, Computational Frameworks for the Fast
Fourier Transform, 1992, chapter 1.7): stages of butterflies, each of which writes its results in
such an order that no bit reversal is needed at the end. Between stages the elements are in shared
memory, and a block transforms several lines; where threads are serial (on the CPU), they are in
local arrays of a thread, which transforms a line by itself.

A line has four coordinates: the outer one, `b`, `a` and the inner one, of which the last is the
fastest. `Steps` say where its elements are read and written. Prologues and epilogues are fused into
the loads (padding, packing of real numbers, factors) and the stores (factors, cropping).
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.butterflies import times
from treadle.lang.decorators import Function, Kernel


@td.struct
class Steps:
    """Where elements are. Element k of a line has the place p = b * place_b + a * place_a +
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


@td.struct
class Start:
    """Where a line begins: the element with the place 0, its first place, and its `a`."""

    origin: td.i32
    place: td.i32
    a: td.i32


class Pass(NamedTuple):
    """What a pass does with its lines; the length of a line is the product of `radices`.

    `read` is what elements are made of: "complex", "real"; "pairs" (of neighbouring real numbers);
    "hermitian" (half of a line whose other half is conjugate to it), "halves" (the same, for a line
    of half the length whose result is pairs). `write` is "complex", "real" (parts) or "pairs"; or,
    by blocks, "half": of the transform of pairs, what `untangled` makes of it,
    with factors `after` for that.
    `before` and `after`: whether elements are multiplied by factors when they are read and written;
    `chirp`: only the first `whole` elements exist, and are multiplied by factors, which come after
    those that "halves" takes; "half" takes the factors after that many others.
    `two_tables`: the factors after element k of the line `a` are roots of unity to the power a * k,
    each the product of two from short tables, instead of one table as long as the array: k is q +
    r * behind with the product `behind` of all radices but the last one, and the tables have the
    powers a * q and a * r * behind, those of neighbouring lines side by side.
    `read_across`, `write_across`: whether elements of neighbouring lines lie side by side (own_a is
    0, place_a 1 and `unit` the extent of the inner coordinate, which `plain` says is 1).
    `read_next`, `write_next`: whether elements of a line are adjacent (`place_k` and `unit` are 1).
    `read_cut`, `write_cut`: whether some places do not exist.
    `one_outer`, `one_b`, `one_a`: whether there is only one of these coordinates.
    """

    radices: tuple[int, ...]
    component: DType
    read: str = "complex"
    write: str = "complex"
    before: bool = False
    after: bool = False
    chirp: bool = False
    two_tables: bool = False
    read_across: bool = False
    write_across: bool = False
    read_next: bool = False
    write_next: bool = False
    read_cut: bool = False
    write_cut: bool = False
    plain: bool = False
    one_outer: bool = False
    one_b: bool = False
    one_a: bool = False

    @property
    def length(self) -> int:
        """Elements of a line."""
        return math.prod(self.radices)


def twiddle_places(radices: tuple[int, ...]) -> tuple[int, ...]:
    """Where in the table the factors of each stage begin: for stage t, behind stages whose radices
    have the product s, factors (r, q) for r from 1 and q < s, which are the roots of unity of s *
    radix to the power r * q. The last number is the length of the table."""
    places, behind = [0], 1
    for radix in radices:
        places.append(places[-1] + (behind * (radix - 1) if behind > 1 else 0))
        behind *= radix
    return tuple(places)


@functools.cache
def loader(what: Pass) -> Function:
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
        sign_here = sign
        if near < place:
            sign_here = -sign
        return pair(value.x, value.y * sign_here)

    @td.func
    def load_half(x, factors, origin, at, place, steps, whole, sign):
        far = whole - place
        a = element(x, origin + place * steps.unit, place, steps)
        b = element(x, origin + far * steps.unit, far, steps)
        sign_here = sign
        if place == 0:  # this element is real: its imaginary part is ignored
            sign_here = component(0.0)
        one = pair(a.x, a.y * sign_here)
        other = pair(b.x, -b.y * sign_here)
        odd = product(one - other, factors[place])
        return pair(one.x + other.x - odd.y, -(one.y + other.y + odd.x))

    load = {
        "complex": load_complex, "real": load_real, "pairs": load_pair,
        "hermitian": load_mirrored, "halves": load_half,
    }[read]  # fmt: skip
    chirp_behind = read == "halves"

    @td.func
    def load_of_chirp(x, factors, origin, at, place, steps, whole, sign):
        value = pair(0.0, 0.0)
        if place < whole:
            number = load(x, factors, origin, at, place, steps, whole, sign)
            value = product(number, factors[place + (whole if chirp_behind else 0)])
        return value

    if what.chirp:
        return load_of_chirp
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

    return {"complex": store_complex, "real": store_real, "pairs": store_pair}.get(
        what.write, store_complex
    )


@functools.cache
def starter(what: Pass) -> Function:
    """Tells where the line of a number begins, of `Lines` that lie as `Steps` say."""
    plain, one_outer, one_b, one_a = what.plain, what.one_outer, what.one_b, what.one_a

    @td.func
    def start_of(number, lines, steps):
        rest = number
        origin = td.i32(0)
        if not plain:
            rest = number // lines.inner
            origin = number - rest * lines.inner
        a = td.i32(0)
        if not one_a:
            a = rest
            if one_b and one_outer:
                rest = td.i32(0)
            else:
                further = rest // lines.along_a
                a = rest - further * lines.along_a
                rest = further
        place = a * steps.place_a
        origin += a * steps.own_a
        if not one_b:
            b = rest
            if one_outer:
                rest = td.i32(0)
            else:
                further = rest // lines.along_b
                b = rest - further * lines.along_b
                rest = further
            origin += b * steps.own_b
            place += b * steps.place_b
        if not one_outer:
            origin += rest * steps.outer
        return Start(origin, place, a)

    return start_of


@functools.cache
def near_factor(what: Pass) -> Function:
    """With two tables, the factor that elements q, q + `behind`, … of the line `a` have in common;
    there are `count` lines along `a`."""
    pair = td.vec2[what.component]
    last = stages(what.radices)[-1]
    is_there, first = what.two_tables and last.behind > 1, last.radix

    @td.func
    def near(factors, a, count, q):
        value = pair(1.0, 0.0)
        if is_there:
            value = factors[(first + q) * count + a]
        return value

    return near


@functools.cache
def finisher(what: Pass) -> Function:
    """Writes element q + r * `behind` of the line `a`, whose first element has a place, and is at
    `at` in the array. `near` is its `near_factor`."""
    store, product = _storer(what), times(what.component)
    after, two_tables, is_next = what.after, what.two_tables, what.write_next
    behind = stages(what.radices)[-1].behind
    has_near = two_tables and behind > 1

    @td.func
    def finish(out, factors, origin, at, place, a, count, near, steps, q, r, value, scale):
        # Each name is assigned once, for the vectorizer, as in `fourier_lines`.
        made = value
        distance = (q + r * behind) * (1 if is_next else steps.place_k)
        further = distance * (1 if is_next else steps.unit)
        if two_tables:
            factor = factors[r * count + a]
            if has_near:
                factor = product(factor, near)
            made = product(made, factor)
        elif after:
            made = product(made, factors[place + distance])
        store(out, origin, at + further, place + distance, steps, made, scale)

    return finish


class Stage(NamedTuple):
    """A stage: its butterflies, and where they are in the line."""

    radix: int
    behind: int  # the product of the radices before
    reach: int  # elements from one of a butterfly to the next
    table: int  # where its factors begin


def stages(radices: tuple[int, ...]) -> list[Stage]:
    """All of a line."""
    places, n = twiddle_places(radices), math.prod(radices)
    behind, found = 1, []
    for radix, table in zip(radices, places, strict=False):
        found.append(Stage(radix, behind, n // radix, table))
        behind *= radix
    return found


@functools.cache
def untangled(component: DType) -> Function:
    """Writes two elements of a transform of real numbers: k and half - k, of elements a (k) and b
    (half - k) of the transform of their pairs, and the root of unity of 2 * half to the power k."""
    pair: Any = td.vec2[component]
    product = times(component)

    @td.func
    def write_both(out, at, at_mirrored, a, b, root, scale):
        even = pair(a.x + b.x, a.y - b.y)
        odd = product(pair(a.y + b.y, b.x - a.x), root)
        first = even + odd
        other = odd - even
        out[at] = pair(first.x * scale.x, first.y * scale.y)
        out[at_mirrored] = pair(-other.x * scale.x, other.y * scale.y)

    return write_both


@functools.cache
def untangler(component: DType, plain: bool) -> Kernel:
    """A kernel that makes the first `half` + 1 elements of a transform of 2 * `half` real numbers
    from that of the pairs of neighbours. A thread makes elements k and `half` - k. A line is done
    by `groups` blocks; `plain`: the extent of the inner coordinate is 1."""
    pair: Any = td.vec2[component]
    write_both = untangled(component)

    @td.func
    def part(z, roots, out, start, to, half, inner, k, scale):
        a = z[start + k * inner]
        b = z[start + (half - k if k > 0 else 0) * inner]
        write_both(out, to + k * inner, to + (half - k) * inner, a, b, roots[k], scale)

    @td.kernel(checked=False)
    def untangle(z, roots, out, half, parts, inner, groups, real, imaginary):
        o = td.block_idx.x // groups
        t = (td.block_idx.x - o * groups) * td.block_dim.x + td.thread_idx.x
        start = o * half * inner
        scale = pair(real, imaginary)
        if t < parts * inner:
            if plain:
                part(z, roots, out, start, start + o, half, 1, t, scale)
            else:
                k = t // inner
                i = t - k * inner
                part(z, roots, out, start + i, start + o * inner + i, half, inner, k, scale)

    return untangle
