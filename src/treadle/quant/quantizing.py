"""`td.quant.quantize` and `td.quant.formats`."""

from __future__ import annotations

from math import prod

import numpy as np

from treadle.quant.blocks import FORMATS, BlockFormat, format_named
from treadle.quant.matrix import QuantizedTensor, blocks_of_row
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.tensor import Tensor


def quantize(
    x: ArrayLike, format: str | BlockFormat, /, *, device: str | Device | None = None
) -> QuantizedTensor:
    """Numbers in blocks of one of `formats()`, along the last axis: on `device`, or where x is.

    The CPU does it. ValueError for numbers that are not finite or too large for the format;
    ShapeError if rows are not whole blocks.

    >>> import numpy as np, treadle as td
    >>> x = np.random.default_rng(0).normal(size=(8, 512)).astype(np.float32)
    >>> q = td.quant.quantize(x, "q4_k", device="cpu")
    >>> bool(np.abs(q.numpy() - x).mean() < 0.08), q.blocks().shape
    (True, (8, 2, 144))
    """
    kind = format if isinstance(format, BlockFormat) else format_named(format)
    if isinstance(x, Tensor):
        numbers, device = x.numpy(), device or x.device
    else:
        numbers = np.asarray(x)
    shape = numbers.shape
    if numbers.dtype.kind not in "fiuVb" or not shape:
        raise TypeError(f"quantize takes an array of real numbers, not {numbers.dtype} of {shape}")
    blocks_of_row(shape, kind)
    blocks = kind.quantize(numbers.reshape(prod(shape[:-1]), shape[-1]))
    return QuantizedTensor.from_blocks(blocks, shape, kind, device)


def formats() -> dict[str, BlockFormat]:
    """The block formats by their names: how many elements a block has, in how many bytes.

    >>> import treadle as td
    >>> td.quant.formats()["q4_k"].bits
    4.5
    """
    return dict(FORMATS)
