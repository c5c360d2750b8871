"""Gradients checked against central differences in float64, and against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td

_STEP = 1e-6


def check_gradients(
    function: Callable[..., Any],
    *arrays: np.ndarray,
    second: bool = True,
    device: str = "cpu",
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Compare the gradients of a function of float64 (or complex128) arrays with differences.

    The function's result, or each of them, is weighted with fixed random numbers, so that nothing
    cancels. With `second` the gradient of a weighted sum of the gradients is checked, too.
    """
    weights = np.random.default_rng(7)
    drawn: dict[tuple[Any, ...], np.ndarray] = {}

    def weight(key: tuple[Any, ...], shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
        if key not in drawn:
            drawn[key] = weights.standard_normal(shape)
            if is_complex:
                drawn[key] = drawn[key] + 1j * weights.standard_normal(shape)
        return drawn[key]

    def weighted(results: Any, key: str) -> Any:
        results = results if isinstance(results, (tuple, list)) else (results,)
        total: Any = None
        for number, result in enumerate(results):
            if not isinstance(result, td.tensor.Tensor) or result.dtype.kind not in (
                "float",
                "complex",
            ):
                continue
            is_complex = result.dtype.kind == "complex"
            by = td.asarray(weight((key, number), result.shape, is_complex), device=device)
            part = td.real(result * by).sum() if is_complex else (result * by).sum()
            total = part if total is None else total + part
        return total

    def value(*inputs: np.ndarray) -> float:
        with td.no_grad():
            return float(
                weighted(function(*[td.asarray(x, device=device) for x in inputs]), "y").item()
            )

    def gradients(inputs: Sequence[np.ndarray], create_graph: bool = False) -> tuple[Any, Any]:
        tensors = [td.asarray(x, device=device).requires_grad_() for x in inputs]
        found = td.autograd.grad(
            weighted(function(*tensors), "y"), tensors, create_graph=create_graph, allow_unused=True
        )
        return tensors, found

    _, found = gradients(arrays)
    expected = differences(value, arrays)
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        mine = np.zeros_like(theirs) if mine is None else mine.numpy()
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=f"argument {number}")
    if not second:
        return

    def slope(*inputs: np.ndarray) -> float:
        _, firsts = gradients(inputs)
        parts = [each for each in firsts if each is not None]
        with td.no_grad():
            return float(weighted(parts, "g").item())

    tensors, firsts = gradients(arrays, create_graph=True)
    total = weighted([each for each in firsts if each is not None], "g")
    if not total.requires_grad:
        return
    found = td.autograd.grad(total, tensors, allow_unused=True)
    expected = differences(slope, arrays)
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        mine = np.zeros_like(theirs) if mine is None else mine.numpy()
        np.testing.assert_allclose(
            mine, theirs, rtol=10 * rtol, atol=10 * atol, err_msg=f"second, argument {number}"
        )


def differences(
    value: Callable[..., float], arrays: Sequence[np.ndarray], step: float = _STEP
) -> list[np.ndarray]:
    """Central differences of a number by every element; of a complex element those by its real part
    and, times i, by its imaginary one."""
    found = []
    for number, array in enumerate(arrays):
        slope = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            for unit in (1.0, 1j) if np.iscomplexobj(array) else (1.0,):
                ends = []
                for sign in (1, -1):
                    moved = [x.copy() for x in arrays]
                    moved[number][place] += sign * step * unit
                    ends.append(value(*moved))
                slope[place] += (ends[0] - ends[1]) / (2 * step) * unit
        found.append(slope)
    return found
