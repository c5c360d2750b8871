"""The expressions whose speed is measured: in our names, NumPy's and PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_EPSILON = 1e-5


@dataclass(frozen=True)
class Expression:
    """An expression of one large float32 array and what beside it.

    `compute` takes a namespace (treadle or NumPy) and the arrays; `torch` takes PyTorch and its
    tensors, and is the fastest way to say it there in its eager mode. `extras` are the shapes of
    the arrays beside. `writes` says whether it writes an array as large as the first: that, and
    reading all of them, is the memory traffic it needs.
    """

    name: str
    shape: tuple[int, ...]
    compute: Callable[..., Any]
    torch: Callable[..., Any]
    extras: tuple[tuple[int, ...], ...] = ()
    writes: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes that have to be read and written."""
        read = sum(math.prod(shape) for shape in (self.shape, *self.extras))
        return 4 * (read + math.prod(self.shape) * self.writes)

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """Its arrays, from 0 to 1 but for a quarter that is below 0."""
        rng = np.random.default_rng(0)
        shapes = (self.shape, *self.extras)
        return [rng.random(shape, np.float32) * 2.0 - np.float32(0.5) for shape in shapes]


def gelu_tanh(xp: Any, y: Any) -> Any:
    """`y` times the normal distribution's share below y, nearly, with tanh."""
    return 0.5 * y * (1.0 + xp.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))


def _gelu(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return gelu_tanh(xp, x * w + b)


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def _layer_norm(xp: Any, x: Any, w: Any, b: Any) -> Any:
    centred = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centred * centred, axis=1, keepdims=True)
    return centred / xp.sqrt(variance + _EPSILON) * w + b


def _torch_gelu(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.gelu(x * w + b, approximate="tanh")


def ten_steps(xp: Any, x: Any) -> Any:
    """Ten steps of 25 elementwise operations, five of them sines."""
    for _ in range(5):
        x = xp.sin(x) * 1.5 + 0.25
        x = x * x - 0.5
    return x


def chain(count: int) -> Expression:
    """`ten_steps` of so many numbers."""
    return Expression(
        f"chain of ten steps with five sines, {_count(count)} float32",
        (count,), ten_steps, ten_steps, writes=True,
    )  # fmt: skip


def full_sum(count: int) -> Expression:
    """The sum of so many numbers."""
    return Expression(
        f"sum of {_count(count)} float32", (count,),
        lambda xp, x: xp.sum(x), lambda torch, x: x.sum(),
    )  # fmt: skip


def gelu(count: int) -> Expression:
    """An activation of so many numbers."""
    return Expression(
        f"gelu_tanh(x * w + b), {_count(count)} float32",
        (count,), _gelu, _torch_gelu, ((count,), (count,)), writes=True,
    )  # fmt: skip


def mean_of_gelu(count: int) -> Expression:
    """The mean of that activation."""
    return Expression(
        f"mean(gelu_tanh(x * w + b)), {_count(count)} float32", (count,),
        lambda xp, *arrays: xp.mean(_gelu(xp, *arrays)),
        lambda torch, *arrays: _torch_gelu(torch, *arrays).mean(),
        ((count,), (count,)),
    )  # fmt: skip


def sum_along(axis: int, edge: int) -> Expression:
    """The sums along an axis of a square."""
    return Expression(
        f"sum along axis {axis} of {edge} x {edge}", (edge, edge),
        lambda xp, x: xp.sum(x, axis=axis), lambda torch, x: x.sum(axis),
    )  # fmt: skip


def softmax(edge: int) -> Expression:
    """The softmax of each row of a square."""
    return Expression(
        f"softmax of {edge} x {edge}", (edge, edge), _softmax,
        lambda torch, x: torch.softmax(x, 1), writes=True,
    )  # fmt: skip


def layer_norm(edge: int) -> Expression:
    """Each row of a square normalized, scaled and shifted."""
    return Expression(
        f"layer norm of {edge} x {edge}", (edge, edge), _layer_norm,
        lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (edge,), w, b, _EPSILON),
        ((edge,), (edge,)), writes=True,
    )  # fmt: skip


def _gray_scott(roll: Callable[[Any, int, int], Any], u: Any, v: Any) -> Any:
    for _ in range(2):
        reaction = u * v * v
        around_u, around_v = (
            roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) - 4.0 * x
            for x in (u, v)
        )
        u, v = (
            u + 0.16 * around_u - reaction + 0.04 * (1.0 - u),
            v + 0.08 * around_v + reaction - 0.1 * v,
        )
    return u


def gray_scott(edge: int) -> Expression:
    """Two steps of a reaction of two fields that diffuse, their neighbours found by rolls."""
    return Expression(
        f"two steps of Gray-Scott by rolls, {edge} x {edge}", (edge, edge),
        lambda xp, u, v: _gray_scott(lambda x, by, axis: xp.roll(x, by, axis=axis), u, v),
        lambda torch, u, v: _gray_scott(torch.roll, u, v),
        ((edge, edge),), writes=True,
    )  # fmt: skip


def _count(count: int) -> str:
    """A number of elements as people say it.

    >>> _count(16 << 20), _count(1000)
    ('16 M', '1000')
    """
    return f"{count >> 20} M" if count >= 1 << 20 else str(count)
