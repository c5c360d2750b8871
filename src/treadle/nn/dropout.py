"""What leaves elements out at random in training, and nothing otherwise."""

from __future__ import annotations

from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.functional import dropouts
from treadle.tensor.tensor import Tensor


class _Dropout(FunctionModule):
    _text = "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p is a probability, not {p}")
        super().__init__(p=p, inplace=inplace)

    def forward(self, input: Any) -> Tensor:
        """The input itself, unless the module is in training mode."""
        found: Tensor = type(self)._function(input, self.p, self.training, self.inplace)
        return found


class Dropout(_Dropout):
    """In training, set each element to 0 with probability p, and divide the others by 1 - p. In
    evaluation mode the input is returned.

    >>> import treadle as td
    >>> layer, x = td.nn.Dropout(0.5), td.ones(100, device="cpu")
    >>> set(layer(x).tolist()) <= {0.0, 2.0}, layer.eval()(x) is x
    (True, True)
    """

    _function = staticmethod(dropouts.dropout)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels, of (N, C, L) or (C, L).

    >>> import treadle as td
    >>> y = td.nn.Dropout1d(0.5)(td.ones((2, 3, 4), device="cpu"))
    >>> bool((y.min(axis=2) == y.max(axis=2)).all())
    True
    """

    _function = staticmethod(dropouts.dropout1d)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels, of (N, C, H, W).

    >>> import treadle as td
    >>> y = td.nn.Dropout2d(0.5)(td.ones((2, 3, 4, 4), device="cpu"))
    >>> bool((y.min(axis=(2, 3)) == y.max(axis=(2, 3))).all())
    True
    """

    _function = staticmethod(dropouts.dropout2d)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels, of (N, C, D, H, W).

    >>> import treadle as td
    >>> td.nn.Dropout3d(0.5)(td.ones((2, 3, 4, 4, 4), device="cpu")).shape
    (2, 3, 4, 4, 4)
    """

    _function = staticmethod(dropouts.dropout3d)


class AlphaDropout(_Dropout):
    """`Dropout` for networks of `SELU`: it keeps the mean and variance of the elements.

    >>> import treadle as td
    >>> layer, x = td.nn.AlphaDropout(0.2), td.ones((4, 8), device="cpu")
    >>> layer(x).shape, layer.eval()(x) is x
    ((4, 8), True)
    """

    _function = staticmethod(dropouts.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels, of (N, C, …).

    >>> import treadle as td
    >>> td.nn.FeatureAlphaDropout(0.2)(td.ones((2, 3, 4, 4), device="cpu")).shape
    (2, 3, 4, 4)
    """

    _function = staticmethod(dropouts.feature_alpha_dropout)
