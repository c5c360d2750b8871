"""Derivatives of products of arrays whose axes have names: products again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from treadle.autograd.derivative import Flow, Rule, tensor_of
from treadle.autograd.rules.elementwise import conj
from treadle.graph.history import Derivative, History
from treadle.tensor.contraction import Names, contracted
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor


class OfContraction:
    """The derivative of `contracted`: what is needed for one factor is the other."""

    name = "a product of arrays"

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The positions of the factors whose partners are tracked."""
        return [1 - place for place, is_tracked in enumerate(tracked) if is_tracked]

    def backward(self, made: History, gradients: Sequence[Tensor | None]) -> Flow:
        """The gradients of the factors."""
        *names, kept = made.options
        gradient = gradients[0]
        assert gradient is not None
        for place, edge in enumerate(made.edges):
            if edge is not None:
                other = tensor_of(made, 1 - place)
                result, partner = (gradient, kept), (other, names[1 - place])
                yield edge, _factor(result, partner, names[place], edge.shape)


def _factor(
    result: tuple[Tensor, Names],
    partner: tuple[Tensor, Names],
    names: Names,
    shape: tuple[int, ...],
) -> Tensor:
    """The gradient of a factor: the product of that of the result with the other factor."""
    (g, kept), (other, other_names) = result, partner
    wanted, inside = _planned((g.shape, kept), (other.shape, other_names), names, shape)
    found = contracted((g._node, kept), (conj(other)._node, other_names), wanted)
    return found if inside is None else broadcast_to(found.reshape(inside), shape)


@lru_cache(1024)
def _planned(
    result: tuple[tuple[int, ...], Names],
    partner: tuple[tuple[int, ...], Names],
    names: Names,
    shape: tuple[int, ...],
) -> tuple[Names, tuple[int, ...] | None]:
    """The axes that the product has, and its shape before it is repeated to that of the factor, if
    it is. It is summed along what the factor was broadcast along. Where the factor alone had an
    axis, and it was summed, the gradient is the same everywhere along it."""
    extents: dict[Any, int] = {}
    for one, its_names in (result, partner):
        for name, extent in zip(its_names, one, strict=True):
            if extents.get(name, 1) == 1:
                extents[name] = extent
    wanted = tuple(
        [
            name
            for name, extent in zip(names, shape, strict=True)
            if name in extents and (extent != 1 or extents[name] == 1)
        ]
    )
    if tuple([extents[name] for name in wanted]) == shape:
        return wanted, None
    return wanted, tuple([extents[name] if name in wanted else 1 for name in names])


def _linear(g: Tensor, input: Tensor, weight: Tensor) -> dict[str, Tensor]:
    rows = tuple(range(input.ndim - 1))
    columns = ("column",) if weight.ndim == 2 else ()
    of_result = (g._node, (*rows, *columns))
    left, right = conj(input)._node, conj(weight)._node
    return {
        "input": contracted(of_result, (right, (*columns, "inner")), (*rows, "inner")),
        "weight": contracted(of_result, (left, (*rows, "inner")), (*columns, "inner")),
        "bias": total(g, axis=rows) if rows else g,
    }


RULES: dict[str, Rule] = {"linear": _linear}
DERIVATIVES: dict[str, Derivative] = {"contracted": OfContraction()}
