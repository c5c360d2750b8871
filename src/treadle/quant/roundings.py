"""Numbers as blocks: for each format a function from float32 (blocks, elements) to planes.

Formats of plain blocks give the bytes that ggml's reference gives. Those whose parts have scales
follow its methods (see `scale_search`), with sums in another order, so that now and then a number
is rounded otherwise, and the error is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from treadle.core.dtypes import bfloat16
from treadle.kernels.device_code.quantized_formats import DOUBLED_E2M1, NONLINEAR
from treadle.quant.scale_search import (
    Affine,
    Nearest,
    divided,
    fit_affine,
    fit_in_order,
    fit_linear,
    fit_nearest,
    inverse,
    largest,
    rounded,
)

Array = np.ndarray[Any, Any]
Planes = dict[str, Array]
_NEAREST = Nearest(NONLINEAR)
_REFITS = 2


def packed(integers: Array, run: int, width: int) -> Array:
    """Bytes of integers (blocks, elements) of `width` bits: `expressions._unpacked` reversed."""
    groups = integers.astype(np.uint8).reshape(len(integers), -1, 8 // width, run)
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    found: Array = np.bitwise_or.reduce(groups << shifts, axis=2)
    return found.reshape(len(integers), -1)


def _in_parts(x: Array, count: int) -> Array:
    """Blocks (blocks, elements) as columns of their parts: (count, blocks * parts)."""
    return np.ascontiguousarray(x.reshape(-1, count).T)


def _in_blocks(columns: Array, blocks: int) -> Array:
    """The elements of parts as those of blocks: `_in_parts` reversed."""
    return columns.T.reshape(blocks, -1)


# --- plain blocks: what ggml's reference gives, to the byte ---------------------------------------


def _f16(x: Array) -> Planes:
    return {"values": x.astype(np.float16)[:, 0]}


def _bf16(x: Array) -> Planes:
    return {"values": x.astype(bfloat16.numpy)[:, 0]}


def _symmetric(x: Array, most: int) -> tuple[Array, Array]:
    """The scale that makes the number of greatest magnitude -`most`, and the integers from 0."""
    scale = largest(x.T) / np.float32(-most)
    integers = np.trunc(x * inverse(scale)[:, None] + np.float32(most + 0.5))
    return scale, np.minimum(integers.astype(np.uint8), 2 * most - 1)


def _asymmetric(x: Array, most: int) -> tuple[Array, Array, Array]:
    """The scale that makes the range of the numbers `most`, their minimum, and the integers."""
    lowest = x.min(1)
    scale = (x.max(1) - lowest) / np.float32(most)
    integers = np.trunc((x - lowest[:, None]) * inverse(scale)[:, None] + np.float32(0.5))
    return scale, lowest, np.minimum(integers.astype(np.uint8), most)


def _fifth_bits(integers: Array) -> Array:
    return np.packbits(integers >> 4, axis=-1, bitorder="little").view("<u4")[:, 0]


def _q4_0(x: Array) -> Planes:
    scale, integers = _symmetric(x, 8)
    return {"scale": scale.astype(np.float16), "low": packed(integers, 16, 4)}


def _q5_0(x: Array) -> Planes:
    scale, integers = _symmetric(x, 16)
    return {
        "scale": scale.astype(np.float16),
        "high": _fifth_bits(integers),
        "low": packed(integers & 15, 16, 4),
    }


def _q4_1(x: Array) -> Planes:
    scale, lowest, integers = _asymmetric(x, 15)
    return {
        "scale": scale.astype(np.float16),
        "min": lowest.astype(np.float16),
        "low": packed(integers, 16, 4),
    }


def _q5_1(x: Array) -> Planes:
    scale, lowest, integers = _asymmetric(x, 31)
    return {
        "scale": scale.astype(np.float16),
        "min": lowest.astype(np.float16),
        "high": _fifth_bits(integers),
        "low": packed(integers & 15, 16, 4),
    }


def _q8_0(x: Array) -> Planes:
    scale = np.abs(x).max(1) / np.float32(127)
    scaled = x * inverse(scale)[:, None]
    whole = np.floor(np.abs(scaled))
    away = whole + np.floor(2 * (np.abs(scaled) - whole))  # halves go away from zero
    return {
        "scale": scale.astype(np.float16),
        "values": (np.sign(scaled) * away).astype(np.int8),
    }


def _q8_k(x: Array) -> Planes:
    per_unit = np.float32(-127) * inverse(largest(x.T))
    return {
        "scale": inverse(per_unit),
        "values": np.minimum(np.rint(x * per_unit[:, None]), 127).astype(np.int8),
    }


def _mxfp4(x: Array) -> Planes:
    peak = np.abs(x).max(1)
    with np.errstate(divide="ignore"):
        power = np.where(peak > 0, np.floor(np.log2(peak)) - 2 + 127, 0)
    exponent = np.clip(power, 0, 254).astype(np.uint8)
    scale = np.ldexp(np.float32(1), exponent.astype(np.int32) - 128).astype(np.float32)[:, None]
    best = np.zeros(x.shape, np.uint8)
    least = np.abs(x)  # the error of the first value, 0
    for index, value in enumerate(DOUBLED_E2M1):
        error = np.abs(scale * np.float32(value) - x)
        better = error < least
        np.copyto(best, index, where=better)
        np.copyto(least, error, where=better)
    return {"scale": exponent, "low": packed(best, 16, 4)}


# --- blocks whose parts have scales ---------------------------------------------------------------


def _integer_scales(scales: Array, most: int) -> tuple[Array, Array]:
    """Scales of parts (blocks, parts), from 0 up, as integers and a scale of float16."""
    peak = np.maximum(scales.max(1), 0)
    integers = np.minimum(np.rint(np.float32(most) * inverse(peak)[:, None] * scales), most)
    return (peak / np.float32(most)).astype(np.float16), integers.clip(0).astype(np.uint8)


def _signed_scales(scales: Array, most: int) -> tuple[Array, Array]:
    """Scales of parts (blocks, parts) as signed integers, that of greatest magnitude as -`most`,
    and a scale of float16."""
    peak = largest(scales.T)
    per_unit = np.where(np.abs(peak) < 1e-15, np.float32(0), -np.float32(most) * inverse(peak))
    integers = np.clip(np.rint(per_unit[:, None] * scales), -most, most - 1)
    return inverse(per_unit).astype(np.float16), integers.astype(np.int8)


def _affine(x: Array, fitted: Affine, most: int, most_scale: int) -> tuple[Planes, Array]:
    """The scales of affine parts as integers, and the elements' integers (blocks, elements) for
    the scales that these are. The scales of whole blocks are then fitted to all integers by least
    squares, and these chosen anew, which makes good some of what rounding the scales has cost."""
    blocks, count = len(x), len(fitted.integers)
    parts = _in_parts(x, count)
    scale, scales = _integer_scales(fitted.scale.reshape(blocks, -1), most_scale)
    least, mins = _integer_scales(fitted.minimum.reshape(blocks, -1), most_scale)
    integers = fitted.integers
    for iteration in range(_REFITS + 1):
        if iteration:
            sums = [each.reshape(blocks, -1) for each in _sums_of_parts(parts, integers)]
            scale, least = _refitted(scale, least, scales, mins, count, *sums)
        by = (scale.astype(np.float32)[:, None] * scales).reshape(-1)
        less = (least.astype(np.float32)[:, None] * mins).reshape(-1)
        integers = np.where(by != 0, rounded((parts + less) * inverse(by), 0, most), integers)
    planes = {"scale": scale, "min": least, "scales": scales, "mins": mins}
    return planes, _in_blocks(integers.astype(np.uint8), blocks)


def _sums_of_parts(parts: Array, integers: Array) -> tuple[Array, ...]:
    return (
        integers.sum(0), (integers * integers).sum(0), parts.sum(0), (integers * parts).sum(0)
    )  # fmt: skip


def _refitted(
    scale: Array, least: Array, scales: Array, mins: Array, count: int,
    sum_l: Array, sum_ll: Array, sum_x: Array, sum_xl: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """The scale and minimum of blocks for which the sum of squares is least, with the integers that
    are: those before where there are none. Sums are of parts (blocks, parts)."""
    by, less = scales.astype(np.float32), mins.astype(np.float32)
    a, b = (by * by * sum_ll).sum(1), -(by * less * sum_l).sum(1)
    c = (less * less).sum(1) * np.float32(count)
    p, q = (by * sum_xl).sum(1), -(less * sum_x).sum(1)
    determinant = a * c - b * b
    new_scale = divided(p * c - q * b, determinant).astype(np.float16)
    new_least = divided(a * q - b * p, determinant).astype(np.float16)
    known = (determinant > 0) & (new_scale > 0) & (new_least >= 0) & np.isfinite(new_scale)
    return np.where(known, new_scale, scale), np.where(known, new_least, least)


def _linear(
    x: Array, scales: Array, count: int, most: int, most_scale: int
) -> tuple[Planes, Array]:
    """The scales of parts of `count` elements as signed integers, and the elements' integers from 0
    (blocks, elements) for the scales that these are."""
    blocks = len(x)
    scale, integer_scales = _signed_scales(scales.reshape(blocks, -1), most_scale)
    by = (scale.astype(np.float32)[:, None] * integer_scales).reshape(-1)
    integers = rounded(_in_parts(x, count) * inverse(by), -most, most - 1) + most
    planes = {"scale": scale, "scales": integer_scales}
    return planes, _in_blocks(integers.astype(np.uint8), blocks)


def _q2_k(x: Array) -> Planes:
    parts = _in_parts(x, 16)
    fitted = fit_affine(parts, np.abs(parts), 3, -0.5, 15, absolute=True)
    planes, integers = _affine(x, fitted, 3, 15)
    scales = planes["scales"] | (planes.pop("mins") << 4)
    return {**planes, "scales": scales, "low": packed(integers, 32, 2)}


def _q3_k(x: Array) -> Planes:
    scales = fit_in_order(_in_parts(x, 16), 4).scale
    planes, integers = _linear(x, scales, 16, 4, 32)
    return {**planes, "high": packed(integers >> 2, 32, 1), "low": packed(integers & 3, 32, 2)}


def _with_mean(parts: Array) -> Array:
    """Weights of elements: their magnitudes, and the root of the mean square of their part."""
    mean: Array = np.sqrt((parts * parts).mean(0))
    return mean + np.abs(parts)


def _q4_k(x: Array) -> Planes:
    parts = _in_parts(x, 32)
    fitted = fit_affine(parts, _with_mean(parts), 15, -1, 20, absolute=False)
    planes, integers = _affine(x, fitted, 15, 63)
    return {**planes, "low": packed(integers, 32, 4)}


def _q5_k(x: Array) -> Planes:
    parts = _in_parts(x, 32)
    fitted = fit_affine(parts, _with_mean(parts), 31, -0.5, 15, absolute=False)
    planes, integers = _affine(x, fitted, 31, 63)
    return {**planes, "high": packed(integers >> 4, 32, 1), "low": packed(integers & 15, 32, 4)}


def _q6_k(x: Array) -> Planes:
    scales = fit_linear(_in_parts(x, 16), 32).scale
    planes, integers = _linear(x, scales, 16, 32, 128)
    return {**planes, "low": packed(integers & 15, 64, 4), "high": packed(integers >> 4, 32, 2)}


def _iq4_nl(x: Array) -> Planes:
    parts = _in_parts(x, 32)
    scale = fit_nearest(parts, _NEAREST)
    indices = _NEAREST.indices(parts * inverse(scale))
    return {
        "scale": scale.astype(np.float16),
        "low": packed(_in_blocks(indices, len(x)), 16, 4),
    }


def _iq4_xs(x: Array) -> Planes:
    parts = _in_parts(x, 32)
    scale, scales = _signed_scales(fit_nearest(parts, _NEAREST).reshape(len(x), -1), 32)
    by = (scale.astype(np.float32)[:, None] * scales).reshape(-1)
    indices = _NEAREST.indices(parts * inverse(by))
    return {"scale": scale, "scales": scales, "low": packed(_in_blocks(indices, len(x)), 16, 4)}


ROUNDINGS: Mapping[str, Callable[[Array], Planes]] = {
    "f16": _f16,
    "bf16": _bf16,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "q8_k": _q8_k,
    "iq4_nl": _iq4_nl,
    "iq4_xs": _iq4_xs,
    "mxfp4": _mxfp4,
}
