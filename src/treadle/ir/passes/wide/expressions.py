"""Expressions without 64-bit integers.

`Words.value` rewrites any expression; one of 64 bits becomes a pair of words. `Words.word` gives
the low word of one of 64 bits alone, which needs the low words of what sums, products and casts
are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.arithmetic import wrap
from treadle.ir.passes.wide.functions import call
from treadle.ir.passes.wide.intervals import Intervals
from treadle.ir.passes.wide.layout import (
    PAIR,
    holds_wide,
    is_wide,
    is_wide_vector,
    paired,
)
from treadle.ir.prelude_names import prelude_name
from treadle.ir.traverse import map_children
from treadle.ir.types import BOOL, COMPONENTS, F32, F64, I32, U32, Scalar, Struct, Type, Vector

_ZERO = n.Constant(0, U32)
_WRAPPING = frozenset({"add", "sub", "mul", "and", "or", "xor"})
_BITWISE = frozenset({"and", "or", "xor"})
# Operations of 64 bits: functions for unsigned and for signed integers.
_FUNCTIONS: dict[str, tuple[str, str]] = {
    "add": ("add_u64", "add_u64"), "sub": ("sub_u64", "sub_u64"), "mul": ("mul_u64", "mul_u64"),
    "div": ("div_u64", "div_i64"), "rem": ("rem_u64", "rem_i64"),
    "floordiv": ("div_u64", "floordiv_i64"), "mod": ("rem_u64", "mod_i64"),
    "min": ("min_u64", "min_i64"), "max": ("max_u64", "max_i64"),
    "shl": ("shl_u64", "shl_u64"), "shr": ("shr_u64", "shr_i64"),
    "popcount": ("popcount_u64", "popcount_u64"), "clz": ("clz_u64", "clz_u64"),
    "ctz": ("ctz_u64", "ctz_u64"), "reverse_bits": ("reverse_bits_u64", "reverse_bits_u64"),
    "mul_high": ("mul_high_u64", "mul_high_i64"), "neg": ("neg_u64", "neg_u64"),
}  # fmt: skip


class Words:
    """Rewrites the expressions of one function. `narrowed` are the variables of 64 bits that are
    kept in one word, with its type; `functions` collects what operations on vectors call (other
    functions are found by `functions.called_functions`)."""

    def __init__(self, intervals: Intervals, narrowed: dict[str, Scalar]) -> None:
        self.intervals = intervals
        self.narrowed = narrowed
        self.functions: dict[str, n.Function] = {}

    # --- any expression, place or check ---

    def value(self, node: Any) -> Any:
        """The same without 64-bit integers; a place stays a place."""
        if type(node) not in _UNTYPED and is_wide(node.type):
            return self.pair(node)
        rule = _RULES.get(type(node))
        return map_children(node, self.value) if rule is None else rule(self, node)

    def variable(self, node: n.Variable) -> n.Variable:
        """A variable of any type, 64 bits included, as it is kept."""
        kept = self.narrowed.get(node.name)
        return replace(node, type=paired(node.type) if kept is None else kept)

    def binary(self, node: n.Binary) -> n.Expression:
        if node.op in n.COMPARISONS and is_wide(node.left.type):
            return self.comparison(node)
        if is_wide_vector(node.type):
            return self.by_components(node)
        return replace(node, left=self.value(node.left), right=self.value(node.right))

    def unary(self, node: n.Unary) -> n.Expression:
        if is_wide_vector(node.type):
            return self.by_components(node)
        return replace(node, operand=self.value(node.operand))

    def intrinsic(self, node: n.Intrinsic) -> n.Expression:
        operand = node.operands[0]
        if is_wide_vector(operand.type):
            return self.by_components(node)
        if not is_wide(operand.type):
            return replace(node, operands=tuple(self.value(each) for each in node.operands))
        return call(self.function(node.op, operand.type), self.pair(operand))  # a count

    def cast(self, node: n.Cast) -> n.Expression:
        source = node.operand.type
        if is_wide_vector(source) or is_wide_vector(node.type):
            return self.by_components(node)
        if not is_wide(source):
            return replace(node, operand=self.value(node.operand))
        target = node.type
        assert isinstance(source, Scalar)
        assert isinstance(target, Scalar)
        if target.kind == "bool":
            return self.comparison(n.Binary("ne", node.operand, n.Constant(0, source), BOOL))
        if target.is_integer:
            word = self.word(node.operand, I32 if target.is_signed else U32)
            return word if target.bits == 32 else n.Cast(word, target, node.span)
        kept = self.intervals.word(node.operand)
        if kept is not None:
            return n.Cast(self.word(node.operand, kept), target, node.span)
        if target.bits == 64:
            raise _no_f64(node)
        name = f"{'cast' if target == F32 else 'odd'}_{source}_f32"
        found = call(name, self.pair(node.operand))
        return found if target == F32 else n.Cast(found, target, node.span)

    def bitcast(self, node: n.Bitcast) -> n.Expression:
        if F64 in (_element(node.type), _element(node.operand.type)) and (
            holds_wide(node.type) or holds_wide(node.operand.type)
        ):
            raise _no_f64(node)
        operand: n.Expression = self.value(node.operand)
        return operand if is_wide_vector(node.type) else replace(node, operand=operand)

    def construct(self, node: n.Construct) -> n.Expression:
        type = paired(node.type)
        operands = [self.value(operand) for operand in node.operands]
        if isinstance(type, Struct) and isinstance(node.type, Struct):
            given, names = iter(operands), {field.name for field in node.type.fields}
            operands = [next(given) if field.name in names else _ZERO for field in type.fields]
        return replace(node, operands=tuple(operands), type=type)

    def typed(self, node: Any) -> n.Expression:
        """What keeps its form, and whose type may hold 64-bit integers."""
        changed: n.Expression = replace(map_children(node, self.value), type=paired(node.type))
        return changed

    # --- 64 bits as a pair ---

    def pair(self, node: n.Expression) -> n.Expression:
        """An expression of 64 bits as its two words."""
        low, _ = self.intervals.of(node)
        kept = self.intervals.word(node)
        if kept is None:
            return self.whole(node)
        if isinstance(node, n.Constant):
            return _constant_pair(node)
        word = self.word(node, U32 if low >= 0 else kept)
        return n.Construct((word, _ZERO), PAIR, node.span) if low >= 0 else call("widen_i32", word)

    def whole(self, node: n.Expression) -> n.Expression:
        """An expression of 64 bits of which nothing more is known, as its two words."""
        assert isinstance(node.type, Scalar)
        match node:
            case n.Constant():
                return _constant_pair(node)
            case n.Variable():
                return self.variable(node)
            case n.Bitcast():
                return self.pair_of_bits(node)
            case n.Unary(op="invert") | n.Extract() | n.Load() | n.Call() | n.Select():
                return self.typed(node)
            case n.Unary():
                return call("neg_u64", self.pair(node.operand))
            case n.Binary():
                return self.binary_pair(node)
            case n.Cast():
                return self.cast_pair(node)
            case n.Intrinsic(op="abs"):
                operand = self.pair(node.operands[0])
                return call("abs_i64", operand) if node.type.is_signed else operand
            case n.Intrinsic(op="dot"):
                return self.by_components(node)
            case n.Intrinsic():
                name = self.function(node.op, node.type)
                return call(name, *(self.pair(operand) for operand in node.operands))
        raise AssertionError(f"no 64-bit integer: {node!r}")

    def pair_of_bits(self, node: n.Bitcast) -> n.Expression:
        if not is_wide(node.operand.type):
            raise _no_f64(node)
        return self.pair(node.operand)

    def binary_pair(self, node: n.Binary) -> n.Expression:
        left, right = node.left, node.right
        if node.op in _BITWISE:
            return n.Binary(node.op, self.pair(left), self.pair(right), PAIR, node.span)
        if node.op in ("shl", "shr"):
            return call(self.function(node.op, node.type), self.pair(left), self.amount(right))
        if (simpler := _by_power_of_two(node)) is not None:
            return self.pair(simpler)
        if node.op == "mul" and self.is_word(left) and self.is_word(right):
            return call("product_u32", self.word(left, U32), self.word(right, U32))
        return call(self.function(node.op, node.type), self.pair(left), self.pair(right))

    def cast_pair(self, node: n.Cast) -> n.Expression:
        operand, source = node.operand, node.operand.type
        assert isinstance(source, Scalar)
        assert isinstance(node.type, Scalar)
        if is_wide(source):
            return self.pair(operand)
        if source.is_float:
            if source == F64:
                raise _no_f64(node)
            value = self.value(operand)
            value = value if source == F32 else n.Cast(value, F32, node.span)
            return call(f"cast_f32_{node.type}", value)
        if source.is_signed:
            return call("widen_i32", _as(self.value(operand), I32))
        return n.Construct((_as(self.value(operand), U32), _ZERO), PAIR, node.span)

    def amount(self, node: n.Expression) -> n.Expression:
        """How far to shift, as a word: 64 for any number that is not below 64."""
        if isinstance(node, n.Constant):
            return n.Constant(int(node.value) if 0 <= node.value < 64 else 64, U32, node.span)
        if self.is_word(node):
            return self.word(node, U32)
        return call("shift_amount", self.pair(node))

    def is_word(self, node: n.Expression) -> bool:
        """Whether an expression of 64 bits is never more than a u32."""
        low, _ = self.intervals.of(node)
        return low >= 0 and self.intervals.word(node) is not None

    # --- the low word of 64 bits ---

    def word(self, node: n.Expression, kind: Scalar) -> n.Expression:
        """The low 32 bits of an expression of 64, as an i32 or u32."""
        match node:
            case n.Constant():
                return n.Constant(wrap(int(node.value), kind), kind, node.span)
            case n.Variable() if node.name in self.narrowed:
                return _as(self.variable(node), kind)
            case n.Unary():
                return n.Unary(node.op, self.word(node.operand, kind), kind, node.span)
            case n.Binary() if node.op in _WRAPPING:
                left, right = self.word(node.left, kind), self.word(node.right, kind)
                return n.Binary(node.op, left, right, kind, node.span)
            case n.Select():
                yes, no = self.word(node.if_true, kind), self.word(node.if_false, kind)
                return n.Select(self.value(node.condition), yes, no, kind, node.span)
            case n.Cast() if is_wide(node.operand.type):
                return self.word(node.operand, kind)
            case n.Cast() if not node.operand.type.is_float:  # type: ignore[union-attr]
                return _as(self.value(node.operand), kind)
            case n.Bitcast() if is_wide(node.operand.type):
                return self.word(node.operand, kind)
            case n.Binary():
                found = self.shifted(node, kind) or self.in_words(node, node.left, node.right)
            case n.Intrinsic(op="min" | "max" | "abs"):
                found = self.in_words(node, *node.operands)
            case _:
                found = None
        if found is None:
            found = n.Extract(self.whole(node), "x", U32, node.span)
        return _as(found, kind)

    def shifted(self, node: n.Binary, kind: Scalar) -> n.Expression | None:
        """The low word of a shift by a constant, from one word of what is shifted."""
        if node.op not in ("shl", "shr") or not isinstance(node.right, n.Constant):
            return None
        by = int(node.right.value)
        if node.op == "shl":
            if not 0 <= by < 32:
                return n.Constant(0, kind)
            return n.Binary("shl", self.word(node.left, kind), n.Constant(by, kind), kind)
        if not 32 <= by < 64 or self.intervals.word(node.left) is not None:
            return None
        assert isinstance(node.type, Scalar)
        high: n.Expression = n.Extract(self.whole(node.left), "y", U32, node.span)
        if by == 32:
            return high
        side = I32 if node.type.is_signed else U32
        return n.Binary("shr", _as(high, side), n.Constant(by - 32, side), side, node.span)

    def in_words(self, node: n.Binary | n.Intrinsic, *operands: n.Expression) -> Any:
        """An operation done in 32 bits, if they hold its operands; None if not."""
        kept = self.intervals.common_word(*operands)
        if kept is None or node.op in ("shl", "mul_high"):
            return None
        words = [self.word(operand, kept) for operand in operands]
        if isinstance(node, n.Binary):
            return n.Binary(node.op, words[0], words[1], kept, node.span)
        if node.op == "abs" and kept == U32:
            return words[0]
        return n.Intrinsic(node.op, tuple(words), kept, node.span)

    # --- comparisons ---

    def comparison(self, node: n.Binary) -> n.Expression:
        """Two integers of 64 bits compared."""
        left, right, op = node.left, node.right, node.op
        kept = self.intervals.common_word(left, right)
        if kept is not None:
            return replace(node, left=self.word(left, kept), right=self.word(right, kept))
        first, second = self.pair(left), self.pair(right)
        if op in ("gt", "le"):
            first, second = second, first
        name = "equal_u64" if op in ("eq", "ne") else f"less_{left.type}"
        found = call(name, first, second)
        return n.Unary("not", found, BOOL, node.span) if op in ("ne", "le", "ge") else found

    def check(self, node: n.Check) -> n.Check:
        """A check whose index and bound fit 32 bits, or that asks for one number or another."""
        index, bound = node.index, node.bound
        if not is_wide(index.type):
            return map_children(node, self.value)  # type: ignore[no-any-return]
        if self.intervals.word(index) is not None and self.intervals.word(bound) == I32:
            # An index from 2**31 on is a negative i32: no more inside than it was.
            return replace(node, index=self.word(index, I32), bound=self.word(bound, I32))
        inside = call("less_u64", self.pair(index), self.pair(bound))
        zero, one = n.Constant(0, I32), n.Constant(1, I32)
        return replace(node, index=n.Select(inside, zero, one, I32), bound=one)

    # --- places ---

    def place_of(self, node: n.Place) -> Any:
        """A place to put something: a variable as it is kept, or a part of memory."""
        return self.variable(node) if isinstance(node, n.Variable) else self.value(node)

    def place(self, node: n.Element | n.Item) -> n.Place:
        """A place: of an index the low word counts, as memory has no more elements than that and
        checks see the whole of it."""
        index = node.index
        wide = is_wide(index.type)
        changed = map_children(replace(node, index=n.Constant(0, I32)), self.value)
        counted = self.word(index, I32) if wide else self.value(index)
        found: n.Place = replace(changed, index=counted, type=paired(node.type))
        return found

    def member(self, node: n.Member) -> n.Place:
        return replace(node, base=self.value(node.base), type=paired(node.type))

    # --- vectors ---

    def by_components(self, node: Any) -> n.Call:
        """A call of a function that does what a node on vectors does, for each component."""
        operands = _operands(node)
        made = _component_function(node, tuple(operand.type for operand in operands))
        rewriter = Words(Intervals({}, None), {})
        made = replace(
            made,
            parameters=tuple(rewriter.variable(parameter) for parameter in made.parameters),  # type: ignore[arg-type]
            result=paired(made.result),
            body=tuple(map_children(statement, rewriter.value) for statement in made.body),
        )
        self.functions[made.name] = made
        arguments = tuple(self.value(operand) for operand in operands)
        return n.Call(made.name, arguments, made.result, node.span)

    def function(self, op: str, type: Type) -> str:
        """The function for an operation on 64-bit integers."""
        return _FUNCTIONS[op][_element(type).is_signed]


def _no_f64(node: n.Expression) -> UnsupportedOnTarget:
    error = UnsupportedOnTarget(
        "this device has no 64-bit integers, so there is nothing to make of a float64, or a "
        "float64 of: use float32, or a device that has them (features in `treadle devices`)",
        node.span,
    )
    error.missing = "f64"
    return error


def _constant_pair(node: n.Constant) -> n.Construct:
    value = int(node.value)
    words = (value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF)
    return n.Construct(tuple(n.Constant(word, U32, node.span) for word in words), PAIR, node.span)


def _as(node: n.Expression, kind: Scalar) -> n.Expression:
    """An integer or bool as an i32 or u32."""
    if node.type == kind:
        return node
    if isinstance(node, n.Constant):
        return n.Constant(wrap(int(node.value), kind), kind, node.span)
    if isinstance(node, n.Cast) and node.operand.type == kind and node.type in (I32, U32):
        return node.operand  # there and back
    return n.Cast(node, kind, node.span)


def _by_power_of_two(node: n.Binary) -> n.Binary | None:
    """A division by a constant power of two that is a shift, or a mask for its remainder."""
    divisor = node.right
    if not isinstance(divisor, n.Constant) or not isinstance(node.type, Scalar):
        return None
    value = int(divisor.value)
    flooring = ("floordiv", "mod") if node.type.is_signed else ("floordiv", "mod", "div", "rem")
    if value <= 0 or value & (value - 1) or node.op not in flooring:
        return None
    if node.op in ("mod", "rem"):
        return replace(node, op="and", right=replace(divisor, value=value - 1))
    return replace(node, op="shr", right=replace(divisor, value=value.bit_length() - 1))


def _element(type: Type) -> Scalar:
    element = type.element if isinstance(type, Vector) else type
    assert isinstance(element, Scalar)
    return element


def _operands(node: Any) -> tuple[n.Expression, ...]:
    """What an operation on vectors takes."""
    match node:
        case n.Binary():
            return node.left, node.right
        case n.Intrinsic():
            return node.operands
    return (node.operand,)


def _component_function(node: Any, types: tuple[Type, ...]) -> n.Function:
    """The function for an operation on vectors, with 64-bit integers still in it."""
    parameters = tuple(
        n.Variable(name, type) for name, type in zip(("a", "b"), types, strict=False)
    )
    (vector,) = {type for type in types if isinstance(type, Vector)}
    parts = [
        _with_operands(node, tuple(n.Extract(p, axis, vector.element) for p in parameters))
        for axis in COMPONENTS[: vector.count]
    ]
    op = "cast" if isinstance(node, n.Cast) else node.op
    if op == "dot":
        result = parts[0]
        for part in parts[1:]:
            result = n.Binary("add", result, part, vector.element)
    else:
        result = n.Construct(tuple(parts), Vector(parts[0].type, vector.count))
    name = prelude_name(op, *dict.fromkeys((vector, result.type)))
    return n.Function(name, parameters, result.type, (n.Return(result),))


def _with_operands(node: Any, operands: tuple[n.Expression, ...]) -> Any:
    """An operation on vectors, as the same on numbers."""
    element = _element(node.type)
    match node:
        case n.Binary():
            return n.Binary(node.op, operands[0], operands[1], element)
        case n.Intrinsic(op="dot"):
            return n.Binary("mul", operands[0], operands[1], element)
        case n.Intrinsic():
            return n.Intrinsic(node.op, operands, element)
    return replace(node, operand=operands[0], type=element)


_UNTYPED = frozenset({n.Check, n.MemoryReference, n.Element, n.Member, n.Item})
_RULES: dict[type, Callable[[Words, Any], Any]] = {
    n.Variable: Words.variable, n.Binary: Words.binary, n.Unary: Words.unary,
    n.Intrinsic: Words.intrinsic, n.Cast: Words.cast, n.Bitcast: Words.bitcast,
    n.Construct: Words.construct, n.Select: Words.typed, n.Load: Words.typed,
    n.Extract: Words.typed, n.Call: Words.typed, n.Check: Words.check,
    n.Element: Words.place, n.Item: Words.place, n.Member: Words.member,
}  # fmt: skip
