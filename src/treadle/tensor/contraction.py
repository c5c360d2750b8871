"""Contractions: products of two arrays whose axes have names, summed along some of them.

Axes of the same name are aligned; those that the result lacks are summed. If merging axes makes it
a product of matrices, it becomes a PRODUCT node, which reads both arrays in place, whatever their
strides. Everything else, such as products of vectors, is one fused kernel: a broadcast product and
its sum. float16 and bfloat16 are accumulated in float32.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from treadle.core.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from treadle.core.recent_cache import RecentCache
from treadle.graph import history as histories
from treadle.graph.calls import call
from treadle.graph.node import PRODUCT, REDUCE, VIEW, Node, base_of, constant, view_of
from treadle.graph.placeholders import record_composite, within
from treadle.graph.views import View, axes_within, merge_axes, whole
from treadle.kernels.device_code.matrix_product import MOST_BATCHES
from treadle.kernels.factors import TF32, Factor, Product
from treadle.kernels.product import Route, rounds_to_tf32, route_of, turned_first
from treadle.kernels.transposed_copy import transposed, turning_of
from treadle.runtime import settings
from treadle.runtime.arrays import packed_strides
from treadle.runtime.varying import varying
from treadle.tensor.conversions import cast, number_as
from treadle.tensor.large_products import in_chunks
from treadle.tensor.tensor import Tensor, from_node

_HALVES = (float16, bfloat16)
_BYTES = (int8, uint8)
_WORD = 4  # bytes
_OF_BYTES = (int16, int32)  # results of products of bytes that are not bytes themselves
_HAVE_BYTES = (int16, int32, int64)
_LEAST_INNER = 8  # extent of the inner axis from which a product of matrices pays
_LEAST_WORK = 1 << 12  # multiplications
_SEEN_THROUGH = (VIEW, "cast")  # operations whose sources are multiplied
Name = Hashable
Names = Sequence[Name]


def contracted(first: tuple[Node, Names], second: tuple[Node, Names], kept: Names) -> Tensor:
    """The products of the elements of two nodes of one dtype whose axes have names, summed along
    the names that are not kept. Axes of the same name have the same extent, or extent 1."""
    if (first[0].history is None and second[0].history is None) or not histories.recording.get():
        made = _contracted(first, second, kept)
    else:
        first = _without_broadcast(first, second)
        second = _without_broadcast(
            second, first
        )  # an axis broadcast in both stays so in the second
        with histories.recorded(False):
            made = _contracted(first, second, kept)
        names = tuple(first[1]), tuple(second[1]), tuple(kept)
        derivative = histories.derivatives["contracted"]
        record_composite(derivative, [made._cell.value], [first[0], second[0]], names)
    if (traced := within.get()) is not None:
        traced.contractions[made._cell.value] = first, second, kept
    return made


def is_fused(first: Node, second: Node) -> bool:
    """Whether the product of two matrices that are in memory is a sum, which is fused."""
    one, other = first.shape, second.shape
    if len(one) != 2 or len(other) != 2:
        return False
    if one[1] >= _LEAST_INNER and one[0] * one[1] * other[1] >= _LEAST_WORK:
        return False
    return base_of(first)[0].array is not None and base_of(second)[0].array is not None


def _without_broadcast(
    operand: tuple[Node, Names], other: tuple[Node, Names]
) -> tuple[Node, Names]:
    """An operand without the broadcast axes that the other operand's extents imply, such as those
    of weights expanded along a batch: its gradient is then summed where it is computed."""
    node, names = operand
    made = node.history
    if node.op != VIEW or made is None or made.derivative is not _of_views():
        return operand  # not a view, or one at a boundary of the tape
    if not node.size:
        return operand  # a stride of 0 without broadcasting
    view: View = node.detail
    extents = dict(zip(other[1], other[0].shape, strict=True))
    shape = tuple(
        [
            1 if step == 0 and extents.get(name, 1) == extent else extent
            for name, extent, step in zip(names, view.shape, view.strides, strict=True)
        ]
    )
    if shape == view.shape:
        return operand
    return view_of(node.sources[0], View(shape, view.strides, view.offset)), names


def _of_views() -> histories.Derivative:
    return histories.derivatives[VIEW]


def _contracted(first: tuple[Node, Names], second: tuple[Node, Names], kept: Names) -> Tensor:
    (left, left_names), (right, right_names) = first, second
    dtype = left.dtype
    key = _key(first, second, kept)
    known = None if key is None else _known.get(key)
    if known is not None:
        nodes = (right, left) if known.plan.is_swapped else (left, right)
        return from_node(_multiplied(known._replace(nodes=nodes), dtype))
    sizes = dict(zip(left_names, left.shape, strict=True))
    for name, extent in zip(right_names, right.shape, strict=True):
        if sizes.get(name, 1) == 1:
            sizes[name] = extent
    if 0 in sizes.values():
        result = tuple([sizes[name] for name in kept])
        return from_node(constant(number_as(0, dtype), result, dtype, left.device))
    matrices = _matrices(first, second, tuple(kept), dtype)
    if matrices is None:
        return from_node(_fused(first, second, kept, sizes, dtype))
    if matrices.made.kind == "complex" and not matrices.route:
        return _complex_product(first, second, kept, dtype)
    if matrices.are_too_large:
        return in_chunks(first, second, kept, contracted)
    if key is not None:
        _known[key] = matrices._replace(nodes=())
    return from_node(_multiplied(matrices, dtype))


def _complex_product(
    first: tuple[Node, Names], second: tuple[Node, Names], kept: Names, dtype: DType
) -> Tensor:
    """A complex product as four real ones, where kernels multiply real matrices only."""

    def part(op: str, operand: tuple[Node, Names]) -> tuple[Node, Names]:
        node, names = operand
        return Node(op, (node,), node.shape, dtype.component, node.device), names

    (a, b), (c, d) = [(part("real", operand), part("imag", operand)) for operand in (first, second)]
    real = contracted(a, c, kept) - contracted(b, d, kept)
    imaginary = contracted(a, d, kept) + contracted(b, c, kept)
    roles = (real._node, imaginary._node)
    return from_node(Node("complex", roles, real.shape, dtype, first[0].device))


# --- fused with a sum ----------------------------------------------------------------------------


def _fused(
    first: tuple[Node, Names],
    second: tuple[Node, Names],
    kept: Names,
    sizes: Mapping[Name, int],
    dtype: DType,
) -> Node:
    splits = _splits((first, second), sizes)
    summed = [name for name in sizes if name not in kept]
    axes = [(name, extent) for name in (*kept, *summed) for extent in splits[name]]
    device = first[0].device
    shape = tuple([extent for _, extent in axes])
    work = float32 if dtype in _HALVES else dtype
    operands = tuple([cast(_along(node, names, axes), work) for node, names in (first, second)])
    logical = dtype is bool_
    node = Node("logical_and" if logical else "multiply", operands, shape, work, device)
    before = sum(len(splits[name]) for name in kept)
    if summed:
        detail = ("any" if logical else "sum", tuple(range(before, len(axes))), False)
        node = Node(REDUCE, (node,), shape[:before], work, device, detail)
    if before > len(kept):
        node = view_of(node, whole(tuple([sizes[name] for name in kept])))
    return cast(node, dtype)


def _splits(
    operands: Sequence[tuple[Node, Names]], sizes: Mapping[Name, int]
) -> dict[Name, tuple[int, ...]]:
    """The extents of each name. Of an axis that passes through several axes of a pending operand,
    as a row that consists of blocks, these are several: what the operand is made of can be seen in
    them, and need not be stored first."""
    found: dict[Name, tuple[int, ...]] = {name: (extent,) for name, extent in sizes.items()}
    for node, names in operands:
        base, view = base_of(node)
        if base.array is None:
            for name, extent, step in zip(names, view.shape, view.strides, strict=True):
                if extent == sizes[name] and len(found[name]) == 1:
                    found[name] = axes_within(base.shape, extent, step)[0]
    return found


def _along(node: Node, names: Names, axes: Sequence[tuple[Name, int]]) -> Node:
    """A node broadcast along the axes that it lacks. A name may have several axes, one after the
    other."""
    steps = {
        name: 0 if extent == 1 else step
        for name, extent, step in zip(names, node.shape, packed_strides(node.shape), strict=True)
    }
    strides: list[int] = []
    for name, extent in reversed(axes):
        step = steps.get(name, 0)
        strides.append(step)
        steps[name] = step * extent
    shape = tuple([extent for _, extent in axes])
    return view_of(node, View(shape, tuple(reversed(strides)), 0))


# --- products of matrices ------------------------------------------------------------------------


class _Matrices(NamedTuple):
    """The factors as views of memory, the first one first (none in what is remembered), their
    dtypes and that of the result, and the plan."""

    nodes: tuple[Node, ...]
    works: tuple[DType, DType]
    made: DType
    plan: _Plan
    route: Route | None

    @property
    def are_too_large(self) -> bool:
        """Whether a factor or the result is larger than one binding of a kernel."""
        most = self.nodes[0].device.limits.max_binding_size // self.made.itemsize
        one, other = self.nodes
        return max(one.size, other.size, math.prod(self.plan.shape)) > most


def _matrices(
    first: tuple[Node, Names], second: tuple[Node, Names], kept: tuple[Name, ...], dtype: DType
) -> _Matrices | None:
    """The contraction as a product of matrices; None if it is not one, or if that does not pay."""
    if dtype is bool_:
        return None
    made = float32 if dtype in _HALVES and first[0].device.traits.host_memory else dtype
    works = _bytes_of(first, second, dtype) or (made, made)
    (left, left_view), (right, right_view) = (
        _base_in_dtype(first[0], works[0]),
        _base_in_dtype(second[0], works[1]),
    )
    one, other = (
        _NamedView(tuple(first[1]), left_view),
        _NamedView(tuple(second[1]), right_view),
    )
    plan = _planned(one, other, kept)
    if plan is None:
        return None
    if plan.is_swapped:
        works = works[1], works[0]
    factors = ""
    if works != (made, made):
        factors = "".join(dict.fromkeys(work.short for work in works))
    elif dtype is float32 and rounds_to_tf32(left.device):
        factors = TF32
    plan = plan.of(factors)
    route = route_of(left.device, made, plan.product)
    if route == "kernel" and any(turn := turned_first(left.device, works[0], plan.product)):
        plan = _planned(one, other, kept, turn)
        assert plan is not None, "copies can always be multiplied"
        plan = plan.of(factors)
    nodes = (right, left) if plan.is_swapped else (left, right)
    return _Matrices(nodes, works, made, plan, route)


def _multiplied(matrices: _Matrices, dtype: DType) -> Node:
    """The node of a product of matrices, viewed with the wanted axes."""
    nodes, works, made, plan, _ = matrices
    sources = tuple(
        [
            cast(node, work) if view is None else _copy_of(node, view, work)
            for node, view, work in zip(nodes, plan.copies, works, strict=True)
        ]
    )
    node = Node(PRODUCT, sources, plan.shape, made, nodes[0].device, plan.product)
    node = cast(node, dtype)
    return node if plan.result_view is None else view_of(node, plan.result_view)


def _copy_of(node: Node, view: View, work: DType) -> Node:
    """What a factor is a copy of: a view, or a transposed copy by the kernel for that."""
    array = node.array
    if array is None or node.dtype is not work or array.strides != packed_strides(array.shape):
        return cast(view_of(node, view), work)
    turning = turning_of(work, *view)
    ends_a_word = (array.offset + array.size) * work.itemsize % _WORD == 0
    if turning is None or not ends_a_word or node.device.traits.serial_threads:
        return view_of(node, view)
    shape = (turning.matrices, turning.lines, turning.inner)
    made = call(transposed, (node,), shape, work, (turning,))
    return made if made.shape == view.shape else view_of(made, whole(view.shape))


def _bytes_of(
    first: tuple[Node, Names], second: tuple[Node, Names], dtype: DType
) -> tuple[DType, DType] | None:
    """The dtypes of 8-bit integers that both factors are before they are converted to the dtype of
    the result, if neither is in memory: their products are summed in 32 bits. None if they are not.
    """
    if dtype not in _OF_BYTES:
        return None
    one, other = (_before_casts(base_of(node)[0]).dtype for node, _ in (first, second))
    return (one, other) if one in _BYTES and other in _BYTES else None


def _before_casts(node: Node) -> Node:
    """What a node is before it is converted, not in memory, to dtypes that have all bytes."""
    while node.op == "cast" and node.array is None and node.dtype in _HAVE_BYTES:
        node = node.sources[0]
    return node


def _base_in_dtype(node: Node, work: DType) -> tuple[Node, View]:
    """The base of a node in a dtype; only the node's own elements if they are few of those that
    would be converted."""
    base, view = base_of(node)
    if node.dtype is not work and work in _BYTES:
        base = _before_casts(base)  # of the same shape
        if view == whole(base.shape):
            base, view = base_of(base)
    if node.dtype is not work and base.size > node.size:
        return cast(node, work), whole(node.shape)
    return base, view


# How arrays in their own layout are multiplied, by their shapes.
_known: RecentCache[Any, _Matrices] = RecentCache(1024)


def _key(first: tuple[Node, Names], second: tuple[Node, Names], kept: Names) -> Any:
    """What a product of matrices depends on; None where that is more than shapes and dtypes."""
    (left, left_names), (right, right_names) = first, second
    if left.op in _SEEN_THROUGH or right.op in _SEEN_THROUGH or varying.get() is not None:
        return None
    names = tuple(left_names), tuple(right_names), tuple(kept)
    precision = settings.float32_products
    return names, left.shape, right.shape, left.dtype.short, left.device, precision


class _NamedView(NamedTuple):
    """An array's axes by name, with their strides."""

    names: tuple[Name, ...]
    view: View


