"""Conversions between types as registers hold them.

Narrow integers live in i32 and u32, extended by sign or zeros; bfloat16, and float16 where the
device has none, live in f32, rounded. `settle` puts a fresh result back into that form.
"""

from __future__ import annotations

from treadle.codegen.wgsl.module import Module
from treadle.ir.types import Scalar, Type, Vector


def element_of(type: Type) -> Scalar:
    """The scalar of a scalar or vector type."""
    element = type.element if isinstance(type, Vector) else type
    assert isinstance(element, Scalar)
    return element


def settle(module: Module, text: str, type: Type) -> str:
    """A result of arithmetic (any text) in the form its type has in a register."""
    element = element_of(type)
    if element.is_integer and element.bits < 32:
        if element.is_signed:
            return f"extractBits({text}, 0u, {element.bits}u)"
        mask = f"{(1 << element.bits) - 1}u"
        return f"(({text}) & {mask if type is element else f'{module.register(type)}({mask})'})"
    if module.is_rounded(type):
        return _rounded(module, text, type)
    return text


def needs_settling(module: Module, type: Type) -> bool:
    """Whether `settle` does anything for results of this type."""
    element = element_of(type)
    return (element.is_integer and element.bits < 32) or module.is_rounded(type)


def _rounded(module: Module, text: str, type: Type) -> str:
    register = module.register(type)
    return _each(module, f"round_{element_of(type).name}", text, type, register, register)


def _each(module: Module, name: str, text: str, type: Type, source: str, target: str) -> str:
    """A helper of one number, applied to a value or to each component of a vector."""
    if not isinstance(type, Vector):
        return f"{name}({text})"
    helper, new = module.helper((name, type), f"{name}_vec{type.count}")
    if new:
        parts = ", ".join(f"{name}(value.{axis})" for axis in "xyzw"[: type.count])
        body = f"    return {target}({parts});"
        module.add((name, type), f"fn {helper}(value: {source}) -> {target} {{\n{body}\n}}")
    return f"{helper}({text})"


def cast(module: Module, text: str, source: Type, target: Type) -> str:
    """A value of one type as another (scalars, or vectors componentwise); any text in, a text
    that binds as a call does (or needs no care) out. Floats fit the integer they become."""
    old, new = element_of(source), element_of(target)
    if old == new:
        return f"({text})"
    register = module.register(target)
    if new.kind == "bool":
        zero = module.zero(source)
        if old.is_float:
            return f"(!(({text}) == {zero}))" if source is old else f"({text} != {zero})"
        return f"(({text}) != {zero})"
    if old.is_integer and new.is_integer:
        return _integer_cast(module, text, source, target)
    converted = f"{register}({text})"
    if register == module.register(source):
        converted = f"({text})"
    elif _rounds_twice(old, new):
        given, single = module.register(source), register.replace("f16", "f32")
        converted = _each(module, f"odd_{old.name}", text, source, given, single)
        converted = converted if single == register else f"{register}({converted})"
    elif module.native_f16 and new.name == "f16" and old.name in ("f32", "bf16"):
        # Drivers leave out a cast to float16 and back, with its rounding: so that is done before.
        given = module.register(source)
        converted = f"{register}({_each(module, 'round_f16', text, source, given, given)})"
    elif old.name == "u32" and new.name == "f32" and not module.dialect.rounds_u32:
        converted = _each(module, "near_u32", text, source, module.register(source), register)
    exact = old.kind == "bool" or old.bits == 8
    if module.is_rounded(target) and not exact:
        return settle(module, converted, target)
    return converted


def _rounds_twice(old: Scalar, new: Scalar) -> bool:
    """Whether a cast by way of float32 could round wrongly the second time."""
    if new.name == "bf16":
        return old.name == "f64" or (old.is_integer and old.bits >= 32)
    return new.name == "f16" and old.name == "f64"  # even where float16 is native: drivers do


