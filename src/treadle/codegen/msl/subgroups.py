"""Values exchanged among the threads of a SIMD group, of 32 threads on every Apple GPU.

The last group of a block may have fewer; a lane without a thread takes no part.
"""

from __future__ import annotations

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.scope import SUM, UNARY, Scope
from treadle.codegen.msl import opaque
from treadle.codegen.msl.builtins import use
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, I32, Scalar

NAMES = (
    "shuffle", "subgroup_min", "subgroup_max", "from_lane", "simd_shuffle", "simd_sum", "simd_min",
    "simd_max", "simd_and", "simd_or", "simd_xor", "simd_prefix_exclusive_sum", "simd_all",
    "simd_any", "simd_ballot", "threadgroup_barrier", "simdgroup_barrier", *opaque.NAMES,
)  # fmt: skip

_VOTES = {
    "vote_all": "simd_all({})", "vote_any": "simd_any({})",
    "ballot": "(uint)(simd_vote::vote_t)simd_ballot({})",
}  # fmt: skip
_REDUCTIONS = {
    "sum": "simd_sum", "min": "simd_min", "max": "simd_max", "and": "simd_and", "or": "simd_or",
    "xor": "simd_xor", "prefix_sum": "simd_prefix_exclusive_sum",
}  # fmt: skip
_SOURCES = {"shuffle_up": "lane - {}", "shuffle_down": "lane + {}", "shuffle_xor": "lane ^ {}"}


def subgroup(scope: Scope, node: n.Subgroup) -> str:
    """The value of a subgroup operation."""
    module = scope.module
    module.required.add("subgroups")
    if node.op in n.OPAQUE_OPERATIONS:
        return opaque.operation(scope, node)
    operand = scope.text(node.operands[0])
    if node.op in _VOTES:
        return _VOTES[node.op].format(operand)
    type = node.operands[0].type
    assert isinstance(type, Scalar)
    if node.op in _REDUCTIONS:
        return _reduction(module, node, type, operand)
    source = node.operands[1]
    if node.op == "shuffle":
        text = scope.text(source, SUM)
    else:
        use(module, "lane")
        amount = scope.text(source, UNARY)
        unsigned = f"(uint){amount}" if source.type == I32 else amount
        if isinstance(source, n.Constant) and source.value >= 0:
            unsigned = f"{int(source.value)}u"
        text = _SOURCES[node.op].format(unsigned)
    return f"{_shuffle(module, type)}({operand}, {text}, {_present(module)})"


def _present(module: Module) -> str:
    """How many lanes of this thread's group have a thread."""
    count = module.block.count
    if count % 32 == 0 or count < 32:
        return f"{min(count, 32)}u"
    use(module, "lane")
    use(module, "thread_number")
    return f"min(32u, {count}u - (thread_number - lane))"


def _reduction(module: Module, node: n.Subgroup, type: Scalar, operand: str) -> str:
    if type.bits == 64:
        raise UnsupportedOnTarget(
            f"subgroup {node.op} of {type}: Metal has it for 32 bits; reduce with shuffles",
            node.span,
        )
    name = _REDUCTIONS[node.op]
    wrapped = "{}"
    if type.name in module.language.structs:
        operand = f"{module.helper('to_float', type)}({operand})"
        wrapped = f"{module.helper(f'to_{module.scalar(type)}')}({{}})"
    if type.is_float and node.op in ("min", "max"):
        register = "float" if type.name in module.language.structs else module.scalar(type)
        key = (f"subgroup_{node.op}", register)
        if key not in module.helpers:
            module.helpers[key] = (
                f"// NaN if a thread has one.\n"
                f"{module.language.function} {register} subgroup_{node.op}({register} value) {{\n"
                f"    return simd_any(isnan(value)) ? ({register})NAN : {name}(value);\n}}"
            )
        name = f"subgroup_{node.op}"
    return wrapped.format(f"{name}({operand})")


def _shuffle(module: Module, type: Scalar) -> str:
    """The function that gives a lane's value, or the thread's own if the lane does not exist."""
    key = ("shuffle", type)
    if key in module.helpers:
        return "shuffle"
    register = module.scalar(type)
    fetch = "simd_shuffle({}, from)"
    if type.name in module.language.structs:
        moved = f"{register}{{{fetch.format('value.bits')}}}"
    elif type == BOOL:
        moved = f"{fetch.format('(uint)value')} != 0"
    elif type.bits == 64:
        low, high = fetch.format("(uint)value"), fetch.format("(uint)((ulong)value >> 32)")
        moved = f"({register})((ulong){high} << 32 | {low})"
    else:
        moved = fetch.format("value")
    module.helpers[key] = (
        "// A lane's value; the thread's own where there is no such lane.\n"
        f"{module.language.function} {register} shuffle({register} value, uint source, uint size)"
        " {\n"
        "    ushort from = min(source, size - 1);\n"
        f"    {register} moved = {moved};\n"
        "    return source < size ? moved : value;\n}"
    )
    return "shuffle"
