"""A kernel on the way to its program: steps, places, buffers and numbers, and their order.

What becomes part of the kernel, and from where it is seen, is `building`'s.
"""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

from treadle.graph import kinds
from treadle.graph.node import Node
from treadle.graph.product_groups import merged_apart, placed
from treadle.graph.program import (
    FIXED,
    NEXT,
    Access,
    Kind,
    Multiplied,
    Output,
    Program,
    Step,
    Style,
)
from treadle.graph.schedule import Plan
from treadle.graph.views import View, merge_axes
from treadle.kernels.device_code.multiplying import Form
from treadle.kernels.factors import Product
from treadle.kernels.machine import machine_of
from treadle.kernels.product import integers_of, loadings_of
from treadle.runtime.arrays import packed_strides

_VECTOR_COST, _VECTOR_COST_IN_SOFTWARE = 400, 50  # of what is done for neighbours at once
_MOST_INDEX = 1 << 31
_RAGGED = 1 << 16  # a map of so many points has a launch of its own for the last ones


class Moving(NamedTuple):
    """One of a program's integers: it is where a part begins (`node` is the view or the write of
    it, see `parts.is_part`) plus so much. Other parts have the same kernel."""

    integer: int
    node: Node
    rest: int


class Place(NamedTuple):
    """An access before axes are merged: strides for the outer or the inner axes."""

    buffer: int
    strides: tuple[int, ...]
    offset: int
    inner: bool
    part: Node | None = None  # the view or the write of a part, where the offset is one's


class TooMuch(Exception):
    """The kernel would have too many buffers."""


