"""Activations as modules: the functions of `td.nn.functional` with their settings as attributes."""

from __future__ import annotations

from typing import Any

from treadle.nn import init as initial
from treadle.nn.function_module import FunctionModule
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.creation import empty
from treadle.tensor.functional import activations, normalization
from treadle.tensor.tensor import Tensor


class _InPlace(FunctionModule):
    """A function without settings, but that it may write its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


# --- without parameters --------------------------------------------------------------------------


class ReLU(_InPlace):
    """max(x, 0) of each element x. The result has the input's shape and dtype.

    >>> import treadle as td
    >>> td.nn.ReLU()(td.asarray([-1.0, 2.0], device="cpu")).tolist()
    [0.0, 2.0]
    """

    _function = staticmethod(activations.relu)


class ReLU6(_InPlace):
    """min(max(x, 0), 6) of each element x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 9.0], device="cpu")
    >>> td.nn.ReLU6()(x).tolist()
    [0.0, 0.5, 6.0]
    """

    _function = staticmethod(activations.relu6)


class SELU(_InPlace):
    """`elu` with the factors of self-normalizing networks.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.SELU()(x).tolist()]
    [-1.52, 0.525]
    """

    _function = staticmethod(activations.selu)


class SiLU(_InPlace):
    """x * sigmoid(x), which is also called swish.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.SiLU()(x).tolist()]
    [-0.238, 0.311]
    """

    _function = staticmethod(activations.silu)


class Mish(_InPlace):
    """x * tanh(softplus(x)).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Mish()(x).tolist()]
    [-0.253, 0.375]
    """

    _function = staticmethod(activations.mish)


class Hardsigmoid(_InPlace):
    """x / 6 + 1/2, limited to the interval from 0 to 1.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Hardsigmoid()(x).tolist()]
    [0.167, 0.583]
    """

    _function = staticmethod(activations.hardsigmoid)


class Hardswish(_InPlace):
    """x * hardsigmoid(x).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Hardswish()(x).tolist()]
    [-0.333, 0.292]
    """

    _function = staticmethod(activations.hardswish)


class Sigmoid(FunctionModule):
    """1 / (1 + exp(-x)).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Sigmoid()(x).tolist()]
    [0.119, 0.622]
    """

    _function = staticmethod(activations.sigmoid)

    def __init__(self) -> None:
        super().__init__()


class Tanh(FunctionModule):
    """The hyperbolic tangent.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Tanh()(x).tolist()]
    [-0.964, 0.462]
    """

    _function = staticmethod(activations.tanh)

    def __init__(self) -> None:
        super().__init__()


class LogSigmoid(FunctionModule):
    """The logarithm of the sigmoid.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.LogSigmoid()(x).tolist()]
    [-2.127, -0.474]
    """

    _function = staticmethod(activations.logsigmoid)

    def __init__(self) -> None:
        super().__init__()


class Softsign(FunctionModule):
    """x / (1 + |x|).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Softsign()(x).tolist()]
    [-0.667, 0.333]
    """

    _function = staticmethod(activations.softsign)

    def __init__(self) -> None:
        super().__init__()


class Tanhshrink(FunctionModule):
    """x - tanh(x).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Tanhshrink()(x).tolist()]
    [-1.036, 0.038]
    """

    _function = staticmethod(activations.tanhshrink)

    def __init__(self) -> None:
        super().__init__()


# --- with numbers --------------------------------------------------------------------------------


class Hardtanh(FunctionModule):
    """`min_val` where x is less, `max_val` where x is greater, else x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Hardtanh()(x).tolist()]
    [-1.0, 0.5]
    """

    _function = staticmethod(activations.hardtanh)
    _text = "min_val={min_val}, max_val={max_val}"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class Threshold(FunctionModule):
    """`x` where x > threshold, else `value`.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Threshold(0.1, 20)(x).tolist()]
    [20.0, 0.5]
    """

    _function = staticmethod(activations.threshold)
    _text = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class LeakyReLU(FunctionModule):
    """`x` where x is positive, else `negative_slope` * x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.LeakyReLU(0.1)(x).tolist()]
    [-0.2, 0.5]
    """

    _function = staticmethod(activations.leaky_relu)
    _text = "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class RReLU(FunctionModule):
    """`LeakyReLU` with random slopes: in training each element gets a slope drawn uniformly between
    `lower` and `upper`, in evaluation their mean is used.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> td.nn.RReLU(0.25, 0.75).eval()(x).tolist()
    [-1.0, 0.5]
    """

    _function = staticmethod(activations.rrelu)
    _text = "lower={lower}, upper={upper}"

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: ArrayLike) -> Tensor:
        """The slopes are drawn for each element."""
        return activations.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(FunctionModule):
    """`x` where x is positive, else alpha * (exp(x) - 1).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.ELU()(x).tolist()]
    [-0.865, 0.5]
    """

    _function = staticmethod(activations.elu)
    _text = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(FunctionModule):
    """`x` where x is positive, else alpha * (exp(x / alpha) - 1).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.CELU()(x).tolist()]
    [-0.865, 0.5]
    """

    _function = staticmethod(activations.celu)
    _text = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class GELU(FunctionModule):
    """`x` times the cumulative distribution function of the normal distribution, at x.

    `approximate="tanh"` computes it by a formula with the hyperbolic tangent, which is cheaper and
    less accurate.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.GELU()(x).tolist()]
    [-0.046, 0.346]
    """

    _function = staticmethod(activations.gelu)
    _text = "approximate={approximate}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class Softplus(FunctionModule):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Softplus()(x).tolist()]
    [0.127, 0.974]
    """

    _function = staticmethod(activations.softplus)
    _text = "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Hardshrink(FunctionModule):
    """`x` where |x| > lambd, else 0.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Hardshrink()(x).tolist()]
    [-2.0, 0.0]
    """

    _function = staticmethod(activations.hardshrink)
    _text = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Softshrink(FunctionModule):
    """`x` moved towards 0 by `lambd`, and 0 where |x| <= lambd.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Softshrink()(x).tolist()]
    [-1.5, 0.0]
    """

    _function = staticmethod(activations.softshrink)
    _text = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class PReLU(Module):
    """`x` where x is positive, else a learned slope times x. There is one slope for all elements,
    or one for each channel (axis 1) with `num_parameters=C`.

    >>> import treadle as td
    >>> layer = td.nn.PReLU(device="cpu")  # the slope begins as 0.25
    >>> layer(td.asarray([-2.0, 3.0], device="cpu")).tolist()
    [-0.5, 3.0]
    """

    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin anew with `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: ArrayLike) -> Tensor:
        """The channels are axis 1."""
        return activations.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


# --- along an axis -------------------------------------------------------------------------------


class GLU(FunctionModule):
    """The gated linear unit: the first half of `dim` times the sigmoid of the second half.

    >>> import treadle as td
    >>> td.nn.GLU()(td.ones((2, 6), device="cpu")).shape
    (2, 3)
    """

    _function = staticmethod(activations.glu)
    _text = "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class _AlongRows(FunctionModule):
    """A function along an axis, which is the last one if none is named."""

    _text = "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)

    def forward(self, input: Any) -> Tensor:
        """Rows of the input's shape."""
        found: Tensor = type(self)._function(input, -1 if self.dim is None else self.dim)
        return found


class Softmax(_AlongRows):
    """exp(x), divided by its sum along an axis.

    >>> import treadle as td
    >>> td.nn.Softmax(dim=0)(td.zeros(2, device="cpu")).tolist()
    [0.5, 0.5]
    """

    _function = staticmethod(normalization.softmax)


class LogSoftmax(_AlongRows):
    """The logarithm of the softmax.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.LogSoftmax(dim=0)(x).tolist()]
    [-2.579, -0.079]
    """

    _function = staticmethod(normalization.log_softmax)


class Softmin(_AlongRows):
    """The softmax of -x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5], device="cpu")
    >>> [round(y, 3) for y in td.nn.Softmin(dim=0)(x).tolist()]
    [0.924, 0.076]
    """

    _function = staticmethod(activations.softmin)


class Softmax2d(Module):
    """The softmax over the channels of images of shape (N, C, H, W) or (C, H, W).

    >>> import treadle as td
    >>> x = td.zeros((1, 4, 2, 2), device="cpu")
    >>> y = td.nn.Softmax2d()(x)
    >>> y.shape, y[0, :, 0, 0].tolist()
    ((1, 4, 2, 2), [0.25, 0.25, 0.25, 0.25])
    """

    def forward(self, input: ArrayLike) -> Tensor:
        """Of the input's shape."""
        return normalization.softmax(input, axis=-3)
