"""From a draft to its program: axes merged, and the numbers of a launch in order.

A program knows no sizes: extents, strides, offsets and bounds are parameters, and it says the
number of each. In which order they are numbered decides which programs are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.graph.draft import Draft
from treadle.graph.node import Node
from treadle.graph.product_groups import MergedAxes, axes_of, merged_axes, placed
from treadle.graph.program import (
    FIXED,
    NEXT,
    Access,
    Axis,
    Kind,
    Multiplied,
    Output,
    Program,
    Prologue,
    Space,
    Step,
    Style,
)
from treadle.graph.reads import NO_BUFFER, Place
from treadle.graph.views import merge_axes
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.factors import TF32, Factor, Product
from treadle.kernels.machine import machine_of
from treadle.kernels.product import factors_of, integers_of, loadings_of

_VECTOR_COST, _VECTOR_COST_IN_SOFTWARE = 400, 50  # of what is done for neighbours at once
_MOST_INDEX = 1 << 31
_RAGGED = 1 << 16  # a map of so many points has a launch of its own for the last ones
_LANES = 4


class Moving(NamedTuple):
    """One of a program's integers: it is where a part begins (`node` is the view or the write of
    it, see `parts.is_part`) plus so much. Other parts have the same kernel."""

    integer: int
    node: Node
    rest: int


@dataclass(slots=True)
class Numbers:
    """A launch's integers, and those of them that say where parts begin."""

    integers: list[int] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)

    def add(self, value: int) -> int:
        """The number of one more integer."""
        self.integers.append(value)
        return len(self.integers) - 1


def program_of(draft: Draft) -> tuple[Program, Numbers]:
    """The program of a draft that is complete, and its numbers for this launch."""
    numbers = Numbers()
    program = _product_program if draft.loops.kind == Kind.PRODUCT else _loop_program
    return program(draft, numbers), numbers


def _loop_program(draft: Draft, numbers: Numbers) -> Program:
    """Kept and reduced axes are merged by themselves."""
    loops = draft.loops
    kept_axes, reduced_axes = loops.axes()
    space = loops.space
    places = _places(draft)
    # Only accesses in the inner space, where there is one, have the reduced axes.
    moves_along_row = [p.space == Space.INNER or loops.kind != Kind.REDUCE for p in places]
    reduced_extents: tuple[int, ...] = ()
    kept_extents, strides = merge_axes(
        tuple(loops.outer[a] for a in kept_axes),
        [tuple([p.strides[a] for a in kept_axes]) for p in places],
    )
    if reduced_axes:
        full = [p for p, moves in zip(places, moves_along_row, strict=True) if moves]
        reduced_extents, reduced_strides = merge_axes(
            tuple(space[a] for a in reduced_axes),
            [tuple([p.strides[a] for a in reduced_axes]) for p in full],
        )
        behind = iter(reduced_strides)
        strides = [
            own + next(behind) if moves else own
            for own, moves in zip(strides, moves_along_row, strict=True)
        ]
    numbers.integers.extend((*kept_extents, *reduced_extents))
    accesses = [_access(numbers, p, own) for p, own in zip(places, strides, strict=True)]
    steps = _numbered_steps(draft, numbers)
    style = Style.LOOPS if draft.node.device.traits.serial_threads else Style.THREADS
    axes = len(kept_extents) + len(reduced_extents)
    return Program(
        loops.program_kind,
        style,
        len(kept_extents),
        len(reduced_extents),
        steps,
        tuple(accesses),
        (Output(draft.result, len(accesses) - 1),),
        _types(draft),
        tuple(draft.scalar_types),
        len(numbers.integers),
        _is_big(draft, numbers, math.prod(space)),
        _lanes(draft, numbers, accesses, axes) if style == Style.THREADS else 1,
    )


