"""Expressions as text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.codegen.c_family import casts, intrinsics, places, vectors
from treadle.codegen.c_family.scope import (
    AND,
    ANY,
    BITS,
    COMPARISON,
    OR,
    PRIMARY,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    Scope,
)
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, F32, I32, Array, Scalar, Vector, member_type

Text = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator: its sign, how it binds, and what its operands may be."""

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
    "shl": _Operator("<<", SHIFT, UNARY, UNARY),
    "shr": _Operator(">>", SHIFT, UNARY, UNARY),
    "and": _Operator("&", BITS, UNARY, UNARY),
    "or": _Operator("|", BITS, UNARY, UNARY),
    "xor": _Operator("^", BITS, UNARY, UNARY),
    "eq": _Operator("==", COMPARISON, SUM, SUM),
    "ne": _Operator("!=", COMPARISON, SUM, SUM),
    "lt": _Operator("<", COMPARISON, SUM, SUM),
    "le": _Operator("<=", COMPARISON, SUM, SUM),
    "gt": _Operator(">", COMPARISON, SUM, SUM),
    "ge": _Operator(">=", COMPARISON, SUM, SUM),
    "logical_and": _Operator("&&", AND, COMPARISON, COMPARISON),
    "logical_or": _Operator("||", OR, COMPARISON, COMPARISON),
}
_OPERATORS["floordiv"], _OPERATORS["mod"] = _OPERATORS["div"], _OPERATORS["rem"]
_CHAINS = frozenset({"and", "or", "xor", "logical_and", "logical_or"})  # a & b & c
_ON_BOOLS = {"and": "logical_and", "or": "logical_or", "xor": "ne"}

# The helpers for integer operations that C++ leaves undefined, where nothing is proven.
_CAREFUL = {
    "add": "wrap_add", "sub": "wrap_sub", "mul": "wrap_mul", "div": "truncated_div",
    "rem": "truncated_rem", "floordiv": "floor_div", "mod": "floor_mod", "shl": "shift_left",
    "shr": "shift_right",
}  # fmt: skip
_MOST_TERMS = 20  # of a sum that thread indices are looked for in
_WRAPS = frozenset({"add", "sub", "mul"})


def render(scope: Scope, node: n.Expression) -> Text:
    """The text of an expression and how tightly it binds."""
    match node:
        case n.Constant():
            text = scope.module.literal(node.value, node.type)
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
            if node.type == node.operand.type:
                return render(scope, node.operand)
            return casts.cast(scope, node)
        case n.Bitcast():
            return casts.bitcast(scope, node)
        case n.Intrinsic():
            return intrinsics.intrinsic(scope, node)
        case n.Call():
            return _call(scope, node)
        case n.Construct():
            return _construct(scope, node), PRIMARY
        case n.Extract():
            return _extract(scope, node)
        case n.Load():
            return places.load(scope, node)
    raise CompileError(f"no text for the expression {type(node).__name__}", node.span)


# --- leaves --------------------------------------------------------------------------------------


def _variable(scope: Scope, node: n.Variable) -> Text:
    if node.name in scope.parameters:
        scope.module.register(node.type, node)
        return scope.parameters[node.name]
    return scope.name(node.name), PRIMARY


def _builtin(scope: Scope, node: n.Builtin) -> Text:
    text = scope.module.language.builtin(scope, node)
    if text.isdecimal():
        return text, PRIMARY
    return f"({scope.module.scalar(node.type, node)}){text}", UNARY


# --- operators -----------------------------------------------------------------------------------


def _unary(scope: Scope, node: n.Unary) -> Text:
    operand_type = node.operand.type
    if isinstance(operand_type, Vector):
        return vectors.unary(scope, node)
    assert isinstance(operand_type, Scalar)
    if node.op == "not":
        return f"!{scope.text(node.operand, PRIMARY)}", UNARY
    if node.op == "invert":
        return narrowed(scope, f"~{scope.text(node.operand, PRIMARY)}", UNARY, operand_type)
    if operand_type.is_float and isinstance(node.operand, n.Constant):
        return render(scope, replace(node.operand, value=-node.operand.value))
    if operand_type.name in scope.module.language.structs:
        scope.module.helper("operator-", operand_type)
    careful = operand_type.kind == "int" and operand_type.bits >= 32
    if careful and not scope.facts.plain(node):
        zero = scope.module.literal(0, operand_type)
        name = scope.module.helper("wrap_sub", operand_type)
        return f"{name}({zero}, {scope.text(node.operand)})", PRIMARY
    return narrowed(scope, f"-{scope.text(node.operand, PRIMARY)}", UNARY, operand_type)


