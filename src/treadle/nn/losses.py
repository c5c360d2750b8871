"""Losses as modules: the functions of `td.nn.functional` with their settings as attributes.

`reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are an older way to say that.
Weights of classes are buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.nn.module import Module
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.creation import asarray
from treadle.tensor.functional import element_losses, losses, margin_losses, sequence_losses
from treadle.tensor.functional.loss_reduction import reduction_of
from treadle.tensor.tensor import Tensor

Old = bool | None


class Loss(Module):
    """A loss that is reduced to its mean or sum, or not."""

    def __init__(
        self, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction: str = reduction_of(type(self).__name__, reduction, size_average, reduce)


class _PlainLoss(Loss):
    """A loss of an input and a target, without settings of its own."""

    _function: Callable[..., Tensor]

    def __init__(
        self, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """The loss."""
        return type(self)._function(input, target, reduction=self.reduction)


class _WeightedLoss(Loss):
    """A loss with a weight for each class, or each element."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Any = None,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", None if weight is None else asarray(weight))


# --- of elements ---------------------------------------------------------------------------------


class MSELoss(_PlainLoss):
    """(input - target)**2.

    >>> import treadle as td
    >>> td.nn.MSELoss()(td.asarray([1.0, 4.0], device="cpu"), [1.0, 2.0]).item()
    2.0
    """

    _function = staticmethod(element_losses.mse_loss)


class L1Loss(_PlainLoss):
    """|input - target|.

    >>> import treadle as td
    >>> td.nn.L1Loss()(td.ones((3,), device="cpu"), td.zeros(3, device="cpu")).item()
    1.0
    """

    _function = staticmethod(element_losses.l1_loss)


class SmoothL1Loss(Loss):
    """|d| - beta / 2, or d**2 / (2 * beta) where |d| < beta, for d = input - target.

    >>> import treadle as td
    >>> td.nn.SmoothL1Loss()(td.ones((3,), device="cpu"), td.zeros(3, device="cpu")).item()
    0.5
    """

    def __init__(
        self,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.smooth_l1_loss(
            input, target, reduction=self.reduction, beta=self.beta
        )


class HuberLoss(Loss):
    """`SmoothL1Loss` with `beta=delta`, times `delta`.

    >>> import treadle as td
    >>> td.nn.HuberLoss()(td.ones((3,), device="cpu"), td.zeros(3, device="cpu")).item()
    0.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(None, None, reduction)
        self.delta = delta

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(_WeightedLoss):
    """The binary cross entropy of probabilities (the input) and targets between 0 and 1.

    >>> import treadle as td
    >>> p = td.asarray([0.5, 0.5], device="cpu")
    >>> round(td.nn.BCELoss()(p, td.ones_like(p)).item(), 3)
    0.693
    """

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.binary_cross_entropy(
            input, target, self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_WeightedLoss):
    """`BCELoss` of sigmoid(input), computed from the input directly, which is more accurate. The
    terms of positive targets are multiplied by `pos_weight`.

    >>> import treadle as td
    >>> x = td.ones(3, device="cpu")
    >>> round(td.nn.BCEWithLogitsLoss()(x, x).item(), 3)
    0.313
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: ArrayLike | None = None,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
        pos_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", None if pos_weight is None else asarray(pos_weight))

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence: target * (log(target) - input), where the input holds
    log-probabilities and the target probabilities, or their logarithms with `log_target`.

    >>> import treadle as td
    >>> x = td.log(td.asarray([[0.5, 0.5]], device="cpu"))
    >>> loss = td.nn.KLDivLoss(reduction="batchmean")
    >>> round(loss(x, td.asarray([[1.0, 0.0]], device="cpu")).item(), 4)
    0.6931
    """

    def __init__(
        self,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        Module.__init__(self)
        choices = ("mean", "sum", "none", "batchmean")
        self.reduction = reduction_of("KLDivLoss", reduction, size_average, reduce, choices)
        self.log_target = log_target

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of counts, given their expectations, or the logarithms of these
    (`log_input=True`, the default); see `td.nn.functional.poisson_nll_loss`.

    >>> import treadle as td
    >>> log_expected, counts = td.zeros(3, device="cpu"), td.ones(3, device="cpu")
    >>> td.nn.PoissonNLLLoss()(log_expected, counts).item()  # exp(0) - 1 * 0
    1.0
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Old = None,
        eps: float = 1e-8,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss):
    """The negative log-likelihood of targets, given the means (the input) and variances of normal
    distributions. All have one shape; see `td.nn.functional.gaussian_nll_loss`.

    >>> import treadle as td
    >>> mean, target = td.zeros(3, device="cpu"), td.ones(3, device="cpu")
    >>> td.nn.GaussianNLLLoss()(mean, target, td.ones(3, device="cpu")).item()
    0.5
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: ArrayLike, target: ArrayLike, var: ArrayLike) -> Tensor:
        """The loss."""
        return element_losses.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class SoftMarginLoss(_PlainLoss):
    """log(1 + exp(-target * input)), for targets of -1 and 1 of the input's shape.

    >>> import treadle as td
    >>> scores, signs = td.zeros(2, device="cpu"), td.asarray([1.0, -1.0], device="cpu")
    >>> round(td.nn.SoftMarginLoss()(scores, signs).item(), 4)
    0.6931
    """

    _function = staticmethod(margin_losses.soft_margin_loss)


