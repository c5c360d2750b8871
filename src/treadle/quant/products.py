"""Products with quantized matrices: `linear(x, w)` is `x @ w.T` for rows of `w` in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from treadle.core.dtypes import float32
from treadle.core.errors import ShapeError
from treadle.tensor.joining import concat
from treadle.tensor.tensor import Tensor

if TYPE_CHECKING:
    from treadle.quant.matrix import QuantizedTensor

Activations = Literal["int8", "float"]
_PANEL = 1 << 22  # elements of the matrix that are dequantized at a time


def linear(x: Tensor, w: QuantizedTensor, activations: Activations | None = None) -> Tensor:
    """`x @ w.T` in float32: x of shape (..., n), w of (rows, n), the result of (..., rows).

    `activations="float"` computes with x as it is. `"int8"` may round it to 8 bits with a scale for
    each 32 elements, as other runtimes do: this is faster, and costs about 5e-3 of the result.
    """
    rows, n = w.shape
    if not x.ndim or x.shape[-1] != n:
        raise ShapeError(
            f"a quantized matrix of shape {w.shape} multiplies rows of {n} elements, "
            f"not those of an array of shape {x.shape}"
        )
    flat = x.astype(float32).reshape(-1, n)
    step = max(_PANEL // max(n, 1), 1)
    parts = [
        flat @ w.format.dequantize({k: p[at : at + step] for k, p in w.planes.items()}).T
        for at in range(0, rows, step)
    ]
    found = parts[0] if len(parts) == 1 else concat(parts, axis=1)
    return found.reshape(*x.shape[:-1], rows)
