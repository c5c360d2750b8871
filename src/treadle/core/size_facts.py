"""The facts of a record (`size_record`) as people read them: bounds of symbols, then the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.size_record import COMPARISONS, Event, Operand, Record, computed

_INVERSE = {"==": "!=", "<": ">=", "<=": ">"}
_MOST_SHOWN = 12
_MOST_TRIED = 2048
_EXTENT = ".shape["  # in the name of a size that is never negative


class _Linear(NamedTuple):
    """factor * symbol + rest; the symbol is None in a number."""

    factor: int
    symbol: int | None
    rest: int


class _Bounds:
    """What is known of a symbol."""

    def __init__(self) -> None:
        self.low: int | None = None
        self.high: int | None = None
        self.others: list[int] = []  # that it is not
        self.place = ""  # where it was fixed

    def below(self, most: int) -> None:
        """It is at most this."""
        self.high = most if self.high is None else min(self.high, most)

    def above(self, least: int) -> None:
        """It is at least this."""
        self.low = least if self.low is None else max(self.low, least)

    def shown(self, name: str) -> str:
        """The bounds as one comparison; empty if there are none."""
        low, high = self.low, self.high
        if low is not None and low == high:
            return f"{name} == {low}" + (f" ({self.place})" if self.place else "")
        others = set(self.others)
        while low is not None and low in others:
            low += 1
        text = f"{low} <= {name} <= {high}" if low is not None and high is not None else ""
        if not text and (low or high is not None):
            text = f"{name} >= {low}" if low is not None else f"{name} <= {high}"
        inside = [
            f"{name} != {each}"
            for each in sorted(others)
            if (low is None or each > low) and (high is None or each < high)
        ]
        return ", ".join([*filter(None, [text]), *inside])


def readable_facts(record: Record) -> list[str]:
    """The facts in terms of the symbols' names: first the bounds of each."""
    events: list[Event] = []
    bounds = [_Bounds() for _ in record.names]
    for each, name in zip(bounds, record.names, strict=True):
        if _EXTENT in name:
            each.above(0)
    others: list[tuple[Event, bool]] = []
    for event, outcome, place in record.trail():
        events.append(event)
        if outcome is None:
            continue
        difference = _difference(events, event)
        if difference is not None and difference.symbol is not None:
            _bound(bounds[difference.symbol], event[0], outcome, difference, place)
        elif difference is None and not _inward(events, event, outcome, bounds):
            others.append((event, outcome))
    found = [each.shown(name) for each, name in zip(bounds, record.names, strict=True)]
    texts = dict.fromkeys(
        readable_fact(record, events, *each)
        for each in others
        if not _is_implied(events, *each, bounds)
    )
    shown = [*filter(None, found), *list(texts)[:_MOST_SHOWN]]
    if len(texts) > _MOST_SHOWN:
        shown.append(f"and {len(texts) - _MOST_SHOWN} more")
    return shown


def _is_implied(
    events: list[Event], event: Event, outcome: bool, bounds: Sequence[_Bounds]
) -> bool:
    """Whether a fact follows from the bounds of its symbol, which are tried out where they are
    few."""
    symbols = {*_symbols_in(events, event[1]), *_symbols_in(events, event[2])}
    if len(symbols) != 1:
        return False
    (symbol,) = symbols
    low, high = bounds[symbol].low, bounds[symbol].high
    if low is None or high is None or high - low > _MOST_TRIED:
        return False
    excluded = {*bounds[symbol].others}
    op, a, b = event
    try:
        return all(
            COMPARISONS[op](_value(events, a, value), _value(events, b, value)) is outcome
            for value in range(low, high + 1)
            if value not in excluded
        )
    except (ArithmeticError, ValueError):
        return False


def _symbols_in(events: list[Event], operand: Operand) -> set[int]:
    if not operand[0]:
        return set()
    op, a, b = events[operand[1]]
    return {a[1]} if op == "symbol" else _symbols_in(events, a) | _symbols_in(events, b)


def _value(events: list[Event], operand: Operand, value: int) -> int:
    """A number for a value of the only symbol that is in it."""
    is_event, number = operand
    if not is_event:
        return number
    op, a, b = events[number]
    if op == "symbol":
        return value
    return computed(op, _value(events, a, value), _value(events, b, value))


def readable_fact(record: Record, events: list[Event], event: Event, outcome: bool) -> str:
    """One fact."""
    op, a, b = event
    op = op if outcome else _INVERSE[op]
    return f"{_text(record, events, a)} {op} {_text(record, events, b)}"


