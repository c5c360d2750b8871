"""Products of matrices in groups: what computes them, and the axes of their epilogues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.sizes import valued
from treadle.graph.node import PRODUCT, Node
from treadle.graph.views import merge_axes
from treadle.kernels.factors import Factor, Product
from treadle.kernels.product import route_of
from treadle.runtime.varying import varying

Integers = tuple[int, ...]


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


class MergedAxes(NamedTuple):
    """Loop axes: their extents, how many are the stack's, the rows' and the columns', and strides
    along them of each access."""

    extents: Integers
    counts: tuple[int, int, int]
    strides: list[Integers]


def merged_axes(shape: Integers, product: Product, strides: Sequence[Integers]) -> MergedAxes:
    """As few axes as possible, where those of the stack, of rows and of columns stay separate."""
    split = axes_of(shape, product)
    assert split is not None
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