class Draft:
    """What a kernel has so far."""

    def __init__(self, plan: Plan, node: Node, part: int | None) -> None:
        self.plan = plan
        self.node = node
        self.part = part  # of a joined array, which this kernel computes
        self.device = node.device
        self.outer = node.detail.shape if node.op == kinds.WRITE else node.shape
        if part is not None:
            self.outer = node.sources[part].shape
        self.mode = Kind.MAP
        self.reduced: tuple[int, ...] = ()  # of the space that is reduced
        self.inner: tuple[int, ...] = ()
        self.nested = False  # a reduction needs another one's result
        self.steps: list[Step] = []
        self.places: list[Place] = []
        self.leaves: list[Node] = []
        self.types: list[str] = []
        self.constants: list[Node] = []
        self.scalar_types: list[str] = []
        self.integers: list[int] = []
        self.moving: list[Moving] = []
        self.cost = 0
        self.most = node.device.limits.max_buffers_per_kernel - 1  # beside the output
        self.slow_to_compile = machine_of(node.device).slow_to_compile
        self._buffers: dict[int, int] = {}
        self._joins: list[int] = []  # steps
        self._axis_places: dict[tuple[int, bool], int] = {}
        self._gathers: list[tuple[int, int, int]] = []  # step, place, elements
        self._product: Node | None = None
        self._product_step = -1

    # --- the program -----------------------------------------------------------------------------

    def _program(self, step: int) -> Program:
        """The axes merged, and the numbers put in order."""
        if self.mode == Kind.PRODUCT:
            return self._product_program(step)
        kept_axes, reduced_axes = self._axes()
        space = self.inner if self.mode == Kind.REDUCE else self.outer
        reduced_extents: tuple[int, ...] = ()
        full = [p for p in self.places if p.inner or self.mode != Kind.REDUCE]
        kept_extents, kept_strides = merge_axes(
            tuple(self.outer[a] for a in kept_axes),
            [tuple([p.strides[a] for a in kept_axes]) for p in self.places],
        )
        if reduced_axes:
            reduced_extents, reduced_strides = merge_axes(
                tuple(space[a] for a in reduced_axes),
                [tuple([p.strides[a] for a in reduced_axes]) for p in full],
            )
            behind = iter(reduced_strides)
        integers = self.integers
        integers += kept_extents
        integers += reduced_extents
        accesses: list[Access] = []
        for place, strides in zip(self.places, kept_strides, strict=True):
            if reduced_axes and (place.inner or self.mode != Kind.REDUCE):
                strides += next(behind)
            accesses.append(self._as_access(place, strides))
        self._number_gathers()
        style = Style.LOOPS if self.device.backend == "cpu" else Style.THREADS
        kind = Kind.ROWS if self.mode == Kind.REDUCE and self.nested else self.mode
        big = self._is_big(math.prod(space))
        return Program(
            kind,
            style,
            len(kept_extents),
            len(reduced_extents),
            tuple(self.steps),
            tuple(accesses),
            (Output(step, len(accesses) - 1),),
            tuple(self.types),
            tuple(self.scalar_types),
            len(integers),
            big,
            self._lanes(accesses, len(kept_extents + reduced_extents))
            if style == Style.THREADS
            else 1,
        )

    def _product_program(self, step: int) -> Program:
        """As `_program`, for a product and what follows it: the axes of the stack, of rows and of
        columns are merged apart, and the inner axis is a reduced one."""
        node = self._product
        assert node is not None
        product: Product = node.detail
        extents, counts, strides = merged_apart(
            self.outer, product, [place.strides for place in self.places]
        )
        integers = self.integers
        integers += [*extents, product.inner]
        accesses = [
            self._as_access(place, moves) for place, moves in zip(self.places, strides, strict=True)
        ]
        self._number_gathers()
        product = placed(product, [self.plan.original(source) for source in node.sources])
        loadings = loadings_of(product)
        first = len(integers)
        integers += [product.rows, product.columns, product.inner]
        integers += integers_of(product, loadings)
        big = self._is_big(math.prod(self.outer))
        lanes = self._lanes(accesses, len(extents))
        form = Form(node.dtype, len(product.batch), *loadings, lanes, False, big)
        number = self._product_step
        buffers: tuple[int, int] = self.steps[number].detail
        detail = Multiplied(buffers, counts, form, first)
        self.steps[number] = self.steps[number]._replace(detail=detail)
        return Program(
            Kind.PRODUCT,
            Style.THREADS,
            len(extents),
            1,
            tuple(self.steps),
            tuple(accesses),
            (Output(step, len(accesses) - 1),),
            tuple(self.types),
            tuple(self.scalar_types),
            len(integers),
            big,
            lanes,
        )

    def _as_access(self, place: Place, strides: tuple[int, ...]) -> Access:
        """Where a place is, with numbers for its strides and its offset."""
        integers = self.integers
        axes = []
        for stride in strides:
            if stride == 0:
                axes.append(FIXED)
            elif stride == 1:
                axes.append(NEXT)
            else:
                axes.append(len(integers))
                integers.append(stride)
        offset = FIXED
        if place.part is not None:  # wherever it begins, at 0 too
            self.moving.append(
                Moving(len(integers), place.part, place.offset - place.part.detail.offset)
            )
        if place.offset or place.part is not None:
            offset = len(integers)
            integers.append(place.offset)
        return Access(place.buffer, tuple(axes), offset)

    def _number_gathers(self) -> None:
        for number, place_number, elements in self._gathers:
            numbers = (place_number, len(self.integers))
            self.steps[number] = self.steps[number]._replace(detail=numbers)
            self.integers.append(elements)
        for number in self._joins:
            step = self.steps[number]
            parts = tuple(
                [(source, tuple(map(self._numbered, bounds))) for source, bounds in step.detail]
            )
            self.steps[number] = step._replace(detail=parts)

    def _numbered(self, bound: tuple[int, int | None, int | None]) -> tuple[int, int, int]:
        """A range of a loop axis: the access that is its index, and the integers of its bounds."""
        place, *bounds = bound
        numbers = []
        for each in bounds:
            numbers.append(FIXED if each is None else len(self.integers))
            if each is not None:
                self.integers.append(each)
        return place, numbers[0], numbers[1]

    def _is_big(self, points: int) -> bool:
        """Whether indices need 64 bits."""
        integers = self.integers
        return (
            max(integers, default=0) >= _MOST_INDEX
            or min(integers, default=0) <= -_MOST_INDEX
            or any(leaf.size >= _MOST_INDEX for leaf in (self.node, *self.leaves))
            or points >= _MOST_INDEX
        )

    def _axes(self) -> tuple[list[int], list[int]]:
        """The positions of kept and reduced axes: in the outer space, and in the reduced one."""
        if self.mode == Kind.MAP:
            return list(range(len(self.outer))), []
        if self.mode == Kind.REDUCE:
            return list(range(len(self.outer))), list(self.reduced)
        return [a for a in range(len(self.outer)) if a not in self.reduced], list(self.reduced)

    def _lanes(self, accesses: list[Access], axes: int) -> int:
        """4 where every access along the last axis is of four neighbours that lie as a vector, of
        at most 16 bytes."""
        if self._joins:
            return 1  # their parts are read one by one
        last = self.integers[axes - 1]
        most = _VECTOR_COST_IN_SOFTWARE if self.slow_to_compile else _VECTOR_COST
        if self.mode == Kind.MAP and self.cost > most:  # what comes from memory is not what counts
            return 1
        if last % 4 and (self.mode != Kind.MAP or axes > 1 or not _RAGGED <= last < _MOST_INDEX):
            return 1
        for access in accesses:
            if access.buffer < 0 or len(access.axes) < axes:
                continue
            if access.axes[-1] == FIXED:
                continue
            if access.axes[-1] != NEXT or self._item_size(access.buffer) > 4:
                return 1
            moves = [self.integers[m] for m in access.axes[:-1] if m >= 0]
            if access.offset != FIXED:
                moves.append(self.integers[access.offset])
            if NEXT in access.axes[:-1] or any(move % 4 for move in moves):
                return 1
        return 4

    def _item_size(self, buffer: int) -> int:
        node = self.leaves[buffer] if buffer < len(self.leaves) else self.node
        return node.dtype.itemsize

    # --- steps and places ------------------------------------------------------------------------

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _axis_place(self, axis: int, inner: bool) -> int:
        """An index along one axis of the loops, as an access without memory."""
        known = self._axis_places.get((axis, inner))
        if known is None:
            known = self._axis_places[axis, inner] = len(self.places)
            axes = range(len(self.inner if inner else self.outer))
            strides = tuple([int(each == axis) for each in axes])
            self.places.append(Place(-1, strides, 0, inner))
        return known

    def _access(
        self,
        node: Node,
        view: View | None,
        inner: bool,
        part: Node | None,
        first: tuple[int, ...] | None,
    ) -> int:
        offset = node.array.offset if node.array is not None else 0
        return self._place_of(self._buffer(node), view, node.shape, offset, inner, part, first)

    def _place_of(
        self,
        buffer: int,
        view: View | None,
        shape: tuple[int, ...],
        offset: int,
        inner: bool,
        part: Node | None = None,
        first: tuple[int, ...] | None = None,
    ) -> int:
        if view is None:
            place = Place(buffer, packed_strides(shape), offset, inner)
        else:
            place = Place(buffer, view.strides, offset + view.offset, inner, part)
        if first is not None:  # indices count from the beginning of the loops, not of the box
            back = sum(map(operator.mul, first, place.strides))
            place = place._replace(offset=place.offset - back)
        self.places.append(place)
        return len(self.places) - 1

    def _buffer(self, node: Node) -> int:
        identity = identity_of(node)
        known = self._buffers.get(identity)
        if known is None:
            if len(self.leaves) >= self.most:
                raise TooMuch
            known = self._buffers[identity] = len(self.leaves)
            self.leaves.append(node)
            self.types.append(node.dtype.short)
        return known


def identity_of(node: Node) -> int:
    """What tells memory apart: the buffer, or the node that will get one."""
    return id(node.array.buffer) if node.array is not None else id(node)
