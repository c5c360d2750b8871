"""Gradients that are not to be too large. The device decides: nothing is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.core.dtypes import float32, float64
from treadle.graph.history import Ranks, recorded
from treadle.graph.realize import realize
from treadle.runtime.devices import Device
from treadle.tensor.assembly import stack
from treadle.tensor.contiguous_runs import contiguous_runs
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.ranks import by_ranks, over_ranks
from treadle.tensor.reductions import max as greatest
from treadle.tensor.reductions import min as least
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_abs, _clip, _isfinite = FUNCTIONS["abs"], FUNCTIONS["clip"], FUNCTIONS["isfinite"]
_minimum, _pow, _sqrt, _square = (FUNCTIONS[name] for name in ("minimum", "pow", "sqrt", "square"))
Tensors = Tensor | Iterable[Tensor]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of the tensors, on the device of the first, in float32 at least.
    `error_if_nonfinite` has it read, and raises RuntimeError if it is infinite or NaN.

    >>> import treadle as td
    >>> td.nn.utils.get_total_norm([td.ones(9, device="cpu"), td.ones(16, device="cpu")]).item()
    5.0
    """
    listed = _listed(tensors)
    if not listed:
        return zeros(())
    with recorded(False):
        found = _norm(contiguous_runs(listed), float(norm_type), listed[0].device)
    _check_finite(found, norm_type, error_if_nonfinite)
    return found


def _check_finite(found: Tensor, norm_type: float, error_if_nonfinite: bool) -> None:
    if error_if_nonfinite and not bool(_isfinite(found).item()):
        raise RuntimeError(
            f"the norm of order {norm_type} of the gradients is {found.item()}: find the step that "
            "overflowed, or leave error_if_nonfinite away to clip by it"
        )


def _norm(tensors: Sequence[Tensor], p: float, device: Device) -> Tensor:
    wide = [
        x.to(float64 if x.dtype is float64 else float32) for x in tensors if x.size or p != math.inf
    ]
    if math.isinf(p):
        of_all = greatest if p > 0 else least
        return of_all(_stacked([of_all(_abs(x)) for x in wide], device))
    if p == 0:
        return total(_stacked([total((x != 0).to(x.dtype)) for x in wide], device))
    if p == 2:
        found: Tensor = _sqrt(total(_stacked([total(_square(x)) for x in wide], device)))
        return found
    powers = _stacked([total(_pow(_abs(x), p)) for x in wide], device)
    root: Tensor = _pow(total(powers), 1 / p)
    return root


def _stacked(parts: list[Any], device: Any) -> Tensor:
    widest = float64 if any(part.dtype is float64 for part in parts) else float32
    return stack([part.to(dtype=widest, device=device) for part in parts])


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply the parameters' gradients by max_norm / total_norm, where that is less than 1."""
    gradients = _gradients(parameters)
    with recorded(False):
        factor = _minimum(float(max_norm) / (total_norm + 1e-6), 1.0)
        _change(gradients, lambda x: x * factor.to(dtype=x.dtype, device=x.device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the parameters' gradients so that the norm of all of them is `max_norm` at most; the
    norm that they had. A norm that is NaN makes all of them NaN, unless `error_if_nonfinite`. Of
    parameters that are divided among ranks, and of stages of a pipeline, it is the norm of all
    ranks' gradients, and all call this.

    >>> import treadle as td
    >>> x = td.nn.Parameter(td.asarray([3.0, 4.0], device="cpu"))
    >>> (x * x / 2).sum().backward()
    >>> td.nn.utils.clip_grad_norm_(x, 1.0).item()
    5.0
    >>> [round(value, 4) for value in x.grad.tolist()]
    [0.6, 0.8]
    """
    listed = _listed(parameters)
    groups = by_ranks(listed)
    if not {*groups} - {None}:
        found = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite)
    else:
        with recorded(False):
            found = _norm_over_ranks(groups, float(norm_type), listed[0].device)
        _check_finite(found, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, found)
    return found


def _norm_over_ranks(
    groups: Mapping[Ranks | None, Sequence[Tensor]], p: float, device: Device
) -> Tensor:
    """The norm of gradients of which other processes have parts, the same on all of them."""
    # A process may have no elements, and so not know the dtype.
    every = [each for same in groups.values() for each in same]
    widest = float64 if any(each.dtype is float64 for each in every) else float32
    empty = -p if math.isinf(p) and p < 0 else 0.0  # that of no elements
    is_sum = not math.isinf(p)
    parts: dict[Ranks | None, Tensor] = {}
    for ranks, same in groups.items():
        here = [x for x in _gradients(same) if x.size]
        own = _norm(here, p, device) if here else asarray(empty, dtype=float32, device=device)
        own = own.to(widest)
        parts[ranks] = _pow(own, p) if is_sum and p else own
    found: Tensor = over_ranks(parts, "sum" if is_sum else "max" if p > 0 else "min")
    return _pow(found, 1 / p) if is_sum and p else found


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Bring the elements of the parameters' gradients within -clip_value and clip_value."""
    bound = float(clip_value)
    with recorded(False):
        _change(_gradients(parameters), lambda x: _clip(x, -bound, bound))


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    """The gradients, as few tensors as they are contiguous: optimizers keep them adjacent."""
    found = [each.grad for each in _listed(parameters)]
    return contiguous_runs([each.detach() for each in found if each is not None])


def _change(gradients: Sequence[Tensor], change: Callable[[Tensor], Tensor]) -> None:
    """Replace tensors' elements at once, not lazily. They are replaced one after the other, so that
    those in one array are changed in place."""
    for gradient in gradients:
        gradient[...] = change(gradient)
    realize([gradient._cell.value for gradient in gradients])
