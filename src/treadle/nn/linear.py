"""Products with learned weights."""

from __future__ import annotations

import math
from typing import Any

from treadle.nn import init
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.creation import empty
from treadle.tensor.functional import affine
from treadle.tensor.tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias, with a weight of shape (out_features, in_features).

    It takes (…, in_features) and returns (…, out_features). Weight and bias are initialized
    uniformly between -b and b, where b = 1 / sqrt(in_features).

    >>> import treadle as td
    >>> layer = td.nn.Linear(3, 2, device="cpu")
    >>> layer(td.ones((4, 3), device="cpu")).shape
    (4, 2)
    >>> layer.weight.shape, layer.weight.dtype
    ((2, 3), treadle.float32)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: ArrayLike) -> Tensor:
        """A tensor whose last axis has out_features elements."""
        return affine.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The numbers of features."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """x1 @ weight[o] @ x2 + bias[o] for each feature o, with a weight of shape (out_features,
    in1_features, in2_features).

    Weight and bias are initialized uniformly between -b and b, where b = 1 / sqrt(in1_features).

    >>> import treadle as td
    >>> layer = td.nn.Bilinear(2, 3, 4, device="cpu")
    >>> layer(td.ones((5, 2), device="cpu"), td.ones((5, 3), device="cpu")).shape
    (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features is greater than 0, not {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: ArrayLike, input2: ArrayLike) -> Tensor:
        """A tensor whose last axis has out_features elements."""
        return affine.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The numbers of features."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """The input, unchanged. It takes any arguments and ignores them.

    >>> import treadle as td
    >>> td.nn.Identity()(td.ones((2,), device="cpu")).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: ArrayLike) -> Any:
        """The input."""
        return input
