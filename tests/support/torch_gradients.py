"""Gradients beside PyTorch's: first ones, and those of a weighted sum of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td

try:
    import torch
except ImportError:  # a smaller installation
    torch = None


def check_beside_torch(
    mine: Callable[..., Any],
    theirs: Callable[..., Any],
    *arrays: np.ndarray,
    device: Any = "cpu",
    second: bool = True,
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:
    """Compare results and gradients by arrays of two functions, `theirs` of PyTorch's tensors on
    the CPU. What is compared has the arrays' dtype. What is differentiated is the sum of squares of
    the results, weighted with fixed numbers, then a weighted sum of the gradients."""
    weights = np.random.default_rng(5)
    given = [td.asarray(array, device=device).requires_grad_() for array in arrays]
    beside = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, wanted = mine(*given), theirs(*beside)
    close = {"rtol": rtol, "atol": atol}
    assert result.shape == tuple(wanted.shape)
    np.testing.assert_allclose(result.numpy(), wanted.detach().numpy(), **close)
    by = weights.standard_normal(result.shape).astype(arrays[0].dtype)
    # Squares, so that what is linear has second gradients, too.
    mine_first = _gradients((result * result * td.asarray(by, device=device)).sum(), given, second)
    their_first = torch.autograd.grad(
        (wanted * wanted * torch.tensor(by)).sum(), beside, create_graph=second, allow_unused=True
    )
    _compare(mine_first, their_first, "gradient", close)
    if not second:
        return
    factors = [weights.standard_normal(x.shape).astype(arrays[0].dtype) for x in arrays]
    mine_sum = _weighted(mine_first, factors, lambda x: td.asarray(x, device=device))
    their_sum = _weighted(their_first, factors, torch.tensor)
    seconds = wanted = [None] * len(beside)
    if mine_sum is not None and mine_sum.requires_grad:
        seconds = _gradients(mine_sum, given, False)
    if their_sum is not None and their_sum.requires_grad:
        wanted = torch.autograd.grad(their_sum, beside, allow_unused=True)
    _compare(seconds, wanted, "second gradient", close)


def _gradients(number: Any, given: Sequence[Any], create_graph: bool) -> Sequence[Any]:
    return td.autograd.grad(number, given, create_graph=create_graph, allow_unused=True)


def _weighted(gradients: Sequence[Any], factors: Sequence[Any], made: Callable[..., Any]) -> Any:
    parts = [
        (gradient * made(factor)).sum()
        for gradient, factor in zip(gradients, factors, strict=True)
        if gradient is not None
    ]
    return sum(parts[1:], parts[0]) if parts else None


def _compare(mine: Sequence[Any], theirs: Sequence[Any], what: str, close: dict) -> None:
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        zero = 0.0
        one = zero if one is None else one.detach().numpy()
        other = zero if other is None else other.detach().numpy()
        np.testing.assert_allclose(one, other, err_msg=f"{what} of argument {number}", **close)
