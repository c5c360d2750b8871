"""`Size`: an integer of a plan that may be another one next time.

A plan is made for the sizes of one graph. To use it for others, the planner runs once with objects
in place of the extents, strides and offsets that differ: they compute as integers do, and record
which integers were made of them (instructions) and what comparisons said (facts). From the record a
Python function is made, which takes other sizes, checks the facts in the order in which they were
asked for, and returns the plan's integers; so the planner itself is written for plain integers.

A `Size` is not an `int`: what would use it as one without asking, such as `range`, has to call
`__index__`, and then that it has this very value becomes a fact.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_MOST_EVENTS = 50_000  # of a record

Number = Any  # an int or a Size: the planner's annotations say int
_Operand = tuple[bool, int]  # whether it is an event's number; that, or an integer

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
}
_BITS = "bits"  # int.bit_length
# x op number is x.
_NEUTRAL = {"+": 0, "-": 0, "*": 1, "//": 1, "<<": 0, ">>": 0, "|": 0}


class TooManySizes(Exception):
    """The record of a plan is too long to be worth it."""


class Record:
    """What a plan did with its sizes: events are symbols, instructions and facts, in order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, _Operand, _Operand]] = []
        self._sizes: dict[tuple[str, _Operand, _Operand], Size] = {}
        self._facts: dict[tuple[str, _Operand, _Operand], bool] = {}
        self._outcomes: dict[int, bool] = {}  # of the events that are facts
        self.symbols: list[Size] = []

    def symbol(self, value: int) -> Size:
        """A size that the function takes."""
        size = Size(self, value, len(self._events))
        self._event(("symbol", (False, len(self.symbols)), (False, 0)))
        self.symbols.append(size)
        return size

    def made(self, op: str, a: Number, b: Number) -> Number:
        """What an operation makes of two numbers, one of which is a size."""
        if type(b) is not Size and op in _NEUTRAL and b == _NEUTRAL[op]:
            return a
        if type(a) is not Size and op in "+*" and a == _NEUTRAL[op]:
            return b
        if op == "*" and (_is_zero(a) or _is_zero(b)):
            return 0
        event = (op, _operand(a), _operand(b))
        found = self._sizes.get(event)
        if found is None:
            one, other = _value(a), _value(b)
            value = one.bit_length() if op == _BITS else _OPERATIONS[op](one, other)
            found = self._sizes[event] = Size(self, value, len(self._events))
            self._event(event)
        return found

    def holds(self, op: str, a: Number, b: Number) -> bool:
        """What a comparison says of two numbers, one of which is a size."""
        event = (op, _operand(a), _operand(b))
        known = self._facts.get(event)
        if known is None:
            known = self._facts[event] = _COMPARISONS[op](_value(a), _value(b))
            self._outcomes[len(self._events)] = known
            self._event(event)
        return known

    def _event(self, event: tuple[str, _Operand, _Operand]) -> None:
        if len(self._events) >= _MOST_EVENTS:
            raise TooManySizes
        self._events.append(event)

    @property
    def facts(self) -> list[str]:
        """The facts, as Python."""
        return [self._fact(number) for number in self._outcomes]

    def function(self, results: Any) -> Callable[..., Any]:
        """A function of the symbols' values. It returns the results, tuples (of tuples, …) of
        numbers, for these values; None if a fact does not hold for them."""
        needed = self._needed(results)
        lines = [f"def planned({''.join(f's{k}, ' for k in range(len(self.symbols)))}):"]
        for number, (op, a, b) in enumerate(self._events):
            if number in self._outcomes:
                lines.append(f"    if not {self._fact(number)}: return None")
            elif number in needed and op != "symbol":
                lines.append(f"    t{number} = {self._instruction(op, a, b)}")
        lines.append(f"    return {self._literal(results)}")
        names: dict[str, Any] = {}
        exec(compile("\n".join(lines), "<sizes of a plan>", "exec"), names)
        function: Callable[..., Any] = names["planned"]
        return function

    def _needed(self, results: Any) -> set[int]:
        """The instructions that facts and results are made of."""
        todo = [size.number for size in sizes_in(results)]
        for number in self._outcomes:
            todo += [each for is_event, each in self._events[number][1:] if is_event]
        needed: set[int] = set()
        while todo:
            number = todo.pop()
            if number not in needed:
                needed.add(number)
                todo += [each for is_event, each in self._events[number][1:] if is_event]
        return needed

    def _name(self, operand: _Operand) -> str:
        is_event, number = operand
        if not is_event:
            return f"({number})" if number < 0 else str(number)
        op, first, _ = self._events[number]
        return f"s{first[1]}" if op == "symbol" else f"t{number}"

    def _instruction(self, op: str, a: _Operand, b: _Operand) -> str:
        if op == _BITS:
            return f"{self._name(a)}.bit_length()"
        return f"{self._name(a)} {op} {self._name(b)}"

    def _fact(self, number: int) -> str:
        op, a, b = self._events[number]
        text = f"({self._name(a)} {op} {self._name(b)})"
        return text if self._outcomes[number] else f"(not {text})"

    def _literal(self, result: Any) -> str:
        if type(result) is Size:
            return self._name((True, result.number))
        if isinstance(result, tuple):
            return f"({''.join(f'{self._literal(each)}, ' for each in result)})"
        return repr(result)


