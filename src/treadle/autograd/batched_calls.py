"""Library kernels for all examples: rules for those that take stacks, and for all others
one call after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import bool_
from treadle.graph import views
from treadle.graph.calls import Call, CallOfSeveral, call, call_of_several
from treadle.graph.node import COPY, INDEX, VIEW, WRITE, Node, constant, view_of
from treadle.graph.views import View
from treadle.kernels import decompose, eigen, fourier, lapack, singular, triangular
from treadle.kernels.accumulate import accumulate
from treadle.kernels.convolve import convolve, convolve_transposed
from treadle.kernels.pool import max_pool, max_pool_with_places, mean_pool
from treadle.kernels.scatter import scattered
from treadle.kernels.sort import argsort, sort
from treadle.kernels.topk import topk
from treadle.tensor.advanced_indexing import index_dtype
from treadle.tensor.conversions import cast, number_as

# A source, and whether it has the examples' axis.
Source = tuple[Node, bool]


class ForAll(NamedTuple):
    """How a kernel works for all examples: sources, options, and whether the examples' axis was
    taken together with the next one."""

    sources: Sequence[Node]
    options: tuple[Any, ...]
    is_folded: bool = False


# None where there is a call for each example.
BatchingRule = Callable[[Node, Sequence[Source], int], ForAll | None]


def call_for_all(
    node: Node, siblings: Sequence[Node | None], sources: Sequence[Source], count: int
) -> Sequence[Node]:
    """The results of a node's kernel for all examples, those of its siblings with it; a sibling
    that is gone is None."""
    detail: Call | CallOfSeveral = node.detail
    shapes = [((0,), node.dtype) if each is None else (each.shape, each.dtype) for each in siblings]
    rule = RULES.get(detail.function)
    way = rule(node, sources, count) if rule is not None and count else None
    if way is None:
        return _one_by_one(node, siblings, sources, shapes, count)
    if not way.is_folded:
        results = [((count, *shape), dtype) for shape, dtype in shapes]
        return _called(detail, way.sources, results, way.options)
    results = [((count * shape[0], *shape[1:]), dtype) for shape, dtype in shapes]
    made = _called(detail, way.sources, results, way.options)
    return [
        view_of(each, views.whole((count, *shape)))
        for each, (shape, _) in zip(made, shapes, strict=True)
    ]


def _called(
    detail: Any, given: Sequence[Node], results: Sequence[Any], options: tuple[Any, ...]
) -> Sequence[Node]:
    if isinstance(detail, CallOfSeveral):
        return call_of_several(detail.function, given, results, options)
    ((shape, dtype),) = results
    return [call(detail.function, given, shape, dtype, options)]


def _one_by_one(
    node: Node,
    siblings: Sequence[Node | None],
    sources: Sequence[Source],
    shapes: Sequence[Any],
    count: int,
) -> Sequence[Node]:
    """A call for each example, and the stacked results."""
    stacks = [
        constant(number_as(0, dtype), (count, *shape), dtype, node.device)
        for shape, dtype in shapes
    ]
    for number in range(count):
        given = [_example(each, number) if has_axis else each for each, has_axis in sources]
        made = _called(node.detail, given, shapes, node.detail.options)
        for place, one in enumerate(made):
            if siblings[place] is None:
                continue
            before = stacks[place]
            seen = View(one.shape, views.whole(one.shape).strides, number * one.size)
            stacks[place] = Node(
                WRITE, (before, one), before.shape, before.dtype, before.device, seen
            )
    return stacks


def _example(node: Node, number: int) -> Node:
    shape = node.shape[1:]
    whole = views.whole(shape)
    size = node.size // node.shape[0]
    seen = view_of(node, View(shape, whole.strides, number * size))
    return Node(COPY, (seen,), shape, node.dtype, node.device)


# --- rules ---------------------------------------------------------------------------------------


def _with_axis(source: Source, count: int) -> Node:
    node, has_axis = source
    if not has_axis:
        view = views.whole(node.shape)
        node = view_of(node, View((count, *node.shape), (0, *view.strides), 0))
    if node.op == VIEW:
        return Node(COPY, (node,), node.shape, node.dtype, node.device)
    return node


def _by_rows(node: Node, sources: Sequence[Source], count: int) -> ForAll:
    """A rule for kernels that work along the last axis."""
    return ForAll([_with_axis(each, count) for each in sources], node.detail.options)


def _along(position: int) -> BatchingRule:
    """A rule for kernels that work along the axis that an option names."""

    def rule(node: Node, sources: Sequence[Source], count: int) -> ForAll:
        options = [*node.detail.options]
        if options[position] >= 0:
            options[position] += 1
        return ForAll([_with_axis(each, count) for each in sources], tuple(options))

    return rule


def _by_stacks(node: Node, sources: Sequence[Source], count: int) -> ForAll:
    """A rule for kernels whose arrays all have a stack along the first axis."""
    return ForAll([_folded(each, count) for each in sources], node.detail.options, True)


def _by_images(node: Node, sources: Sequence[Source], count: int) -> ForAll | None:
    """What has a stack along the first axis of its first array and of its result, where the others
    are weights: these are all examples', or there is a call for each."""
    first, *weights = sources
    if any(has_axis for _, has_axis in weights):
        return None
    given = [_folded(first, count), *[each for each, _ in weights]]
    return ForAll(given, node.detail.options, True)


