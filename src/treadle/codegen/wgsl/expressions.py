"""Expressions as text."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from treadle.codegen.wgsl import access, casts
from treadle.codegen.wgsl.module import mangle_field
from treadle.codegen.wgsl.names import mangle
from treadle.codegen.wgsl.scope import (
    ANY,
    ARGUMENT,
    COMPARISON,
    PRIMARY,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    Scope,
)
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.rules import BYTE_DOTS
from treadle.ir.types import BOOL, F64, Scalar, Struct, Type, Vector

Text = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Operator:
    """A WGSL operator: its sign, how it binds, and what its operands may be."""

    sign: str
    level: int
    left: int
    right: int


_OPERATORS: dict[str, _Operator] = {
    "mul": _Operator("*", PRODUCT, PRODUCT, UNARY),
    "div": _Operator("/", PRODUCT, PRODUCT, UNARY),
    "rem": _Operator("%", PRODUCT, PRODUCT, UNARY),
    "add": _Operator("+", SUM, SUM, PRODUCT),
    "sub": _Operator("-", SUM, SUM, PRODUCT),
    "and": _Operator("&", ANY, UNARY, UNARY),
    "or": _Operator("|", ANY, UNARY, UNARY),
    "xor": _Operator("^", ANY, UNARY, UNARY),
    "eq": _Operator("==", COMPARISON, SHIFT, SHIFT),
    "ne": _Operator("!=", COMPARISON, SHIFT, SHIFT),
    "lt": _Operator("<", COMPARISON, SHIFT, SUM),  # `a < b >> c` would be read as a template
    "le": _Operator("<=", COMPARISON, SHIFT, SHIFT),
    "gt": _Operator(">", COMPARISON, SHIFT, SHIFT),
    "ge": _Operator(">=", COMPARISON, SHIFT, SHIFT),
    "logical_and": _Operator("&&", ANY, COMPARISON, COMPARISON),
    "logical_or": _Operator("||", ANY, COMPARISON, COMPARISON),
}
_WRAPPING = frozenset({"add", "sub", "mul", "div", "rem", "shl"})
_ASSOCIATIVE = frozenset({"and", "or", "xor", "logical_and", "logical_or"})

# WGSL's names of intrinsics that need no thought, and whether their result is exact for floats
# (then a rounded type stays rounded).
_PLAIN = {
    "abs": ("abs", True), "sqrt": ("sqrt", False), "floor": ("floor", True),
    "ceil": ("ceil", True), "trunc": ("trunc", True), "rint": ("round", True),
    "fma": ("fma", False), "min": ("min", True), "max": ("max", True),
    "popcount": ("countOneBits", True), "clz": ("countLeadingZeros", True),
    "ctz": ("countTrailingZeros", True), "reverse_bits": ("reverseBits", True),
    "fast_rsqrt": ("inverseSqrt", False), "fast_exp": ("exp", False), "fast_exp2": ("exp2", False),
    "fast_log": ("log", False), "fast_log2": ("log2", False), "fast_sin": ("sin", False),
    "fast_cos": ("cos", False), "fast_tan": ("tan", False), "fast_tanh": ("tanh", False),
    "fast_pow": ("pow", False), "dot": ("dot", False),
}  # fmt: skip
_TESTS = {"isnan": "is_nan", "isinf": "is_inf", "isfinite": "is_finite", "signbit": "is_negative"}
_BUILTINS = {
    "thread_idx": ("local_id", "@builtin(local_invocation_id) local_id: vec3<u32>"),
    "block_idx": ("workgroup_id", "@builtin(workgroup_id) workgroup_id: vec3<u32>"),
    "grid_dim": ("num_workgroups", "@builtin(num_workgroups) num_workgroups: vec3<u32>"),
    "lane": ("subgroup_lane", "@builtin(subgroup_invocation_id) subgroup_lane: u32"),
    "subgroup_size": ("subgroup_width", "@builtin(subgroup_size) subgroup_width: u32"),
}


def render(scope: Scope, node: n.Expression) -> Text:
    """The text of an expression and how tightly it binds."""
    match node:
        case n.Constant():
            text = scope.module.literal(node.value, node.type, node.span)
            return text, UNARY if text.startswith("-") else PRIMARY
        case n.Variable():
            return _variable(scope, node)
        case n.Builtin():
            return _builtin(scope, node)
        case n.Unary():
            return _unary(scope, node)
        case n.Binary():
            return _binary(scope, node)
        case n.Select():
            return _select(scope, node)
        case n.Cast():
            return _cast(scope, node)
        case n.Bitcast():
            operand = _operand(scope, node.operand, ANY)
            return casts.bitcast(scope.module, operand, node.operand.type, node.type), PRIMARY
        case n.Intrinsic():
            return _intrinsic(scope, node)
        case n.Call():
            return _call(scope, node)
        case n.Construct():
            operands = node.operands
            if isinstance(node.type, Vector) and _same(operands):
                operands = operands[:1]
            arguments = ", ".join(scope.argument(operand) for operand in operands)
            return f"{scope.module.register(node.type, node.span)}({arguments})", PRIMARY
        case n.Extract():
            field = mangle_field(node.name) if isinstance(node.operand.type, Struct) else node.name
            return f"{scope.text(node.operand, PRIMARY)}.{field}", PRIMARY
        case n.Load():
            return access.load(scope, node)
    raise CompileError(f"WGSL has no expression {type(node).__name__}", node.span)


def _same(operands: tuple[n.Expression, ...]) -> bool:
    """Whether a vector has one variable, or one constant, in every component."""
    names = {operand.name for operand in operands if isinstance(operand, n.Variable)}
    # By their spelling: 0.0 and -0.0 are equal, but not the same.
    values = {repr(operand.value) for operand in operands if isinstance(operand, n.Constant)}
    known = all(isinstance(operand, (n.Constant, n.Variable)) for operand in operands)
    return known and len(names) + len(values) == 1


# --- constants -----------------------------------------------------------------------------------


def _is_constant(node: n.Expression) -> bool:
    match node:
        case n.Constant():
            return True
        case n.Unary() | n.Cast() | n.Bitcast() | n.Extract():
            return _is_constant(node.operand)
        case n.Binary():
            return _is_constant(node.left) and _is_constant(node.right)
        case n.Intrinsic() | n.Construct():
            return all(_is_constant(operand) for operand in node.operands)
    return False


def _operand(scope: Scope, node: n.Expression, limit: int) -> str:
    """An operand of an operation whose operands are all constants: hidden in a variable, since a
    compiler that evaluates it refuses an overflow."""
    if isinstance(node, n.Constant) and node.type != BOOL:
        text = scope.module.hidden(node.value, node.type, node.span)
        return f"({text})" if text.startswith("-") and limit < UNARY else text
    return scope.text(node, limit)


# --- leaves --------------------------------------------------------------------------------------


def _variable(scope: Scope, node: n.Variable) -> Text:
    if node.name in scope.parameters:
        return scope.parameters[node.name], PRIMARY
    return scope.name(node.name), PRIMARY


def _builtin(scope: Scope, node: n.Builtin) -> Text:
    module = scope.module
    axis = "xyz"[node.axis]
    if node.name in ("lane", "subgroup_size"):
        module.require("subgroups", f"{node.name}()", node.span)
        if node.name == "subgroup_size" and module.options.limits.subgroup_size:
            return str(module.options.limits.subgroup_size), PRIMARY
    source, declaration = _BUILTINS[node.name]
    module.builtin(source, declaration)
    if not scope.is_entry:
        module.private_builtins.add(node.name)
    text = node.name if node.name in ("lane", "subgroup_size") else f"{node.name}.{axis}"
    return (text, PRIMARY) if node.type.is_signed else (f"u32({text})", PRIMARY)


# --- operators -----------------------------------------------------------------------------------


def _unary(scope: Scope, node: n.Unary) -> Text:
    if node.op == "neg" and isinstance(node.operand, n.Constant) and node.operand.type.is_float:
        return render(scope, replace(node.operand, value=-node.operand.value))
    if _is_constant(node.operand):
        operand = _operand(scope, node.operand, PRIMARY)
    else:
        operand = scope.text(node.operand, PRIMARY)
    if node.op == "not":
        return f"!{operand}", UNARY
    if node.op == "invert":
        text = f"~{operand}"
        return _settled(scope, text, UNARY, node.type)
    element = casts.element_of(node.type)
    if element.is_float:
        return f"-{operand}", UNARY  # exact: a rounded type stays rounded
    if element.is_signed:
        return _settled(scope, f"-{operand}", UNARY, node.type)
    return _settled(scope, f"{scope.module.zero(node.type)} - {operand}", SUM, node.type)


def _settled(scope: Scope, text: str, level: int, type: Type) -> Text:
    if not casts.needs_settling(scope.module, type):
        return text, level
    return casts.settle(scope.module, text, type), PRIMARY


def _binary(scope: Scope, node: n.Binary) -> Text:
    if node.op in ("shl", "shr"):
        return _shift(scope, node)
    operator = _OPERATORS.get(node.op)
    if operator is None:
        raise CompileError(f"WGSL has no operation {node.op!r}; legalize first", node.span)
    if _is_zero_divisor(node):
        # Mesa drops what it sees divided by zero, with all that depends on it. This is the same.
        return _binary(scope, replace(node, op="mul", right=n.Constant(math.inf, node.right.type)))  # type: ignore[arg-type]
    operand_type = node.left.type
    sign = operator.sign
    is_sum = node.op in ("add", "sub") and casts.element_of(operand_type) == F64
    if is_sum and not _is_constant(node):
        return _ordered_sum(scope, node)
    if operand_type == BOOL and node.op == "xor":
        operator, sign = _OPERATORS["ne"], "!="
    hidden = _is_constant(node) and operand_type != BOOL
    left_limit = operator.left
    if node.op in _ASSOCIATIVE and isinstance(node.left, n.Binary) and node.left.op == node.op:
        left_limit = ANY if sign != "!=" else left_limit  # a & b & c needs no parentheses
    left = _operand(scope, node.left, left_limit) if hidden else scope.text(node.left, left_limit)
    right = scope.text(node.right, operator.right)
    if node.op == "ne" and casts.element_of(operand_type).is_float:
        # naga's `!=` is false for NaN.
        return f"!({left} == {right})", UNARY
    text = f"{left} {sign} {right}"
    if node.op in _WRAPPING:
        return _settled(scope, text, operator.level, node.type)
    return text, operator.level


def _ordered_sum(scope: Scope, node: n.Binary) -> Text:
    """A sum of float64 whose terms stay in their order. NVIDIA's and Mesa's compilers rearrange
    others: (x - y) - x was -y. A product in it is fused with it."""
    left, right = node.left, node.right
    minus = "-" if node.op == "sub" else ""
    if isinstance(right, n.Binary) and right.op == "mul":
        factors = f"{minus}{scope.text(right.left, PRIMARY)}", scope.argument(right.right)
        return f"fma({', '.join(factors)}, {scope.argument(left)})", PRIMARY
    if isinstance(left, n.Binary) and left.op == "mul":
        factors = scope.argument(left.left), scope.argument(left.right)
        return f"fma({', '.join(factors)}, {minus}{scope.text(right, PRIMARY)})", PRIMARY
    return f"{_kept(scope, left, 'x')} {minus or '+'} {_kept(scope, right, 'y')}", SUM


def _kept(scope: Scope, node: n.Expression, axis: str) -> str:
    """A term; times a 1 that no compiler can know, where it may be a sum itself. The terms of a sum
    have different ones, since a common factor could be taken out."""
    text = scope.text(node, PRIMARY)
    if isinstance(node, n.Load | n.Constant | n.Cast) or _is_constant(node):
        return text
    return f"{text} * {scope.module.unknown_one(scope.is_entry)}.{axis}"


def _is_zero_divisor(node: n.Binary) -> bool:
    """Whether a float is divided by the constant 0.0 (-0.0 comes from bits, which is safe)."""
    right = node.right
    if node.op != "div" or not isinstance(right, n.Constant) or not right.type.is_float:
        return False
    return right.value == 0 and math.copysign(1.0, right.value) > 0


def _shift(scope: Scope, node: n.Binary) -> Text:
    sign = "<<" if node.op == "shl" else ">>"
    hidden = _is_constant(node)
    left = _operand(scope, node.left, UNARY) if hidden else scope.text(node.left, UNARY)
    if isinstance(node.type, Vector):
        amount = f"vec{node.type.count}<u32>({scope.text(node.right)})"
    elif isinstance(node.right, n.Constant):
        amount = f"{int(node.right.value)}u"
    elif casts.element_of(node.right.type).name == "u32":
        amount = scope.text(node.right, UNARY)
    else:
        amount = f"u32({scope.text(node.right)})"
    text = f"{left} {sign} {amount}"
    return _settled(scope, text, SHIFT, node.type) if node.op == "shl" else (text, SHIFT)


def _select(scope: Scope, node: n.Select) -> Text:
    condition = scope.argument(node.condition)
    yes, no = scope.argument(node.if_true), scope.argument(node.if_false)
    if isinstance(node.type, (Scalar, Vector)):
        return f"select({no}, {yes}, {condition})", PRIMARY
    module = scope.module
    register = module.register(node.type, node.span)
    key = ("select", node.type)
    name, new = module.helper(key, f"select_{mangle(str(node.type))}")
    if new:
        module.add(
            key,
            f"fn {name}(no: {register}, yes: {register}, condition: bool) -> {register} {{\n"
            f"    var result: {register} = no;\n"
            "    if (condition) {\n        result = yes;\n    }\n    return result;\n}",
        )
    return f"{name}({no}, {yes}, {condition})", PRIMARY


def _cast(scope: Scope, node: n.Cast) -> Text:
    constant = _is_constant(node.operand)
    inner, level = scope.render(scope, node.operand)
    if constant:
        inner, level = _operand(scope, node.operand, ANY), ANY
    text = casts.cast(scope.module, inner, node.operand.type, node.type)
    if text == f"({inner})":
        return inner, level
    return text, PRIMARY


# --- calls ---------------------------------------------------------------------------------------


def _intrinsic(scope: Scope, node: n.Intrinsic) -> Text:
    module = scope.module
    element = casts.element_of(node.operands[0].type)
    constant = all(_is_constant(operand) for operand in node.operands)
    arguments = [
        _operand(scope, operand, ARGUMENT) if constant else scope.argument(operand)
        for operand in node.operands
    ]
    if node.op in _TESTS:
        return _test(scope, node, arguments[0]), PRIMARY
    if node.op == "abs" and element.is_integer and element.is_signed:
        return _settled(scope, _absolute(scope, node.type, arguments[0]), PRIMARY, node.type)
    if node.op == "mul_high":
        wide = "i64" if casts.element_of(node.type).is_signed else "u64"
        module.require("int64", "mul_high", node.span)
        register = module.register(node.type)
        product = f"{wide}({arguments[0]}) * {wide}({arguments[1]})"
        return f"{register}(({product}) >> 32u)", PRIMARY
    if node.op in BYTE_DOTS:
        return _dot4(scope, node.op, arguments), PRIMARY
    name, exact = _PLAIN[node.op]
    if element == F64 and node.op.startswith("fast_"):
        return _in_single(name, arguments), PRIMARY
    text = f"{name}({', '.join(arguments)})"
    if node.op in ("popcount", "clz", "ctz"):
        if element.is_signed:
            return text, PRIMARY
        return f"i32({text})", PRIMARY
    if node.op == "reverse_bits" or not exact:
        return _settled(scope, text, PRIMARY, node.type)
    return text, PRIMARY


def _absolute(scope: Scope, type: Type, argument: str) -> str:
    """The absolute value of signed integers. NVIDIA's Vulkan driver takes the result of `abs` for
    not negative, and that of the lowest number is negative: `codegen.faults`."""
    module = scope.module
    register = module.register(type)
    key = ("abs", register)
    name, new = module.helper(key, f"abs_{mangle(str(type))}")
    if new:
        body = "return max(value, -value);"
        module.add(key, f"fn {name}(value: {register}) -> {register} {{\n    {body}\n}}")
    return f"{name}({argument})"


def _dot4(scope: Scope, op: str, arguments: list[str]) -> str:
    """A sum of products of bytes. WGSL has none of unsigned by signed ones: 128 is taken from each
    unsigned byte, and 128 times the sum of the signed ones is added."""
    module = scope.module
    name, new = module.helper((op,), op)
    if new:
        packed = {
            "dot4_i8": "dot4I8Packed(left, right)",
            "dot4_u8": "i32(dot4U8Packed(left, right))",
            "dot4_u8i8": "dot4I8Packed(left ^ 0x80808080u, right)"
            " + (dot4I8Packed(0x01010101u, right) << 7u)",
        }[op]
        module.add(
            (op,),
            f"fn {name}(a: i32, b: i32, sum: i32) -> i32 {{\n"
            f"    let left = bitcast<u32>(a);\n    let right = bitcast<u32>(b);\n"
            f"    return sum + {packed};\n}}",
        )
    return f"{name}({', '.join(arguments)})"


def _in_single(name: str, arguments: list[str]) -> str:
    """A fast function of float64, which no GPU has: by way of float32."""
    return f"f64({name}({', '.join(f'f32({argument})' for argument in arguments)}))"


def _test(scope: Scope, node: n.Intrinsic, argument: str) -> str:
    element = casts.element_of(node.operands[0].type)
    if element.name == "f64":
        scope.module.scalar_register(element, node.span)
        return f"{_TESTS[node.op]}_f64({argument})"
    if element.name == "f16" and scope.module.native_f16:
        argument = f"f32({argument})"
    return f"{_TESTS[node.op]}({argument})"


def _call(scope: Scope, node: n.Call) -> Text:
    arguments: list[str] = []
    for argument in node.arguments:
        if isinstance(argument, n.MemoryReference):
            raise CompileError(
                f"{node.function} takes memory: WGSL needs it inlined first", node.span
            )
        arguments.append(scope.argument(argument))
    return f"{scope.functions[node.function]}({', '.join(arguments)})", PRIMARY
