"""Arithmetic that NumPy does not have, or has with another meaning than the IR's (`ir.nodes`)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from treadle.drivers.cpu_numpy.chunks import Affine, Array, Value

# --- casts and bits ------------------------------------------------------------------------------


def plain(value: Value) -> Value:
    """A value as NumPy's."""
    return value.array if isinstance(value, Affine) else value


def truncate(value: Value, dtype: Any) -> Value:
    """A float as an integer: towards zero, saturating, NaN as 0."""
    wide = value.astype(np.float64)
    limits = np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)  # the latter is rounded up for 64 bits
    is_high = wide >= high
    safe = np.where((wide > low) & ~is_high, wide, 0.0)
    result = np.where(is_high, dtype(limits.max), safe.astype(dtype))
    result = np.where(wide <= low, dtype(limits.min), result)
    return result if isinstance(value, np.ndarray) else dtype(result)


def round_bf16(value: Value) -> Value:
    """A float as the nearest bfloat16, ties to even; it stays a float32."""
    if value.dtype == np.float64:
        value = _to_odd_float32(value)
    else:
        value = value.astype(np.float32, copy=False) if isinstance(value, np.ndarray) else (
            np.float32(value)
        )  # fmt: skip
    bits = value.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) & (
        np.uint32(0xFFFF0000)
    )
    is_nan = np.isnan(value)
    result = np.where(is_nan, (bits | np.uint32(0x400000)) & np.uint32(0xFFFF0000), rounded)
    return _like(value, result.astype(np.uint32).view(np.float32))


def _like(value: Value, result: Array) -> Value:
    return result if isinstance(value, np.ndarray) else result[()]


def _to_odd_float32(value: Value) -> Value:
    """A float64 as float32, with the last bit set if it is not exact: so that rounding it again
    gives what rounding once would."""
    wide = np.asarray(value)
    single = wide.astype(np.float32)
    back = single.astype(np.float64)
    inexact = (back != wide) & np.isfinite(single)
    bits = single.view(np.uint32)
    away = np.abs(back) > np.abs(wide)
    odd = np.where(away, bits - np.uint32(1), bits) | np.uint32(1)
    overflows = np.isinf(single) & np.isfinite(wide)
    result = np.where(inexact, odd, bits).astype(np.uint32).view(np.float32)
    del overflows  # beyond float32 both round to infinity
    return _like(value, result)


def integer_to_bf16(value: Value) -> Value:
    """An integer as the nearest bfloat16."""
    value = plain(value)
    if value.dtype.itemsize == 8:
        # Bits below the 53 of a float64 only say that it is not a tie.
        low = (value & 0x7FF) != 0
        large = (value >> 53 != 0) & (value >> 53 != -1) if value.dtype.kind == "i" else (
            value >> np.uint64(53) != 0
        )  # fmt: skip
        kept = (value & ~value.dtype.type(0x7FF)) | low.astype(value.dtype) << value.dtype.type(11)
        value = np.where(large, kept, value)
    return round_bf16(value.astype(np.float64))


