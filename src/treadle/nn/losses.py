"""Losses as modules: the functions of `td.nn.functional` with their settings."""

from __future__ import annotations

from typing import Any

from treadle.nn.module import Module
from treadle.tensor.functional import element_losses
from treadle.tensor.functional.reducing import reduction_of
from treadle.tensor.tensor import Tensor


class _Loss(Module):
    """A loss that is reduced to its mean or sum, or not."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = reduction_of(type(self).__name__, reduction, size_average, reduce)


class MSELoss(_Loss):
    """(input - target)**2, and its mean.

    >>> import treadle as td
    >>> td.nn.MSELoss()(td.asarray([1.0, 4.0], device="cpu"), [1.0, 2.0]).item()
    2.0
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        """The loss."""
        return element_losses.mse_loss(input, target, reduction=self.reduction)