def narrowed(scope: Scope, text: str, level: int, type: Scalar) -> Text:
    """The result of an integer operation, which C++ computes as an int, in its own type."""
    if not type.is_integer or type.bits >= 32:
        return text, level
    inner = text if level <= UNARY else f"({text})"
    return f"({scope.module.scalar(type)}){inner}", UNARY


def _binary(scope: Scope, node: n.Binary) -> Text:
    type = node.left.type
    if isinstance(type, Vector):
        return vectors.binary(scope, node)
    assert isinstance(type, Scalar)
    if type == BOOL and node.op in _ON_BOOLS:
        return _operation(scope, node, _ON_BOOLS[node.op])
    if type.is_float:
        return _float_binary(scope, node, type)
    if type.is_integer and node.op in _CAREFUL and not _is_exact(scope, node, type):
        return _careful(scope, node, type)
    text, level = _operation(scope, node, node.op)
    if node.op in n.COMPARISONS:
        return text, level
    return narrowed(scope, text, level, type)


def _operation(scope: Scope, node: n.Binary, op: str) -> Text:
    operator = _OPERATORS[op]
    left_limit = operator.left
    if op in _CHAINS and isinstance(node.left, n.Binary):
        inner = (
            _ON_BOOLS.get(node.left.op, node.left.op) if node.left.type == BOOL else node.left.op
        )
        left_limit = operator.level if inner == op else left_limit
    left, right = scope.text(node.left, left_limit), scope.text(node.right, operator.right)
    if op in ("shl", "shr") and isinstance(node.right, n.Constant):
        right = str(int(node.right.value))
    return f"{left} {operator.sign} {right}", operator.level


def _is_exact(scope: Scope, node: n.Binary, type: Scalar) -> bool:
    """Whether C++'s operator (on ints, for what is narrower) gives the IR's result, wrapped."""
    if scope.facts.plain(node):
        return True
    if node.op in _WRAPS:
        # Narrow ones are computed as ints, which two unsigned 16-bit factors can overflow.
        if type.name == "u16" and node.op == "mul":
            return False
        return not type.is_signed or type.bits < 32
    constant = node.right.value if isinstance(node.right, n.Constant) else None
    if constant is None:
        return False
    if node.op == "shl":
        return not type.is_signed and 0 <= constant < type.bits
    if node.op == "shr":
        return 0 <= constant < type.bits
    if node.op in ("div", "rem") or not type.is_signed:
        return constant not in (0, -1)
    return False


def _careful(scope: Scope, node: n.Binary, type: Scalar) -> Text:
    power = _power_of_two(node)
    if power is not None:  # flooring is what a shift does, and a mask
        if node.op == "mod":
            return render(
                scope, replace(node, op="and", right=replace(power, value=power.value - 1))
            )
        amount = int(power.value).bit_length() - 1
        return render(scope, replace(node, op="shr", right=replace(power, value=amount)))
    called = I32 if type.bits < 32 else type  # C++ promotes narrower types to int
    name = scope.module.helper(_CAREFUL[node.op], called)
    text = f"{name}({scope.text(node.left)}, {scope.text(node.right)})"
    return narrowed(scope, text, PRIMARY, type)


def _power_of_two(node: n.Binary) -> n.Constant | None:
    if node.op not in ("floordiv", "mod") or not isinstance(node.right, n.Constant):
        return None
    value = int(node.right.value)
    return node.right if value > 0 and value & (value - 1) == 0 else None


def _float_binary(scope: Scope, node: n.Binary, type: Scalar) -> Text:
    module = scope.module
    if node.op in ("rem", "floordiv", "mod"):
        if type.bits == 16:
            return _in_single(scope, node, type)
        name = {"rem": "float_rem", "floordiv": "floor_div", "mod": "floor_mod"}[node.op]
        name = module.helper(name, type)
        return f"{name}({scope.text(node.left)}, {scope.text(node.right)})", PRIMARY
    if type.name in module.language.structs:
        module.helper(f"operator{_OPERATORS[node.op].sign}", type)
    elif type.bits == 16 and node.op == "div":
        return _in_single(scope, node, type)  # whose quotient rounds to the right one
    return _operation(scope, node, node.op)