def bf16_of(bits: Value) -> Value:
    """The bfloat16 with these bits, as a float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_bits(value: Value) -> Value:
    """The bits of a bfloat16."""
    return (value.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


# --- integers ------------------------------------------------------------------------------------


def quotient(left: Value, right: Value) -> Value:
    """The quotient of signed integers, towards zero; 0 for a divisor of 0."""
    if isinstance(left, Affine) and left.low >= 0:
        return left // right
    left, right = plain(left), plain(right)
    return (left - np.fmod(left, right)) // right


def _unsigned(value: Value) -> Value:
    value = plain(value)
    return value.view(f"u{value.dtype.itemsize}")


def popcount(value: Value) -> Value:
    """The bits that are set."""
    return np.bitwise_count(_unsigned(value)).astype(np.int32)


def clz(value: Value) -> Value:
    """The bits above the highest that is set."""
    bits = _unsigned(value)
    kind = bits.dtype.type
    shift = 1
    while shift < bits.dtype.itemsize * 8:
        bits = bits | bits >> kind(shift)
        shift *= 2
    return np.bitwise_count(~bits).astype(np.int32)


def ctz(value: Value) -> Value:
    """The bits below the lowest that is set."""
    bits = _unsigned(value)
    return np.bitwise_count(~bits & bits - bits.dtype.type(1)).astype(np.int32)


def reverse_bits(value: Value) -> Value:
    """The bits in the other order."""
    value = plain(value)
    bits = _unsigned(value)
    kind, width = bits.dtype.type, bits.dtype.itemsize * 8
    whole, shift = (1 << width) - 1, width // 2
    while shift:
        low = whole // ((1 << shift) + 1)  # every other group of `shift` bits
        bits = (bits & kind(low)) << kind(shift) | bits >> kind(shift) & kind(low)
        shift //= 2
    return bits.view(value.dtype)


def mul_high(left: Value, right: Value) -> Value:
    """The upper half of a product."""
    left, right = plain(left), plain(right)
    kind = left.dtype
    width = kind.itemsize * 8
    if width < 64:
        wide = np.int64 if kind.kind == "i" else np.uint64
        return (left.astype(wide) * right.astype(wide) >> wide(width)).astype(kind)
    a, b = left.view(np.uint64), right.view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    high = a1 * b1 + (middle >> half) + (a0 * b1 + (middle & low) >> half)
    if kind.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(left < 0, b, zero) - np.where(right < 0, a, zero)
        high = high.astype(np.uint64)
    return high.view(kind)


def _bytes(words: Value, dtype: Any) -> list[Value]:
    words = plain(words)
    return [
        (words >> words.dtype.type(shift)).astype(dtype).astype(np.int32)
        for shift in (0, 8, 16, 24)
    ]


def _dot4(left: Any, right: Any) -> Any:
    def dot(a: Value, b: Value, sum: Value) -> Value:
        for x, y in zip(_bytes(a, left), _bytes(b, right), strict=True):
            sum = sum + x * y
        return sum

    return dot


def fma_int(left: Value, right: Value, addend: Value) -> Value:
    """A product and sum of integers."""
    return left * right + addend


# --- floats --------------------------------------------------------------------------------------


def _sum_to_odd(left: Value, right: Value) -> Value:
    """The sum of float64s, with the last bit set if it is not exact."""
    total = np.asarray(left + right)
    shared = total - left
    error = (left - (total - shared)) + (right - shared)
    bits = total.view(np.int64)
    adjust = (error != 0) & np.isfinite(total) & np.isfinite(error) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(adjust, bits + step, bits).view(np.float64)


def _narrow_fma(dtype: Any) -> Any:
    def fma(left: Value, right: Value, addend: Value) -> Value:
        wide = np.float64
        result = _sum_to_odd(left.astype(wide) * right.astype(wide), addend.astype(wide))
        result = result.astype(dtype)
        return result[()] if result.ndim == 0 else result

    return fma


def fma_bf16(left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend` of bfloat16, rounded once."""
    wide = np.float64
    result = _sum_to_odd(left.astype(wide) * right.astype(wide), addend.astype(wide))
    return round_bf16(result[()] if result.ndim == 0 else result)


def _split(value: Value) -> tuple[Value, Value]:
    scaled = value * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - value)
    return high, value - high


