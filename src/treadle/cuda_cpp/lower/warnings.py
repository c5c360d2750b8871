"""What a compiler warns of in expressions, found when types are checked (`checking.py`)."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.dispatch import type_of
from treadle.cuda_cpp.lower.values import FunctionSet, Value
from treadle.cuda_cpp.semantics.types import Arithmetic, ArrayOf, EnumType, Pointer
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir.types import BOOL

_DIVISIONS = frozenset(("/", "%", "/=", "%="))
_SHIFTS = frozenset(("<<", ">>", "<<=", ">>="))
_BELOW = frozenset(("<", ">="))  # comparisons with 0 that are always the same for unsigned numbers
_DOUBTFUL = _DIVISIONS | _SHIFTS | _BELOW


def warn_of_operator(cx: Context, op: str, left: Value, right: Any, span: Span) -> None:
    """Warn of an operator on integers whose right operand is a wrong number."""
    if not cx.lowering.checking or op not in _DOUBTFUL:
        return
    number = _number(right)
    type = getattr(left, "type", None)
    if op in _BELOW:
        if number == 0 and isinstance(type, Arithmetic) and _counts_from_zero(type):
            result = "false" if op == "<" else "true"
            cx.warn(f"this is always {result}: {type} has no numbers below 0", span)
        return
    integral = isinstance(type, Arithmetic) and not type.scalar.is_float
    if number is None or not (integral or isinstance(type, EnumType)):
        return
    if op in _DIVISIONS:
        if number == 0:
            cx.warn(f"a division by zero ({op}), whose result is undefined", span)
        return
    bits = max(type.scalar.bits, 32) if isinstance(type, Arithmetic) else 32
    if not 0 <= number < bits:
        cx.warn(
            f"a shift by {number} of an integer of {bits} bits, whose result is undefined", span
        )


def _counts_from_zero(type: Arithmetic) -> bool:
    scalar = type.scalar
    return not (scalar.is_float or scalar.is_signed) and scalar != BOOL


def warn_of_subscript(cx: Context, node: tree.Subscript, base: Value) -> None:
    """Warn of an index that is outside of the array that it names."""
    if not cx.lowering.checking or cx.addressed is node:
        return
    type = getattr(base, "type", None)
    number = _number(node.index)
    if number is None or not isinstance(type, ArrayOf) or isinstance(type.element, ArrayOf):
        return
    named: Any = node.base
    while isinstance(named, tree.Subscript):
        named = named.base
    # An array of one element, or none, at the end of a struct may stand for more.
    if not isinstance(named, tree.Name) or not type.length or type.length < 2:
        return
    if not 0 <= number < type.length:
        cx.warn(
            f"index {number} is outside of {named.text}: it has {type.length} elements",
            node.span,
        )


def warn_of_statement(cx: Context, node: tree.ExpressionStatement, value: Value) -> None:
    """Warn of an expression whose value is discarded, and that does nothing else."""
    if not cx.lowering.checking or cx.is_in_instance():
        return
    if isinstance(value, FunctionSet):
        cx.warn(f"{value.name} is not called here: write {value.name}(…)", node.span)
        return
    expression = node.expression
    if isinstance(expression, (tree.Name, tree.Binary)) and _does_nothing(cx, expression):
        meant = ""
        if isinstance(expression, tree.Binary) and expression.op == "==":
            meant = ": = assigns, == compares"
        cx.warn(f"this statement has no effect{meant}", expression.span)


_PURE = (
    tree.Name, tree.Unary, tree.Binary, tree.Conditional, tree.Subscript, tree.Member,
    tree.IntegerLiteral, tree.FloatLiteral, tree.CharacterLiteral, tree.BoolLiteral,
)  # fmt: skip
_NUMBERS = (Arithmetic, EnumType, Pointer, ArrayOf)


def _does_nothing(cx: Context, expression: Any) -> bool:
    """Whether an expression consists of built-in operators without effects."""
    try:
        for one in walk_tree(expression):
            if not isinstance(one, _PURE) or getattr(one, "op", "") in ("++", "--"):
                return False
            match one:
                case tree.Unary(operand=operand):
                    operands: tuple[Any, ...] = (operand,)
                case tree.Binary(left=left, right=right):
                    operands = (left, right)
                case tree.Subscript(base=base):
                    operands = (base,)
                case _:
                    operands = ()
            if not all(isinstance(type_of(cx, each), _NUMBERS) for each in operands):
                return False
        return not isinstance(expression, tree.Name) or isinstance(
            type_of(cx, expression), _NUMBERS
        )
    except CompileError:
        return False


def _number(node: Any) -> int | None:
    """The number that an expression is in the text; None if it is none."""
    sign = 1
    while isinstance(node, tree.Unary) and node.op in ("-", "+"):
        sign = -sign if node.op == "-" else sign
        node = node.operand
    return sign * node.value if isinstance(node, tree.IntegerLiteral) else None