def _product_program(draft: Draft, numbers: Numbers) -> Program:
    """The axes of the stack, of rows and of columns are merged by themselves, and the inner axis is
    a reduced one."""
    node, outer, places = draft.product, draft.loops.outer, _places(draft)
    assert node is not None
    product: Product = node.detail
    split = axes_of(outer, product)
    assert split is not None
    own = [place for place in places if place.space == Space.OUTER]
    extents, counts, strides = merged_axes(outer, split, [place.strides for place in own])
    integers = numbers.integers
    integers += [*extents, product.inner]
    merged = {space: _merged_factor(draft, space, places) for space in draft.factors}
    moves = {Space.OUTER: iter(strides)} | {s: iter(axes.strides) for s, axes in merged.items()}
    accesses = [_access(numbers, place, next(moves[place.space])) for place in places]
    steps = list(_numbered_steps(draft, numbers))
    product = placed(product, [draft.plan.original(source) for source in node.sources])
    dtype, second = factors_of(node.dtype, product)
    loadings = list(loadings_of(product, dtype))
    prologues: list[Prologue | None] = [None, None]
    for space, axes in merged.items():
        at = space - Space.FIRST
        here = [a for a, p in zip(accesses, places, strict=True) if p.space == space]
        loadings[at] = _loading_of_factor(draft, numbers, axes, here)
        prologues[at] = _prologue(numbers, axes, draft.prologues[space])
    first = len(integers)
    integers += [product.rows, product.columns, product.inner]
    integers += integers_of(product, loadings)
    big = _is_big(draft, numbers, math.prod(outer))
    here = [a for a, p in zip(accesses, places, strict=True) if p.space == Space.OUTER]
    lanes = _lanes(draft, numbers, here, len(extents))
    result = None if node.dtype is dtype else node.dtype
    form = Form(
        dtype, len(product.batch), loadings[0], loadings[1], lanes, False, big, result=result,
        other=None if second is dtype else second,
    )  # fmt: skip
    number = draft.product_step
    one, other = prologues
    rounded = product.factors == TF32
    packed = (False, False)
    if machine_of(node.device).opaque_products:  # where kernels may have sizes in their text
        packed = (
            _is_packed(product.first, product.rows, product.inner, loadings[0]),
            _is_packed(product.second, product.columns, product.inner, loadings[1]),
        )
    detail = Multiplied(steps[number].detail, (one, other), counts, form, first, rounded, packed)
    steps[number] = steps[number]._replace(detail=detail)
    return Program(
        Kind.PRODUCT,
        Style.THREADS,
        len(extents),
        1,
        tuple(steps),
        tuple(accesses),
        (Output(draft.result, len(accesses) - 1),),
        _types(draft),
        tuple(draft.scalar_types),
        len(integers),
        big,
        lanes,
    )


def _is_packed(factor: Factor, lines: int, inner: int, loading: Loading) -> bool:
    """Whether nothing lies between the lines of a factor in memory."""
    if loading.computed:
        return False
    if loading.inner:
        return bool(factor.inner == 1 and factor.line == inner)
    return bool(factor.line == 1 and factor.inner == lines)


def _merged_factor(draft: Draft, space: Space, places: Sequence[Place]) -> MergedAxes:
    """The axes over which a factor is computed, merged."""
    axes = draft.factors[space]
    own = [place.strides for place in places if place.space == space]
    return merged_axes(axes.view.shape, axes.split, own)


def _loading_of_factor(
    draft: Draft, numbers: Numbers, axes: MergedAxes, accesses: Sequence[Access]
) -> Loading:
    """How a factor is computed: four neighbours at once where all that is read for them lies as
    vectors, along the inner axis if most of it does."""
    stack, lines, inner = axes.counts

    def vectors(axis: int) -> int:
        moves = [access.axes[axis] for access in accesses if access.buffer != NO_BUFFER]
        return moves.count(NEXT) - sum(move >= 0 for move in moves)

    last, line = stack + lines + inner - 1, stack + lines - 1
    along = not lines or (inner > 0 and vectors(last) >= vectors(line))
    near = last if along else line
    count = (inner if along else lines) and _vector_lanes(draft, numbers, accesses, near)
    is_whole = bool(count) and axes.extents[near] % _LANES == 0
    return Loading(along, _LANES if is_whole and count == _LANES else 1, True)


def _prologue(numbers: Numbers, axes: MergedAxes, step: int) -> Prologue:
    stack, lines, inner = axes.counts
    parts = []
    for part in (
        axes.extents[:stack],
        axes.extents[stack : stack + lines],
        axes.extents[stack + lines : stack + lines + inner],
    ):
        found = [Axis(numbers.add(extent), FIXED) for extent in part[:1]]
        for extent in part[1:]:
            number, shift = numbers.add(extent), FIXED
            if extent > 0 and extent & (extent - 1) == 0:
                shift = numbers.add(int(extent).bit_length() - 1)
            found.append(Axis(number, shift))
        parts.append(tuple(found))
    return Prologue(step, (parts[0], parts[1], parts[2]))