class _Operand(NamedTuple):
    """A factor: strides along the names where they are not 0. If it is a copy, the view that it
    copies."""

    steps: Mapping[Name, int]
    offset: int
    copy: View | None = None


class _Roles(NamedTuple):
    """The role of each name in a product of matrices, in the result's order."""

    batch: list[Name]
    rows: list[Name]
    columns: list[Name]
    inner: list[Name]


class _Plan(NamedTuple):
    """How two arrays are multiplied as matrices: which of them are copied first, whether the second
    array is the first factor (`copies` are in the factors' order), the shape of the result, and the
    view of it with the wanted axes (None if it has these)."""

    product: Product
    copies: tuple[View | None, View | None]
    is_swapped: bool
    shape: tuple[int, ...]
    result_view: View | None

    def of(self, factors: str) -> _Plan:
        """The plan for other factors (`Product.factors`)."""
        return self._replace(product=self.product._replace(factors=factors)) if factors else self


@lru_cache(4096)
def _planned(
    first: _NamedView,
    second: _NamedView,
    kept: tuple[Name, ...],
    turn: tuple[bool, bool] = (False, False),
) -> _Plan | None:
    """The plan; factors that are to be turned are copied with the inner axis last."""
    left, right = _operand(first), _operand(second)
    sizes: dict[Name, int] = {}
    for names, view in (first, second):
        for name, extent in zip(names, view.shape, strict=True):
            if sizes.get(name, 1) == 1:
                sizes[name] = extent
    roles = _roles(left, right, kept, sizes)
    if roles is None:
        return None
    # With the factors exchanged the result may already have the wanted layout.
    is_swapped = max(map(kept.index, roles.columns)) < min(map(kept.index, roles.rows))
    if is_swapped:
        left, right = right, left
        roles = roles._replace(rows=roles.columns, columns=roles.rows)
    else:
        roles = _stacked(roles, kept)
    laid_out = _laid_out(left, right, roles, sizes, turn)
    if laid_out is None:
        return None
    product, copies = laid_out
    order = [*roles.batch, *roles.rows, *roles.columns]
    shape = tuple([sizes[name] for name in order])
    return _Plan(product, copies, is_swapped, shape, _result_view(shape, order, kept, sizes))