# --- of classes ----------------------------------------------------------------------------------


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood: -input[class] of each row, where the input (N, C) holds
    log-probabilities and the target the classes (N,).

    >>> import treadle as td
    >>> scores = td.log(td.asarray([[0.5, 0.5]], device="cpu"))
    >>> round(td.nn.NLLLoss()(scores, td.asarray([1], device="cpu")).item(), 3)
    0.693
    """

    def __init__(
        self,
        weight: ArrayLike | None = None,
        size_average: Old = None,
        ignore_index: int = -100,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return losses.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of softmax(input) and the target, computed from the input directly.

    The input has the shape (N, C) or (N, C, …), for C classes. Targets are integer classes, of
    shape (N,) or (N, …), or probabilities of the input's shape.

    >>> import treadle as td
    >>> loss = td.nn.CrossEntropyLoss()
    >>> scores, classes = td.zeros((5, 2), device="cpu"), td.asarray([1, 0, 0, 1, 1], device="cpu")
    >>> round(loss(scores, classes).item(), 4)
    0.6931
    """

    def __init__(
        self,
        weight: ArrayLike | None = None,
        size_average: Old = None,
        ignore_index: int = -100,
        reduce: Old = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return losses.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MultiMarginLoss(_WeightedLoss):
    """The mean over the other classes of max(0, margin - score of the target + score)**p, for
    scores (N, C) and integer classes (N,); see `td.nn.functional.multi_margin_loss`.

    >>> import treadle as td
    >>> scores = td.asarray([[0.1, 0.2, 0.4, 0.8]], device="cpu")
    >>> round(td.nn.MultiMarginLoss()(scores, td.asarray([3], device="cpu")).item(), 4)
    0.325
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: ArrayLike | None = None,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_PlainLoss):
    """`MultiMarginLoss` with several target classes a row.

    Scores and targets have the shape (N, C) or (C,). A row of targets begins with its classes, and
    a negative number ends them.

    >>> import treadle as td
    >>> scores = td.asarray([0.5, 0.0, 0.25], device="cpu")
    >>> classes = td.asarray([0, -1, -1], device="cpu")  # class 0 only
    >>> round(td.nn.MultiLabelMarginLoss()(scores, classes).item(), 4)  # (0.5 + 0.75) / 3
    0.4167
    """

    _function = staticmethod(margin_losses.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """`BCEWithLogitsLoss`, averaged over the classes: of scores (N, C) and targets 0 or 1 of that
    shape.

    >>> import treadle as td
    >>> scores, wanted = td.zeros((2, 3), device="cpu"), td.ones((2, 3), device="cpu")
    >>> round(td.nn.MultiLabelSoftMarginLoss()(scores, wanted).item(), 4)
    0.6931
    """

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        """The loss."""
        return margin_losses.multilabel_soft_margin_loss(
            input, target, self.weight, reduction=self.reduction
        )


class CTCLoss(Loss):
    """Connectionist temporal classification: -log of the probability that labels come in a given
    order, at any times; see `td.nn.functional.ctc_loss`.

    It takes log-probabilities (T, N, C), labels (N, S), and the lengths of both as integers (N,).

    >>> import treadle as td
    >>> log_probs = td.log(td.full((2, 1, 3), 1 / 3, device="cpu"))
    >>> loss = td.nn.CTCLoss()(log_probs, td.asarray([[1]], device="cpu"), [2], [1])
    >>> round(loss.item(), 4)  # 3 of the 9 paths are the label 1
    1.0986
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(None, None, reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: ArrayLike,
        targets: ArrayLike,
        input_lengths: ArrayLike,
        target_lengths: ArrayLike,
    ) -> Tensor:
        """The loss."""
        return sequence_losses.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