class Size:
    """An integer whose value is known for now. Operations with integers and sizes give sizes,
    comparisons give booleans and become facts of the record."""

    __slots__ = ("_record", "number", "value")

    def __init__(self, record: Record, value: int, number: int) -> None:
        self._record = record
        self.value = value
        self.number = number  # of its event

    def __index__(self) -> int:
        self._record.holds("==", self, self.value)
        return self.value

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return not self._record.holds("==", self, 0)

    def __hash__(self) -> int:
        return hash((id(self._record), self.number))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is Size:
            if other._record is not self._record:
                return False
            a, b = (self, other) if self.number < other.number else (other, self)
            return self._record.holds("==", a, b)
        if isinstance(other, int):
            return self._record.holds("==", self, int(other))
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: Number) -> bool:
        return self._record.holds("<", self, other)

    def __le__(self, other: Number) -> bool:
        return self._record.holds("<=", self, other)

    def __gt__(self, other: Number) -> bool:
        return not self._record.holds("<=", self, other)

    def __ge__(self, other: Number) -> bool:
        return not self._record.holds("<", self, other)

    def __add__(self, other: Number) -> Number:
        return self._record.made("+", self, other)

    def __radd__(self, other: Number) -> Number:
        return self._record.made("+", other, self)

    def __sub__(self, other: Number) -> Number:
        return self._record.made("-", self, other)

    def __rsub__(self, other: Number) -> Number:
        return self._record.made("-", other, self)

    def __mul__(self, other: Number) -> Number:
        if isinstance(other, (tuple, list)):  # repeated so often
            return other * self.__index__()
        return self._record.made("*", self, other)

    def __rmul__(self, other: Number) -> Number:
        return self * other

    def __floordiv__(self, other: Number) -> Number:
        return self._record.made("//", self, _divisor(other))

    def __rfloordiv__(self, other: Number) -> Number:
        return self._record.made("//", other, _divisor(self))

    def __mod__(self, other: Number) -> Number:
        return self._record.made("%", self, _divisor(other))

    def __rmod__(self, other: Number) -> Number:
        return self._record.made("%", other, _divisor(self))

    def __divmod__(self, other: Number) -> tuple[Number, Number]:
        return self // other, self % other

    def __rdivmod__(self, other: Number) -> tuple[Number, Number]:
        return other // self, other % self

    def __lshift__(self, other: Number) -> Number:
        return self._record.made("<<", self, other)

    def __rlshift__(self, other: Number) -> Number:
        return self._record.made("<<", other, self)

    def __rshift__(self, other: Number) -> Number:
        return self._record.made(">>", self, other)

    def __rrshift__(self, other: Number) -> Number:
        return self._record.made(">>", other, self)

    def __and__(self, other: Number) -> Number:
        return self._record.made("&", self, other)

    def __or__(self, other: Number) -> Number:
        return self._record.made("|", self, other)

    __rand__ = __and__
    __ror__ = __or__

    def __neg__(self) -> Number:
        return self._record.made("-", 0, self)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return -self if self < 0 else self

    def bit_length(self) -> Number:
        """As an integer's."""
        return self._record.made(_BITS, self, 0)

    def __repr__(self) -> str:
        return f"<size {self.value}>"


def valued(numbers: Any) -> Any:
    """Numbers, or (named) tuples of them, with sizes as the integers that they are now. That they
    have these values does not become a fact: for choices that are right for any value."""
    if type(numbers) is Size:
        return numbers.value
    if isinstance(numbers, tuple):
        found = [valued(each) for each in numbers]
        return type(numbers)(*found) if hasattr(numbers, "_fields") else tuple(found)
    return numbers


def sizes_in(results: Any) -> Iterator[Size]:
    """The sizes in tuples of numbers (of tuples, …)."""
    if type(results) is Size:
        yield results
    elif isinstance(results, tuple):
        for each in results:
            yield from sizes_in(each)


def _operand(number: Number) -> _Operand:
    return (True, number.number) if type(number) is Size else (False, operator.index(number))


def _value(number: Number) -> int:
    return number.value if type(number) is Size else operator.index(number)


def _is_zero(number: Number) -> bool:
    return type(number) is not Size and bool(number == 0)


def _divisor(number: Number) -> Number:
    """A divisor, of which it is a fact that it is not 0."""
    if type(number) is Size and not number:
        raise ZeroDivisionError("division by a size of 0")
    return number


def symbols_of(record: Record, values: Sequence[int], dynamic: Sequence[int]) -> list[Number]:
    """The values, with symbols at some positions: one for each value that is there."""
    numbers: list[Number] = list(values)
    known: dict[int, Size] = {}
    for position in dynamic:
        value = values[position]
        if value not in known:
            known[value] = record.symbol(value)
        numbers[position] = known[value]
    return numbers