def _folded(source: Source, count: int) -> Node:
    """The examples' axis and the next one as one."""
    whole = _with_axis(source, count)
    shape = (count * whole.shape[1], *whole.shape[2:])
    seen = view_of(whole, views.whole(shape))
    return Node(COPY, (seen,), shape, whole.dtype, whole.device)


def _scatter(node: Node, sources: Sequence[Source], count: int) -> ForAll:
    """A rule for kernels that write at flat indices."""
    target, places, values = (_with_axis(each, count) for each in sources)
    size = target.size // count
    if values.shape[1:] != places.shape[1:]:  # one number for all places
        step = (1,) + (0,) * (len(places.shape) - 1)
        values = view_of(values, View(places.shape, step, 0))
    given = [target, offset_places(places, size, target.size), values]
    return ForAll(given, node.detail.options)


def offset_places(places: Node, size: int, total: int) -> Node:
    """Flat places in one example's elements as places in those of all; -1 for those outside."""
    count, dtype, device = places.shape[0], index_dtype(total), places.device
    shape = places.shape
    inside = cast(places, dtype)
    number = Node(INDEX, (), (count,), dtype, device)
    still = (0,) * (len(shape) - 1)
    number = view_of(number, View(shape, (1, *still), 0))

    def op(name: str, *sources: Node, to: Any = dtype) -> Node:
        return Node(name, sources, shape, to, device)

    def number_of(value: int) -> Node:
        return constant(value, shape, dtype, device)

    start = op("multiply", number, number_of(size))
    low = op("less_equal", number_of(0), inside, to=bool_)
    high = op("less", inside, number_of(size), to=bool_)
    both = op("logical_and", low, high, to=bool_)
    return op("where", both, op("add", inside, start), number_of(-1))


_STACKS = (
    decompose.cholesky, decompose.det, decompose.qr, decompose.slogdet, decompose.solve, eigen.eigh,
    eigen.eigvalsh, lapack.eig, lapack.eigvals, singular.svd, singular.svdvals,
    triangular.solve_triangular,
)  # fmt: skip

RULES: dict[Any, BatchingRule] = {
    **dict.fromkeys((sort, argsort, topk), _by_rows),
    **dict.fromkeys(_STACKS, _by_stacks),
    **dict.fromkeys((max_pool, max_pool_with_places, mean_pool), _by_stacks),
    **dict.fromkeys((convolve, convolve_transposed), _by_images),
    accumulate: _along(1),
    fourier.transform: _along(0),
    fourier.transform_real: _along(0),
    fourier.transform_to_real: _along(0),
    scattered: _scatter,
}
