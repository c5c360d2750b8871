"""Derivatives of products of arrays whose axes have names: products again."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.autograd.rules.elementwise import conj
from treadle.graph.history import History
from treadle.tensor.contraction import contracted
from treadle.tensor.tensor import Tensor

NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {}


def _of_contraction(g: Tensor, made: History) -> tuple[Any, Any]:
    left_names, right_names, kept = made.options
    left = right = None
    if made.edges[0] is not None:
        left = _factor(g, kept, tensor_of(made, 1), right_names, left_names, made.edges[0].shape)
    if made.edges[1] is not None:
        right = _factor(g, kept, tensor_of(made, 0), left_names, right_names, made.edges[1].shape)
    return left, right


def _factor(
    g: Tensor, kept: Any, other: Tensor, other_names: Any, names: Any, shape: tuple[int, ...]
) -> Tensor:
    """The gradient of a factor: that of the result with the other factor. What the factor alone had
    and was summed is the same everywhere along its axes; what it was broadcast along is summed."""
    known = {*kept, *other_names}
    wanted = [name for name in names if name in known]
    found = contracted((g._node, kept), (conj(other)._node, other_names), wanted)
    for axis, name in enumerate(names):
        if name not in known:
            found = found[(slice(None),) * axis + (None,)]
    extents = [
        (axis, extent) for axis, (extent, mine) in enumerate(zip(found.shape, shape, strict=True))
        if mine == 1 and extent != 1
    ]  # fmt: skip
    if extents:
        from treadle.tensor.reductions import sum as total

        found = total(found, axis=tuple(axis for axis, _ in extents), keepdims=True)
    if found.shape != shape:
        from treadle.tensor.manipulation import broadcast_to

        found = broadcast_to(found, shape)
    return found


NODES["contracted"] = (_of_contraction, (0, 1))
