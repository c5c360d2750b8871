"""`cvt`: between integers and floats of all widths, with every rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array, from_bf16, odd_f32, saturate, to_bf16
from tests.support.ptx_machine.records import PtxError
from tests.support.ptx_machine.types import PtxType

INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
ROUNDINGS = ("rn", "rna", "rz", "rm", "rp")


def convert(a: Array, to: PtxType, of: PtxType, rounding: str, saturated: bool) -> Array:
    """`cvt.rounding.sat.to.of`: `a` in the dtype that `of` computes with (bf16 as float32); the
    result in that of `to` (bf16 as its bits)."""
    if of.is_float:
        if to.is_float:
            return _float_to_float(a, to, of, rounding, saturated)
        return _float_to_integer(a, to, of, rounding)
    if to.is_float:
        return _integer_to_float(a, to, rounding, saturated)
    if rounding:
        raise PtxError(f"cvt between integers has no rounding .{rounding}")
    if saturated:
        wide = a.astype(object) if of.bits == 64 else a.astype("i8")
        a = np.clip(wide, to.lowest, to.highest)
    return a.astype(to.computed)


def _float_to_integer(a: Array, to: PtxType, of: PtxType, rounding: str) -> Array:
    if rounding not in INTEGRAL:
        raise PtxError("cvt from a float to an integer needs .rni, .rzi, .rmi or .rpi")
    whole = INTEGRAL[rounding](a.astype("f8"))
    # Both ends as floats: the upper one is beyond what fits, the lower one fits.
    above, below = whole >= 2.0 ** (to.bits - (to.kind == "s")), whole < float(to.lowest)
    # NaN gives 0, or where 64 bits of either kind are involved, the sign bit alone.
    wide = of.bits == 64 or to.bits == 64
    dtype = np.dtype(to.computed)
    nan = to.lowest if to.kind == "s" else 1 << (to.bits - 1)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole)
    result = inside.astype(dtype)
    result = np.where(above, dtype.type(to.highest), result)
    result = np.where(below, dtype.type(to.lowest), result)
    return np.where(np.isnan(whole), dtype.type(nan if wide else 0), result)


def _integer_to_float(a: Array, to: PtxType, rounding: str, saturated: bool) -> Array:
    if rounding not in ROUNDINGS:
        raise PtxError("cvt from an integer to a float needs .rn, .rz, .rm or .rp")
    if to.kind == "bf":
        near = a.astype("f8")
        # Through a wider type rounded to odd; integers of 64 bits are made odd by hand.
        if a.dtype.itemsize == 8:
            a = _shortened(a)
            near = a.astype("f8")
        return _bf16(odd_f32(near), rounding)
    if rounding == "rn":
        result = a.astype(to.computed)
    else:
        result = _directed(a, to, rounding)
    return saturate(result) if saturated else result


def _shortened(a: Array) -> Array:
    """64-bit integers with a few low bits folded into one, so that float64 holds them exactly."""
    sticky = np.where((a & a.dtype.type(0xFFFF)) != 0, a.dtype.type(1), a.dtype.type(0))
    large = np.abs(a.astype("f8")) >= 2.0**52
    cut = (a & ~a.dtype.type(0xFFFF)) | (sticky << a.dtype.type(15))
    return np.where(large, cut, a)


def _float_to_float(a: Array, to: PtxType, of: PtxType, rounding: str, saturated: bool) -> Array:
    if rounding in INTEGRAL:
        if to.bits != of.bits:
            raise PtxError(f"cvt.{rounding} rounds to a whole number within one type only")
        result = INTEGRAL[rounding](a)
    elif to.bits >= of.bits:
        if rounding:
            raise PtxError(f"cvt.{rounding} to a type that holds every value: nothing is rounded")
        result = a
    elif rounding not in ROUNDINGS:
        raise PtxError("cvt to a narrower float needs .rn, .rz, .rm or .rp")
    elif to.kind == "bf":
        result = a
    elif rounding == "rn":
        result = a.astype(to.computed)
    else:
        result = _directed(a, to, rounding)
    if saturated:
        result = saturate(result)
    if to.kind == "bf":
        return _bf16(odd_f32(result) if result.dtype.itemsize == 8 else result, rounding or "rn")
    return result.astype(to.computed)


def _bf16(value: Array, rounding: str) -> Array:
    if rounding == "rz":
        cut = (value.view("u4") >> np.uint32(16)).astype("u2")
        return np.where(np.isnan(value), np.uint16(0x7FFF), cut)
    if rounding != "rn":
        raise PtxError(f"cvt.{rounding} to bf16 does not exist")
    return to_bf16(value)


def _directed(a: Array, to: PtxType, rounding: str) -> Array:
    """Rounded toward zero, down or up: the nearest, and where it lies beyond, its neighbour."""
    dtype: Any = np.dtype(to.computed).type
    near = a.astype(dtype)
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        value, exact = near.astype(object), a.astype(object)  # Python compares them exactly
    else:
        value, exact = near.astype("f8"), a.astype("f8")
    if rounding == "rz":
        beyond = np.asarray(np.abs(value) > np.abs(exact), bool)
        goal = np.zeros((), dtype)
    else:
        beyond = np.asarray(value > exact if rounding == "rm" else value < exact, bool)
        goal = dtype("-inf" if rounding == "rm" else "inf")
    return np.where(beyond, np.nextafter(near, goal), near)


def convert_pair(high: Array, low: Array, to: PtxType, rounding: str) -> Array:
    """`cvt.rn.f16x2.f32 d, a, b`: a in the upper half."""
    if to.kind == "bf2":
        parts = [_bf16(x, rounding) for x in (high, low)]
    else:
        parts = [x.astype("f2").view("u2") for x in (high, low)]
    upper, lower = (part.astype("u4") for part in parts)
    return (upper << np.uint32(16)) | lower


__all__ = ["INTEGRAL", "convert", "convert_pair", "from_bf16"]
