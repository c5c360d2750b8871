"""Drops the checks of accesses that are always in bounds.

What is known at a point comes from the conditions around it (`if i < y.size`, an early return, a
loop's range), from the extents of the block, from masks, remainders and constants:

    if i < y.size:                 if i < y.size:
      y[i; i in y.size] = 0          y[i] = 0

A check is dropped only if both of its sides are proven. Nothing is assumed of arithmetic that might
wrap, of values loaded from memory, or of a variable that a loop changes, beyond what holds in every
iteration.

Assumed, and ensured by the launch path: sizes, shapes and extents that a launch passes
are not negative, those of 32 bits are below `core.limits.MOST_NARROW`, and a grid has fewer than
2**31 threads in each direction. The block must be known (`specialize`) for most proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.passes.range_expressions import Evaluator, is_integer
from treadle.ir.passes.ranges import State, Sum, minus, number, plus
from treadle.ir.traverse import map_children, walk
from treadle.ir.types import BOOL, Type

_TRIES = 5  # walks of a loop, before nothing is assumed of the variables that it changes
_INNER_TRIES = 2  # in loops three deep and more: every try runs all that is inside


def drop_provable_checks(kernel: n.Kernel) -> n.Kernel:
    """The kernel without the checks that cannot fail. Functions are left as they are (those with
    memory are inlined before)."""
    if not any(isinstance(node, n.Check) for node in walk(kernel.body)):
        return kernel
    walker = CheckDropper(kernel)
    body, _ = walker.block(kernel.body, walker.start)
    return kernel if body is kernel.body else replace(kernel, body=body)


@dataclass
class _Loop:
    """Where the paths out of a loop's body lead."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