def fma_f64(left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend`, rounded once (Boldo and Melquiond's steps)."""
    left, right, addend = np.broadcast_arrays(left, right, addend)
    shape = left.shape
    product = left * right
    # Exact steps need room: factors are scaled to about 1, the addend by the same power of two.
    a, ea = np.frexp(left)
    b, eb = np.frexp(right)
    by = ea + eb
    c = np.ldexp(addend, -by)
    high = a * b
    a1, a0 = _split(a)
    b1, b0 = _split(b)
    low = ((a1 * b1 - high) + a1 * b0 + a0 * b1) + a0 * b0
    th = c + low
    s = th - c
    tl = (c - (th - s)) + (low - s)
    vh = high + th
    s = vh - high
    vl = (high - (vh - s)) + (th - s)
    exact = np.ldexp(vh + _sum_to_odd(tl, vl), by)
    plain_sum = product + addend
    # Where the scaled addend left the range, one of the two is all that counts.
    usable = np.isfinite(exact) & np.isfinite(plain_sum) & (left != 0) & (right != 0) & (
        (c != 0) | (addend == 0)
    )  # fmt: skip
    result = np.where(usable, exact, plain_sum)
    return result[()] if shape == () else result


def min_(left: Value, right: Value) -> Value:
    """The lesser, NaN if one is NaN; the negative zero is the lesser of two zeros."""
    if isinstance(left, Affine) and isinstance(right, np.integer) and left.high <= right:
        return left
    result = np.minimum(plain(left), plain(right))
    if result.dtype.kind != "f":
        return result
    chosen: Value = np.where((left == 0) & (right == 0) & np.signbit(right), right, result)
    return chosen[()]


def max_(left: Value, right: Value) -> Value:
    """The greater, NaN if one is NaN."""
    if isinstance(left, Affine) and isinstance(right, np.integer) and left.low >= right:
        return left
    result = np.maximum(plain(left), plain(right))
    if result.dtype.kind != "f":
        return result
    chosen: Value = np.where((left == 0) & (right == 0) & ~np.signbit(right), right, result)
    return chosen[()]


def _fast(function: Any) -> Any:
    """A function that promises no accuracy. Halves are computed in float32 by NumPy itself."""
    return lambda *operands: function(*operands).astype(operands[0].dtype)


def _wide(function: Any) -> Any:
    """A function of float32, computed in float64 and rounded once more."""

    def rounded(*operands: Value) -> Value:
        return function(*[operand.astype(np.float64) for operand in operands]).astype(np.float32)

    return rounded


def clock() -> Any:
    """Nanoseconds, as a clock of the hardware."""
    return np.uint64(time.perf_counter_ns())


def _of_plain(function: Any) -> Any:
    return lambda value: function(plain(value))


NUMBERS: dict[str, Any] = {
    "truncate": truncate, "round_bf16": round_bf16, "integer_to_bf16": integer_to_bf16,
    "bf16_of": bf16_of, "bf16_bits": bf16_bits,
    "quotient": quotient, "fmod": np.fmod, "popcount": popcount, "clz": clz, "ctz": ctz,
    "reverse_bits": reverse_bits, "mul_high": mul_high, "fma_int": fma_int,
    "dot4_i8": _dot4(np.int8, np.int8), "dot4_u8": _dot4(np.uint8, np.uint8),
    "dot4_u8i8": _dot4(np.uint8, np.int8),
    "fma_f16": _narrow_fma(np.float16), "fma_f32": _narrow_fma(np.float32),
    "fma_bf16": fma_bf16, "fma_f64": fma_f64,
    "abs_": _of_plain(np.abs), "min_": min_, "max_": max_,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "fast_rsqrt": _fast(lambda x: x.dtype.type(1) / np.sqrt(x)), "fast_exp": _fast(np.exp),
    "fast_exp2": _fast(np.exp2), "fast_log": _fast(np.log), "fast_log2": _fast(np.log2),
    "fast_sin": _fast(np.sin), "fast_cos": _fast(np.cos), "fast_tan": _fast(np.tan),
    "fast_tanh": _fast(np.tanh), "fast_pow": _fast(np.power), "clock": clock,
    **{f"wide_{name}": _wide(getattr(np, name, None) or getattr(np, f"arc{name[1:]}")) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "exp2",
        "expm1", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh",
    )},
}  # fmt: skip
"""By the names that printed code calls."""
