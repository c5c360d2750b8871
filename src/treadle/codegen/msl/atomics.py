"""Atomic updates: Metal's own functions on 32-bit integers (and sums of floats in device memory),
or a loop of compare and exchange. Plain memory is seen as atomic by a cast of its address."""

from __future__ import annotations

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.scope import Scope
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import Scalar

_BY_LOOP = ("exchange", "cas", "inc", "dec")
_FUNCTIONS = {
    **{op: f"atomic_fetch_{op}_explicit" for op in n.ATOMICS if op not in _BY_LOOP},
    "exchange": "atomic_exchange_explicit",
}
_COMPARE = "atomic_compare_exchange_weak_explicit"
NAMES = (*_FUNCTIONS.values(), *(f"atomic_{op}" for op in n.ATOMICS), _COMPARE)
_SPACES = {"global": "device", "shared": "threadgroup"}


def atomic(scope: Scope, node: n.Atomic, place: str) -> str:
    """The call that updates a place; its value is the old one."""
    type, op = node.place.type, node.op
    assert isinstance(type, Scalar)
    root = root_of(node.place)
    assert isinstance(root, n.Element)
    space = scope.memories[root.memory].space
    if type.bits == 64:
        raise UnsupportedOnTarget(
            f"Metal has no atomic {op} on 64 bits that gives the old value: use 32-bit atomics",
            node.span,
        )
    if type.bits < 32:
        raise UnsupportedOnTarget(
            f"Metal has no atomics on {type}: use a number of 32 bits", node.span
        )
    operands = ", ".join(scope.text(operand) for operand in node.operands)
    on_integers = type.is_integer and op in _FUNCTIONS
    if on_integers or (type.is_float and op in ("add", "sub") and space == "global"):
        if type.is_float:
            scope.module.required.add("float_atomics")
        pointer = f"({_SPACES[space]} atomic_{scope.module.scalar(type)}*)&{place}"
        return f"{_FUNCTIONS[op]}({pointer}, {operands}, memory_order_relaxed)"
    return f"{_loop(scope.module, op, type, _SPACES[space])}(&{place}, {operands})"


def _loop(module: Module, op: str, type: Scalar, space: str) -> str:
    """The function that exchanges the bits until no other thread comes between."""
    name = f"atomic_{op}"
    key = (name, type, space)
    if key in module.helpers:
        return name
    register = module.scalar(type)
    is_float = type.is_float
    value = "as_type<float>(seen)" if is_float else f"({register})seen"
    updated = {
        "add": f"{value} + value", "sub": f"{value} - value", "exchange": "value",
        "cas": "desired", "inc": f"{value} < value ? {value} + 1 : 0",
        "dec": f"min({value} - 1, value)",
    }  # fmt: skip
    if op in ("min", "max"):
        extreme = module.helper({"min": "minimum", "max": "maximum"}[op], type)
        updated[op] = f"{extreme}({value}, value)"

    def bits(text: str) -> str:
        return f"as_type<uint>({text})" if is_float else f"(uint){text}"

    exchange = (
        f"{_COMPARE}(\n        word, &seen, {{}},\n        memory_order_relaxed, "
        "memory_order_relaxed)"
    )
    lines = [f"    {space} atomic_uint* word = ({space} atomic_uint*)place;"]
    if op == "cas":
        head = f"{register} expected, {register} desired"
        lines += [
            f"    uint seen = {bits('expected')};",
            "    // It may fail without a reason: then what was seen is what was expected.",
            f"    while (!{exchange.format(bits('desired'))} && seen == {bits('expected')}) {{",
            "    }",
        ]
    else:
        head = f"{register} value"
        lines += [
            "    uint seen = atomic_load_explicit(word, memory_order_relaxed);",
            f"    while (!{exchange.format(bits(updated[op]))}) {{",
            "    }",
        ]
    module.helpers[key] = "\n".join([
        "// Exchanges the bits until no other thread comes between.",
        f"{module.language.function} {register} {name}({space} {register}* place, {head}) {{",
        *lines,
        f"    return {value};",
        "}",
    ])  # fmt: skip
    return name
