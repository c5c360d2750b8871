"""Folding of expressions and places; `fold` adds the statements."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir.rules import binary_type, intrinsic_type
from treadle.ir.types import I32, I64, U64, Scalar, size_of

_T = TypeVar("_T")
_TARGETS_DIFFER = frozenset({"rem", "mod", "floordiv"})  # on floats: left to the target
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_WIDER = {("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")}

# Integer operations whose constant right operand makes them vanish: op to that operand.
_RIGHT_IDENTITY = {
    "add": 0, "sub": 0, "mul": 1, "div": 1, "floordiv": 1, "or": 0, "xor": 0, "and": -1,
    "shl": 0, "shr": 0,
}  # fmt: skip
_COMMUTES = frozenset({"add", "mul", "and", "or", "xor"})
_ASSOCIATES = frozenset({"add", "mul", "and", "or", "xor"})  # on integers, exactly
_ABSORBS = {"mul": 0, "and": 0, "or": -1}  # for any other operand
_FLOAT_RIGHT_IDENTITY = {"mul": 1.0, "div": 1.0, "sub": 0.0, "add": -0.0}


class ExpressionFolder:
    """Folds expressions; `known` has the variables to replace by another expression."""

    def __init__(self, *, keeps_failing: bool = False) -> None:
        self.known: dict[str, n.Expression] = {}
        self.keeps_failing = keeps_failing

    def expression(self, node: n.Expression) -> Any:
        """The expression folded; the same object if nothing changed."""
        return _EXPRESSIONS[node.__class__](self, node)

    def each(self, nodes: tuple[_T, ...]) -> tuple[_T, ...]:
        """Expressions folded; the same tuple if nothing changed."""
        new = tuple([_EXPRESSIONS[node.__class__](self, node) for node in nodes])
        return nodes if all(map(operator.is_, nodes, new)) else new

    def unchanged(self, node: n.Expression) -> Any:
        return node

    def variable(self, node: n.Variable) -> Any:
        return self.known.get(node.name, node)

    def unary(self, node: n.Unary) -> Any:
        operand = self.expression(node.operand)
        kind = operand.__class__
        if kind is n.Constant:
            type = operand.type
            return n.Constant(arithmetic.unary(node.op, operand.value, type), type, node.span)
        if kind is n.Unary and operand.op == node.op:
            return operand.operand  # twice any of them is nothing
        if kind is n.Binary and node.op == "not" and operand.op in _OPPOSITE:
            compared = operand.left.type
            # `not a < b` is `a >= b` only without NaN; equality may be negated anyway.
            if operand.op in ("eq", "ne") or not (
                isinstance(compared, Scalar) and compared.is_float
            ):
                opposite = _OPPOSITE[operand.op]
                return n.Binary(opposite, operand.left, operand.right, node.type, node.span)
        if operand is node.operand:
            return node
        return n.Unary(node.op, operand, node.type, node.span)

    def binary(self, node: n.Binary) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        left_known, right_known = left.__class__ is n.Constant, right.__class__ is n.Constant
        if left_known or right_known:
            simpler = self.with_constant(node, left, right, left_known, right_known)
            if simpler is not None:
                return simpler
        if left is node.left and right is node.right:
            return node
        return n.Binary(node.op, left, right, node.type, node.span)

    def with_constant(
        self, node: n.Binary, left: Any, right: Any, left_known: bool, right_known: bool
    ) -> Any:
        """A binary operation with at least one constant operand, made simpler if it can be."""
        op = node.op
        type = left.type
        if left_known and right_known:
            if type.is_float and op in _TARGETS_DIFFER:
                return None
            value = arithmetic.binary(op, left.value, right.value, type)
            result: Any = binary_type(op, type)
            return n.Constant(value, result, node.span)
        if op in n.LOGICAL:
            known, other = (left, right) if left_known else (right, left)
            decides = known.value == (op == "logical_or")
            return known if decides else other
        if op in n.COMPARISONS:
            return _narrower_comparison(node, left, right, left_known)
        if not isinstance(type, Scalar) or type.kind == "bool":
            return None
        if type.is_float:
            return _float_identity(node, left, right, right_known)
        return _integer_identity(node, left, right, left_known)

    def select(self, node: n.Select) -> Any:
        condition = self.expression(node.condition)
        if isinstance(condition, n.Constant):
            return self.expression(node.if_true if condition.value else node.if_false)
        if_true, if_false = self.expression(node.if_true), self.expression(node.if_false)
        if condition is node.condition and if_true is node.if_true and if_false is node.if_false:
            return node
        return n.Select(condition, if_true, if_false, node.type, node.span)

    def cast(self, node: n.Cast) -> Any:
        operand = self.expression(node.operand)
        source, target = operand.type, node.type
        if source == target:
            return operand
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            if isinstance(operand, n.Constant):
                return n.Constant(arithmetic.cast(operand.value, source, target), target, node.span)
            if isinstance(operand, n.Cast) and _inner_cast_vanishes(operand, target):
                inner = operand.operand
                return inner if inner.type == target else n.Cast(inner, target, node.span)
        return node if operand is node.operand else n.Cast(operand, target, node.span)

    def bitcast(self, node: n.Bitcast) -> Any:
        operand = self.expression(node.operand)
        if isinstance(operand, n.Bitcast):
            operand = operand.operand
        source, target = operand.type, node.type
        if source == target:
            return operand
        if isinstance(operand, n.Constant) and isinstance(target, Scalar):
            value = arithmetic.bitcast(operand.value, operand.type, target)
            # The bits of a NaN do not survive as a Python float on every host.
            if not (math.isnan(value) or math.isnan(operand.value)):
                return n.Constant(value, target, node.span)
        return node if operand is node.operand else n.Bitcast(operand, target, node.span)

    def intrinsic(self, node: n.Intrinsic) -> Any:
        operands: Any = self.each(node.operands)
        if all(operand.__class__ is n.Constant for operand in operands):
            type = operands[0].type
            values = tuple([operand.value for operand in operands])
            value = arithmetic.intrinsic(node.op, values, type)
            if value is not None:
                result: Any = intrinsic_type(node.op, type)
                return n.Constant(value, result, node.span)
        if operands is node.operands:
            return node
        return n.Intrinsic(node.op, operands, node.type, node.span)

    def call(self, node: n.Call) -> Any:
        arguments = self.each(node.arguments)
        if arguments is node.arguments:
            return node
        return n.Call(node.function, arguments, node.type, node.span)

    def construct(self, node: n.Construct) -> Any:
        operands = self.each(node.operands)
        return node if operands is node.operands else n.Construct(operands, node.type, node.span)

    def extract(self, node: n.Extract) -> Any:
        operand = self.expression(node.operand)
        if isinstance(operand, n.Construct):
            return operand.operands[part_index(operand.type, node.name)]
        if operand is node.operand:
            return node
        return n.Extract(operand, node.name, node.type, node.span)

    def load(self, node: n.Load) -> Any:
        place: Any = self.place(node.place)
        if isinstance(node.type, Scalar) and self.never(place):
            return n.Constant(arithmetic.from_bits(0, node.type), node.type, node.span)
        return node if place is node.place else n.Load(place, node.type, node.span)

    def memory_reference(self, node: n.MemoryReference) -> n.MemoryReference:
        return node

    # --- places ---

    def place(self, node: Any) -> Any:
        """A place with its indices folded and checks that always pass dropped."""
        kind = node.__class__
        if kind is n.Element:
            index, checks = self.expression(node.index), self.checks(node.checks)
            if index is node.index and checks is node.checks:
                return node
            return n.Element(node.memory, index, node.type, checks, node.span)
        if kind is n.Variable:
            return node
        base = self.place(node.base)
        if kind is n.Member:
            return node if base is node.base else n.Member(base, node.name, node.type, node.span)
        index, checks = self.expression(node.index), self.checks(node.checks)
        if base is node.base and index is node.index and checks is node.checks:
            return node
        return n.Item(base, index, node.type, checks, node.span)

    def checks(self, checks: tuple[n.Check, ...]) -> tuple[n.Check, ...]:
        if not checks:
            return checks
        kept: list[n.Check] = []
        changed = False
        for check in checks:
            index, bound = self.expression(check.index), self.expression(check.bound)
            known = index.__class__ is n.Constant and bound.__class__ is n.Constant
            if known and 0 <= index.value < bound.value:
                changed = True
                continue
            if index is not check.index or bound is not check.bound:
                changed = True
                check = n.Check(index, bound, check.axis, check.expected, check.of)
            kept.append(check)
        return tuple(kept) if changed else checks

    def never(self, place: Any) -> bool:
        """Whether nothing is accessed at a folded place, since a check of it always fails."""
        if self.keeps_failing:
            return False
        while place.__class__ is not n.Variable:
            for check in () if place.__class__ is n.Member else place.checks:
                index, bound = check.index, check.bound
                if index.__class__ is n.Constant and (
                    index.value < 0
                    or (bound.__class__ is n.Constant and index.value >= bound.value)
                ):
                    return True
            if place.__class__ is n.Element:
                return False
            place = place.base
        return False


_EXPRESSIONS: dict[type, Callable[[ExpressionFolder, Any], Any]] = {
    n.Constant: ExpressionFolder.unchanged,
    n.Variable: ExpressionFolder.variable,
    n.Builtin: ExpressionFolder.unchanged,
    n.Unary: ExpressionFolder.unary,
    n.Binary: ExpressionFolder.binary,
    n.Select: ExpressionFolder.select,
    n.Cast: ExpressionFolder.cast,
    n.Bitcast: ExpressionFolder.bitcast,
    n.Intrinsic: ExpressionFolder.intrinsic,
    n.Call: ExpressionFolder.call,
    n.Construct: ExpressionFolder.construct,
    n.Extract: ExpressionFolder.extract,
    n.Load: ExpressionFolder.load,
    n.MemoryReference: ExpressionFolder.memory_reference,
}


def part_index(type: Any, name: str) -> int:
    """The position of a component or field among the operands of a Construct."""
    fields = getattr(type, "fields", None)
    return "xyzw".index(name) if fields is None else [f.name for f in fields].index(name)


def _all_ones(type: Scalar) -> int:
    return arithmetic.wrap(-1, type)


def _narrower_comparison(node: n.Binary, left: Any, right: Any, left_known: bool) -> Any:
    """A widened number against a constant, compared as it was: fewer bits, and Mesa's llvmpipe
    compares 64-bit integers wrongly there. None where nothing was widened."""
    known, other = (left, right) if left_known else (right, left)
    if known.type not in (I64, U64) or other.__class__ is not n.Cast:
        return None
    inner = other.operand
    source = inner.type
    if not isinstance(source, Scalar) or not source.is_integer or source.bits > 32:
        return None
    if source.is_signed and not known.type.is_signed:
        return None  # what is negative becomes large
    if source.bits < 32:
        inner, source = n.Cast(inner, I32, other.span), I32
    least = -(1 << 31) if source.is_signed else 0
    if not least <= known.value < least + (1 << 32):
        return None
    constant = n.Constant(known.value, source, known.span)
    left, right = (constant, inner) if left_known else (inner, constant)
    return n.Binary(node.op, left, right, node.type, node.span)


def _integer_identity(node: n.Binary, left: Any, right: Any, left_known: bool) -> Any:
    op, type = node.op, left.type
    if left_known:
        if op in ("shl", "shr", "div", "rem", "floordiv", "mod") and left.value == 0:
            return n.Constant(0, type, node.span)
        if op not in _COMMUTES:
            return None
        left, right = right, left
    value = right.value
    identity = _RIGHT_IDENTITY.get(op)
    if identity is not None and value == (_all_ones(type) if identity == -1 else identity):
        return left
    absorbing = _ABSORBS.get(op)
    if absorbing is not None and value == (_all_ones(type) if absorbing == -1 else absorbing):
        return n.Constant(value, type, node.span)
    if op in ("rem", "mod") and value == 1:
        return n.Constant(0, type, node.span)
    if value > 1 and not value & (value - 1):
        return_shift = _power_of_two(node, left, value, type)
        if return_shift is not None:
            return return_shift
    if op in _ASSOCIATES and isinstance(left, n.Binary) and left.op == op:
        inner = left.right if isinstance(left.right, n.Constant) else None
        if inner is not None:
            together = arithmetic.binary(op, inner.value, value, type)
            return n.Binary(op, left.left, n.Constant(together, type, right.span), type, node.span)
    return None


def _power_of_two(node: n.Binary, left: Any, value: int, type: Scalar) -> Any:
    """Flooring division by a power of two is a shift, its remainder a mask, for any sign."""
    if node.op == "floordiv" or (node.op == "div" and type.kind == "uint"):
        by = n.Constant(value.bit_length() - 1, type, node.right.span)
        return n.Binary("shr", left, by, type, node.span)
    if node.op == "mod" or (node.op == "rem" and type.kind == "uint"):
        mask = n.Constant(value - 1, type, node.right.span)
        return n.Binary("and", left, mask, type, node.span)
    return None


def _float_identity(node: n.Binary, left: Any, right: Any, right_known: bool) -> Any:
    op = node.op
    if not right_known:
        if op not in ("add", "mul"):
            return None
        left, right = right, left
    value = right.value
    if op in _FLOAT_RIGHT_IDENTITY and _same_float(value, _FLOAT_RIGHT_IDENTITY[op]):
        return left
    if op == "div" and right_known and _exact_reciprocal(value, left.type):
        reciprocal = n.Constant(1.0 / value, left.type, right.span)
        return n.Binary("mul", left, reciprocal, left.type, node.span)
    return None


def _same_float(value: float, other: float) -> bool:
    """Equality that tells 0.0 from -0.0."""
    return value == other and math.copysign(1.0, value) == math.copysign(1.0, other)


def _exact_reciprocal(value: float, type: Scalar) -> bool:
    """Whether a value is a power of two whose reciprocal is a normal number as well."""
    if type.bits < 32 or value == 0 or not math.isfinite(value):
        return False
    mantissa, exponent = math.frexp(value)
    return abs(mantissa) == 0.5 and abs(exponent) < (120 if type.bits == 32 else 1000)


def _inner_cast_vanishes(inner: n.Cast, target: Scalar) -> bool:
    """Whether casting through the type of `inner` is the same as casting at once."""
    source, middle = inner.operand.type, inner.type
    if not isinstance(source, Scalar) or not isinstance(middle, Scalar):
        return False
    if source.is_integer and middle.is_integer and target.is_integer:
        return size_of(middle) >= size_of(target)  # every step only drops bits that go anyway
    return source == target and (source.name, middle.name) in _WIDER
