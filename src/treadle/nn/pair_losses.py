"""Losses of pairs and triplets as modules; `losses.py` has the others."""

from __future__ import annotations

from collections.abc import Callable

from treadle.nn.losses import Loss
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.functional import margin_losses
from treadle.tensor.functional.distances import pairwise_distance
from treadle.tensor.tensor import Tensor


class _MarginLoss(Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """Distances of pairs with target 1, and by how much others are below a margin."""

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.hinge_embedding_loss(
            input, target, self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_MarginLoss):
    """By how much a pair is not in the order that the target (1 or -1) says, with a margin."""

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.margin_ranking_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_MarginLoss):
    """One less the cosine of pairs with target 1, and by how much that of others is above a
    margin."""

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class TripletMarginLoss(Loss):
    """By how much an anchor is not closer to a positive than to a negative, with a margin."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: the margin is greater than 0, not {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(Loss):
    """`TripletMarginLoss` with a distance of one's own."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: the margin is greater than 0, not {margin}"
            )
        self.distance_function: Callable[..., Tensor] = distance_function or pairwise_distance
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
