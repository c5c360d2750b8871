"""Conversions of PTX: `cvt` between all types, `cvta` between kinds of addresses."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES
from treadle.cuda_cpp.syntax.ptx_text import (
    Argument,
    Instruction,
    NotTranslated,
    Registers,
    take,
)

_TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_MODES = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
_NAMES = {"s32": "int", "u32": "uint", "s64": "ll", "u64": "ull"}
_LIMITS = {"8": (-128, 127, 255), "16": (-32768, 32767, 65535)}


def cvt(r: Registers, one: Instruction) -> str:
    parts = [part for part in one.parts[1:] if part != "ftz"]
    to, *given = take(one, 2, 3)
    if len(parts) < 2:
        raise NotTranslated(f"{one.name} is not translated")
    *words, target, source = parts
    narrow = target in ("e4m3x2", "e5m2x2") or source in ("e4m3x2", "e5m2x2")
    if narrow or target in ("f16x2", "bf16x2", "tf32"):
        return _narrowed(r, one, words, target, source, to, given)
    if len(given) != 1 or target not in CPP_TYPES or source not in CPP_TYPES:
        raise NotTranslated(f"{one.name} is not translated")
    value = r.value(given[0], source)
    text = _converted(value, words, target, source)
    if text is None:
        raise NotTranslated(f"{one.name} is not translated")
    return r.assign(to, target, text)


def _is_integer(type: str) -> bool:
    return type[0] in "us"


def _converted(value: str, words: list[str], target: str, source: str) -> str | None:
    mode = words[0] if words and words[0] != "sat" else ""
    saturated = "sat" in words
    if _is_integer(target) and _is_integer(source):
        return f"({CPP_TYPES[target]}){value}" if not words else (
            _clamped(value, target, source) if words == ["sat"] else None
        )  # fmt: skip
    if _is_integer(target):
        if mode not in _TO_INTEGER:
            return None
        if source in ("f16", "bf16"):
            value, source = f"(float){value}", "f32"
        letter = {"f32": "float", "f64": "double"}[source]
        wide = target if target in _NAMES else f"{target[0]}32"
        made = f"__{letter}2{_NAMES[wide]}_{_TO_INTEGER[mode]}({value})"
        return made if wide == target else _clamped(made, target, wide)
    if _is_integer(source):
        if mode not in _MODES or target == "bf16":
            return None
        letter = {"f32": "float", "f64": "double", "f16": "float"}[target]
        wide = source if source in _NAMES else f"{source[0]}32"
        if target == "f64" and wide.endswith("32"):
            return f"(double){value}"
        made = f"__{_NAMES[wide]}2{letter}_{_MODES[mode]}({value})"
        return made if target != "f16" else f"__float2half_rn({made})" if mode == "rn" else None
    if mode in _TO_INTEGER:  # rounded to an integer that stays a floating-point number
        if target != source or target not in ("f32", "f64"):
            return None
        name = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
        value = f"{name}{'f' if target == 'f32' else ''}({value})"
    elif target in ("f16", "bf16") and source == "f32":
        if mode not in _MODES:
            return None
        name = "half" if target == "f16" else "bfloat16"
        value = f"__float2{name}_{_MODES[mode]}({value})"
        if "relu" in words:
            value = f"__hmax({value}, {'__float2' + name}(0.0f))"
    elif target == "f32" and source == "f64":
        if mode not in _MODES:
            return None
        value = f"__double2float_{_MODES[mode]}({value})"
    elif target in ("f32", "f64"):
        value = f"({CPP_TYPES[target]}){value if source != 'bf16' else '(float)' + value}"
    else:
        return None
    if saturated:
        return f"__saturatef({value})" if target == "f32" else None
    return value


def _clamped(value: str, target: str, source: str) -> str | None:
    """An integer in the range of another type."""
    size, own = int(target[1:]), int(source[1:])
    low = -(1 << size - 1) if target[0] == "s" else 0
    high = (1 << size - (target[0] == "s")) - 1
    if size == 64 or own > 64:
        return None
    suffix = "ll" if source[0] == "s" else "ull"
    smallest = f"{value} < {low}{suffix} ? {low}{suffix} : " if source[0] == "s" else ""
    return f"({smallest}{value} > {high}{suffix} ? {high}{suffix} : {value})"


def _narrowed(
    r: Registers,
    one: Instruction,
    words: list[str],
    target: str,
    source: str,
    to: Argument,
    given: Sequence[Argument],
) -> str:
    """Conversions of pairs, whose first operand is the upper one, and to tf32."""
    relu, kept = "relu" in words, [word for word in words if word not in ("relu", "satfinite")]
    match target, source:
        case "tf32", "f32" if kept in (["rna"], ["rn"]):
            value = r.value(given[0], "f32")
            return r.assign(to, "u32", f"__treadle_tf32_{kept[0]}({value})")
        case "f16x2" | "bf16x2", "f32" if len(given) == 2 and kept in (["rn"], ["rz"]):
            name = "half" if target == "f16x2" else "bfloat16"
            suffix = "ushort"
            parts = [
                f"__{name}_as_{suffix}(__float2{name}_{kept[0]}("
                + (f"fmaxf({value}, 0.0f)" if relu else value)
                + "))"
                for value in (r.value(each, "f32") for each in given)
            ]
            return r.assign(to, "u32", f"(unsigned int){parts[0]} << 16 | {parts[1]}")
        case "e4m3x2" | "e5m2x2", "f32" if len(given) == 2 and "satfinite" in words:
            kind = f"__NV_{target[:4].upper()}"
            parts = [
                f"(unsigned int)__nv_cvt_float_to_fp8({value}, __NV_SATFINITE, {kind})"
                for value in (r.value(each, "f32") for each in given)
            ]
            return r.assign(to, "u16", f"{parts[0]} << 8 | {parts[1]}")
        case "f16x2", "e4m3x2" | "e5m2x2":
            kind, value = f"__NV_{source[:4].upper()}", r.value(given[0], "u16")
            parts = [
                f"(unsigned int)__nv_cvt_fp8_to_halfraw((unsigned char)({value} >> {by}), {kind}).x"
                for by in (8, 0)
            ]
            return r.assign(to, "u32", f"{parts[0]} << 16 | {parts[1]}")
    raise NotTranslated(f"{one.name} is not translated")


def cvta(r: Registers, one: Instruction) -> str:
    to, given = take(one, 2)
    if r.kind(given) == "address" and "shared" in one.parts and "to" in one.parts:
        number = f"__cvta_generic_to_shared({r.pointer(given)})"
        return r.assign(to, "u64" if r.kind(to) == "l" else "u32", number)
    if r.kind(to) == r.kind(given) == "address":
        return f"{r.pointer(to)} = {r.pointer(given)};"
    raise NotTranslated(f"{one.name} is only translated where the result is used as an address")
