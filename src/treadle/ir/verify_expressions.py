"""The verifier's rules for expressions and places; `ir.verify` adds those for statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.rules import (
    BYTE_DOTS,
    COUNTS,
    INTEGER_INTRINSICS,
    NUMBER_INTRINSICS,
    TESTS,
    binary_type,
    element_of,
    intrinsic_type,
)
from treadle.ir.traverse import root_of

INDEX_TYPES = (t.I32, t.I64)


def is_integer(type: t.Type) -> bool:
    """Whether a type is one integer."""
    return isinstance(type, t.Scalar) and type.is_integer


def is_number(type: t.Type) -> bool:
    """Whether a type is one integer or float."""
    return isinstance(type, t.Scalar) and type.kind != "bool"


def is_float(type: t.Type) -> bool:
    """Whether a type is one float."""
    return isinstance(type, t.Scalar) and type.is_float


class ExpressionRules:
    """What is known while walking a body, and the rules for what a value may be."""

    def __init__(
        self,
        owner: str | None,
        known: dict[str, n.Function],
        everyone: set[str],
        effectful: dict[str, str],
    ) -> None:
        self.owner = owner
        self.known = known  # the functions that may be called
        self.everyone = everyone
        self.effectful = effectful
        self.span = NOWHERE  # of the statement being checked
        self.variables: dict[str, t.Type] = {}  # in scope
        self.roles: dict[str, str] = {}
        self.scopes: list[list[str]] = [[]]
        self.ever: set[str] = set()
        self.memories: dict[str, t.Type] = {}
        self.enclosing: list[str] = []

    def fail(self, message: str, span: Span) -> NoReturn:
        raise CompileError(message, span if span.line else self.span)

    def require_type(self, node: n.Expression, type: t.Type, what: str) -> None:
        if node.type != type:
            self.fail(f"{what} is {node.type}, where {type} is needed", node.span)

    def require_own_type(self, node: n.Expression | n.Place, type: t.Type, what: str) -> None:
        if node.type != type:
            self.fail(f"{what} gives {type}, but its node says {node.type}", node.span)

    def require_count(self, what: str, count: int, given: Sequence[object], span: Span) -> None:
        if len(given) != count:
            words = f"{count} operand{'s' * (count != 1)}"
            self.fail(f"{what} takes {words}, not {len(given)}", span)

    # --- expressions ---

    def expression(self, node: n.Expression) -> None:
        rule = _RULES.get(type(node))
        if rule is None:
            self.fail(f"{type(node).__name__} is not an expression", NOWHERE)
        rule(self, node)

    def constant(self, node: n.Constant) -> None:
        value, type = node.value, node.type
        python = {"bool": bool, "float": float}.get(type.kind, int)
        if value.__class__ is not python:
            name = value.__class__.__name__
            self.fail(f"a constant of {type} is a Python {python.__name__}, not {name}", node.span)
        if type.is_integer and arithmetic.wrap(int(value), type) != value:
            self.fail(f"{value} does not fit {type}", node.span)
        if type.is_float and not math.isnan(value) and arithmetic.round_float(value, type) != value:
            self.fail(f"{value!r} is not a value of {type}: round it first", node.span)

    def variable(self, node: n.Variable) -> None:
        type = self.variables.get(node.name)
        if type is None:
            if node.name in self.memories:
                self.fail(f"{node.name!r} is a memory, not a value", node.span)
            if node.name in self.ever:
                self.fail(f"{node.name!r} is used outside of the block it lives in", node.span)
            self.fail(f"{node.name!r} is not declared", node.span)
        if type != node.type:
            self.fail(f"{node.name!r} is {type}, but is used as {node.type}", node.span)

    def builtin(self, node: n.Builtin) -> None:
        if node.name not in n.BUILTINS:
            self.fail(f"there is no builtin {node.name!r}", node.span)
        axes = 1 if node.name in ("lane", "subgroup_size") else 3
        if not 0 <= node.axis < axes:
            self.fail(f"{node.name} has no axis {node.axis}", node.span)
        self.require_own_type(node, t.I32, node.name)

    def unary(self, node: n.Unary) -> None:
        self.expression(node.operand)
        operand = node.operand.type
        element = element_of(operand)
        fits = {
            "neg": is_number(element),
            "not": operand == t.BOOL,
            "invert": is_integer(element),
        }.get(node.op)
        if fits is None:
            self.fail(f"there is no unary operation {node.op!r}", node.span)
        if not fits:
            self.fail(f"{node.op} does not work on {operand}", node.span)
        self.require_own_type(node, operand, node.op)

    def binary(self, node: n.Binary) -> None:
        self.expression(node.left)
        self.expression(node.right)
        left, right = node.left.type, node.right.type
        if left != right:
            self.fail(f"{node.op} of {left} and {right}: both need one type", node.span)
        element = element_of(left)
        if node.op in n.ARITHMETIC:
            fits = is_number(element)
        elif node.op in n.BITWISE:
            fits = is_integer(element) or (left == t.BOOL and node.op in ("and", "or", "xor"))
        elif node.op in n.COMPARISONS:
            fits = is_number(left) or (left == t.BOOL and node.op in ("eq", "ne"))
        elif node.op in n.LOGICAL:
            fits = left == t.BOOL
        else:
            self.fail(f"there is no binary operation {node.op!r}", node.span)
        if not fits:
            self.fail(f"{node.op} does not work on {left}", node.span)
        self.require_own_type(node, binary_type(node.op, left), node.op)

    def select(self, node: n.Select) -> None:
        for operand in (node.condition, node.if_true, node.if_false):
            self.expression(operand)
        self.require_type(node.condition, t.BOOL, "the condition of a select")
        self.require_type(node.if_false, node.if_true.type, "the second value of a select")
        self.require_own_type(node, node.if_true.type, "select")

    def cast(self, node: n.Cast) -> None:
        self.expression(node.operand)
        if not _same_shape(node.operand.type, node.type):
            self.fail(f"{node.operand.type} cannot be cast to {node.type}", node.span)

    def bitcast(self, node: n.Bitcast) -> None:
        self.expression(node.operand)
        source, target = node.operand.type, node.type
        numbers = is_number(element_of(source)) and is_number(element_of(target))
        if not (numbers and _same_shape(source, target) and t.size_of(source) == t.size_of(target)):
            self.fail(f"the bits of {source} are not those of {target}", node.span)

    def intrinsic(self, node: n.Intrinsic) -> None:
        if node.op not in n.INTRINSICS:
            self.fail(f"there is no intrinsic {node.op!r}", node.span)
        self.require_count(node.op, n.INTRINSICS[node.op], node.operands, node.span)
        for operand in node.operands:
            self.expression(operand)
        operand_type = node.operands[0].type
        for operand in node.operands[1:]:
            self.require_type(operand, operand_type, f"an operand of {node.op}")
        element = element_of(operand_type)
        if node.op in BYTE_DOTS:
            fits = operand_type == t.I32
        elif node.op in INTEGER_INTRINSICS:
            fits = is_integer(element)
        elif node.op in NUMBER_INTRINSICS:
            fits = is_number(element)
        else:
            fits = is_float(element)
        if node.op in COUNTS | TESTS:
            fits = fits and isinstance(operand_type, t.Scalar)
        if node.op == "dot":
            fits = fits and isinstance(operand_type, t.Vector)
        if not fits:
            self.fail(f"{node.op} does not work on {operand_type}", node.span)
        self.require_own_type(node, intrinsic_type(node.op, operand_type), node.op)

    def call(self, node: n.Call) -> None:
        function = self.called(node.function, node.arguments, node.span)
        effect = self.effectful.get(node.function)
        if effect is not None:
            self.fail(
                f"{node.function!r} {effect}: call it in a statement of its own, "
                "not inside an expression",
                node.span,
            )
        if function.result == t.VOID:
            self.fail(f"{node.function!r} gives no value", node.span)
        self.require_own_type(node, function.result, repr(node.function))

    def called(self, name: str, arguments: Sequence[n.Argument], span: Span) -> n.Function:
        """The function of a call, its arguments checked."""
        function = self.known.get(name)
        if function is None:
            if name == self.owner:
                self.fail(f"{name!r} calls itself: recursion does not exist on GPUs", span)
            if name in self.everyone:
                self.fail(f"{name!r} is called before it is defined (or calls itself)", span)
            self.fail(f"there is no function {name!r}", span)
        wanted = function.parameters
        if len(arguments) != len(wanted):
            count = f"{len(wanted)} argument{'s' * (len(wanted) != 1)}"
            self.fail(f"{name!r} takes {count}, not {len(arguments)}", span)
        for parameter, argument in zip(wanted, arguments, strict=True):
            if isinstance(argument, n.MemoryReference):
                if argument.memory not in self.memories:
                    self.fail(f"there is no memory {argument.memory!r}", argument.span)
                if isinstance(parameter, n.Variable):
                    self.fail(
                        f"{parameter.name!r} of {name!r} is a value, but gets a memory",
                        argument.span,
                    )
                continue
            self.expression(argument)
            if isinstance(parameter, n.Buffer):
                self.fail(
                    f"{parameter.name!r} of {name!r} is a memory, but gets a value", argument.span
                )
            self.require_type(argument, parameter.type, f"{parameter.name!r} of {name!r}")
        return function

    def construct(self, node: n.Construct) -> None:
        for operand in node.operands:
            self.expression(operand)
        wanted: tuple[t.Type, ...]
        match node.type:
            case t.Vector():
                wanted = (node.type.element,) * node.type.count
            case t.Struct():
                wanted = tuple(field.type for field in node.type.fields)
            case _:
                self.fail(f"{node.type} is not made of parts", node.span)
        self.require_count(str(node.type), len(wanted), node.operands, node.span)
        for position, (operand, part) in enumerate(zip(node.operands, wanted, strict=True)):
            self.require_type(operand, part, f"part {position} of {node.type}")

    def extract(self, node: n.Extract) -> None:
        self.expression(node.operand)
        self.require_own_type(
            node, self.member(node.operand.type, node.name, node.span), "the part"
        )

    def member(self, holder: t.Type, name: str, span: Span) -> t.Type:
        try:
            return t.member_type(holder, name)
        except KeyError:
            self.fail(f"{holder} has no {name!r}", span)

    def load(self, node: n.Load) -> None:
        if isinstance(node.place, (n.Member, n.Item)) and _is_variables(node.place):
            self.place(node.place)  # a part of a variable, by an index that may be any number
        else:
            self.memory_place(node.place)
        self.require_own_type(node, node.place.type, "the place")

    # --- places ---

    def memory_place(self, place: n.Place) -> None:
        root = place
        while isinstance(root, (n.Member, n.Item)):
            root = root.base
        if not isinstance(root, n.Element):
            self.fail("a place in memory is needed here, not a variable", place.span)
        self.place(place)

    def place(self, place: n.Place) -> None:
        match place:
            case n.Variable():
                self.variable(place)
            case n.Element():
                if place.memory not in self.memories:
                    self.fail(f"there is no memory {place.memory!r}", place.span)
                self.index(place)
            case n.Member():
                self.place(place.base)
                part = self.member(place.base.type, place.name, place.span)
                self.require_own_type(place, part, "the part")
            case n.Item():
                self.place(place.base)
                holder = place.base.type
                if not isinstance(holder, (t.Array, t.Vector)):
                    self.fail(f"only an array or a vector has items, not {holder}", place.span)
                self.index(place)
                self.require_own_type(place, holder.element, "the item")
            case _:
                self.fail(f"{type(place).__name__} is not a place", NOWHERE)

    def index(self, place: n.Element | n.Item) -> None:
        span = place.span
        self.expression(place.index)
        if place.index.type not in INDEX_TYPES:
            self.fail(f"an index is i32 or i64, not {place.index.type}", span)
        for check in place.checks:
            self.expression(check.index)
            self.expression(check.bound)
            index, bound = check.index.type, check.bound.type
            if index not in INDEX_TYPES or bound != index:
                self.fail(f"a check of {index} against {bound}: both are i32 or both i64", span)


def _is_variables(place: n.Place) -> bool:
    return isinstance(root_of(place), n.Variable)


def _same_shape(source: t.Type, target: t.Type) -> bool:
    if isinstance(source, t.Vector) and isinstance(target, t.Vector):
        return source.count == target.count
    return isinstance(source, t.Scalar) and isinstance(target, t.Scalar)


_RULES: dict[type, Callable[[ExpressionRules, Any], None]] = {
    n.Constant: ExpressionRules.constant,
    n.Variable: ExpressionRules.variable,
    n.Builtin: ExpressionRules.builtin,
    n.Unary: ExpressionRules.unary,
    n.Binary: ExpressionRules.binary,
    n.Select: ExpressionRules.select,
    n.Cast: ExpressionRules.cast,
    n.Bitcast: ExpressionRules.bitcast,
    n.Intrinsic: ExpressionRules.intrinsic,
    n.Call: ExpressionRules.call,
    n.Construct: ExpressionRules.construct,
    n.Extract: ExpressionRules.extract,
    n.Load: ExpressionRules.load,
}
