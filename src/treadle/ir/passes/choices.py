"""Chains of conditions on one number, as the choice among cases that they are.

`if v == 0: … elif v == 1 or v == 7: … else: …` says what `switch (v)` says. Printers ask here, so
that a long chain is a switch in every language, and nests no deeper than one.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import Scalar

_LEAST = 8  # values: a shorter chain stays one


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs for which values; `default` for all others. No value occurs twice."""

    value: n.Expression
    cases: tuple[tuple[tuple[int, ...], n.Block], ...]
    default: n.Block


def choice_of(node: n.If, *, breaks: bool = True) -> Choice | None:
    """The choice that a chain of ifs makes, if it is one and long enough.

    Without `breaks` none of whose blocks a `break` leaves, as it would leave a switch.
    """
    value = _subject(node.condition)
    if value is None:
        return None
    cases: list[tuple[tuple[int, ...], n.Block]] = []
    seen: set[int] = set()
    rest: n.Block = (node,)
    while len(rest) == 1 and isinstance(rest[0], n.If):
        link = rest[0]
        found = _values(link.condition, value)
        if found is not None:
            body, rest = link.then, link.otherwise
        elif not link.otherwise and (found := _values_but(link.condition, value)) is not None:
            body, rest = (), link.then
        else:
            break
        if not breaks and _breaks(body):
            return None
        fresh = tuple(dict.fromkeys(number for number in found if number not in seen))
        seen.update(fresh)
        if fresh:
            cases.append((fresh, body))
    if len(seen) < _LEAST or (not breaks and _breaks(rest)):
        return None
    return Choice(value, tuple(cases), rest)


def _subject(condition: n.Expression) -> n.Expression | None:
    """What a condition compares with a constant."""
    while isinstance(condition, n.Binary) and condition.op == "logical_or":
        condition = condition.left
    if not isinstance(condition, n.Binary) or condition.op not in ("eq", "ne"):
        return None
    value, number = condition.left, condition.right
    if isinstance(value, n.Constant):
        value, number = number, value
    if not isinstance(number, n.Constant) or isinstance(value, n.Constant):
        return None
    if not isinstance(value.type, Scalar) or not value.type.is_integer:
        return None
    if any(isinstance(part, (n.Load, n.Call)) for part in walk(value)):
        return None
    return value


def _values(condition: n.Expression, value: n.Expression) -> list[int] | None:
    """The numbers that a value equals where a condition holds, if that is all it says."""
    found: list[int] = []
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, n.Binary):
            return None
        if one.op == "logical_or":
            waiting += (one.right, one.left)
            continue
        number = _compared(one, "eq", value)
        if number is None:
            return None
        found.append(number)
    return found


def _values_but(condition: n.Expression, value: n.Expression) -> list[int] | None:
    """The number that a value equals where a condition does not hold."""
    number = _compared(condition, "ne", value)
    return None if number is None else [number]


def _compared(node: n.Expression, op: str, value: n.Expression) -> int | None:
    if isinstance(node, n.Binary) and node.op == op:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(other, n.Constant) and one == value:
                return int(other.value)
    return None


def _breaks(block: n.Block) -> bool:
    """Whether a break in a block leaves the loop around it."""
    for statement in block:
        if isinstance(statement, n.Break):
            return True
        if isinstance(statement, n.If) and (
            _breaks(statement.then) or _breaks(statement.otherwise)
        ):
            return True
    return False
