"""Layers of PyTorch's that treadle's own interface does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from treadle.tensor import functional as inner_functional
from treadle.tensor.assembly import concat
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.reductions import argmax, mean
from treadle.tensor.searching import take_along_axis
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.nn import functional, layers
from treadle.torch.nn.containers import ModuleList, Sequential
from treadle.torch.nn.module import Module
from treadle.torch.tensors import Tensor, wrap


class _FractionalMaxPool(Module):
    """Windows at drawn distances."""

    _axes: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__} takes one of output_size and output_ratio")
        axes = self._axes
        self.kernel_size = _each(kernel_size, axes)
        self.output_size = None if output_size is None else _each(output_size, axes)
        self.output_ratio = None if output_ratio is None else _each(output_ratio, axes)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """The greatest elements, and their places if wanted."""
        function = getattr(functional, f"fractional_max_pool{self._axes}d")
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The greatest elements of windows at drawn distances, of (N, C, H, W) or (C, H, W).

    >>> import treadle.torch as torch
    >>> pool = torch.nn.FractionalMaxPool2d(2, output_size=(3, 2))
    >>> pool(torch.zeros(1, 4, 7, 6)).shape
    torch.Size([1, 4, 3, 2])
    """

    _axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """`FractionalMaxPool2d` for (N, C, D, H, W) or (C, D, H, W).

    >>> import treadle.torch as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.zeros(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _axes = 3


def _each(value: Any, axes: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


# --- losses over many classes --------------------------------------------------------------------


@dataclass
class LinearCrossEntropyOptions:
    """How PyTorch cuts the product of `linear_cross_entropy`; it changes nothing here."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(Module):
    """The cross-entropy of classes, whose scores are a learned product with the input.

    >>> import treadle.torch as torch
    >>> loss = torch.nn.LinearCrossEntropyLoss(5, 10)
    >>> loss(torch.zeros(3, 5), torch.tensor([1, 0, 4])).shape
    torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__()
        if weight is not None and tuple(weight._inner.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {weight._inner.shape}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        self.register_buffer("weight", weight)
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = layers.Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        weight, bias = self.linear._parameters["weight"], self.linear._parameters["bias"]
        scores = (self.num_classes, *self.out_features)
        loss: Tensor = functional.linear_cross_entropy(
            input,
            wrap(weight.reshape((*scores, weight.shape[-1]))),
            target,
            linear_bias=None if bias is None else wrap(bias.reshape(scores)),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )
        return loss

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class _ASMoutput(NamedTuple):
    """The logarithms of the targets' probabilities, and their negated mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The logarithms of probabilities of many classes, the frequent ones first: the others are in
    groups, whose weights have fewer columns. By E. Grave and others, 2017.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> layer(torch.zeros(3, 8), torch.tensor([1, 7, 19])).output.shape
    torch.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(each) != each for each in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = layers.Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for at in range(self.n_clusters):
            width = int(in_features // div_value ** (at + 1))
            classes = self.cutoffs[at + 1] - self.cutoffs[at]
            self.tail.append(
                Sequential(
                    layers.Linear(in_features, width, bias=False, **options),
                    layers.Linear(width, classes, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for each in self.tail.modules():
            if each is not self.tail and hasattr(each, "reset_parameters"):
                each.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The logarithm of each target's probability, and the loss. Every group is computed for all
        rows, so that nothing waits for the device."""
        x, target = input_._inner, target_._inner
        is_batch = len(target.shape) > 0
        if len(target.shape) > 1 or len(x.shape) != len(target.shape) + 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if not is_batch:
            x, target = x[None], target[None]
        if x.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        head = inner_functional.log_softmax(self.head(x), 1)
        found = _at(head, FUNCTIONS["clip"](target, 0, self.shortlist_size - 1))
        for at, group in enumerate(self.tail):
            low, high = self.cutoffs[at], self.cutoffs[at + 1]
            inside = inner_functional.log_softmax(group(x), 1)
            part = _at(inside, FUNCTIONS["clip"](target - low, 0, high - low - 1))
            part = part + head[:, self.shortlist_size + at]
            found = where((target >= low) & (target < high), part, found)
        loss = mean(-found)
        return _ASMoutput(wrap(found if is_batch else found[0]), wrap(loss))

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, (N, n_classes)."""
        return wrap(self._log_prob(input._inner))

    def _log_prob(self, x: Inner) -> Inner:
        head = inner_functional.log_softmax(self.head(x), 1)
        parts = [head[:, : self.shortlist_size]]
        for at, group in enumerate(self.tail):
            inside = inner_functional.log_softmax(group(x), 1)
            parts.append(inside + head[:, self.shortlist_size + at, None])
        return concat(parts, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """The class of the greatest probability for each row."""
        return wrap(argmax(self._log_prob(input._inner), axis=1))


def _at(rows: Inner, classes: Inner) -> Inner:
    """One element of each row."""
    return take_along_axis(rows, classes[:, None], axis=1)[:, 0]
