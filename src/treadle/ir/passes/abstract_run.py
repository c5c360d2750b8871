"""Abstract interpretation of a kernel: for each value, which threads agree on it, and why not more.

The rules are those of `uniformity`; its docstring lists them. Statements are visited in order, both
branches of an `if`, and loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.passes import patterns
from treadle.ir.passes.patterns import Pattern
from treadle.ir.traverse import children, root_of, statements_in, walk


class Level(IntEnum):
    """The widest group of threads for which something is uniform."""

    BLOCK = 0
    WARP = 1
    THREAD = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a value differs: a source of difference and the variables it came through."""

    source: str  # "thread_idx.x differs between threads"
    fix: str
    through: tuple[tuple[str, int], ...] = ()  # (variable, line of the assignment)

    def __str__(self) -> str:
        steps = [
            f"{name}, set on line {line}" if line else name for name, line in self.through[-3:]
        ]
        return self.source + (f" (through {'; '.join(steps)})" if steps else "")


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value: the widest group of threads that it is uniform for, its pattern
    over a warp, and why it differs."""

    level: Level = Level.BLOCK
    pattern: Pattern | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """The widest group of threads that reaches a place as a whole, and why not a wider one."""

    level: Level = Level.BLOCK
    where: str = ""  # "the condition on line 12"
    kind: str = ""  # the kind of statement that divided the threads
    cause: Cause | None = None


State = dict[str, Value]  # the variables as they are at one point; parameters included


@dataclass(slots=True)
class _Loop:
    """The states at a loop's breaks and continues, while its body is analyzed."""

    flow: Flow
    breaks: list[State]
    continues: list[State]


