"""Products with quantized matrices, with gradients for the activations.

The weights have none: they are what is frozen while adapters learn. The gradient of `x @ w.T` is
`g @ w`, a product with the same blocks, whose gradient in turn is a product with the transposed
matrix. The matrix is dequantized some rows at a time, here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from treadle.autograd.function import Function
from treadle.core.dtypes import float32
from treadle.core.errors import ShapeError
from treadle.graph.history import recording
from treadle.kernels.launching import serial_threads
from treadle.quant.blocks import Quantized
from treadle.quant.products import linear as plain_linear
from treadle.quant.products import linears as plain_linears
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor

# Elements of the matrix that are dequantized at a time: such as stay in a CPU's cache, or as a GPU
# has memory for, where they are written out at all.
_TOGETHER = {True: 1 << 21, False: 1 << 27}
Map = Callable[[Tensor], Tensor]


def linear(x: Tensor, w: Quantized, activations: Any = None) -> Tensor:
    """`products.linear`, differentiable. While a history of x is recorded, activations are not
    rounded to 8 bits unless that is asked for."""
    if not is_recorded(x):
        return plain_linear(x, w, activations)
    there = partial(plain_linear, w=w, activations=activations or "float")
    found: Tensor = _LinearMap.apply(x, there, partial(times, w=w))
    return found


def linears(x: Tensor, weights: Sequence[Quantized], activations: Any = None) -> list[Tensor]:
    """`products.linears`, differentiable as `linear` is."""
    if not is_recorded(x):
        return plain_linears(x, weights, activations)
    return [linear(x, w, activations) for w in weights]


def times(x: Tensor, w: Quantized) -> Tensor:
    """`x @ w` in float32, differentiable: x of shape (..., rows), w of (rows, n)."""
    if x.shape[-1:] != w.shape[:1]:
        raise ShapeError(
            f"a quantized matrix of shape {w.shape} multiplies rows of {w.shape[0]} elements here, "
            f"not those of an array of shape {x.shape}"
        )
    if not is_recorded(x):
        return _times(x, w)
    back = partial(plain_linear, w=w, activations="float")
    found: Tensor = _LinearMap.apply(x, partial(_times, w=w), back)
    return found


def _times(x: Tensor, w: Quantized) -> Tensor:
    rows, n = w.shape
    if not x.size * rows * n:
        return zeros((*x.shape[:-1], n), dtype=float32, device=x.device)
    flat = x.to(float32).reshape((-1, rows))
    step = max(_TOGETHER[serial_threads(x.device)] // n, 1)
    found: Tensor | None = None
    for at in range(0, rows, step):
        planes = {name: plane[at : at + step] for name, plane in w.planes.items()}
        part = flat[:, at : at + step] @ w.format.dequantize(planes)
        found = part if found is None else found + part
    assert found is not None
    return found.reshape((*x.shape[:-1], n))


def is_recorded(x: Tensor) -> bool:
    """Whether a history of x is recorded."""
    return x._history is not None and recording.get()


class _LinearMap(Function):
    """A linear function of a tensor, `there`, whose gradient is another one, `back`; and the other
    way round, for gradients of gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Map, back: Map) -> Tensor:
        """The function's result."""
        ctx.there, ctx.back, ctx.dtype = there, back, x.dtype
        return there(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The other function of the gradient."""
        if not is_recorded(g):
            return ctx.back(g).astype(ctx.dtype), None, None
        return _LinearMap.apply(g, ctx.back, ctx.there).astype(ctx.dtype), None, None
