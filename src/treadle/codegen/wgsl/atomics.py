"""Atomic updates: the operation WGSL has, or a loop of compare and exchange.

WGSL's atomics are on 32-bit integers (and, where the device has them, 64-bit integers and float32
addition). Everything else exchanges the whole word for one with the new value in it, until no
other thread has come between.
"""

from __future__ import annotations

from treadle.codegen.wgsl import casts
from treadle.codegen.wgsl.module import Module
from treadle.codegen.wgsl.places import checks_of, condition, element_of, spot
from treadle.codegen.wgsl.plans import Plan
from treadle.codegen.wgsl.scope import Scope
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.types import F32, I32, U32, Scalar

_NATIVE = {
    "add": "atomicAdd", "sub": "atomicSub", "min": "atomicMin", "max": "atomicMax",
    "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor", "exchange": "atomicExchange",
}  # fmt: skip
_SIGNLESS = frozenset({"add", "sub", "and", "or", "xor", "exchange"})
_UPDATES = {
    "add": "old_value + value", "sub": "old_value - value", "and": "old_value & value",
    "or": "old_value | value", "xor": "old_value ^ value", "exchange": "value",
    "min": "min(old_value, value)", "max": "max(old_value, value)",
    "inc": "select(0u, old_value + 1u, old_value < value)", "dec": "min(old_value - 1u, value)",
}  # fmt: skip


def atomic(scope: Scope, node: n.Atomic) -> None:
    """Print an atomic update, with its checks and its result."""
    result = scope.name(node.result.name) if node.result is not None else None
    checks = checks_of(node.place)
    if not checks:
        scope.emit(_statement(result, _update(scope, node)))
        return
    with scope.braces(f"if ({condition(scope, checks)}) {{"):
        scope.emit(_statement(result, _update(scope, node)))
    if node.result is not None:
        scope.lines.pop()
        with scope.braces("} else {"):
            scope.emit(f"{result} = {scope.module.zero(node.result.type)};")


def _statement(result: str | None, call: str) -> str:
    if result is not None:
        return f"{result} = {call};"
    return f"_ = {call};" if call.startswith("bitcast") else f"{call};"


def _update(scope: Scope, node: n.Atomic) -> str:
    module = scope.module
    plan = scope.plans[element_of(node.place).memory]
    type = node.place.type
    assert isinstance(type, Scalar)
    values = [scope.argument(operand) for operand in node.operands]
    narrow: int | str = 0
    if plan.form == "typed":
        where = element_of(node.place).index
        index = scope.text(where) if where.type == I32 else f"i32({scope.text(where)})"
    else:
        at = spot(scope, node.place)
        index, narrow = at.index, at.narrow
    if type.bits == 64:
        module.require("int64_atomics", "an atomic on 64 bits", node.span)
        if plan.form != "typed":
            raise UnsupportedOnTarget(
                "a 64-bit atomic on an array that also holds other types: give it an array of "
                "its own",
                node.span,
            )
    if plan.word == F32:
        module.require("float_atomics", "an atomic on float32", node.span)
    if node.op in _NATIVE and _is_native(plan.word, type, node.op):
        return _native(plan, type, node.op, index, values[0], module)
    name = _loop(module, plan, type, node.op, narrow)
    return f"{name}({index}, {', '.join(values)})"


def _is_native(unit: Scalar, type: Scalar, op: str) -> bool:
    if unit == type:
        return True
    both_integers = type.is_integer and type.bits == 32 and unit.is_integer
    return (both_integers and op in _SIGNLESS) or (type == F32 and op == "exchange")


def _native(plan: Plan, type: Scalar, op: str, index: str, value: str, module: Module) -> str:
    if plan.word == F32 and op == "sub":
        op, value = "add", f"-({value})"
    value = casts.same_word(module, value, type, plan.word)
    call = f"{_NATIVE[op]}(&{plan.variable}[{index}], {value})"
    return casts.same_word(module, call, plan.word, type)


def _loop(module: Module, plan: Plan, type: Scalar, op: str, narrow: int | str) -> str:
    """The function that updates by compare and exchange."""
    key = ("atomic", plan.variable, type, op, narrow)
    name, new = module.helper(key, f"atomic_{op}_{plan.variable}")
    if not new:
        return name
    unit = plan.word
    register = module.register(type)
    is_part = type.bits < 32
    head = "expected: {0}, desired: {0}" if op == "cas" else "value: {0}"
    index = "byte" if narrow == "byte" else "word"
    lines = [f"fn {name}({index}: i32, {head.format(register)}) -> {register} {{"]
    if narrow == "byte":
        lines += ["    let word = byte >> 2u;", "    let shift = u32(byte & 3) * 8u;"]
    elif is_part:
        lines += [f"    let shift = {int(narrow) * 8}u;"]
    slot = f"&{plan.variable}[word]"

    def value_of(word: str) -> str:
        if not is_part:
            return casts.bitcast(module, word, unit, type) if unit != type else word
        bits = casts.same_word(module, word, unit, U32)
        return casts.unpack(module, bits, "shift", type)

    def word_with(value: str, word: str) -> str:
        if not is_part:
            return casts.bitcast(module, value, type, unit) if unit != type else value
        bits = casts.same_word(module, word, unit, U32)
        packed = casts.pack(module, value, type)
        whole = f"insertBits({bits}, {packed}, shift, {type.bits}u)"
        return casts.same_word(module, whole, U32, unit)

    lines += [f"    var old = atomicLoad({slot});", "    loop {"]
    if op == "cas":
        # Equality of bits, not of numbers: as with CUDA's compare-and-swap.
        same = f"{_bits(module, value_of('old'), type)} != {_bits(module, 'expected', type)}"
        lines += [f"        if ({same}) {{", "            break;", "        }"]
        updated = "desired"
    else:
        lines += [f"        let old_value = {value_of('old')};"]
        updated = _updated(module, type, op)
    new_word = word_with(updated, "old")
    lines += [
        f"        let attempt = atomicCompareExchangeWeak({slot}, old, {new_word});",
        "        if (attempt.exchanged) {",
        "            break;",
        "        }",
        "        old = attempt.old_value;",
        "    }",
        f"    return {value_of('old')};",
        "}",
    ]
    module.add(key, "\n".join(lines))
    return name


def _bits(module: Module, text: str, type: Scalar) -> str:
    if type.is_integer or type.kind == "bool":
        return f"({text})"
    if type.bits == 16:
        return f"({casts.pack(module, text, type)})"
    return f"bitcast<u32>({text})"


def _updated(module: Module, type: Scalar, op: str) -> str:
    text = _UPDATES[op]
    if op in ("min", "max") and type.is_float:
        number = "f32({})" if module.register(type) == "f16" else "{}"
        tests = " || ".join(f"is_nan({number.format(v)})" for v in ("old_value", "value"))
        text = f"select({text}, old_value + value, {tests})"
    return casts.settle(module, text, type) if op in ("add", "sub") else text