def _operand(seen: _NamedView) -> _Operand:
    names, view = seen
    steps = zip(names, view.shape, view.strides, strict=True)
    return _Operand({name: step for name, extent, step in steps if extent != 1}, view.offset)


def _roles(
    left: _Operand, right: _Operand, kept: Names, sizes: Mapping[Name, int]
) -> _Roles | None:
    moving = [name for name in sizes if sizes[name] != 1]
    wanted = [name for name in kept if sizes[name] != 1]
    if any(name not in wanted and (name in left.steps) != (name in right.steps) for name in moving):
        return None  # an axis of only one of them is summed
    both = [name for name in wanted if name in left.steps and name in right.steps]
    rows = [name for name in wanted if name in left.steps and name not in right.steps]
    columns = [name for name in wanted if name in right.steps and name not in left.steps]
    inner = [name for name in moving if name not in wanted]
    deep = math.prod(sizes[name] for name in inner)
    work = deep * math.prod(sizes[name] for name in (*rows, *columns))
    if not rows or not columns or deep < _LEAST_INNER or work < _LEAST_WORK:
        return None
    return _Roles(both, rows, columns, inner)


def _stacked(roles: _Roles, kept: Names) -> _Roles:
    """Column axes in front of all row axes become batch axes, with the same first factor."""
    start = min(map(kept.index, roles.rows))
    outer = [name for name in roles.columns if kept.index(name) < start]
    batch = sorted((*roles.batch, *outer), key=kept.index)
    return roles._replace(batch=batch, columns=roles.columns[len(outer) :])


