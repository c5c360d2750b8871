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
    """`x` where the target is 1, and max(0, margin - x) where it is -1, for distances x.

    >>> import treadle as td
    >>> distances = td.asarray([0.5, 0.25], device="cpu")
    >>> loss = td.nn.HingeEmbeddingLoss(reduction="none")
    >>> loss(distances, td.asarray([1, -1], device="cpu")).tolist()
    [0.5, 0.75]
    """

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
    """max(0, target * (x2 - x1) + margin): 0 where x1 ranks above x2 by the margin (target 1), or
    below it (target -1).

    >>> import treadle as td
    >>> x1, x2 = td.asarray([1.0, 2.0], device="cpu"), td.asarray([3.0, 1.0], device="cpu")
    >>> loss = td.nn.MarginRankingLoss(reduction="none")
    >>> loss(x1, x2, td.asarray([1, 1], device="cpu")).tolist()
    [2.0, 0.0]
    """

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.margin_ranking_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(x1, x2) for pairs with target 1, and max(0, cos(x1, x2) - margin) for pairs with
    target -1.

    The inputs have the shape (N, D) and the targets (N,).

    >>> import treadle as td
    >>> x, y = td.asarray([[1.0, 0.0]], device="cpu"), td.asarray([[0.0, 1.0]], device="cpu")
    >>> td.nn.CosineEmbeddingLoss()(x, y, td.asarray([1], device="cpu")).item()
    1.0
    """

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class TripletMarginLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the p-norm of the
    difference of two rows of (N, D).

    >>> import treadle as td
    >>> a, far = td.zeros((1, 2), device="cpu"), td.asarray([[3.0, 4.0]], device="cpu")
    >>> td.nn.TripletMarginLoss(eps=0.0)(a, far, a).item()  # 5 - 0 + 1
    6.0
    """

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
    """`TripletMarginLoss` with the function d that is given, `pairwise_distance` by default.

    >>> import treadle as td
    >>> a, far = td.zeros((1, 2), device="cpu"), td.asarray([[3.0, 4.0]], device="cpu")
    >>> d = td.nn.PairwiseDistance(p=1, eps=0.0)
    >>> loss = td.nn.TripletMarginWithDistanceLoss(distance_function=d)
    >>> loss(a, far, a).item()  # 7 - 0 + 1
    8.0
    """

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
