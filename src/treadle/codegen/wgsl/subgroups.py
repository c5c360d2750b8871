"""Values exchanged among the threads of a subgroup."""

from __future__ import annotations

from treadle.codegen.wgsl import casts, opaque
from treadle.codegen.wgsl.module import Module
from treadle.codegen.wgsl.scope import Scope
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, Scalar, Type, Vector

_REDUCTIONS = {
    "sum": "subgroupAdd", "min": "subgroupMin", "max": "subgroupMax", "and": "subgroupAnd",
    "or": "subgroupOr", "xor": "subgroupXor", "prefix_sum": "subgroupExclusiveAdd",
}  # fmt: skip
_SOURCES = {
    "shuffle": "u32({0})",
    "shuffle_up": "u32(lane) - u32({0})",  # wraps to beyond the subgroup
    "shuffle_down": "u32(lane) + u32({0})",
    "shuffle_xor": "u32(lane) ^ u32({0})",
}


def subgroup(scope: Scope, node: n.Subgroup) -> None:
    """Print a subgroup operation."""
    if node.op in n.OPAQUE_OPERATIONS:
        opaque.operation(scope, node)
        return
    scope.module.require("subgroups", node.op, node.span)
    scope.emit(f"{scope.name(node.result.name)} = {_value(scope, node)};")


def _value(scope: Scope, node: n.Subgroup) -> str:
    module = scope.module
    operand = scope.argument(node.operands[0])
    type = node.operands[0].type
    match node.op:
        case "vote_all":
            return f"subgroupAll({operand})"
        case "vote_any":
            return f"subgroupAny({operand})"
        case "ballot":
            return f"subgroupBallot({operand}).x"
        case "sum" | "min" | "max" | "and" | "or" | "xor" | "prefix_sum":
            return _reduction(module, node, operand, type)
    moved = _SOURCES[node.op].format(scope.text(node.operands[1]))
    _use_lane(scope)
    return f"{_shuffle(scope, node, type)}({operand}, {moved})"


def _reduction(module: Module, node: n.Subgroup, operand: str, type: Type) -> str:
    element = casts.element_of(type)
    if element.bits == 64:
        raise UnsupportedOnTarget(
            f"subgroup {node.op} of {type}: WGSL has it for 32 bits; reduce with shuffles",
            node.span,
        )
    text = f"{_REDUCTIONS[node.op]}({operand})"
    if node.op in ("sum", "prefix_sum"):
        return casts.settle(module, text, type)
    if element.is_float and isinstance(type, Scalar):
        tested = f"f32({operand})" if module.register(type) == "f16" else operand
        nan = module.literal(float("nan"), type)
        return f"select({text}, {nan}, subgroupAny(is_nan({tested})))"
    return text


def _use_lane(scope: Scope) -> None:
    """Make the lane known to the helper functions."""
    scope.text(n.Builtin("lane"))
    scope.module.private_builtins.add("lane")


def _present(scope: Scope) -> str:
    """How many lanes of this thread's subgroup have a thread: the last of a block may lack some."""
    module = scope.module
    pinned = module.options.limits.subgroup_size
    if pinned and module.threads % pinned == 0:
        return f"{pinned}u"
    scope.text(n.Builtin("subgroup_size"))
    scope.text(n.Builtin("lane"))
    module.private_builtins.add("subgroup_present")
    module.builtin("local_index", "@builtin(local_invocation_index) local_index: u32")
    return "subgroup_present"


def _shuffle(scope: Scope, node: n.Subgroup, type: Type) -> str:
    """The function that gives a lane's value, or the thread's own if the lane does not exist."""
    module = scope.module
    register = module.register(type, node.span)
    key = ("shuffle", type)
    name, new = module.helper(key, f"shuffle_{register.replace('<', '_').replace('>', '')}")
    if not new:
        return name
    present = _present(scope)
    if not isinstance(type, (Scalar, Vector)):
        raise UnsupportedOnTarget("a struct cannot be shuffled: shuffle its fields", node.span)
    lines = [
        f"fn {name}(value: {register}, source: u32) -> {register} {{",
        f"    let from_lane = min(source, {present} - 1u);",
    ]
    lines += _fetch(type, register)
    lines += [f"    return select(value, moved, source < {present});", "}"]
    module.add(key, "\n".join(lines))
    return name


def _fetch(type: Scalar | Vector, register: str) -> list[str]:
    element = casts.element_of(type)
    if type == BOOL:
        return ["    let moved = subgroupShuffle(u32(value), from_lane) != 0u;"]
    if element.bits < 64:
        return ["    let moved = subgroupShuffle(value, from_lane);"]
    if isinstance(type, Vector):
        raise UnsupportedOnTarget(f"a shuffle of {type}: shuffle its components")
    bits = "value" if element.name == "u64" else "bitcast<u64>(value)"
    back = "u64(low) | (u64(high) << 32u)"
    back = back if element.name == "u64" else f"bitcast<{register}>({back})"
    return [
        f"    let bits = {bits};",
        "    let low = subgroupShuffle(u32(bits & 0xfffffffflu), from_lane);",
        "    let high = subgroupShuffle(u32(bits >> 32u), from_lane);",
        f"    let moved = {back};",
    ]