def _laid_out(
    left: _Operand,
    right: _Operand,
    roles: _Roles,
    sizes: Mapping[Name, int],
    turn: tuple[bool, bool],
) -> tuple[Product, tuple[View | None, View | None]] | None:
    """The product of two factors in place, or of copies where their strides do not fit."""
    if turn[0]:
        left = _copied(left, [*roles.batch, *roles.rows, *roles.inner], sizes)
    if turn[1]:
        right = _copied(right, [*roles.batch, *roles.columns, *roles.inner], sizes)
    copied_left = _copied(left, [*roles.batch, *roles.rows, *roles.inner], sizes)
    copied_right = _copied(right, [*roles.batch, *roles.inner, *roles.columns], sizes)
    for one in (left, copied_left):
        for other in (right, copied_right):
            product = _as_matrices(one, other, roles, sizes)
            if product is not None:
                return product, (one.copy, other.copy)
    return None


def _copied(operand: _Operand, names: Names, sizes: Mapping[Name, int]) -> _Operand:
    """A contiguous factor with its axes in the order of these names."""
    mine = [name for name in names if name in operand.steps]
    shape = tuple([sizes[name] for name in mine])
    view = View(shape, tuple([operand.steps[name] for name in mine]), operand.offset)
    return _Operand(dict(zip(mine, packed_strides(shape), strict=True)), 0, view)