def _places(draft: Draft) -> list[Place]:
    """All accesses, the last one that of the result."""
    assert draft.target is not None
    return [*draft.reads.places, draft.target]


def _types(draft: Draft) -> tuple[str, ...]:
    return (*draft.reads.types, draft.node.dtype.short)


def _access(numbers: Numbers, place: Place, strides: Sequence[int]) -> Access:
    """A place with numbers for its strides and its offset."""
    axes: list[int] = []
    for stride in strides:
        if stride == 0:
            axes.append(FIXED)
        elif stride == 1:
            axes.append(NEXT)
        else:
            axes.append(numbers.add(stride))
    offset = FIXED
    if place.part is not None:  # wherever it begins, at 0 too
        rest = place.offset - place.part.detail.offset
        numbers.moving.append(Moving(len(numbers.integers), place.part, rest))
    if place.offset or place.part is not None:
        offset = numbers.add(place.offset)
    return Access(place.buffer, tuple(axes), offset)


def _numbered_steps(draft: Draft, numbers: Numbers) -> tuple[Step, ...]:
    """The steps, with numbers in the details of gathers and joins."""
    steps = draft.steps
    for number, access, elements in draft.gathers:
        steps[number] = steps[number]._replace(detail=(access, numbers.add(elements)))
    for number in draft.joins:
        parts = tuple(
            [
                (source, tuple([_bounds(numbers, *each) for each in bounds]))
                for source, bounds in steps[number].detail
            ]
        )
        steps[number] = steps[number]._replace(detail=parts)
    return tuple(steps)


def _bounds(
    numbers: Numbers, access: int, low: int | None, high: int | None
) -> tuple[int, int, int]:
    """A range of a loop axis: the access that is its index, and the integers of its bounds."""
    first = FIXED if low is None else numbers.add(low)
    return access, first, FIXED if high is None else numbers.add(high)


def _is_big(draft: Draft, numbers: Numbers, points: int) -> bool:
    """Whether indices need 64 bits."""
    integers = numbers.integers
    return (
        any(each >= _MOST_INDEX or each <= -_MOST_INDEX for each in integers)
        or any(leaf.size >= _MOST_INDEX for leaf in (draft.node, *draft.reads.leaves))
        or points >= _MOST_INDEX
    )


def _lanes(draft: Draft, numbers: Numbers, accesses: Sequence[Access], axes: int) -> int:
    """4 where every access along the last axis is of four neighbours that lie as a vector, of at
    most 16 bytes."""
    if draft.joins or not draft.node.device.traits.vector_loads:
        return 1  # parts of joins are read one by one
    is_map = draft.loops.kind == Kind.MAP
    last = numbers.integers[axes - 1]
    most = _VECTOR_COST_IN_SOFTWARE if draft.slow_to_compile else _VECTOR_COST
    if is_map and draft.cost > most:  # arithmetic takes the time then, not memory
        return 1
    if last % _LANES and (not is_map or axes > 1 or not _RAGGED <= last < _MOST_INDEX):
        return 1
    moving = [access for access in accesses if len(access.axes) >= axes]
    return _vector_lanes(draft, numbers, moving, axes - 1)


def _vector_lanes(draft: Draft, numbers: Numbers, accesses: Sequence[Access], near: int) -> int:
    """4 where every access along an axis is of four neighbours that lie as a vector, of at most 16
    bytes, or of one element."""
    integers = numbers.integers
    for access in accesses:
        if access.buffer == NO_BUFFER or access.axes[near] == FIXED:
            continue
        if access.axes[near] != NEXT or _item_size(draft, access.buffer) > 4:
            return 1
        others = access.axes[:near] + access.axes[near + 1 :]
        moves = [integers[m] for m in others if m >= 0]
        if access.offset != FIXED:
            moves.append(integers[access.offset])
        if NEXT in others or any(move % _LANES for move in moves):
            return 1
    return _LANES


def _item_size(draft: Draft, buffer: int) -> int:
    leaves = draft.reads.leaves
    node = leaves[buffer] if buffer < len(leaves) else draft.node
    return node.dtype.itemsize
