"""Integers that a kernel computes, as sums of unknowns, and what is known of them.

An unknown (a number in `Knowledge`) stands for one value that never changes: a parameter, a
builtin, what a variable holds from some point on. An expression whose arithmetic provably does
not wrap is a sum of unknowns; any other becomes an unknown of its own with its type's range. A
`State` holds what is true at one point of the program: what each variable is, bounds of unknowns,
sums known to be at least 0, and of which values an unknown is one.

What `Knowledge` holds for all states must be true of unknowns wherever they appear, even where the
expression they stand for was never evaluated; what depends on the place goes into a State.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# const + sum of coefficient * unknown, the terms sorted by unknown.
Sum = tuple[int, tuple[tuple[int, int], ...]]
# What holds if a condition is true, and if it is false: sums that are at least 0.
Condition = tuple[tuple[Sum, ...], tuple[Sum, ...]]

NOTHING: Condition = ((), ())
NEVER: Sum = (-1, ())  # a sum that cannot be at least 0
_ANY = (-(1 << 64), 1 << 64)
_STEPS = 40  # of one proof
_DEPTH = 4


def number(value: int) -> Sum:
    """A known number."""
    return (value, ())


def unknown(name: int) -> Sum:
    """One unknown."""
    return (0, ((name, 1),))


def plus(left: Sum, right: Sum, factor: int = 1) -> Sum:
    """Left + factor * right."""
    if not right[1]:
        return (left[0] + factor * right[0], left[1])
    terms = dict(left[1])
    for name, coefficient in right[1]:
        together = terms.get(name, 0) + factor * coefficient
        if together:
            terms[name] = together
        else:
            terms.pop(name, None)
    return (left[0] + factor * right[0], tuple(sorted(terms.items())))


def minus(left: Sum, right: Sum) -> Sum:
    """Left - right."""
    return plus(left, right, -1)


def times(factor: int, value: Sum) -> Sum:
    """Factor * value."""
    return plus(number(0), value, factor)


class State:
    """What is true at one point of the program."""

    __slots__ = ("_by_unknown", "cases", "facts", "high", "impossible", "low", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}  # variable to Sum, or to Condition for a bool
        self.low: dict[int, int] = {}
        self.high: dict[int, int] = {}
        self.facts: dict[Sum, None] = {}  # in order, each once
        self._by_unknown: dict[int, list[tuple[Sum, int]]] | None = None
        # What an unknown is: one of these values, each with the state that it comes from.
        self.cases: dict[int, list[tuple[State, Sum]]] = {}
        self.impossible = False  # no execution reaches this state

    def copy(self) -> State:
        """A copy of the state, for one branch."""
        other = State()
        other.values = dict(self.values)
        other.low = dict(self.low)
        other.high = dict(self.high)
        other.facts = dict(self.facts)
        other.cases = dict(self.cases)
        other.impossible = self.impossible
        return other

    def add_fact(self, fact: Sum) -> None:
        """A sum of several unknowns is at least 0."""
        self.facts[fact] = None
        self._by_unknown = None

    def facts_with(self, name: int) -> list[tuple[Sum, int]]:
        """The facts in which an unknown appears, with its coefficient there."""
        found = self._by_unknown
        if found is None:
            found = self._by_unknown = {}
            for fact in self.facts:
                for other, coefficient in fact[1]:
                    found.setdefault(other, []).append((fact, coefficient))
        return found.get(name, [])


class Knowledge:
    """The unknowns: what holds of each wherever it appears, and how to prove more."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.named: dict[Any, int] = {}
        # By each unknown in them, with its coefficient.
        self.facts: dict[int, list[tuple[Sum, int]]] = {}
        self.steps = 0
        # States that the current proof has joined.
        self._met: dict[tuple[int, int], State] = {}

    # --- unknowns ---

    def new(self, low: int, high: int) -> int:
        """A new unknown within a range."""
        self.ranges.append((low, high))
        return len(self.ranges) - 1

    def same(self, key: Any, low: int, high: int) -> int:
        """The unknown for `key`: one key is one value, always."""
        name = self.named.get(key)
        if name is None:
            name = self.named[key] = self.new(low, high)
        return name

    def one_of(self, cases: list[tuple[State, Sum]], state: State) -> Sum:
        """In `state`, a new unknown that is one of several values, each with its own state."""
        low = min(self.low(value, inside) for inside, value in cases)
        high = max(self.high(value, inside) for inside, value in cases)
        name = self.new(*_ANY)
        state.low[name], state.high[name] = low, high
        state.cases[name] = cases
        return unknown(name)

    def always(self, fact: Sum) -> None:
        """A sum is at least 0 wherever its unknowns appear."""
        for name, coefficient in fact[1]:
            known = self.facts.setdefault(name, [])
            if (fact, coefficient) not in known:
                known.append((fact, coefficient))

    # --- bounds ---

    def low(self, value: Sum, state: State) -> int:
        """A number that a sum is never below."""
        total = value[0]
        for name, coefficient in value[1]:
            low, high = self.ranges[name]
            if coefficient > 0:
                total += coefficient * state.low.get(name, low)
            else:
                total += coefficient * state.high.get(name, high)
        return total

    def high(self, value: Sum, state: State) -> int:
        """A number that a sum is never above."""
        return -self.low(times(-1, value), state)

    def limit(self, name: int, low: int, high: int, state: State) -> None:
        """An unknown lies in a range, from here on."""
        base = self.ranges[name]
        low = max(low, state.low.get(name, base[0]))
        high = min(high, state.high.get(name, base[1]))
        state.low[name], state.high[name] = low, high
        if low > high:
            state.impossible = True

    def assume(self, facts: Iterable[Sum], state: State) -> State:
        """Sums are at least 0, from here on. Changes and gives `state`."""
        for fact in facts:
            constant, terms = fact
            if not terms:
                if constant < 0:
                    state.impossible = True
                continue
            if len(terms) > 1 and fact not in state.facts:
                state.add_fact(fact)
            top = self.high(fact, state)
            for name, coefficient in terms:
                base = self.ranges[name]
                low, high = state.low.get(name, base[0]), state.high.get(name, base[1])
                # The others at their highest leave at least this for the term.
                rest = top - coefficient * (high if coefficient > 0 else low)
                if coefficient > 0:
                    self.limit(name, -(rest // coefficient), high, state)
                else:
                    self.limit(name, low, rest // -coefficient, state)
        return state

    # --- proofs ---

    def holds(self, value: Sum, state: State) -> bool:
        """Whether a sum is proven to be at least 0."""
        self.steps = _STEPS
        proven = self._holds(value, state, _DEPTH)
        self._met.clear()
        return proven

    def _holds(self, value: Sum, state: State, depth: int) -> bool:
        if state.impossible or self.low(value, state) >= 0:
            return True
        self.steps -= 1
        if depth == 0 or self.steps < 0:
            return False
        # A sum is at least 0 if it is a known one, some number of times, plus one that is.
        for name, coefficient in value[1]:
            for fact, own in (*self.facts.get(name, ()), *state.facts_with(name)):
                if own * coefficient <= 0 or coefficient % own:
                    continue
                rest = plus(value, fact, -(coefficient // own))
                if len(rest[1]) <= len(value[1]) + 1 and self._holds(rest, state, depth - 1):
                    return True
        for name, coefficient in value[1]:
            cases = state.cases.get(name)
            if cases is not None and all(
                self._holds(
                    plus(plus(value, unknown(name), -coefficient), case, coefficient),
                    self._together(state, origin),
                    depth - 1,
                )
                for origin, case in cases
            ):
                return True
        return False

    def _together(self, state: State, origin: State) -> State:
        """A state in which both are true."""
        both = self._met.get((id(state), id(origin)))
        if both is not None:
            return both
        both = self._met[id(state), id(origin)] = state.copy()
        both.impossible = state.impossible or origin.impossible
        for name, low in origin.low.items():
            high = origin.high[name]
            if state.low.get(name) != low or state.high.get(name) != high:
                self.limit(name, low, high, both)
        both.facts |= origin.facts
        both.cases |= origin.cases
        return both

    # --- joining paths ---

    def join(self, states: list[State]) -> State | None:
        """What is true where several paths join; None if no path gets here."""
        states = [state for state in states if not state.impossible]
        if not states:
            return None
        if len(states) == 1:
            return states[0]
        first, others = states[0], states[1:]
        joined = State()
        for name in first.low:
            if all(name in other.low for other in others):
                joined.low[name] = min(state.low[name] for state in states)
                joined.high[name] = max(state.high[name] for state in states)
        for name, cases in first.cases.items():
            if all(other.cases.get(name) is cases for other in others):
                joined.cases[name] = cases
        joined.facts = {f: None for f in first.facts if all(f in other.facts for other in others)}
        for variable, value in first.values.items():
            if any(variable not in other.values for other in others):
                continue
            values = [state.values[variable] for state in states]
            if all(other == value for other in values):
                joined.values[variable] = value
            elif not is_condition(value):
                cases = list(zip(states, values, strict=True))
                joined.values[variable] = self.one_of(cases, joined)
        return joined


def is_condition(value: Any) -> bool:
    """Whether a variable's value is a Condition rather than a Sum."""
    return isinstance(value[0], tuple)
