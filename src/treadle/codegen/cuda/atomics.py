"""Atomic updates: CUDA's own functions, or a loop of compare and exchange."""

from __future__ import annotations

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.scope import Scope
from treadle.ir import nodes as n
from treadle.ir.types import Scalar

_NAMES = {
    "add": "atomicAdd", "sub": "atomicSub", "min": "atomicMin", "max": "atomicMax",
    "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor", "exchange": "atomicExch",
    "cas": "atomicCAS", "inc": "atomicInc", "dec": "atomicDec",
}  # fmt: skip
NAMES = (*_NAMES.values(), *(f"atomic_{op}" for op in n.ATOMICS))

_WORD = frozenset(n.ATOMICS)
# What there is for each type; unsigned 64-bit integers are used for all other types of their size.
_NATIVE = {
    "i32": _WORD, "u32": _WORD, "u64": _WORD - {"sub", "inc", "dec"},
    "i64": frozenset({"min", "max"}), "f32": frozenset({"add", "exchange"}),
    "f64": frozenset({"add"}), "u16": frozenset({"cas"}),
}  # fmt: skip
_BY_BITS = {  # of floats: the bits, and back
    "f32": ("__float_as_uint({})", "__uint_as_float({})", "unsigned int"),
    "f64": (
        "(unsigned long long)__double_as_longlong({})", "__longlong_as_double((long long)({}))",
        "unsigned long long",
    ),
    "i64": ("(unsigned long long)({})", "(long long)({})", "unsigned long long"),
}  # fmt: skip


def atomic(scope: Scope, node: n.Atomic, place: str) -> str:
    """The call that updates a place; its value is the old one."""
    type = node.place.type
    assert isinstance(type, Scalar)
    op = node.op
    operands = [scope.text(operand) for operand in node.operands]
    if op == "sub" and op not in _NATIVE[type.name]:
        op = "add"
        negated = n.Unary("neg", node.operands[0], type, node.span)
        operands = [scope.text(negated)]
    if op in _NATIVE[type.name]:
        return f"{_NAMES[op]}(&{place}, {', '.join(operands)})"
    return f"{_careful(scope.module, op, type)}(&{place}, {', '.join(operands)})"


def _careful(module: Module, op: str, type: Scalar) -> str:
    """The function that updates by way of the bits."""
    name = f"atomic_{op}"
    key = (name, type)
    if key in module.helpers:
        return name
    to_bits, from_bits, word = _BY_BITS[type.name]
    register = module.scalar(type)
    fn = module.language.function
    if op == "cas":
        head, call = (
            "expected, {0} desired",
            f"{to_bits.format('expected')}, {to_bits.format('desired')}",
        )
    else:
        head, call = "value", to_bits.format("value")
    start = f"{fn} {register} {name}({register}* place, {register} {head.format(register)}) {{\n"
    if op in ("min", "max"):
        extreme = module.helper({"min": "minimum", "max": "maximum"}[op], type)
        updated = to_bits.format(f"{extreme}({from_bits.format('old')}, value)")
        module.helpers[key] = (
            f"// Exchanges the bits until no other thread comes between.\n{start}"
            f"    {word}* bits = ({word}*)place;\n"
            f"    {word} seen = *bits, old;\n"
            "    do {\n"
            "        old = seen;\n"
            f"        seen = atomicCAS(bits, old, {updated});\n"
            "    } while (seen != old);\n"
            f"    return {from_bits.format('seen')};\n}}"
        )
        return name
    value = from_bits.format(f"{_NAMES[op]}(({word}*)place, {call})")
    module.helpers[key] = f"{start}    return {value};\n}}"
    return name