def fact_at(record: Record, number: int) -> str:
    """The fact of an event; its line too, where it fixes something."""
    trail = list(record.trail())
    events = [event for event, _, _ in trail]
    if not 0 <= number < len(events):
        return "of its arithmetic"
    event, outcome, place = trail[number]
    text = readable_fact(record, events, event, bool(outcome))
    return f"{text} ({place})" if place else text


def _bound(bounds: _Bounds, op: str, outcome: bool, linear: _Linear, place: str) -> None:
    """Add what a comparison of a symbol's multiple with 0 says."""
    factor, _, rest = linear
    if op == "==":
        if rest % factor:
            return  # it is never so
        value = -rest // factor
        if outcome:
            bounds.low = bounds.high = value
            bounds.place = bounds.place or place
        else:
            bounds.others.append(value)
        return
    # factor * s <= most, or factor * s >= least
    edge = -rest - (op == "<")
    if outcome == (factor > 0):
        bounds.below(edge // factor if outcome else -((edge + 1) // -factor))
    else:
        bounds.above(-(edge // -factor) if outcome else -(-(edge + 1) // factor))


def _inward(events: list[Event], event: Event, outcome: bool, bounds: list[_Bounds]) -> bool:
    """Whether a comparison with a number bounds a symbol, through steps that keep the order."""
    op, operand, (is_event, number) = event
    if is_event or op == "==":
        return False
    edge = number - (op == "<")  # at most this, or more
    low, high = (None, edge) if outcome else (edge + 1, None)
    while operand[0]:
        op, a, b = events[operand[1]]
        if op == "symbol":
            if high is not None:
                bounds[a[1]].below(high)
            if low is not None:
                bounds[a[1]].above(low)
            return True
        if op == "-" and a == (False, 0):
            low, high = (None if high is None else -high), (None if low is None else -low)
            operand = b
            continue
        if b[0] or (op in ("*", "//") and b[1] <= 0) or op not in ("+", "*", "//"):
            return False
        by, operand = b[1], a
        if op == "+":
            low = None if low is None else low - by
            high = None if high is None else high - by
        elif op == "*":
            low, high = low and -(-low // by), high and high // by
        else:
            low = low and low * by
            high = None if high is None else high * by + by - 1
    return False


def _difference(events: list[Event], event: Event) -> _Linear | None:
    """The left side of a comparison without the right one, if it is of one symbol."""
    one, other = _linear(events, event[1]), _linear(events, event[2])
    if one is None or other is None:
        return None
    if one.symbol is not None and other.symbol is not None and one.symbol != other.symbol:
        return None
    symbol = one.symbol if one.symbol is not None else other.symbol
    factor = one.factor - other.factor
    return _Linear(factor, symbol if factor else None, one.rest - other.rest)


def _linear(events: list[Event], operand: Operand) -> _Linear | None:
    is_event, number = operand
    if not is_event:
        return _Linear(0, None, number)
    op, a, b = events[number]
    if op == "symbol":
        return _Linear(1, a[1], 0)
    if op not in ("+", "-", "*"):
        return None
    one, other = _linear(events, a), _linear(events, b)
    if one is None or other is None:
        return None
    if op == "*":
        if one.symbol is not None and other.symbol is not None:
            return None
        (factor, symbol, rest), times = (
            (one, other.rest) if other.symbol is None else (other, one.rest)
        )
        return _Linear(factor * times, symbol, rest * times)
    if one.symbol is not None and other.symbol is not None and one.symbol != other.symbol:
        return None
    sign = 1 if op == "+" else -1
    symbol = one.symbol if one.symbol is not None else other.symbol
    return _Linear(one.factor + sign * other.factor, symbol, one.rest + sign * other.rest)


def _text(record: Record, events: list[Event], operand: Operand, inner: bool = False) -> str:
    is_event, number = operand
    if not is_event:
        return str(number)
    op, a, b = events[number]
    if op == "symbol":
        return record.names[a[1]]
    if op == "bits":
        return f"{_text(record, events, a, True)}.bit_length()"
    if op == "-" and a == (False, 0):
        return f"-{_text(record, events, b, True)}"
    if op == "+" and not b[0] and b[1] < 0:
        op, b = "-", (False, -b[1])
    text = f"{_text(record, events, a, True)} {op} {_text(record, events, b, True)}"
    return f"({text})" if inner else text
