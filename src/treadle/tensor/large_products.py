"""Products of matrices larger than one binding of a kernel, computed in chunks. Each chunk is a
product by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.graph.node import COPY, Node, base_of, view_of
from treadle.graph.views import slice_axis, whole
from treadle.tensor.assembly import concat
from treadle.tensor.conversions import cast
from treadle.tensor.creation import astype
from treadle.tensor.tensor import Tensor

_Names = Sequence[Hashable]  # of the axes of an array
Contract = Callable[[tuple[Node, _Names], tuple[Node, _Names], _Names], Tensor]
_HALVES = (float16, bfloat16)
_STEP = 64  # the extent of a chunk is a multiple, where it can be


class _Named(NamedTuple):
    """An array whose axes have names."""

    node: Node
    names: _Names


def in_chunks(
    first: tuple[Node, _Names], second: tuple[Node, _Names], kept: _Names, contracted: Contract
) -> Tensor:
    """`contraction.contracted` in chunks along the longest axes of the arrays that are too large:
    first axes of the result, whose chunks are joined, then summed axes, whose chunks are added.
    """
    operands = (_Named(*first), _Named(*second))
    limit = _limit(operands[0].node)
    sizes: dict[object, int] = {}
    for node, names in operands:
        for name, extent in zip(names, node.shape, strict=True):
            sizes[name] = max(sizes.get(name, 1), extent)
    everything = [*map(_varying_names, operands), [name for name in kept if sizes[name] > 1]]
    largest = max(everything, key=lambda names: math.prod(sizes[name] for name in names))
    if math.prod(sizes[name] for name in largest) <= limit:
        one, other = map(_copied, operands)
        return contracted(one, other, kept)
    name = max(largest, key=lambda name: (name in kept, sizes[name]))
    half = sizes[name] // 2
    half = -(-half // _STEP) * _STEP if half > _STEP else half
    if name not in kept and operands[0].node.dtype in _HALVES:
        return _summed_in_float32(operands, kept, contracted)
    parts = [
        in_chunks(
            _part(operands[0], name, *part), _part(operands[1], name, *part), kept, contracted
        )
        for part in ((0, half), (half, sizes[name] - half))
    ]
    if name not in kept:
        return parts[0] + parts[1]
    return concat(parts, axis=kept.index(name))


def _limit(node: Node) -> int:
    return node.device.limits.max_binding_size // node.dtype.itemsize


def _varying_names(operand: _Named) -> _Names:
    """The names of axes that are not broadcast."""
    _, view = base_of(operand.node)
    axes = zip(operand.names, view.shape, view.strides, strict=True)
    return [name for name, extent, step in axes if extent > 1 and step]


def _copied(operand: _Named) -> tuple[Node, _Names]:
    """An array whose base fits into one binding: a copy if it is a view of a larger one."""
    node, names = operand
    base, _ = base_of(node)
    if base.size > _limit(node):
        node = Node(COPY, (node,), node.shape, node.dtype, node.device)
    return node, names


def _part(operand: _Named, name: object, start: int, count: int) -> tuple[Node, _Names]:
    """`count` elements from `start` on along an axis, if its extent is not 1."""
    node, names = operand
    if name not in names or node.shape[names.index(name)] == 1:
        return node, names
    view = slice_axis(whole(node.shape), names.index(name), start, 1, count)
    return view_of(node, view), names


def _summed_in_float32(
    operands: tuple[_Named, _Named], kept: _Names, contracted: Contract
) -> Tensor:
    """The sum in float32, which is rounded once, at the end."""
    dtype: DType = operands[0].node.dtype
    one, other = [(cast(node, float32), names) for node, names in operands]
    return astype(in_chunks(one, other, kept, contracted), dtype)
