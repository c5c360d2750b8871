"""Initial values: each function writes into a tensor, without recording that, and gives it back.

The numbers are drawn from treadle's default generator, or from `generator`: which ones they are is
not PyTorch's, how they are distributed is.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import float32, float64
from treadle.core.errors import ShapeError
from treadle.graph.history import recorded
from treadle.tensor import random
from treadle.tensor.creation import zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.generator import Generator
from treadle.tensor.linalg.factors import qr
from treadle.tensor.manipulation import diagonal, swapaxes
from treadle.tensor.ranges import eye
from treadle.tensor.sorting import argsort
from treadle.tensor.tensor import Tensor

_clip, _sign, _where = FUNCTIONS["clip"], FUNCTIONS["sign"], FUNCTIONS["where"]
_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3,
    "relu": math.sqrt(2.0), "selu": 3 / 4,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights before a nonlinearity are to be greater; `param` is the slope of
    "leaky_relu" (0.01).

    >>> calculate_gain("tanh") == 5 / 3
    True
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"leaky_relu: the slope is a number, not {slope!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"nonlinearity is one of {', '.join((*_GAINS, 'leaky_relu'))}, not {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def _filled(tensor: Tensor, values: Any) -> Tensor:
    with recorded(False):
        tensor.detach()[...] = values
    return tensor


# --- of each element by itself -------------------------------------------------------------------


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Numbers from a up to b, all equally likely.

    >>> import treadle as td
    >>> x = td.nn.init.uniform_(td.empty((100, 100), device="cpu"), -1, 1)
    >>> bool(abs(x.mean().item()) < 0.05)
    True
    """
    drawn = random.uniform(
        tensor.shape, a, b, dtype=tensor.dtype, device=tensor.device, generator=generator
    )
    return _filled(tensor, drawn)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Numbers of the normal distribution."""
    drawn = random.normal(
        tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device, generator=generator
    )
    return _filled(tensor, drawn)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the normal distribution that lie from a to b: what the distribution's function
    makes of uniform numbers, inverted."""
    working = float64 if tensor.dtype is float64 else float32
    low, high = (math.erf((end - mean) / std / math.sqrt(2)) for end in (a, b))
    drawn = random.uniform(
        tensor.shape, low, high, dtype=working, device=tensor.device, generator=generator
    )
    return _filled(tensor, _clip(_erfinv(drawn) * (std * math.sqrt(2)) + mean, a, b))


def _erfinv(x: Tensor) -> Tensor:
    """The inverse of erf within -1 and 1: a start with the right ends, by S. Winitzki (2008), and
    Newton's steps."""
    log, sqrt, exp, erf = (FUNCTIONS[name] for name in ("log", "sqrt", "exp", "erf"))
    tiny = 1e-7 if x.dtype is float32 else 1e-15
    x = _clip(x, tiny - 1, 1 - tiny)
    a = 0.147
    logarithm = log((1 - x) * (1 + x))
    middle = logarithm * 0.5 + 2 / (math.pi * a)
    y = _sign(x) * sqrt(sqrt(middle * middle - logarithm * (1 / a)) - middle)
    for _ in range(2):
        y = y - (erf(y) - x) * exp(y * y) * (math.sqrt(math.pi) / 2)
    assert isinstance(y, Tensor)
    return y


def constant_(tensor: Tensor, val: float) -> Tensor:
    """A number everywhere."""
    return _filled(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return _filled(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return _filled(tensor, 0)


# --- by the numbers of what goes in and out ------------------------------------------------------


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many elements go into one of the results of a weight, and how many results an element
    goes into. ShapeError for less than two axes."""
    if tensor.ndim < 2:
        raise ShapeError(
            f"a weight of shape {tensor.shape} has no inputs and outputs: these initial values are "
            "for two axes or more"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers whose variance is gain**2 * 2 / (inputs + outputs). By X. Glorot and
    Y. Bengio, 2010."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers with the variance of `xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode is "fan_in" or "fan_out", not {mode!r}')
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers whose variance is gain**2 / inputs (or outputs, `mode="fan_out"`); `a` is the
    slope of "leaky_relu". By K. He and others, 2015."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers with the variance of `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


# --- matrices ------------------------------------------------------------------------------------


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_ takes a matrix, not a tensor of shape {tensor.shape}")
    return _filled(tensor, eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that leaves as many channels as they are as it can, in each group."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ShapeError(
            f"dirac_ takes the weight of a convolution, of three to five axes, the first of which "
            f"{groups} groups share; not one of shape {tensor.shape}"
        )
    made = zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    each = tensor.shape[0] // groups
    middle = tuple(extent // 2 for extent in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            made[(group * each + channel, channel, *middle)] = 1
    return _filled(tensor, made)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A matrix whose rows, or columns if there are fewer, are orthogonal and of length `gain`; the
    axes behind the first count as one. By A. Saxe and others, 2013.

    >>> import treadle as td
    >>> x = td.nn.init.orthogonal_(td.empty((2, 3), device="cpu"))
    >>> bool(td.abs(x @ x.T - td.eye(2, device="cpu")).max() < 1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_ takes two axes or more, not a tensor of {tensor.shape}")
    if not tensor.size:
        return tensor
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    working = float64 if tensor.dtype is float64 else float32
    shape = (max(rows, columns), min(rows, columns))
    drawn = random.normal(shape, dtype=working, device=tensor.device, generator=generator)
    with recorded(False):
        q, r = qr(drawn)
        q = q * _sign(diagonal(r))  # else the distribution would not be uniform
        matrix = swapaxes(q, 0, 1) if rows < columns else q
        return _filled(tensor, (matrix * gain).reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal numbers, of which that part of each column is 0. By J. Martens, 2010."""
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_ takes a matrix, not a tensor of shape {tensor.shape}")
    rows = tensor.shape[0]
    count = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator)
    keys = random.uniform(tensor.shape, device=tensor.device, generator=generator)
    ranks = argsort(argsort(keys, axis=0), axis=0)
    return _filled(tensor, _where(ranks < count, 0, tensor.detach()))
