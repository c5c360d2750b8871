"""Gradients of functions that are computed again, with histories of what they are made of.

So a function of some operations is recorded as one without a formula for its derivative. This is
right for what is cheap to compute: it is done again in the kernel of the gradient.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.engine import grad
from treadle.graph.history import is_differentiable, recorded, recording
from treadle.tensor.assembly import concat
from treadle.tensor.functional.activations import GATES, halves
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.element_losses import (
    binary_loss,
    distance_loss,
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
)
from treadle.tensor.tensor import Tensor, from_node


def gradients_of(
    function: Callable[..., Any], values: Mapping[str, Any], gradients: Sequence[Tensor | None]
) -> dict[str, Any]:
    """The gradients of a function's arguments, by their names, from those of its results. They have
    histories themselves while histories are recorded."""
    creates = recording.get()
    with recorded(True):
        seen = {name: _seen(value) for name, value in values.items()}
        results = function(**seen)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [
            (result, gradient)
            for result, gradient in zip(results, gradients, strict=True)
            if gradient is not None and result._history is not None
        ]
        inputs = {
            name: value
            for name, value in seen.items()
            if type(value) is Tensor and value._history is not None
        }
    if not pairs or not inputs:
        return {}
    found = grad(
        [result for result, _ in pairs], list(inputs.values()), [g for _, g in pairs],
        create_graph=creates, allow_unused=True,
    )  # fmt: skip
    return dict(zip(inputs, found, strict=True))


def _seen(value: Any) -> Any:
    """A view of a tensor, so that gradients end there: what it was made of is another matter."""
    if type(value) is not Tensor or not is_differentiable(value._node):
        return value
    seen = from_node(value._node.alias())
    return seen if seen._history is not None else seen.requires_grad_()


def _composed(function: Callable[..., Any]) -> Rule:
    """The rule of a function with one result."""
    own = inspect.unwrap(function)

    def rule(gradient: Tensor, **values: Any) -> dict[str, Any]:
        return gradients_of(own, values, (gradient,))

    first = inspect.Parameter("gradient", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(own).parameters.values()
    rule.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    return rule


def _gated(gradient: Tensor, input: Tensor, name: str, axis: int, approximate: str) -> Tensor:
    """Both halves joined: gradients of parts would be written one after the other."""
    one, other = halves(name, input, axis)

    def gate(one: Tensor, other: Tensor) -> Tensor:
        return GATES[name](widened(one)[0], widened(other)[0], approximate)

    found = gradients_of(gate, {"one": one, "other": other}, (widened(gradient)[0],))
    return concat([found["one"], found["other"]], axis=axis)


RULES: dict[str, Rule] = {"gated": _gated} | {
    function.__name__: _composed(function)
    for function in (
        binary_loss, distance_loss, gaussian_nll_loss, kl_div, poisson_nll_loss,
    )
}  # fmt: skip
