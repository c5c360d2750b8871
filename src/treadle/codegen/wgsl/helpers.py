"""Small WGSL functions that printed kernels may need, by name; printed only if called.

Each is left at one place: `ir.passes.returns.with_one_return` says why.
"""

from __future__ import annotations

import re

HELPERS: dict[str, str] = {
    # By the bits: compilers and drivers take liberties with comparisons of NaN.
    "is_nan": """
fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}""",
    "is_inf": """
fn is_inf(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) == 0x7f800000u;
}""",
    "is_finite": """
fn is_finite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7f800000u) != 0x7f800000u;
}""",
    "is_negative": """
fn is_negative(value: f32) -> bool {
    return bitcast<i32>(value) < 0;
}""",
    "is_nan_f64": """
fn is_nan_f64(value: f64) -> bool {
    return (bitcast<u64>(value) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}""",
    "is_inf_f64": """
fn is_inf_f64(value: f64) -> bool {
    return (bitcast<u64>(value) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu;
}""",
    "is_finite_f64": """
fn is_finite_f64(value: f64) -> bool {
    return (bitcast<u64>(value) & 0x7ff0000000000000lu) != 0x7ff0000000000000lu;
}""",
    "is_negative_f64": """
fn is_negative_f64(value: f64) -> bool {
    return (bitcast<u64>(value) >> 63u) != 0lu;
}""",
    # Rounds to the nearest, ties to even, on every driver; the built-in packing may not.
    "f16_bits": """
fn f16_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    var half: u32 = 0x7c00u;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u;
    } else if (magnitude < 0x38800000u) {
        half = u32(round(bitcast<f32>(magnitude) * 16777216.0));
    } else if (magnitude < 0x477ff000u) {
        let rounded = magnitude + 0x0fffu + ((magnitude >> 13u) & 1u);
        half = (rounded - 0x38000000u) >> 13u;
    }
    return sign | half;
}""",
    # To the nearest: both halves are exact, and only their sum is rounded.
    "near_u32": """
fn near_u32(value: u32) -> f32 {
    return f32(value >> 16u) * 65536.0 + f32(value & 0xffffu);
}""",
    # Rounded to odd where it is not exact: rounding once more, to a narrower type, then gives what
    # rounding at once would have given.
    "odd_f64": """
fn odd_f64(value: f64) -> f32 {
    let near = f32(value);
    let bits = bitcast<u32>(near);
    var odd = near;
    if (!(f64(near) == value || (bits & 1u) != 0u || !is_finite(near))) {
        odd = bitcast<f32>(select(bits - 1u, bits + 1u, abs(f64(near)) < abs(value)));
    }
    return odd;
}""",
    "odd_u32": """
fn odd_u32(value: u32) -> f32 {
    let odd = (value & 0xffffff00u) | select(0u, 0x100u, (value & 0xffu) != 0u);
    return f32(select(odd, value, value < 0x01000000u));
}""",
    "odd_i32": """
fn odd_i32(value: i32) -> f32 {
    let size = odd_u32(u32(abs(value)));
    return select(size, -size, value < 0);
}""",
    "odd_u64": """
fn odd_u64(value: u64) -> f32 {
    let shift = 32u - countLeadingZeros(u32(value >> 32u));
    let scale = 1lu << shift;
    let rest = select(0u, 1u, (value & (scale - 1lu)) != 0lu);
    return odd_u32(u32(value >> shift) | rest) * f32(scale);
}""",
    "odd_i64": """
fn odd_i64(value: i64) -> f32 {
    let size = odd_u64(bitcast<u64>(select(value, -value, value < 0li)));
    return select(size, -size, value < 0li);
}""",
    "round_f16": """
fn round_f16(value: f32) -> f32 {
    return unpack2x16float(f16_bits(value)).x;
}""",
    "round_bf16": """
fn round_bf16(value: f32) -> f32 {
    let bits = bitcast<u32>(value);
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
    return bitcast<f32>(select(rounded, bits, (bits & 0x7fffffffu) > 0x7f800000u));
}""",
    "bf16_bits": """
fn bf16_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    return select(bits >> 16u, (bits >> 16u) | 0x0040u, (bits & 0x7fffffffu) > 0x7f800000u);
}""",
}


def called(text: str) -> tuple[str, ...]:
    """The helpers that a text calls, in order of their first call."""
    names = re.findall(r"\b(\w+)\(", text)
    return tuple(dict.fromkeys(name for name in names if name in HELPERS))
