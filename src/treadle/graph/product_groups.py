"""Products of matrices in groups: what computes them, and the axes of their epilogues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.sizes import valued
from treadle.graph.node import PRODUCT, Node
from treadle.graph.operations import cost_of
from treadle.graph.program import Step
from treadle.graph.views import View, axes_within, merge_axes
from treadle.kernels.factors import Factor, Product
from treadle.kernels.product import by_groups, route_of
from treadle.runtime.varying import varying

Integers = tuple[int, ...]
# Operations of an epilogue, beside an addition, up to which groups of threads do it: one function.
_MOST_OF_GROUPS = 30
_NOT_COMPUTED = frozenset({"load", "scalar", "product"})


def is_of_a_library(node: Node) -> bool:
    """Whether a node is a product that a library, or a kernel without an epilogue, computes."""
    return node.op == PRODUCT and why_kept(node) is not None


def why_kept(node: Node) -> str | None:
    """Why a product is computed by itself, wherever it is read; None if it need not be."""
    # For other sizes another route may be quicker, but each computes them.
    detail = node.detail if varying.get() is not None else valued(node.detail)
    route = route_of(node.device, node.dtype, detail)
    if route in ("host", "vendor"):
        return "a library computes it"
    return "it is a kernel of its own" if node.device.traits.serial_threads else None


def why_apart(node: Node, steps: Sequence[Step]) -> str | None:
    """Why a product whose epilogue is among these steps is computed without it; None if it may have
    it. Groups of threads with few warps do long epilogues slowly, while no tiles are multiplied."""
    own = [cost_of(op, short, of) for op, _, short, of in steps if op not in _NOT_COMPUTED]
    if sum(own) <= _MOST_OF_GROUPS or not by_groups(node.device, node.dtype, valued(node.detail)):
        return None
    return "its epilogue takes longer than storing it"


def axes_of(shape: tuple[int, ...], product: Product) -> tuple[slice, slice, slice] | None:
    """Which axes of a shape are the stack's, the rows' and the columns' of a product, whose
    elements it has in order; None if there are axes that are parts of two of these."""
    ends = [len(shape)]
    for wanted in (product.columns, product.rows):
        at, size = ends[-1], 1
        while size < wanted and at > 0:
            at -= 1
            size *= shape[at]
        if size != wanted:
            return None
        ends.append(at)
    return slice(0, ends[2]), slice(ends[2], ends[1]), slice(ends[1], ends[0])


class FactorAxes(NamedTuple):
    """The axes over which a factor is computed: the view of it that has them, and how many are the
    stack's, those of its lines and the inner ones."""

    view: View
    counts: tuple[int, int, int]

    @property
    def split(self) -> tuple[slice, slice, slice]:
        """Which axes these are."""
        stack, lines, inner = self.counts
        return (
            slice(0, stack),
            slice(stack, stack + lines),
            slice(stack + lines, stack + lines + inner),
        )


def factor_axes(shape: Integers, product: Product, position: int) -> FactorAxes:
    """The axes of a factor of this shape. Where an axis of the product is several of the factor's
    in order, as a row that consists of blocks, it is split into these, so that views of what the
    factor is made of are followed further."""
    factor = (product.first, product.second)[position]
    lines = (product.rows, product.columns)[position]
    extents: Integers = ()
    strides: Integers = ()
    counts: list[int] = []
    parts = [(product.batch, factor.batch), ((lines,), (factor.line,))]
    for own, moves in [*parts, ((product.inner,), (factor.inner,))]:
        before = len(extents)
        for extent, stride in zip(own, moves, strict=True):
            found = axes_within(shape, extent, stride)
            extents += found[0]
            strides += found[1]
        counts.append(len(extents) - before)
    view = View(extents, strides, factor.offset)
    return FactorAxes(view, (counts[0], counts[1], counts[2]))


class MergedAxes(NamedTuple):
    """Loop axes: their extents, how many are the stack's, the rows' and the columns', and strides
    along them of each access. Or a factor's: the stack's, those of its lines and the inner ones."""

    extents: Integers
    counts: tuple[int, int, int]
    strides: list[Integers]


def merged_axes(
    shape: Integers, split: tuple[slice, slice, slice], strides: Sequence[Integers]
) -> MergedAxes:
    """As few axes as possible, where the three parts of the axes stay separate."""
    extents: Integers = ()
    counts = []
    found: list[Integers] = [()] * len(strides)
    for part in split:
        if not shape[part]:
            counts.append(0)
            continue
        merged, steps = merge_axes(shape[part], [each[part] for each in strides])
        extents += merged
        counts.append(len(merged))
        found = [before + after for before, after in zip(found, steps, strict=True)]
    return MergedAxes(extents, (counts[0], counts[1], counts[2]), found)


def placed(product: Product, sources: Sequence[Node]) -> Product:
    """The product with its factors where the sources' arrays lie."""

    def of(factor: Factor, source: Node) -> Factor:
        offset = source.array.offset if source.array is not None else 0
        return factor._replace(offset=factor.offset + offset)

    first, second = sources
    return product._replace(first=of(product.first, first), second=of(product.second, second))
