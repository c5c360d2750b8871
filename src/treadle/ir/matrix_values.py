"""What operations on the matrices of a subgroup compute, with NumPy: for the interpreter, and for
the target that computes with NumPy. The layout is that of `ir.matrices`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.ir.matrices import COLUMNS, PRODUCTS, ROWS, WIDTH
from treadle.ir.types import Scalar

Array = np.ndarray[Any, Any]

_TF32_BITS = np.uint32(0xFFFFE000)
_LANE = np.arange(WIDTH)
_GROUP, _QUARTER = _LANE // 4, _LANE % 4


def exchanged(op: str, operands: Sequence[Array]) -> Array:
    """The results of an operation: `operands` are arrays of (…, lanes, words), as is the result."""
    if op in PRODUCTS:
        return _product(op, *operands)
    (words,) = operands
    parts = np.ascontiguousarray(words).astype(np.uint32).view(np.uint16)
    matrices = parts.reshape(*words.shape[:-2], 4, 8, 8)
    if op == "matrix_columns":
        matrices = matrices.swapaxes(-1, -2)
    pairs = np.ascontiguousarray(matrices).view(np.uint32)
    return pairs.reshape(*words.shape[:-2], 4, WIDTH).swapaxes(-1, -2)


def _product(op: str, first: Array, second: Array, sums: Array) -> Array:
    product = PRODUCTS[op]
    stack, inner, per = sums.shape[:-2], product.inner, product.per
    summed = np.float32 if product.sums.is_float else np.int32
    along = per * _QUARTER[:, None] + np.arange(per)
    a = np.zeros((*stack, ROWS, inner), summed)
    b = np.zeros((*stack, inner, COLUMNS), summed)
    c = np.zeros((*stack, ROWS, COLUMNS), summed)
    for at in range(4):
        row = _GROUP + 8 * (at % 2)
        a[..., row[:, None], along + 4 * per * (at // 2)] = _elements(
            product.elements[0], first[..., at]
        )
    for at in range(2):
        b[..., along + 4 * per * at, _GROUP[:, None]] = _elements(
            product.elements[1], second[..., at]
        )
    places = [(_GROUP + 8 * (at // 2), 2 * _QUARTER + at % 2) for at in range(4)]
    for at, (row, column) in enumerate(places):
        c[..., row, column] = sums[..., at]
    total = c + a @ b
    return np.stack([total[..., row, column] for row, column in places], -1)


def _elements(element: Scalar, words: Array) -> Array:
    """The elements in words, along one more axis, as numbers that sums are made of."""
    words = np.ascontiguousarray(words).astype(np.uint32)[..., None]
    match element.name:
        case "f16":
            return words.view(np.float16).astype(np.float32)
        case "bf16":
            halves = words.view(np.uint16).astype(np.uint32)
            return (halves << np.uint32(16)).view(np.float32)
        case "f32":
            return (words & _TF32_BITS).view(np.float32)
    return words.view(np.int8 if element.is_signed else np.uint8).astype(np.int32)
