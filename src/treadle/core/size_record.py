"""`Record`: what a plan or a trace did with its sizes (`core.sizes`), and the function made of it.

Events are symbols, instructions and facts, in order. Instructions have a form that is equal for
equal sums and products, so that facts which hold for any sizes are not asked for.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.core.sizes import OPERATIONS, Number, Size, is_own_code, sizes_in

_MOST_EVENTS = 50_000  # of a record
_BITS = "bits"  # int.bit_length
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
}
# x op number is x.
_NEUTRAL = {"+": 0, "-": 0, "*": 1, "//": 1, "<<": 0, ">>": 0, "|": 0, "^": 0}

Operand = tuple[bool, int]  # whether it is an event's number; that, or an integer
Event = tuple[str, Operand, Operand]


class TooManySizes(Exception):
    """The record of a plan is too long to be worth it."""


class Record:
    """What a plan or a trace did with its sizes: events are symbols, instructions and facts, in
    order.

    A trace's record is one of a user's program (`of_program`): when it grows too long, its symbols
    get fixed values, while a plan is given up; and it notes the user's line for each fact.
    """

    def __init__(self, of_program: bool = False) -> None:
        self._events: list[Event] = []
        self._sizes: dict[Event, Size] = {}
        self._at: dict[int, Size] = {}  # sizes by their events
        self._facts: dict[Event, bool] = {}
        self._outcomes: dict[int, bool] = {}  # of the events that are facts
        self._same: dict[int, Number] = {}  # what sizes are equal to, by facts, by their events
        self._of_program = of_program
        self._places: dict[int, str] = {}  # the user's lines at which facts were asked for
        self._names: list[str] = []  # of the symbols
        self.rooms: set[int] = set()  # the facts that say that memory is large enough
        self.is_open = True
        self.symbols: list[Size] = []

    def symbol(self, value: int, name: str = "") -> Size:
        """A size that the function takes; `name` is what people read."""
        size = self._at[len(self._events)] = Size(self, value, len(self._events))
        self._event(("symbol", (False, len(self.symbols)), (False, 0)))
        self._names.append(name or f"s{len(self.symbols)}")
        self.symbols.append(size)
        return size

    def made(self, op: str, a: Number, b: Number) -> Number:
        """What an operation makes of two numbers, one of which is a size."""
        if not self.is_open:
            return computed(op, _valued(a), _valued(b))
        a, b = self._own(a), self._own(b)
        if type(b) is not Size and op in _NEUTRAL and b == _NEUTRAL[op]:
            return a
        if type(a) is not Size and op in "+*" and a == _NEUTRAL[op]:
            return b
        if type(a) is not Size and type(b) is not Size:
            return computed(op, a, b)
        if op == "-" and type(b) is not Size:
            return self.made("+", a, -b)
        shorter = self._shorter(op, a, b)
        return self._recorded((op, _operand(a), _operand(b))) if shorter is None else shorter

    def _recorded(self, event: Event) -> Number:
        """The size that an instruction makes, which is recorded once."""
        found = self._sizes.get(event)
        if found is not None:
            return self._own(found)
        op, a, b = event
        value = computed(op, self._value_of(a), self._value_of(b))
        if not self._has_room():
            return value
        size = self._sizes[event] = self._at[len(self._events)] = Size(
            self, value, len(self._events)
        )
        self._event(event)
        return size

    def _value_of(self, operand: Operand) -> int:
        is_event, number = operand
        return self._at[number].value if is_event else number

    def _shorter(self, op: str, a: Number, b: Number) -> Number | None:
        """What an operation makes, in a form that is equal for any value of the symbols: n + 1 - n
        is 1, and n * 6 // 3 is n * 2. So there are fewer facts, and those that hold for any value
        are not recorded at all."""
        if op in "+-":
            if op == "-" and (turned := self._negated(a, b)) is not None:
                return turned
            (x, c), (y, d) = self._parts(a), self._parts(b)
            if op == "-" and x is y:
                return c - d
            if op == "+" and c and d and (x is None or y is None):
                return self.made("+", y if x is None else x, c + d)
        elif op == "*":
            (c, first), (d, second) = self._factors(a), self._factors(b)
            return self._product(c * d, sorted(first + second))
        elif op in ("//", "%"):
            (c, first), (d, second) = self._factors(a), self._factors(b)
            if not c:
                return 0
            if d and c % d == 0 and all(second.count(n) <= first.count(n) for n in second):
                if op == "%":
                    return 0
                for number in second:  # b is not 0, as a fact says before
                    first.remove(number)
                return self._product(c // d, first)
        return None

    def _factors(self, number: Number) -> tuple[int, list[int]]:
        """An integer and the events of the sizes of which a number is the product."""
        if type(number) is not Size:
            return number, []
        op, a, b = self._events[number.number]
        if op != "*":
            return 1, [number.number]
        one = self._factors(self._at[a[1]] if a[0] else a[1])
        other = self._factors(self._at[b[1]] if b[0] else b[1])
        return one[0] * other[0], one[1] + other[1]

    def _product(self, integer: int, sizes: list[int]) -> Number:
        """A product, whose factors are always in one order."""
        if not integer:
            return 0
        found: Number = None
        for number in sizes:
            one = self._own(self._at[number])
            if type(one) is not Size:
                integer *= one
            elif found is None:
                found = one
            else:
                found = self._recorded(("*", _operand(found), _operand(one)))
        if found is None or integer == 1:
            return integer if found is None else found
        return self._recorded(("*", _operand(found), (False, integer)))

    def _negated(self, a: Number, b: Number) -> Number | None:
        """What 0 - (0 - n) is."""
        if type(a) is Size or type(b) is not Size or a != 0:
            return None
        op, first, second = self._events[b.number]
        return self._at[second[1]] if op == "-" and first == (False, 0) else None

    def _parts(self, number: Number) -> tuple[Size | None, int]:
        """A size and an integer of which a number is the sum."""
        if type(number) is not Size:
            return None, number
        op, a, b = self._events[number.number]
        if op != "+" or a[0] == b[0]:
            return number, 0
        size, integer = (a, b) if a[0] else (b, a)
        return self._at[size[1]], integer[1]

    def holds(self, op: str, a: Number, b: Number) -> bool:
        """What a comparison says of two numbers, one of which is a size."""
        a, b = self._own(a), self._own(b)
        if a is b or not self.is_open or (type(a) is not Size and type(b) is not Size):
            return COMPARISONS[op](_valued(a), _valued(b))
        event = (op, _operand(a), _operand(b))
        known = self._facts.get(event)
        if known is None:
            known = COMPARISONS[op](_valued(a), _valued(b))
            if not self._has_room():
                return known
            self._note(event, known)
            if known and op == "==":  # one of the two is used from here on
                later = type(a) is Size and (type(b) is not Size or b.number < a.number)
                replaced, kept = (a, b) if later else (b, a)
                self._same[replaced.number] = kept
                size, more = self._parts(replaced)
                if more and size is not None and type(kept) is not Size:
                    self._same[size.number] = kept - more
        return known

    def has_room(self, size: Number, most: int) -> None:
        """Note the fact that memory of `most` units is large enough for a size."""
        if self.is_open and type(size) is Size and size.record is self:
            self.rooms.add(len(self._events))
            self.holds("<=", size, most)
            self.rooms &= self._outcomes.keys()

    def _note(self, event: Event, outcome: bool) -> None:
        self._facts[event] = outcome
        self._outcomes[len(self._events)] = outcome
        if self._of_program and outcome and event[0] == "==":  # it may fix a value
            self._places[len(self._events)] = _users_line()
        self._event(event)

    def _has_room(self) -> bool:
        """Whether another event may be recorded. A program's symbols have their values from here on
        where it may not: that they have these is a fact, and the rest follows."""
        if len(self._events) < _MOST_EVENTS:
            return True
        if not self._of_program:
            raise TooManySizes
        for symbol in self.symbols:
            event = ("==", _operand(symbol), (False, symbol.value))
            if event not in self._facts:
                self._note(event, True)
        self.is_open = False
        return False

    def _event(self, event: Event) -> None:
        self._events.append(event)

    def _own(self, number: Number) -> Number:
        """A number, where a size of another record is the integer that it was there, and one that
        equals another by a fact is that other."""
        while type(number) is Size:
            if number.record is not self:
                return number.__index__()
            same = self._same.get(number.number)
            if same is None:
                return number
            number = same
        return number

    @contextlib.contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Within it, sizes are their values, and nothing becomes a fact: for texts that people
        read."""
        before, self.is_open = self.is_open, False
        try:
            yield
        finally:
            self.is_open = before

    def close(self) -> None:
        """Nothing is recorded any more: the sizes that are left are their values."""
        self.is_open = False
        self._sizes.clear()
        self._at.clear()
        self._facts.clear()

    # ------------------------------------------------------------------ what was found out

    @property
    def facts(self) -> list[str]:
        """The facts, as Python."""
        return [self._fact(number) for number in self._outcomes]

    def trail(self) -> Iterator[tuple[Event, bool | None, str]]:
        """The events in order; of facts also whether the comparison holds, and the user's line."""
        for number, event in enumerate(self._events):
            yield event, self._outcomes.get(number), self._places.get(number, "")

    @property
    def names(self) -> list[str]:
        """The names of the symbols."""
        return self._names

    def failing(self, values: Sequence[int]) -> int | None:
        """The event of the first fact that does not hold for other values of the symbols."""
        known: dict[int, int] = {}

        def value(operand: Operand) -> int:
            return known[operand[1]] if operand[0] else operand[1]

        try:
            for number, (op, a, b) in enumerate(self._events):
                if op == "symbol":
                    known[number] = values[a[1]]
                elif number in self._outcomes:
                    if COMPARISONS[op](value(a), value(b)) is not self._outcomes[number]:
                        return number
                else:
                    known[number] = computed(op, value(a), value(b))
        except (ArithmeticError, ValueError, KeyError):
            return -1
        return None

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
        names: dict[str, Any] = {}
        lines.append(f"    return {self._literal(results, names)}")
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

    def _name(self, operand: Operand) -> str:
        is_event, number = operand
        if not is_event:
            return f"({number})" if number < 0 else str(number)
        op, first, _ = self._events[number]
        return f"s{first[1]}" if op == "symbol" else f"t{number}"

    def _instruction(self, op: str, a: Operand, b: Operand) -> str:
        if op == _BITS:
            return f"{self._name(a)}.bit_length()"
        return f"{self._name(a)} {op} {self._name(b)}"

    def _fact(self, number: int) -> str:
        op, a, b = self._events[number]
        text = f"({self._name(a)} {op} {self._name(b)})"
        return text if self._outcomes[number] else f"(not {text})"

    def _literal(self, result: Any, names: dict[str, Any]) -> str:
        """A result as Python; what has no text that is the same is given a name."""
        if type(result) is Size:
            own = result.record is self
            return self._name((True, result.number)) if own else str(int(result.value))
        if isinstance(result, tuple):
            return f"({''.join(f'{self._literal(each, names)}, ' for each in result)})"
        if type(result) is int:
            return repr(result)
        name = f"c{len(names)}"
        names[name] = result
        return name


def _operand(number: Number) -> Operand:
    return (True, number.number) if type(number) is Size else (False, operator.index(number))


def _valued(number: Number) -> int:
    return number.value if type(number) is Size else operator.index(number)


def computed(op: str, a: int, b: int) -> int:
    """What an instruction makes of two integers."""
    return a.bit_length() if op == _BITS else OPERATIONS[op](a, b)


def _users_line() -> str:
    """The file and line of the user's code that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_own_code(frame):
        frame = frame.f_back
    file: str = "" if frame is None else frame.f_code.co_filename
    return f"{file}:{frame.f_lineno}" if file else ""


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
