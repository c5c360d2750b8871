"""Constant evaluation: `constexpr` functions are lowered to statements, which are interpreted here.

Numbers are constants, vectors and structs are constructions of them, and a local memory has the
elements that were written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_STEPS = 100_000  # statements that are interpreted for one constant


class NotConstant(Exception):
    """A value is known only when the kernel runs."""


class TooLong(Exception):
    """The statements of a constant are more than are interpreted: a loop may have no end."""

    def __init__(self) -> None:
        super().__init__(
            f"takes more than {_MOST_STEPS:,} statements to compute when the kernel is compiled: "
            "does a loop of it never end?"
        )


# The results of functions by their names and arguments, which are integers.
Results: TypeAlias = "dict[tuple[str, tuple[int | None, ...]], n.Constant | n.Construct]"


def evaluate(
    statements: Sequence[n.Statement],
    expression: n.Expression,
    functions: Mapping[str, n.Function],
    memories: Sequence[n.Memory],
    results: Results,
) -> n.Constant | n.Construct | None:
    """The value of an expression after the statements, which may use these local memories; None if
    it is not constant. `results` are those of earlier calls of the functions. TooLong if it has too
    many steps."""
    if not statements and isinstance(expression, n.Constant):
        return expression
    run = _Evaluator(functions, results)
    known = _Known(memories)
    try:
        run.block(statements, known)
        return run.value(expression, known)
    except NotConstant:
        return None


def evaluate_object(
    statements: Sequence[n.Statement],
    place: n.Place,
    functions: Mapping[str, n.Function],
    memories: Sequence[n.Memory],
) -> Any:
    """What is at a place after the statements: a value, of an array its items by their indices,
    of a struct with arrays a construction with them; None if that is not constant."""
    run = _Evaluator(functions, {})
    known = _Known(memories)
    try:
        run.block(statements, known)
        return run.read(place, known)
    except (NotConstant, TooLong):
        return None


_Value: TypeAlias = n.Constant | n.Construct
_Place: TypeAlias = Any  # of a value in an array: a key, or one inside another


class _Known:
    """The values of variables, and of the elements of local memories."""

    def __init__(self, memories: Sequence[n.Memory]) -> None:
        self.variables: dict[str, Any] = {}
        self.memories = memories
        self.elements: dict[tuple[str, int], Any] = {}

    def is_local(self, name: str) -> bool:
        """Whether a name is that of a local memory."""
        return any(one.name == name and one.space == "local" for one in self.memories)


class _Evaluator:
    def __init__(self, functions: Mapping[str, n.Function], results: Results) -> None:
        self.functions = functions
        self.results = results
        self.steps = 0

    # --- expressions ---

    def value(self, expression: n.Expression, known: _Known) -> _Value:
        """The value of an expression. NotConstant if it is not known."""
        match expression:
            case n.Constant():
                return expression
            case n.Variable(name):
                if name not in known.variables:
                    raise NotConstant
                return self._whole(known.variables[name])
            case n.Load(place):
                return self._whole(self.read(place, known))
            case n.Extract(operand, name):
                return self._whole(_part(self.value(operand, known), name))
            case n.Construct(operands):
                made = tuple(self.value(one, known) for one in operands)
                return replace(expression, operands=made)
            case n.Call():
                return self.call(expression, known)
            case n.Select(test, if_true, if_false):
                return self.value(if_true if self.number(test, known) else if_false, known)
            case n.Binary(op="logical_and" | "logical_or" as op, left=left, right=right):
                first = self.value(left, known)
                assert isinstance(first, n.Constant)
                return first if first.value == (op == "logical_or") else self.value(right, known)
            case n.Unary(operand=operand) | n.Cast(operand=operand) | n.Bitcast(operand=operand):
                return self._folded(replace(expression, operand=self.value(operand, known)))
            case n.Binary(left=left, right=right):
                one, other = self.value(left, known), self.value(right, known)
                return self._folded(replace(expression, left=one, right=other))
            case n.Intrinsic(operands=operands):
                given = tuple(self.value(one, known) for one in operands)
                return self._folded(replace(expression, operands=given))
        raise NotConstant

    def _folded(self, expression: n.Expression) -> _Value:
        result = folded(expression)
        if not isinstance(result, (n.Constant, n.Construct)):
            raise NotConstant
        return result

    def _whole(self, value: Any) -> _Value:
        if isinstance(value, (n.Constant, n.Construct)):
            return value
        raise NotConstant  # an array

    def number(self, expression: n.Expression, known: _Known) -> bool | int | float:
        """The value of a scalar expression."""
        found = self.value(expression, known)
        if not isinstance(found, n.Constant):
            raise NotConstant
        return found.value

    def call(self, node: n.Call, known: _Known) -> _Value:
        """The result of a function of the IR."""
        function = self.functions.get(node.function)
        if function is None:
            raise NotConstant
        given = _Known(function.memories)
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            if isinstance(argument, n.MemoryReference):
                raise NotConstant
            given.variables[parameter.name] = self.value(argument, known)
        key = (node.function, tuple(map(_integer, given.variables.values())))
        if None in key[1]:
            return self._result(function, given)
        if key not in self.results:
            self.results[key] = self._result(function, given)
        return self.results[key]

    def _result(self, function: n.Function, given: _Known) -> _Value:
        left = self.block(function.body, given)
        if not isinstance(left, (n.Constant, n.Construct)):
            raise NotConstant
        return left

    # --- places ---

    def read(self, place: n.Place, known: _Known) -> Any:
        """What is at a place: a value, or the items of an array by their indices."""
        match place:
            case n.Variable(name):
                if name not in known.variables:
                    raise NotConstant
                return known.variables[name]
            case n.Element(memory, index):
                key = (memory, int(self.number(index, known)))
                if key not in known.elements:
                    raise NotConstant
                return known.elements[key]
            case n.Member(base, name):
                return _part(self.read(base, known), name)
            case n.Item(base, index):
                items = self.read(base, known)
                at = int(self.number(index, known))
                if isinstance(items, n.Construct) and at < len(items.operands):
                    return items.operands[at]
                if not isinstance(items, dict) or at not in items:
                    raise NotConstant
                return items[at]
        raise NotConstant

    def write(self, place: n.Place, value: Any, known: _Known) -> None:
        """Store a value at a place."""
        match place:
            case n.Variable(name):
                known.variables[name] = value
            case n.Element(memory, index):
                if not known.is_local(memory):
                    raise NotConstant
                known.elements[memory, int(self.number(index, known))] = value
            case n.Member(base, name):
                self.write(base, _with_part(self._object(base, known), name, value), known)
            case n.Item(base, index):
                at = int(self.number(index, known))
                items = self._object(base, known)
                if isinstance(items, n.Construct) and at < len(items.operands):
                    parts = list(items.operands)
                    parts[at] = value
                    self.write(base, replace(items, operands=tuple(parts)), known)
                elif isinstance(items, dict):
                    self.write(base, {**items, at: value}, known)
                else:
                    raise NotConstant

    def _object(self, place: n.Place, known: _Known) -> Any:
        """An object of which a part is written: it may have no value yet."""
        try:
            return self.read(place, known)
        except NotConstant:
            return _empty(place.type)

    # --- statements ---

    def block(
        self, statements: Sequence[n.Statement], known: _Known
    ) -> n.Statement | _Value | None:
        """Interpret statements; the result is the break, continue or value that ends the block."""
        for statement in statements:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise TooLong
            left = self.statement(statement, known)
            if left is not None:
                return left
        return None

    def statement(self, statement: n.Statement, known: _Known) -> n.Statement | _Value | None:
        """Interpret one statement."""
        match statement:
            case n.Declare(variable, None):
                known.variables[variable.name] = _empty(variable.type)
            case n.Declare(variable, value):
                assert value is not None
                known.variables[variable.name] = self.value(value, known)
            case n.Assign(place=place, value=value):
                self.write(place, self.value(value, known), known)
            case n.If(condition, then, otherwise):
                return self.block(then if self.number(condition, known) else otherwise, known)
            case n.While(condition, body, update):
                while self.number(condition, known):
                    left = self.block((*body, n.Continue()), known)
                    if isinstance(left, n.Break):
                        break
                    if isinstance(left, (n.Constant, n.Construct)):
                        return left
                    self.block(update, known)
            case n.For(variable, start, stop, step, body):
                first, last = self.number(start, known), self.number(stop, known)
                for at in range(int(first), int(last), step):
                    assert isinstance(variable.type, ir.Scalar)
                    known.variables[variable.name] = constant(at, variable.type)
                    left = self.block((*body, n.Continue()), known)
                    if isinstance(left, n.Break):
                        break
                    if isinstance(left, (n.Constant, n.Construct)):
                        return left
            case n.Break() | n.Continue():
                return statement
            case n.Return(value=value) if value is not None:
                return self.value(value, known)
            case _:
                raise NotConstant
        return None


def _integer(value: Any) -> int | None:
    """The value of an integer; None for others: equal floats may be two, as 0.0 and -0.0."""
    found = value.value if isinstance(value, n.Constant) else None
    return found if isinstance(found, int) else None


def _empty(type: ir.Type) -> Any:
    """A variable without a value: zero, as in the IR."""
    match type:
        case ir.Scalar():
            return constant(0, type)
        case ir.Vector():
            return n.Construct((constant(0, type.element),) * type.count, type)
        case ir.Struct():
            return n.Construct(tuple(_empty(one.type) for one in type.fields), type)
        case ir.Array():
            return {at: _empty(type.element) for at in range(type.length)}
    raise NotConstant


def _place_of(type: ir.Type, name: str) -> int:
    if isinstance(type, ir.Struct):
        return [one.name for one in type.fields].index(name)
    return ir.COMPONENTS.index(name)


def _part(value: Any, name: str) -> Any:
    if not isinstance(value, n.Construct):
        raise NotConstant
    return value.operands[_place_of(value.type, name)]


def _with_part(value: Any, name: str, part: Any) -> n.Construct:
    if not isinstance(value, n.Construct):
        raise NotConstant
    parts = list(value.operands)
    parts[_place_of(value.type, name)] = part
    return replace(value, operands=tuple(parts))