def _integer_cast(module: Module, text: str, source: Type, target: Type) -> str:
    old, new = element_of(source), element_of(target)
    register = module.register(target)
    if new.bits == 64 and old.bits < 64 and old.is_signed != new.is_signed:
        # Extend by the sign or by zeros, as the old type does, then take the bits.
        wide = "i64" if old.is_signed else "u64"
        wide = wide if source is old else f"vec{_count(source)}<{wide}>"
        converted = f"{register}({wide}({text}))"
    elif register == module.register(source):
        converted = f"({text})"
    else:
        converted = f"{register}({text})"
    holds_all = new.bits >= 32 or (old.bits < new.bits and (new.is_signed or not old.is_signed))
    return converted if holds_all else settle(module, converted, target)


def _count(type: Type) -> int:
    assert isinstance(type, Vector)
    return type.count


# --- bits ----------------------------------------------------------------------------------------


def bitcast(module: Module, text: str, source: Type, target: Type) -> str:
    """The bits of a value as another type of the same size; any text in, a primary out."""
    old, new = element_of(source), element_of(target)
    if old == new:
        return f"({text})"
    if old.bits >= 32:
        return f"bitcast<{module.register(target)}>({text})"
    if isinstance(source, Vector) and isinstance(target, Vector):
        return _vector_bitcast(module, text, source, target)
    return f"({unpack(module, f'({pack(module, text, old)})', 0, new)})"


def _vector_bitcast(module: Module, text: str, source: Vector, target: Vector) -> str:
    key = ("bitcast", source, target)
    name, new = module.helper(key, f"bitcast_{target.element}_{source.element}_{source.count}")
    if new:
        parts = ", ".join(
            bitcast(module, f"value.{axis}", source.element, target.element)
            for axis in "xyzw"[: source.count]
        )
        result = module.register(target)
        module.add(
            key,
            f"fn {name}(value: {module.register(source)}) -> {result} {{\n"
            f"    return {result}({parts});\n}}",
        )
    return f"{name}({text})"


def pack(module: Module, text: str, type: Scalar) -> str:
    """A scalar of at most 32 bits as the low bits of a u32, zeros above."""
    match type.name:
        case "u32" | "u16" | "u8":
            return text
        case "bool":
            return f"u32({text})"
        case "i8" | "i16":
            return f"u32({text}) & {(1 << type.bits) - 1}u"
        case "f16":
            return f"f16_bits(f32({text}))" if module.native_f16 else f"f16_bits({text})"
        case "bf16":
            return f"bf16_bits({text})"
    return f"bitcast<u32>({text})"


def unpack(module: Module, word: str, shift: int | str, type: Scalar) -> str:
    """A scalar from a u32 (a primary text), `shift` bits up: a number, or the text of one."""
    amount = f"{shift}u" if isinstance(shift, int) else shift
    match type.name:
        case "u32":
            return word
        case "i32" | "f32":
            return f"bitcast<{type.name}>({word})"
        case "u8" | "u16":
            return f"extractBits({word}, {amount}, {type.bits}u)"
        case "bool":
            return f"extractBits({word}, {amount}, 8u) != 0u"
        case "i8" | "i16":
            return f"extractBits(bitcast<i32>({word}), {amount}, {type.bits}u)"
        case "f16":
            if isinstance(shift, int):
                half = f"unpack2x16float({word}).{'xy'[shift // 16]}"
            else:
                half = f"unpack2x16float({word} >> {amount}).x"
            return f"f16({half})" if module.native_f16 else half
        case "bf16":
            if shift == 16:
                return f"bitcast<f32>({word} & 0xffff0000u)"
            moved = word if shift == 0 else f"({word} >> {amount})"
            return f"bitcast<f32>({moved} << 16u)"
    raise AssertionError(f"{type} is wider than a word")


def same_word(module: Module, text: str, source: Scalar, target: Scalar) -> str:
    """The bits of a 32-bit scalar as another; the text itself if they are one type."""
    return text if source == target else f"bitcast<{target.name}>({text})"
