"""Sums of products of the bytes of words, as functions of a module.

Their bodies are what every processor has: products of 16 bits, pairs of which are added. The CPU's
driver puts others in their place where the processor has instructions for bytes
(`drivers.cpu.byte_dots`).
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import value_type
from treadle.ir.types import I32, Scalar

PREFIX = "treadle.dot4."
_SIGNED = {"dot4_i8": (True, True), "dot4_u8": (False, False), "dot4_u8i8": (False, True)}


def dot4(e: Emitter, op: str, type: Scalar, operands: Sequence[str], width: int) -> str:
    """A call of the function for that many lanes."""
    name = f"{PREFIX}{op[5:]}.{width}"
    vector = f"<{width} x i32>"
    if name not in e.module.helpers:
        e.module.helpers[name] = f"{header(op[5:], width)} {{\n{_body(op, width)}\n}}"
    if width > 1:
        arguments = ", ".join(f"{vector} {operand}" for operand in operands)
        return e.op(f"call {vector} @{name}({arguments})")
    llvm = value_type(I32)
    lanes = [e.op(f"insertelement {vector} poison, {llvm} {each}, i64 0") for each in operands]
    arguments = ", ".join(f"{vector} {lane}" for lane in lanes)
    found = e.op(f"call {vector} @{name}({arguments})")
    return e.op(f"extractelement {vector} {found}, i64 0")


def header(kind: str, width: int) -> str:
    """How the function's definition begins."""
    vector = f"<{width} x i32>"
    return (
        f"define internal {vector} @{PREFIX}{kind}.{width}"
        f"({vector} %a, {vector} %b, {vector} %sum) alwaysinline"
    )


def _body(op: str, width: int) -> str:
    halves, vector, wide = f"<{2 * width} x i16>", f"<{width} x i32>", f"<{2 * width} x i32>"
    lines = []
    for name, signed in zip("ab", _SIGNED[op], strict=True):
        shift = "ashr" if signed else "lshr"
        lines += [
            f"%{name}.halves = bitcast {vector} %{name} to {halves}",
            f"%{name}.odd = {shift} {halves} %{name}.halves, splat (i16 8)",
            f"%{name}.up = shl {halves} %{name}.halves, splat (i16 8)",
            f"%{name}.even = {shift} {halves} %{name}.up, splat (i16 8)",
        ]
    for part in ("odd", "even"):
        for name in "ab":
            lines.append(f"%{name}.{part}.wide = sext {halves} %{name}.{part} to {wide}")
        lines.append(f"%{part} = mul nsw {wide} %a.{part}.wide, %b.{part}.wide")
        for at, side in enumerate(("low", "high")):
            order = ", ".join(f"i32 {2 * lane + at}" for lane in range(width))
            lines.append(
                f"%{part}.{side} = shufflevector {wide} %{part}, {wide} poison, "
                f"<{width} x i32> <{order}>"
            )
        lines.append(f"%{part}.sum = add {vector} %{part}.low, %{part}.high")
    lines += [
        f"%products = add {vector} %odd.sum, %even.sum",
        f"%result = add {vector} %products, %sum",
        f"ret {vector} %result",
    ]
    return "\n".join(f"  {line}" for line in lines)
