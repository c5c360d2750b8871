"""Gradients compared with central differences: a test for your own derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autograd.engine import grad
from treadle.core.dtypes import complex128, float64
from treadle.core.errors import AutogradError
from treadle.graph.history import is_differentiable, recorded
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of a function are those of central differences: of each element of each
    result by each element of the inputs that require gradients, which should be float64 (or
    complex128) and few.

    AutogradError tells where they differ, unless `raise_exception` is False.

    >>> import treadle as td
    >>> x = td.asarray([0.5, -1.5], dtype=td.float64, device="cpu").requires_grad_()
    >>> td.autograd.gradcheck(lambda x: x * td.sin(x), x)
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = [
        position
        for position, each in enumerate(given)
        if isinstance(each, Tensor) and each.requires_grad
    ]
    if not checked:
        raise ValueError("gradcheck needs an input that requires gradients: x.requires_grad_()")
    if any(given[position].dtype not in (float64, complex128) for position in checked):
        warnings.warn(
            "gradcheck compares with differences, which are good to three digits at best for "
            "float32: use float64",
            stacklevel=2,
        )
    results = _results(func(*given))
    for number, result in enumerate(results):
        for position in checked:
            mine = _by_gradients(result, given[position])
            theirs = _by_differences(func, given, position, number, eps)
            if np.allclose(mine, theirs, rtol=rtol, atol=atol, equal_nan=True):
                continue
            if not raise_exception:
                return False
            worst = np.unravel_index(np.nanargmax(np.abs(mine - theirs)), mine.shape)
            raise AutogradError(
                f"gradcheck: element {worst[0]} of result {number} by element {worst[1]} of input "
                f"{position} is {mine[worst]} by gradients and {theirs[worst]} by differences"
            )
    return True


def _results(returned: Any) -> list[Tensor]:
    found = returned if isinstance(returned, (tuple, list)) else [returned]
    return [
        each for each in found if isinstance(each, Tensor) and is_differentiable(each._cell.value)
    ]


def _units(result: Tensor) -> list[complex]:
    return [1.0, 1j] if result.dtype.kind == "complex" else [1.0]


def _by_gradients(result: Tensor, variable: Tensor) -> Array:
    """A row for each element of the result, of complex ones for either part."""
    rows = []
    for unit in _units(result):
        for place in range(result.size):
            one = np.zeros(result.size, result.dtype.numpy)
            one[place] = unit
            seed = asarray(one.reshape(result.shape), device=result.device)
            if not result.requires_grad:
                rows.append(np.zeros(variable.size, variable.dtype.numpy))
                continue
            (found,) = grad(result, variable, seed, retain_graph=True, materialize_grads=True)
            rows.append(found.numpy().reshape(-1))
    return np.array(rows).reshape(-1, variable.size)


def _by_differences(
    func: Callable[..., Any], given: Sequence[Any], position: int, number: int, eps: float
) -> Array:
    variable = given[position]
    start = variable.numpy()
    columns = []
    for place in range(variable.size):
        column: Any = 0.0
        for unit in _units(variable):
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved.reshape(-1)[place] += sign * eps * unit
                values = list(given)
                values[position] = asarray(moved, device=variable.device)
                with recorded(False):
                    ends.append(_results(func(*values))[number].numpy().reshape(-1))
            change = (ends[0] - ends[1]) / (2 * eps)
            parts = [change.real] + ([change.imag] if np.iscomplexobj(change) else [])
            column = column + np.concatenate(parts) * unit
        columns.append(column)
    return np.array(columns).T.reshape(-1, variable.size)
