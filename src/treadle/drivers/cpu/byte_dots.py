"""Sums of products of bytes by instructions of their own: VNNI's, of unsigned by signed bytes."""

from __future__ import annotations

import re

_DEFINED = re.compile(
    r"define internal <(\d+) x i32> @treadle\.dot4\.(u8i8|i8)\.\d+\([^)]*\) alwaysinline \{\n"
    r"[^}]*\}"
)


def with_instructions(source: str, triple: str, features: str) -> str:
    """A module's text with the functions of `codegen.llvm.byte_dots` as the processor has them."""
    if "@treadle.dot4." not in source or not triple.startswith("x86_64"):
        return source
    present = set(features.split(","))
    widths: set[int] = set()
    if "+avx512vnni" in present:
        widths |= {4, 8, 16} if "+avx512vl" in present else {16}
    if "+avxvnni" in present:
        widths |= {4, 8}
    declared: set[int] = set()

    def native(found: re.Match[str]) -> str:
        width = int(found[1])
        if width not in widths:
            return found[0]
        declared.add(width)
        head = found[0].partition("{")[0]
        return f"{head}{{\n{_unsigned(width) if found[2] == 'u8i8' else _signed(width)}\n}}"

    replaced = _DEFINED.sub(native, source)
    return "\n".join((replaced, *map(_declaration, sorted(declared))))


def _name(width: int) -> str:
    return f"@llvm.x86.avx512.vpdpbusd.{32 * width}"


def _declaration(width: int) -> str:
    words, bytes = f"<{width} x i32>", f"<{4 * width} x i8>"
    return f"declare {words} {_name(width)}({words}, {bytes}, {bytes})\n"


def _unsigned(width: int) -> str:
    words, bytes = f"<{width} x i32>", f"<{4 * width} x i8>"
    return (
        f"  %left = bitcast {words} %a to {bytes}\n"
        f"  %right = bitcast {words} %b to {bytes}\n"
        f"  %result = call {words} {_name(width)}"
        f"({words} %sum, {bytes} %left, {bytes} %right)\n"
        f"  ret {words} %result"
    )


def _signed(width: int) -> str:
    """Signed bytes and 128 are unsigned ones; 128 times the others is taken off again."""
    words, bytes = f"<{width} x i32>", f"<{4 * width} x i8>"
    return (
        f"  %signs = xor {words} %a, splat (i32 -2139062144)\n"
        f"  %left = bitcast {words} %signs to {bytes}\n"
        f"  %right = bitcast {words} %b to {bytes}\n"
        f"  %more = call {words} {_name(width)}"
        f"({words} zeroinitializer, {bytes} splat (i8 -128), {bytes} %right)\n"
        f"  %less = sub {words} %sum, %more\n"
        f"  %result = call {words} {_name(width)}"
        f"({words} %less, {bytes} %left, {bytes} %right)\n"
        f"  ret {words} %result"
    )