def _in_single(scope: Scope, node: n.Binary, type: Scalar) -> Text:
    left, right = (n.Cast(operand, F32, node.span) for operand in (node.left, node.right))
    wide = n.Binary(node.op, left, right, F32, node.span)
    return render(scope, n.Cast(wide, type, node.span))


def _select(scope: Scope, node: n.Select) -> Text:
    condition = scope.text(node.condition, OR)
    yes, no = scope.text(node.if_true, OR), scope.text(node.if_false, ANY)
    return f"{condition} ? {yes} : {no}", ANY


# --- calls ---------------------------------------------------------------------------------------


def _call(scope: Scope, node: n.Call) -> Text:
    arguments: list[str] = []
    for argument in node.arguments:
        if isinstance(argument, n.MemoryReference):
            raise CompileError(f"{node.function} takes memory: inline it first", node.span)
        arguments.append(exact(scope, argument))
    name = scope.functions.get(node.function, node.function)
    return f"{name}({', '.join(arguments)})", PRIMARY


def exact(scope: Scope, node: n.Expression) -> str:
    """A text whose C++ type is the node's own, where a narrow integer might be an int."""
    type = node.type
    if not isinstance(type, Scalar) or not type.is_integer or type.bits >= 32:
        return scope.text(node)
    if isinstance(node, n.Variable) and node.name not in scope.parameters:
        return scope.text(node)
    if isinstance(node, (n.Binary, n.Cast, n.Unary)):
        return scope.text(node)  # which end in a cast
    return f"({scope.module.scalar(type)}){scope.text(node, UNARY)}"


def _construct(scope: Scope, node: n.Construct) -> str:
    module = scope.module
    type = node.type
    operands = [exact(scope, operand) for operand in node.operands]
    if isinstance(type, Vector):
        module.register(type, node)
        return module.language.vector(module, type)[2].format(", ".join(operands))
    for position, operand in enumerate(node.operands):
        if isinstance(operand.type, Array):
            raise CompileError("a struct that holds an array is filled item by item", node.span)
        if isinstance(operand.type, Vector) and module.differs_in_memory(operand.type):
            operands[position] = f"{module.stored(operand.type)}({operands[position]})"
    return f"{module.register(type, node)}{{{', '.join(operands)}}}"


def _extract(scope: Scope, node: n.Extract) -> Text:
    base = node.operand.type
    field = scope.module.field(base, node.name)
    whole = node.operand
    if isinstance(whole, n.Extract) and isinstance(base, Vector):  # as it lies in its struct
        inner = scope.module.field(whole.operand.type, whole.name)
        text = f"{scope.text(whole.operand, PRIMARY)}.{inner}.{field}"
    else:
        text = f"{scope.text(whole, PRIMARY)}.{field}"
    return places.from_memory(scope, text, member_type(base, node.name))


def _asks_for_threads(node: n.Expression) -> bool:
    """Whether a sum of products has a thread's or block's index in it, not too deep inside."""
    stack: list[n.Expression] = [node]
    for _ in range(_MOST_TERMS):
        if not stack:
            return False
        part = stack.pop()
        if isinstance(part, n.Builtin):
            return True
        if isinstance(part, n.Binary) and part.op in _WRAPS:
            stack += (part.right, part.left)
    return False


def unsigned_text(scope: Scope, node: n.Expression) -> tuple[str, int, bool]:
    """A sum or product for a variable of 32 bits, which takes it modulo 2**32: its text, how it
    binds, and whether C++ computes it without a sign, so that it wraps without a cast.

    Thread and block indices are unsigned, and so is what is computed from them:
    `int i = blockIdx.x * 256 + threadIdx.x`.
    """
    if isinstance(node, n.Builtin):
        text = scope.module.language.builtin(scope, node)
        return text, PRIMARY, not text.isdecimal()
    if isinstance(node, n.Binary) and node.op in _WRAPS and _asks_for_threads(node):
        left, left_level, left_unsigned = unsigned_text(scope, node.left)
        right, right_level, right_unsigned = unsigned_text(scope, node.right)
        if left_unsigned or right_unsigned:
            operator = _OPERATORS[node.op]
            left = left if left_level <= operator.left else f"({left})"
            right = right if right_level <= operator.right else f"({right})"
            return f"{left} {operator.sign} {right}", operator.level, True
    return (*render(scope, node), False)