class CheckDropper(Evaluator):
    def __init__(self, kernel: n.Kernel) -> None:
        super().__init__(kernel)
        self.loops: list[_Loop] = []

    # --- statements ---

    def block(self, block: n.Block, state: State | None) -> tuple[n.Block, State | None]:
        """The block with fewer checks, and what is true after it (None: its end is not reached).
        `state` is used up."""
        result: list[n.Statement] = []
        changed = False
        for position, statement in enumerate(block):
            if state is None:
                result.extend(block[position:])
                break
            new, state = self.statement(statement, state)
            changed = changed or new is not statement
            result.append(new)
        return (tuple(result) if changed else block), state

    def statement(self, node: n.Statement, state: State) -> tuple[n.Statement, State | None]:
        match node:
            case n.Declare() | n.Assign():
                return self.assignment(node, state)
            case n.If():
                return self.if_statement(node, state)
            case n.For():
                return self.for_loop(node, state)
            case n.While():
                return self.while_loop(node, state)
            case n.Break():
                self.loops[-1].breaks.append(state)
                return node, None
            case n.Continue():
                self.loops[-1].continues.append(state)
                return node, None
        new = map_children(node, lambda child: self.strip(child, state))
        if isinstance(node, n.Return):
            return new, None
        if isinstance(node, n.Receiving) and node.result is not None:
            self.forget(node.result.name, node.result.type, state)
        return new, state

    def assignment(
        self, node: n.Declare | n.Assign, state: State
    ) -> tuple[n.Statement, State | None]:
        new = map_children(node, lambda child: self.strip(child, state))
        target = node.variable if isinstance(node, n.Declare) else node.place
        if not isinstance(target, n.Variable):
            return new, state
        if is_integer(target.type):
            known = number(0) if node.value is None else self.sum(node.value, state)
            state.values[target.name] = known
        elif target.type == BOOL:
            value = n.FALSE if node.value is None else node.value
            state.values[target.name] = self.condition(value, state)
        return new, state

    def forget(self, name: str, type: Type, state: State) -> None:
        """A variable holds something new of which nothing is known."""
        if is_integer(type):
            state.values[name] = self.fresh(type)
        else:
            state.values.pop(name, None)

    def if_statement(self, node: n.If, state: State) -> tuple[n.Statement, State | None]:
        condition = self.strip(node.condition, state)
        true, false = self.condition(node.condition, state)
        inside = self.knowledge.assume(true, state.copy())
        outside = self.knowledge.assume(false, state)
        then, after_then = self.block(node.then, inside)
        otherwise, after_otherwise = self.block(node.otherwise, outside)
        after = self.join(after_then, after_otherwise)
        if condition is node.condition and then is node.then and otherwise is node.otherwise:
            return node, after
        return n.If(condition, then, otherwise, node.span), after

    def join(self, *states: State | None) -> State | None:
        """What is true where paths join; a path of None does not get here."""
        return self.knowledge.join([state for state in states if state is not None])

    # --- loops ---

    def for_loop(self, node: n.For, state: State) -> tuple[n.Statement, State | None]:
        first, last = self.strip(node.start, state), self.strip(node.stop, state)
        start, stop = self.sum(node.start, state), self.sum(node.stop, state)

        def once(head: State) -> tuple[n.Block, State | None]:
            inside = head.copy()
            inside.values[node.variable.name] = self.counter(node, start, stop, inside)
            body, end = self.block(node.body, inside)
            return body, self.join(end, *self.loops[-1].continues)

        head, body, loop = self.settle(state, _assigned(node.body), once)
        after = self.join(head, *loop.breaks)
        if first is node.start and last is node.stop and body is node.body:
            return node, after
        return replace(node, start=first, stop=last, body=body), after

    def counter(self, node: n.For, start: Sum, stop: Sum, state: State) -> Sum:
        """The loop's variable in any of its iterations."""
        step, known = node.step, self.knowledge
        value = self.fresh(node.variable.type)
        if step > 0:
            facts = [minus(value, start), plus(minus(stop, value), number(-1))]
        else:
            facts = [minus(start, value), plus(minus(value, stop), number(-1))]
        if not start[1] and not stop[1] and len(range(start[0], stop[0], step)):
            final = range(start[0], stop[0], step)[-1]
            facts.append(minus(number(final), value) if step > 0 else minus(value, number(final)))
        known.assume(facts, state)
        return value

    def while_loop(self, node: n.While, state: State) -> tuple[n.Statement, State | None]:
        update = node.update

        def once(head: State) -> tuple[tuple[Any, n.Block, n.Block], State | None]:
            condition = self.strip(node.condition, head)
            true, _ = self.condition(node.condition, head)
            body, end = self.block(node.body, self.knowledge.assume(true, head.copy()))
            end = self.join(end, *self.loops[-1].continues)
            new_update, end = self.block(update, end)
            return (condition, body, new_update), end

        changed = _assigned(node.body) | _assigned(update)
        head, (condition, body, new_update), loop = self.settle(state, changed, once)
        _, false = self.condition(node.condition, head)
        after = self.join(self.knowledge.assume(false, head), *loop.breaks)
        if condition is node.condition and body is node.body and new_update is update:
            return node, after
        return n.While(condition, body, new_update, node.span), after

    def settle(
        self,
        before: State,
        changed: dict[str, Type],
        once: Callable[[State], tuple[Any, State | None]],
    ) -> tuple[State, Any, _Loop]:
        """Find what holds at the head of a loop in every iteration.

        Guesses (a variable never sinks below, or never rises above, what it started with; it is
        never negative) are assumed together, and given up when an iteration breaks them, until
        those that are left carry themselves. Gives the state at the head, what the last run of
        `once` gave, and where it left the loop.
        """
        initial = {
            name: before.values[name]
            for name, type in changed.items()
            if is_integer(type) and name in before.values
        }
        guesses = [(name, guess) for name in initial for guess in _GUESSES]
        guesses = [g for g in guesses if self.holds_for(g, initial, before.values, before)]
        tries = _TRIES if len(self.loops) < 2 else _INNER_TRIES
        for attempt in range(tries):
            if attempt == tries - 1:
                guesses = []
            head = before.copy()
            for name, type in changed.items():
                self.forget(name, type, head)
            assumed = [_GUESSES[g](head.values[name], initial[name]) for name, g in guesses]
            self.knowledge.assume(assumed, head)
            self.loops.append(_Loop())
            result, end = once(head)
            loop = self.loops.pop()
            if end is None:
                return head, result, loop
            kept = [g for g in guesses if self.holds_for(g, initial, end.values, end)]
            if len(kept) == len(guesses):
                return head, result, loop
            guesses = kept
        raise AssertionError("without guesses an iteration breaks none")

    def holds_for(
        self, guess: tuple[str, str], initial: dict[str, Sum], now: dict[str, Any], state: State
    ) -> bool:
        name, kind = guess
        return name in now and self.knowledge.holds(_GUESSES[kind](now[name], initial[name]), state)

    # --- expressions ---

    def strip(self, node: Any, state: State) -> Any:
        """An expression, place or argument without the checks proven here."""
        if isinstance(node, (n.Constant, n.Variable, n.Builtin)):
            return node
        if isinstance(node, n.Binary) and node.op in n.LOGICAL:
            return self.strip_logical(node, state)
        node = map_children(node, lambda child: self.strip(child, state))
        if isinstance(node, (n.Element, n.Item)) and node.checks:
            kept = tuple(check for check in node.checks if not self.always_passes(check, state))
            if len(kept) < len(node.checks):
                return replace(node, checks=kept)
        return node

    def strip_logical(self, node: n.Binary, state: State) -> n.Expression:
        """A chain of `and` (or `or`), each part of which knows the parts before it."""
        chain, before = [node], node.left
        while isinstance(before, n.Binary) and before.op == node.op:
            chain.append(before)
            before = before.left
        inside = state.copy()
        new: n.Expression = self.strip(before, inside)
        for link in reversed(chain):
            true, false = self.condition(before, inside)
            self.knowledge.assume(true if node.op == "logical_and" else false, inside)
            right = self.strip(link.right, inside)
            if new is not link.left or right is not link.right:
                new = n.Binary(link.op, new, right, link.type, link.span)
            else:
                new = link
            before = link.right
        return new

    def always_passes(self, check: n.Check, state: State) -> bool:
        index, bound = self.sum(check.index, state), self.sum(check.bound, state)
        below = plus(minus(bound, index), number(-1))
        return self.knowledge.holds(index, state) and self.knowledge.holds(below, state)


# What may hold of a variable at the head of a loop: from its value there and its first value.
_GUESSES: dict[str, Callable[[Sum, Sum], Sum]] = {
    "rises": lambda now, first: minus(now, first),
    "sinks": lambda now, first: minus(first, now),
    "not negative": lambda now, first: now,
}


def _assigned(block: n.Block) -> dict[str, Type]:
    """The variables that a block gives new values (declarations aside), with their types."""
    found: dict[str, Type] = {}
    for node in walk(block):
        target: Any = None
        if isinstance(node, n.Assign):
            target = node.place
            while isinstance(target, (n.Member, n.Item)):
                target = target.base
        elif isinstance(node, n.Receiving):
            target = node.result
        if isinstance(target, n.Variable):
            found[target.name] = target.type
    return found
