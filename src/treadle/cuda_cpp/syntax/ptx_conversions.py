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
    if parts[:1] == ["pack"]:
        return _packed(r, one, parts[1:])
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
        if mode not in _MODES:
            return None
        if target == "bf16":
            wide = "long long" if source[0] == "s" else "unsigned long long"
            return f"__treadle_bfloat16_of(({wide}){value})" if mode == "rn" else None
        letter = {"f32": "float", "f64": "double", "f16": "float"}[target]
        wide = source if source in _NAMES else f"{source[0]}32"
        if target == "f64" and wide.endswith("32"):
            return f"(double){value}"
        made = f"__{_NAMES[wide]}2{letter}_{_MODES[mode]}({value})"
        return made if target != "f16" else f"__float2half_rn({made})" if mode == "rn" else None
    if mode in _TO_INTEGER:
        whole = _rounded(value, mode, target) if target == source else None
        if whole is None:
            return None
        value = whole
    elif target in ("f16", "bf16") and source == "f32":
        if mode not in _MODES:
            return None
        value = _half_of(value, target, words, mode, saturated)
        saturated = False
    elif target == "f32" and source == "f64":
        if mode not in _MODES:
            return None
        value = f"__double2float_{_MODES[mode]}({value})"
    elif target in ("f16", "bf16") and source == "f64":
        if mode != "rn":
            return None
        value = f"__double2{'half' if target == 'f16' else 'bfloat16'}({value})"
    elif target in ("f32", "f64"):
        value = f"({CPP_TYPES[target]}){value if source != 'bf16' else '(float)' + value}"
    else:
        return None
    if saturated and target == "f64":
        return f"fmin(fmax({value}, 0.0), 1.0)"
    if saturated:
        return f"__saturatef({value})" if target == "f32" else None
    return value


def _rounded(value: str, mode: str, type: str) -> str | None:
    """Rounded to an integer that stays a floating-point number."""
    name = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
    if type in ("f16", "bf16"):
        return f"({CPP_TYPES[type]}){name}f((float){value})"
    return f"{name}{'f' if type == 'f32' else ''}({value})" if type in ("f32", "f64") else None


def _half_of(value: str, target: str, words: list[str], mode: str, saturated: bool) -> str:
    """A float as one of 16 bits."""
    if "satfinite" in words:
        value = f"__treadle_finite_{target}({value})"
    if saturated:
        value = f"__saturatef({value})"
    value = f"__float2{'half' if target == 'f16' else 'bfloat16'}_{_MODES[mode]}({value})"
    return f"__treadle_relu({value})" if "relu" in words else value


def _packed(r: Registers, one: Instruction, words: list[str]) -> str:
    """`cvt.pack.sat`: two integers in narrow types, below what a third operand has."""
    to, a, b, *more = take(one, 3, 4)
    if len(words) not in (3, 4) or words[0] != "sat" or words[2] != "s32":
        raise NotTranslated(f"{one.name} is not translated")
    kind, bits = words[1][0], int(words[1][1:])
    if kind not in "us" or bits not in (2, 4, 8, 16) or bool(more) != (bits != 16):
        raise NotTranslated(f"{one.name} is not translated")
    low = -(1 << bits - 1) if kind == "s" else 0
    high = (1 << bits - (kind == "s")) - 1
    mask = (1 << bits) - 1
    upper, lower = (
        f"((unsigned int)min(max({r.value(each, 's32')}, {low}), {high}) & {mask}u)"
        for each in (a, b)
    )
    rest = f"{r.value(more[0], 'b32')} << {2 * bits}u | " if more else ""
    return r.assign(to, "b32", f"{rest}{upper} << {bits}u | {lower}")


def _clamped(value: str, target: str, source: str) -> str | None:
    """An integer in the range of another type."""
    size, own = int(target[1:]), int(source[1:])
    if size == 64:
        if target[0] == source[0] or (target[0] == "s" and own < 64):
            return f"({CPP_TYPES[target]}){value}"
        if target == "u64":
            return f"({value} < 0 ? 0ull : (unsigned long long){value})"
        return f"({value} >> 63 ? 0x7fffffffffffffffll : (long long){value})"
    low = -(1 << size - 1) if target[0] == "s" else 0
    high = (1 << size - (target[0] == "s")) - 1
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
    kept = [word for word in words if word not in ("relu", "satfinite")]
    if "satfinite" in words and target == "tf32":
        raise NotTranslated(f"{one.name} is not translated")
    match target, source:
        case "tf32", "f32" if kept in (["rna"], ["rn"]):
            value = r.value(given[0], "f32")
            return r.assign(to, "u32", f"__treadle_tf32_{kept[0]}({value})")
        case "f16x2" | "bf16x2", "f32" if len(given) == 2 and kept in (["rn"], ["rz"]):
            half = target.removesuffix("x2")
            bits = {"f16": "__half_as_ushort", "bf16": "__bfloat16_as_ushort"}[half]
            parts = [
                f"{bits}({_half_of(r.value(each, 'f32'), half, words, kept[0], False)})"
                for each in given
            ]
            return r.assign(to, "u32", f"(unsigned int){parts[0]} << 16 | {parts[1]}")
        case "e4m3x2" | "e5m2x2", "f32" if len(given) == 2 and "satfinite" in words:
            kind = f"__NV_{target[:4].upper()}"
            parts = [
                f"(unsigned int)__nv_cvt_float_to_fp8({value}, __NV_SATFINITE, {kind})"
                for value in (r.value(each, "f32") for each in given)
            ]
            return r.assign(to, "u16", f"{parts[0]} << 8 | {parts[1]}")
        case "e4m3x2" | "e5m2x2", "f16x2" | "bf16x2" if "satfinite" in words:
            kind, value = f"__NV_{target[:4].upper()}", r.value(given[0], source)
            parts = [
                f"(unsigned int)__nv_cvt_float_to_fp8((float){value}.{at}, __NV_SATFINITE, {kind})"
                for at in "yx"
            ]
            return r.assign(to, "u16", f"{parts[0]} << 8 | {parts[1]}")
        case "f16x2", "e4m3x2" | "e5m2x2":
            kind, value = f"__NV_{source[:4].upper()}", r.value(given[0], "u16")
            parts = [
                f"(unsigned int)__nv_cvt_fp8_to_halfraw((unsigned char)({value} >> {by}), {kind}).x"
                for by in (8, 0)
            ]
            made = f"{parts[0]} << 16 | {parts[1]}"
            if "relu" in words:
                made = f"__treadle_bits_of(__treadle_relu(__treadle_as_half2({made})))"
            return r.assign(to, "u32", made)
    raise NotTranslated(f"{one.name} is not translated")


def cvta(r: Registers, one: Instruction) -> str:
    to, given = take(one, 2)
    if r.kind(given) == "address" and "shared" in one.parts and "to" in one.parts:
        number = f"__cvta_generic_to_shared({r.pointer(given)})"
        return r.assign(to, "u64" if r.kind(to) == "l" else "u32", number)
    if r.kind(to) == r.kind(given) == "address":
        return f"{r.pointer(to)} = {r.pointer(given)};"
    raise NotTranslated(f"{one.name} is only translated where the result is used as an address")
