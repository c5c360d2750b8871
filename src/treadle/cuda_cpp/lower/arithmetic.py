"""Constructors of IR expressions that fold constants, so that printed kernels read well."""

from __future__ import annotations

import math

from treadle.core.source import NOWHERE, Span
from treadle.cuda_cpp.semantics.types import Arithmetic
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.fold_expressions import ExpressionFolder


def _either(span: Span, value: n.Expression) -> Span:
    return span if span.line else value.span


def constant(value: bool | int | float, type: ir.Scalar, span: Span = NOWHERE) -> n.Constant:
    """A constant, rounded or wrapped to its type."""
    if type.is_float:
        return n.Constant(arithmetic.round_float(float(value), type), type, span)
    if type == ir.BOOL:
        return n.Constant(bool(value), type, span)
    return n.Constant(arithmetic.wrap(int(value), type), type, span)


def holds(type: Arithmetic, given: Arithmetic, value: bool | int | float) -> bool:
    """Whether a constant keeps its value in another type."""
    if given.scalar.is_float and not type.scalar.is_float:
        return False
    kept = constant(value, type.scalar).value
    if given.scalar.is_float:  # rounding is allowed, overflow is not
        return math.isfinite(kept) or not math.isfinite(value)
    return kept == value


def zero_of(type: ir.Type, span: Span) -> n.Expression:
    """The zero value of a type."""
    match type:
        case ir.Scalar():
            return constant(0, type, span)
        case ir.Vector():
            return n.Construct((constant(0, type.element, span),) * type.count, type, span)
        case ir.Struct():
            return n.Construct(tuple(zero_of(f.type, span) for f in type.fields), type, span)
    raise AssertionError(type)


def cast(value: n.Expression, type: ir.Scalar, span: Span = NOWHERE) -> n.Expression:
    """The value converted to another scalar type.

    Arithmetic that wraps is done in the target type: `int i = blockIdx.x * blockDim.x` is unsigned
    in C++ and has the same value in i32, in which indices are known to be small.
    """
    if value.type == type:
        return value
    if isinstance(value, n.Constant):
        return folded(n.Cast(value, type, _either(span, value)))
    if {value.type, type} == {ir.I32, ir.U32}:
        retyped = _retyped(value, type)
        if retyped is not None:
            return retyped
    return n.Cast(value, type, _either(span, value))


_WRAPPING = frozenset({"add", "sub", "mul", "and", "or", "xor"})


def _retyped(value: n.Expression, type: ir.Scalar) -> n.Expression | None:
    """32-bit arithmetic in the other signedness, if its operands are cast from that."""
    match value:
        case n.Cast(operand) if operand.type == type:
            return operand
        case n.Constant():
            return constant(int(value.value), type, value.span)
        case n.Binary(op=op, left=left, right=right) if op in _WRAPPING:
            one, other = _retyped(left, type), _retyped(right, type)
            if one is not None and other is not None:
                return n.Binary(op, one, other, type, value.span)
    return None


def folded(expression: n.Expression) -> n.Expression:
    """The expression with constants folded. Accesses that are outside of arrays stay, since
    `TREADLE_CHECK=1` reports them."""
    result: n.Expression = ExpressionFolder(keeps_failing=True).expression(expression)
    return result


def is_constant(expression: n.Expression, value: int) -> bool:
    """Whether an expression is this number."""
    return isinstance(expression, n.Constant) and expression.value == value


def wider(left: n.Expression, right: n.Expression) -> tuple[n.Expression, n.Expression]:
    """Two offsets in a common type: i64 if one of them is."""
    if left.type == right.type:
        return left, right
    return cast(left, ir.I64), cast(right, ir.I64)


def plus(left: n.Expression, right: n.Expression) -> n.Expression:
    """The sum of two offsets."""
    if is_constant(left, 0) and (left.type == right.type or right.type == ir.I64):
        return right
    if is_constant(right, 0) and (left.type == right.type or left.type == ir.I64):
        return left
    left, right = wider(left, right)
    made = n.Binary("add", left, right, left.type, right.span)
    if isinstance(left, n.Constant) and isinstance(right, n.Constant):
        return folded(made)
    return made


def minus(left: n.Expression, right: n.Expression) -> n.Expression:
    """The difference of two offsets."""
    if is_constant(right, 0) and left.type == right.type:
        return left
    left, right = wider(left, right)
    made = n.Binary("sub", left, right, left.type, right.span)
    if isinstance(left, n.Constant) and isinstance(right, n.Constant):
        return folded(made)
    return made


def times(offset: n.Expression, factor: int) -> n.Expression:
    """An offset in units that are smaller by a factor."""
    if factor == 1:
        return offset
    assert isinstance(offset.type, ir.Scalar)
    if isinstance(offset, n.Constant):
        return constant(int(offset.value) * factor, offset.type, offset.span)
    by = constant(factor, offset.type)
    return n.Binary("mul", offset, by, offset.type, offset.span)


def over(offset: n.Expression, divisor: int) -> n.Expression:
    """An offset in units that are larger by a divisor, of which it is a multiple."""
    assert isinstance(offset.type, ir.Scalar)
    if divisor == 1:
        return offset
    if isinstance(offset, n.Constant):
        return constant(int(offset.value) // divisor, offset.type, offset.span)
    if (
        isinstance(offset, n.Binary)
        and offset.op == "mul"
        and isinstance(offset.right, n.Constant)
        and int(offset.right.value) % divisor == 0
    ):
        return times(offset.left, int(offset.right.value) // divisor)
    if divisor & (divisor - 1) == 0:
        shift = constant(divisor.bit_length() - 1, offset.type)
        return n.Binary("shr", offset, shift, offset.type, offset.span)
    return n.Binary("div", offset, constant(divisor, offset.type), offset.type, offset.span)