class AbstractRun:
    """An abstract run of the kernel: each statement in order, loops until nothing changes."""

    def __init__(
        self, kernel: n.Kernel, width: int, ignore_returns: bool, written: frozenset[str]
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.ignore_returns = ignore_returns
        self.block = kernel.block
        self.written = written
        self.buffers = frozenset(buffer.name for buffer in kernel.buffers)
        self.threaded = _asking_for_threads(kernel.functions)
        self.shared = frozenset(m.name for m in kernel.memories if m.space == "shared")
        self.variables: dict[str, Value] = {}
        self.flows: dict[int, Flow] = {}
        self.shared_loads: set[int] = set()
        self.returned = Flow()
        self.loops: list[_Loop] = []

    def run(self) -> None:
        state: State = {parameter.name: Value() for parameter in self.kernel.parameters}
        self.variables.update(state)
        self._block(self.kernel.body, state, Flow())

    # --- statements: each gives the state after it, None where nothing follows ---

    def _block(self, block: n.Block, state: State | None, flow: Flow) -> State | None:
        after_barrier = False
        for statement in block:
            if state is None:
                self._unreached(statement, flow)
                continue
            here = _wider(flow, self._here(Flow()))
            self.flows[id(statement)] = _wider(self.flows.get(id(statement), Flow()), here)
            marked = after_barrier and self._reads_shared(statement, state, here)
            if marked:
                self.shared_loads.add(id(statement))
            else:
                self.shared_loads.discard(id(statement))
            after_barrier = marked or statement == n.Barrier("block")
            state = self._statement(statement, state, here)
        return state

    def _unreached(self, statement: n.Statement, flow: Flow) -> None:
        """Record unreachable statements as well: a pass may query them."""
        for node in statements_in((statement,)):
            self.flows.setdefault(id(node), flow)

    def _here(self, flow: Flow) -> Flow:
        """What returns, breaks and continues so far have done to the flow."""
        flow = _wider(flow, self.returned)
        return _wider(flow, self.loops[-1].flow) if self.loops else flow

    def _statement(self, statement: n.Statement, state: State, flow: Flow) -> State | None:
        match statement:
            case n.Declare():
                value = Value() if statement.value is None else self.value(statement.value, state)
                if id(statement) in self.shared_loads:
                    value = Value()
                self._set(state, statement.variable.name, value, flow, statement.span)
            case n.Assign():
                self._assign(statement, state, flow)
            case n.If():
                return self._if(statement, state, flow)
            case n.For() | n.While():
                return self._loop(statement, state, flow)
            case n.Break() | n.Continue():
                kind = "break" if isinstance(statement, n.Break) else "continue"
                loop = self.loops[-1]
                loop.flow = _wider(loop.flow, _leaving(flow, kind, statement.span))
                (loop.breaks if kind == "break" else loop.continues).append(state)
                return None
            case n.Return():
                if not self.ignore_returns:
                    leaving = _leaving(flow, "return", statement.span)
                    self.returned = _wider(self.returned, leaving)
                return None
            case n.Atomic() | n.CallStatement():
                if statement.result is not None:
                    cause = Cause("the result of an atomic operation differs between threads", "")
                    value = Value(Level.THREAD, None, cause)
                    self._set(state, statement.result.name, value, flow, statement.span)
            case n.Clock():
                cause = Cause("the clock differs between threads", "")
                value = Value(Level.THREAD, None, cause)
                self._set(state, statement.result.name, value, flow, statement.span)
            case n.Subgroup():
                value = self._subgroup(statement, state)
                self._set(state, statement.result.name, value, flow, statement.span)
            case _:
                pass
        return state

    def _assign(self, statement: n.Assign, state: State, flow: Flow) -> None:
        root = root_of(statement.place)
        if not isinstance(root, n.Variable):
            return
        value = self.value(statement.value, state)
        if id(statement) in self.shared_loads:
            value = Value()
        if statement.place is not root:  # only a part of it changes
            value = _joined(self.value(statement.place, state), value)
            value = Value(value.level, None, value.cause)
        self._set(state, root.name, value, flow, statement.span)

    def _set(self, state: State, name: str, value: Value, flow: Flow, span: Span) -> None:
        if flow.level > value.level:
            value = Value(flow.level, value.pattern, flow.cause)
        if value.cause is not None and (name, span.line) not in value.cause.through:
            cause = value.cause
            through = (*cause.through, (name, span.line))
            value = Value(value.level, value.pattern, Cause(cause.source, cause.fix, through))
        state[name] = value
        known = self.variables.get(name)
        self.variables[name] = value if known is None else _joined(known, value)

    def _if(self, statement: n.If, state: State, flow: Flow) -> State | None:
        condition = self.value(statement.condition, state)
        inside = _wider(flow, _divided(condition, "if", statement.condition, statement.span))
        then = self._block(statement.then, dict(state), inside)
        otherwise = self._block(statement.otherwise, dict(state), inside)
        return _merged(then, otherwise)

    def _loop(self, statement: n.For | n.While, state: State, flow: Flow) -> State | None:
        loop = _Loop(Flow(), [], [])
        bounds = Value()
        if isinstance(statement, n.For):
            start = self.value(statement.start, state)
            bounds = _joined(start, self.value(statement.stop, state))
        head: State = dict(state)
        while True:
            loop.breaks, loop.continues = [], []
            before = (loop.flow.level, self.returned.level)
            current = dict(head)
            if isinstance(statement, n.For):
                condition, at = bounds, statement.start
                inside = _wider(flow, _divided(bounds, "loop", at, statement.span))
                variable = Value(bounds.level, None, bounds.cause)
                widest = _wider(inside, loop.flow)
                self._set(current, statement.variable.name, variable, widest, statement.span)
            else:
                condition = self.value(statement.condition, current)
                inside = _divided(condition, "loop", statement.condition, statement.span)
                inside = _wider(flow, inside)
            self.loops.append(loop)
            end = self._block(statement.body, dict(current), _wider(inside, loop.flow))
            for other in loop.continues:
                end = _merged(end, other)
            if isinstance(statement, n.While) and end is not None:
                end = self._block(statement.update, end, _wider(inside, loop.flow))
            self.loops.pop()
            again = _merged(dict(head), end) or {}
            if _same(again, head) and before == (loop.flow.level, self.returned.level):
                break
            head = again
        # A loop that nothing but `break` leaves never passes its condition.
        endless = isinstance(statement, n.While) and statement.condition == n.TRUE
        result: State | None = None if endless and loop.breaks else dict(head)
        for other in loop.breaks:
            result = _merged(result, other)
        return result

    def _subgroup(self, statement: n.Subgroup, state: State) -> Value:
        own = statement.op in ("prefix_sum", "match_any") or len(statement.operands) == 2
        own = own or statement.op in n.MATRIX_OPERATIONS | n.OPAQUE_OPERATIONS
        if statement.mask is not None:  # groups of one warp get what is theirs
            own = own or self.value(statement.mask, state).level > Level.WARP
        if own:
            return Value(
                Level.THREAD, None, Cause(f"each thread gets its own value of {statement.op}", "")
            )
        return Value(
            Level.WARP, None, Cause(f"the result of {statement.op} differs between warps", "")
        )

    def _reads_shared(self, statement: n.Statement, state: State, flow: Flow) -> bool:
        """Whether a statement is `variable = shared[uniform]` in uniform flow."""
        if isinstance(statement, n.Assign) and not isinstance(statement.place, n.Variable):
            return False
        if not isinstance(statement, (n.Declare, n.Assign)):
            return False
        value = statement.value
        if not isinstance(value, n.Load) or flow.level > Level.BLOCK:
            return False
        root = root_of(value.place)
        if not isinstance(root, n.Element) or root.memory not in self.shared:
            return False
        inside = [self.value(part, state) for part in _expressions_in(value.place)]
        return all(part.level == Level.BLOCK for part in inside)

    # --- expressions ---

    def value(self, expression: n.Expression | n.Place, state: Mapping[str, Value]) -> Value:
        """What is known of an expression where the variables are as in `state`."""
        match expression:
            case n.Variable():
                return state.get(expression.name, Value())
            case n.Constant():
                return Value(pattern=self._constant(expression))
            case n.Builtin():
                return self._by_pattern(self._builtin(expression))
            case n.Load():
                return self._load(expression, state)
            case n.Call() if expression.function in self.threaded:
                source = f"{expression.function}() asks for thread_idx"
                return Value(Level.THREAD, None, Cause(source, ""))
        parts = [self.value(part, state) for part in _expressions_in(expression)]
        result = Value()
        for part in parts:
            result = _joined(result, part)
        pattern = self._pattern(expression, parts)
        return self._by_pattern(Value(result.level, pattern, result.cause))

    def _by_pattern(self, value: Value) -> Value:
        """The value, uniform over warps if its pattern says so."""
        pattern, cause = value.pattern, value.cause
        if value.level < Level.THREAD or not pattern:
            return value
        if not pattern.is_uniform_in_warps(self.width):
            return value
        if cause is not None:
            cause = Cause("it differs between warps", "", cause.through)
        return Value(Level.WARP, pattern, cause)

    def _constant(self, constant: n.Constant) -> Pattern | None:
        if self.block is None or isinstance(constant.value, float):
            return None
        if not -(1 << 62) < constant.value < 1 << 62:
            return None
        return patterns.constant(constant.value, self.block)

    def _builtin(self, builtin: n.Builtin) -> Value:
        block = self.block
        axis = builtin.axis
        match builtin.name:
            case "thread_idx":
                known = block and patterns.thread_index(block, axis)
                cause = Cause(f"thread_idx.{'xyz'[axis]} differs between threads", "")
                return Value(Level.THREAD, known, cause)
            case "lane":
                known = block and patterns.lane_index(block, self.width)
                return Value(Level.THREAD, known, Cause("the lane differs between threads", ""))
            case "block_dim":
                return Value(pattern=block and patterns.constant(block[axis], block))
            case "subgroup_size":
                return Value(pattern=block and patterns.constant(self.width, block))
        return Value(pattern=block and patterns.anything(block, positive=True))

    def _load(self, load: n.Load, state: Mapping[str, Value]) -> Value:
        root = root_of(load.place)
        if isinstance(root, n.Variable):
            return self._parts(load.place, state)
        if root.memory in self.buffers and root.memory not in self.written:
            return self._parts(load.place, state)
        if root.memory in self.shared:
            source = f"{root.memory} is shared memory, which other threads may write"
            fix = "read it into a variable right after a sync_threads()"
        elif root.memory in self.buffers:
            source = f"{root.memory} is an array that this kernel writes"
            fix = "take it from an array that is only read, or pass it as a number"
        else:
            source = f"{root.memory} is each thread's own memory"
            fix = ""
        return Value(Level.THREAD, None, Cause(source, fix))

    def _parts(self, place: n.Place, state: Mapping[str, Value]) -> Value:
        result = Value()
        for part in _expressions_in(place):
            result = _joined(result, self.value(part, state))
        return Value(result.level, None, result.cause)

    def _pattern(self, expression: n.Expression | n.Place, parts: list[Value]) -> Pattern | None:
        block = self.block
        if block is None:
            return None
        known = [
            p.pattern
            if p.pattern is not None or p.level > Level.BLOCK
            else patterns.anything(block)
            for p in parts
        ]
        match expression, known:
            case n.Binary(op, _, _, type), [Pattern() as left, Pattern() as right]:
                return patterns.binary(op, left, right, type)
            case n.Unary("not"), [Pattern() as operand]:
                return patterns.negated(operand)
            case n.Cast(_, type), [Pattern() as operand]:
                return patterns.cast(operand, type)
        return None


def _asking_for_threads(functions: tuple[n.Function, ...]) -> frozenset[str]:
    """The functions whose results differ by thread even for uniform arguments."""
    found: set[str] = set()
    for function in functions:
        for node in walk(function.body):
            own = isinstance(node, n.Builtin) and node.name in ("thread_idx", "lane")
            if own or (isinstance(node, n.Call) and node.function in found):
                found.add(function.name)
    return frozenset(found)


def _expressions_in(node: object) -> list[n.Expression]:
    """The expressions directly inside an expression or place (those inside checks included)."""
    found: list[n.Expression] = []
    for child in children(node):
        if isinstance(child, (n.Element, n.Member, n.Item, n.Check)):
            found.extend(_expressions_in(child))
        elif not isinstance(child, n.MemoryReference):
            found.append(child)
    return found


def _joined(left: Value, right: Value) -> Value:
    """What holds whichever of two values it is."""
    level = max(left.level, right.level)
    cause = left.cause if left.level >= right.level and left.cause is not None else right.cause
    pattern = left.pattern
    if pattern is None or not pattern.same_as(right.pattern):
        pattern = None
    return Value(level, pattern, cause)


def _wider(left: Flow, right: Flow) -> Flow:
    return right if right.level > left.level else left


def _divided(condition: Value, kind: str, at: n.Expression, span: Span) -> Flow:
    line = span.line or at.span.line
    what = {"if": "the condition", "loop": "the loop"}[kind]
    where = f"{what} on line {line}" if line else what
    return Flow(condition.level, where, kind, condition.cause)


def _leaving(flow: Flow, kind: str, span: Span) -> Flow:
    if flow.level == Level.BLOCK:
        return flow
    line = f" on line {span.line}" if span.line else ""
    return Flow(flow.level, f"the `{kind}`{line}, under {flow.where},", kind, flow.cause)


def _merged(left: State | None, right: State | None) -> State | None:
    """The state where two paths join."""
    if left is None or right is None:
        return right if left is None else left
    merged: State = {}
    for name in left.keys() & right.keys():
        ours, theirs = left[name], right[name]
        merged[name] = ours if ours is theirs else _joined(ours, theirs)
    return merged


def _same(left: State, right: State) -> bool:
    if left.keys() != right.keys():
        return False
    for name, ours in left.items():
        theirs = right[name]
        if ours is theirs:
            continue
        if ours.level != theirs.level or (ours.pattern is None) != (theirs.pattern is None):
            return False
        if ours.pattern is not None and not ours.pattern.same_as(theirs.pattern):
            return False
    return True