def _as_matrices(
    left: _Operand, right: _Operand, roles: _Roles, sizes: Mapping[Name, int]
) -> Product | None:
    """The product, if one stride each for rows, columns and the inner axis expresses it."""
    inner, (step, other) = _merged(roles.inner, (left, right), sizes)
    columns, (across,) = _merged(roles.columns, (right,), sizes)
    lines, (down,) = _merged(roles.rows, (left,), sizes)
    if len(inner) > 1 or len(columns) > 1:
        return None
    # Rows that need several strides become a batch of matrices.
    batch, steps = _merged(roles.batch, (left, right), sizes)
    extents = (*batch, *lines[:-1])
    if len(extents) > MOST_BATCHES:
        return None
    first = Factor((*steps[0], *down[:-1]), down[-1], step[0], left.offset)
    second = Factor((*steps[1], *[0] * len(lines[:-1])), across[0], other[0], right.offset)
    return Product(extents, lines[-1], columns[0], inner[0], first, second)


def _merged(
    names: Names, operands: Sequence[_Operand], sizes: Mapping[Name, int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The axes merged into as few as possible: their extents, and the strides in each factor."""
    if not names:
        return (), [()] * len(operands)
    shape = tuple([sizes[name] for name in names])
    return merge_axes(
        shape, [tuple([one.steps.get(name, 0) for name in names]) for one in operands]
    )


def _result_view(
    shape: tuple[int, ...], names: Names, kept: Names, sizes: Mapping[Name, int]
) -> View | None:
    """The view with the kept axes of an array whose axes have names; None if it has exactly
    these."""
    wanted = tuple([sizes[name] for name in kept])
    steps = dict(zip(names, packed_strides(shape), strict=True))
    view = View(wanted, tuple([steps.get(name, 0) for name in kept]), 0)
    if wanted == shape and view.strides == packed_strides(shape):
        return None
    packed = zip(wanted, view.strides, packed_strides(wanted), strict=True)
    return whole(wanted) if all(n == 1 or s == p for n, s, p in packed) else view
