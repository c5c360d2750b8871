"""The derivative of attention: by the kernel library, or composed of operations.

The kernel library makes the weights again from what the forward pass noted of each query, in
registers or a slice of the scores at a time. A gradient of a mask, which is as large as all scores,
and gradients that are differentiated themselves are composed of operations, with the scores in
memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.autograd.derivative import Flow, tensor_of
from treadle.core.dtypes import bool_
from treadle.graph.calls import call_of_several
from treadle.graph.history import RESULT, History, recorded, recording
from treadle.kernels.attend_gradients import (
    attend_backward_by_fragments,
    derived_by_fragments,
)
from treadle.kernels.attend_products import attend_backward, scored_in
from treadle.kernels.device_code.keys import wide
from treadle.tensor.creation import zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.heads import AttentionOptions, laid_out
from treadle.tensor.functional.padded_texts import PackedRows, length_of
from treadle.tensor.manipulation import matrix_transpose, moveaxis
from treadle.tensor.products import matmul
from treadle.tensor.random.draws import kept_by
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node

_exp, _where = FUNCTIONS["exp"], FUNCTIONS["where"]
_INFINITY = float("inf")


class OfAttention:
    """Stores the operands, the result, the logarithms of sums, and the words of dropout."""

    name = "scaled_dot_product_attention"

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """All operands and the result."""
        return (*range(len(tracked)), RESULT)

    def backward(self, made: History, gradients: Sequence[Tensor | None]) -> Flow:
        """The gradients of query, key, value and perhaps a mask."""
        g, count = gradients[0], len(made.edges)
        assert g is not None
        operands = [tensor_of(made, position) for position in range(count)]
        if not g.size or not operands[1].shape[-2]:  # results are zeros without keys
            found = [zeros(x.shape, dtype=g.dtype, device=x.device) for x in operands]
        elif not recording.get() and (count == 3 or made.edges[3] is None):
            found = _by_kernels(g, operands, made)
        elif made.options.packed:
            found = _composed_of_texts(g, operands, made)
        else:
            numbers = count > 3 and made.edges[3] is not None
            found = _composed(g, operands, made.options, _kept(operands, made), numbers)
        return zip(made.edges, found, strict=False)


# --- by the kernel library -----------------------------------------------------------------------


def _by_kernels(g: Tensor, operands: Sequence[Tensor], made: History) -> list[Tensor]:
    options: AttentionOptions = made.options
    out, count = tensor_of(made, RESULT), len(operands)
    dtype, work = out.dtype, wide(out.dtype)
    nodes = [x._node for x in operands]
    sources, problem, own = laid_out(nodes, options)
    largest = max(node.size for node in sources)
    by_fragments = derived_by_fragments(g.device, dtype, problem, largest)
    if not by_fragments:
        dtype = scored_in(g.device, dtype)
        nodes = [x.to(dtype)._node for x in operands[:3]] + nodes[3:]
        sources, problem, own = laid_out(nodes, options, by_products=True)
    sums = total(g.to(work) * out.to(work), axis=-1)
    more = [made.value(count + 1)] if options.dropout else []
    query, key, value, *mask = sources
    given = (query, key, value, g.to(dtype)._node, made.value(count), sums._node, *mask, *more)
    rows = (problem.queries, problem.depth), (problem.keys, problem.depth)
    # What is summed further, for operands with fewer heads, is not rounded before.
    alike = all(math.prod(x.shape[:-2]) == math.prod(own) for x in operands[1:3])
    result = dtype if by_fragments and alike else work
    results = [
        ((*problem.heads, *rows[0]), dtype),
        ((*problem.own, *rows[1]), result),
        ((*problem.own, problem.keys, problem.width), result),
    ]
    if by_fragments:
        by, choices = attend_backward_by_fragments, (problem, result)
        made_of_them = call_of_several(by, given, results, choices)
    else:
        made_of_them = call_of_several(attend_backward, given, results, (problem,))
    front = options.split_front
    shapes = [(*front, *rows[0]), (*own, *rows[1]), (*own, problem.keys, problem.width)]
    split = [from_node(x).reshape(shape) for x, shape in zip(made_of_them, shapes, strict=True)]
    return [_gathered(each, x, options) for each, x in zip(split, operands, strict=False)]


# --- composed ------------------------------------------------------------------------------------


def _kept(operands: Sequence[Tensor], made: History) -> Tensor | None:
    """Which weights dropout keeps, of all queries and keys."""
    options: AttentionOptions = made.options
    if not options.dropout:
        return None
    shape = *options.front, operands[0].shape[-2], operands[1].shape[-2]
    return kept_by(made.value(len(operands) + 1), shape, 1.0 - options.dropout)


def _composed(
    g: Tensor, operands: Sequence[Tensor], options: AttentionOptions, kept: Tensor | None,
    of_mask: bool,
) -> list[Tensor]:  # fmt: skip
    """The gradients of query, key and value, and if wanted that of the mask."""
    work = wide(operands[0].dtype)
    q, k, v, *masks = (_split(x, options) for x in operands)
    q, k, v = (x.to(work) for x in (q, k, v))
    queries, keys = q.shape[-2], k.shape[-2]
    g = g.to(work).reshape((*options.split_front, *g.shape[-2:]))
    scores = matmul(q, matrix_transpose(k)) * options.scale
    rows, columns = arange(queries, device=g.device).reshape((-1, 1)), arange(keys, device=g.device)
    seen: Any = None
    if options.left is not None:
        seen = columns >= rows - options.left
    if options.right is not None:
        near = columns <= rows + options.right
        seen = near if seen is None else seen & near
    for mask in masks:
        if mask.dtype is bool_:
            seen = mask if seen is None else seen & mask
        else:
            scores = scores + mask.to(work)
    if seen is not None:
        scores = _where(seen, scores, -_INFINITY)
    with recorded(False):
        top = largest(scores, axis=-1, keepdims=True)
        top = _where(top == -_INFINITY, 0.0, top)
    powers = _exp(scores - top)
    sums = total(powers, axis=-1, keepdims=True)
    weights = powers / _where(sums == 0, 1.0, sums)
    through: Any = None
    if kept is not None:
        keep = 1.0 - options.dropout
        through = kept.reshape(scores.shape).to(work) * (1.0 / keep if keep else 0.0)
    of_weights = matmul(g, matrix_transpose(v))
    if through is not None:
        of_weights = of_weights * through
    slopes = weights * (of_weights - total(weights * of_weights, axis=-1, keepdims=True))
    found = [
        matmul(slopes, k) * options.scale,
        matmul(matrix_transpose(slopes), q) * options.scale,
        matmul(matrix_transpose(weights if through is None else weights * through), g),
    ]
    if of_mask:
        found.append(slopes)
    return [_gathered(each, x, options) for each, x in zip(found, operands, strict=False)]


def _composed_of_texts(g: Tensor, operands: Sequence[Tensor], made: History) -> list[Tensor]:
    """The same of packed texts, padded to one length."""
    options: AttentionOptions = made.options
    *given, starts, key_starts = operands
    rows = PackedRows.of(starts, given[0].shape[-2])
    columns = PackedRows.of(key_starts, given[1].shape[-2])
    sides = rows, columns, columns
    longest = length_of((rows, columns), options.longest)
    front = len(options.front)
    padded = [
        side.padded(x, longest, front) for side, x in zip((*sides, rows), (*given, g), strict=True)
    ]
    of_queries, _ = rows.rows(longest)
    of_keys, seen = columns.rows(longest)
    kept = _kept(operands, made)
    if kept is not None:
        kept = moveaxis(kept[..., of_queries[:, :, None], of_keys[:, None, :]], -3, 0)
    mask = seen.reshape((len(seen), *(1,) * (front + 1), longest))
    inner = options._replace(front=(len(seen), *options.front), packed=False)
    found = _composed(padded[3], (*padded[:3], mask), inner, kept, False)
    made_of_them = [side.packed(x, longest) for side, x in zip(sides, found, strict=False)]
    # Axes in front that an operand does not have were put behind that of the texts, of extent 1.
    return [x.reshape(own.shape) for x, own in zip(made_of_them, given, strict=True)]


# --- axes of heads -------------------------------------------------------------------------------


def _split(x: Tensor, options: AttentionOptions) -> Tensor:
    """An operand with split heads."""
    return x.reshape(_split_shape(x, options)) if options.heads else x


def _split_shape(x: Tensor, options: AttentionOptions) -> tuple[int, ...]:
    own = x.shape[-3] if x.ndim > 2 else 1
    return (*x.shape[:-3], *options.split(own), *x.shape[-2:])


def _gathered(gradient: Tensor, x: Tensor, options: AttentionOptions) -> Tensor:
    """A gradient with split heads in an operand's shape: the sum where the operand was shared."""
    shape = _split_shape(x, options) if options.heads else x.shape
    extra = gradient.ndim - len(shape)
    axes = [
        axis
        for axis, extent in enumerate(gradient.shape)
        if axis < extra or (shape[axis - extra] == 1 and extent != 1)
    ]
    if axes:
        gradient = total(gradient, axis=tuple(axes))
    return gradient.reshape(x.shape)


DERIVATIVES = {OfAttention.name: OfAttention()}
