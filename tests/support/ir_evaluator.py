"""A kernel of the IR run thread by thread in plain Python: slow, and exactly what the nodes say.

    run(kernel, grid=4, buffers={"x": x, "y": y}, parameters={"a": 2.0})

Buffers are NumPy arrays, changed in place; the same array may be given twice. Parameters that a
launch derives (sizes, strides, extents of the grid) are derived here too, unless given. Threads
are generators that stop at barriers and subgroup operations. An access outside of a memory that
no check guards is an EvaluationError, as are a barrier that only some threads reach and whatever
else a kernel must not do. Shared and local memory starts as 0xA5 bytes, never as zeros.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.ir_values import (
    Bytes,
    EvaluationError,
    bytes_of,
    combine,
    each_part,
    exact_or_close,
    owned_memories,
    path_of,
    position_of,
    replaced,
    scalar_of,
    zero,
)
from treadle.core.dim3 import Dim3
from treadle.core.printf import conversion
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.passes.instrument import Spelling
from treadle.ir.passes.predicate import neutral_value

Event = n.Barrier | tuple[n.Subgroup, tuple[Any, ...]]
Thread = Generator[Event, Any, Any]
_BREAK, _CONTINUE = object(), object()


@dataclass
class Outcome:
    """What a run left besides the buffers: printed lines and failed assertions, in order."""

    printed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run(
    kernel: n.Kernel,
    grid: int | Sequence[int] = 1,
    buffers: dict[str, np.ndarray[Any, Any]] | None = None,
    parameters: dict[str, Any] | None = None,
    *,
    block: int | Sequence[int] | None = None,
    invocations: int | Sequence[int] | None = None,
    shared_bytes: int = 0,
    subgroup_size: int = 32,
    reverse: bool = False,
) -> Outcome:
    """Run a whole grid. `invocations` is how many threads really run for a block, where a pass
    made fewer do the work of all. `reverse` runs threads, blocks and the iterations of parallel
    loops in the other order: a kernel without races gives the same."""
    launch = _Launch(
        kernel,
        Dim3.of(grid),
        kernel.block or Dim3.of(block if block is not None else 1),
        subgroup_size,
        reverse,
    )
    arrays = buffers or {}
    for buffer in kernel.buffers:
        launch.memories[buffer.name] = Bytes(buffer.name, bytes_of(arrays[buffer.name]))
    for memory in kernel.memories:
        if memory.space == "shared" and memory.length is None:
            launch.dynamic = shared_bytes
    for parameter in kernel.parameters:
        given = (parameters or {}).get(parameter.name)
        value = given if given is not None else _derived(parameter, launch, arrays)
        launch.parameters[parameter.name] = arithmetic.cast(value, _source(value), parameter.type)
    threads = launch.block if invocations is None else Dim3.of(invocations)
    for index in _points(launch.grid, reverse):
        _run_block(launch, index, threads)
    return launch.outcome


def evaluate(
    expression: n.Expression,
    functions: tuple[n.Function, ...] = (),
    variables: dict[str, Any] | None = None,
) -> Any:
    """The value of an expression that stands alone."""
    kernel = n.Kernel("alone", (), (), (), functions=functions)
    launch = _Launch(kernel, Dim3(1), Dim3(1), 1, False)
    evaluator = _Evaluator(launch, (0, 0, 0), (0, 0, 0), 0, {})
    evaluator.frame.variables.update(variables or {})
    return evaluator.value(expression)


def _source(value: Any) -> t.Scalar:
    return t.F64 if isinstance(value, (float, np.floating)) else t.I64


@dataclass
class _Launch:
    kernel: n.Kernel
    grid: Dim3
    block: Dim3
    subgroup_size: int
    reverse: bool
    memories: dict[str, Bytes] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    dynamic: int = 0
    cycles: int = 0

    def __post_init__(self) -> None:
        self.functions = {function.name: function for function in self.kernel.functions}


def _points(extent: Dim3, reverse: bool) -> list[tuple[int, int, int]]:
    points = [(x, y, z) for z in range(extent.z) for y in range(extent.y) for x in range(extent.x)]
    return points[::-1] if reverse else points


def _derived(
    parameter: n.Parameter, launch: _Launch, arrays: dict[str, np.ndarray[Any, Any]]
) -> int:
    """The value that a launch would pass for a parameter, by its origin."""
    match parameter.origin:
        case ("size", str(name)):
            return arrays[name].size
        case ("shape", str(name), int(axis)):
            return int(arrays[name].shape[axis])
        case ("stride", str(name), int(axis)):
            return int(arrays[name].strides[axis]) // arrays[name].itemsize
        case ("offset", str()):
            return 0
        case ("grid", int(axis)):
            return launch.grid[axis]
        case ("threads", int(axis)):
            return launch.grid[axis] * launch.block[axis]
        case ("length", str(name)):
            (memory,) = (m for m in launch.kernel.memories if m.name == name)
            return launch.dynamic // t.size_of(memory.element)
    raise EvaluationError(f"no value was given for the parameter {parameter.name!r}")


# --- a block of threads --------------------------------------------------------------------------


@dataclass
class _State:
    """One thread between two events."""

    lane: int
    subgroup: int
    thread: _Evaluator
    generator: Thread
    event: Event | None = None
    done: bool = False

    def advance(self, answer: Any = None) -> None:
        self.event = None
        try:
            self.event = self.generator.send(answer)
        except StopIteration:
            self.done = True


def _run_block(launch: _Launch, block_index: tuple[int, int, int], threads: Dim3) -> None:
    shared = owned_memories(launch.kernel.memories, "shared", launch.dynamic)
    for function in launch.kernel.functions:
        for name, data in owned_memories(function.memories, "shared", 0).items():
            shared[f"{function.name}/{name}"] = data
    states: list[_State] = []
    for index in _points(threads, reverse=False):
        linear = index[0] + threads.x * (index[1] + threads.y * index[2])
        lane, subgroup = linear % launch.subgroup_size, linear // launch.subgroup_size
        evaluator = _Evaluator(launch, block_index, index, lane, shared)
        states.append(_State(lane, subgroup, evaluator, evaluator.kernel()))
    order = states[::-1] if launch.reverse else states
    for state in order:
        state.advance()
    while waiting := [state for state in order if not state.done]:
        if not _answer_subgroups(waiting, launch.subgroup_size):
            _pass_barrier(waiting)


def _answer_subgroups(waiting: list[_State], size: int) -> bool:
    """Let every subgroup whose threads all wait, some of them for one another, go on. Where they
    have diverged, those that are least far go first, and so reconverge with the others."""
    progress = False
    for subgroup in sorted({state.subgroup for state in waiting}):
        members = [state for state in waiting if state.subgroup == subgroup]
        inner = [state for state in members if not _is_block_barrier(state.event)]
        if not inner:
            continue
        path = min(state.thread.path for state in inner)
        together = [state for state in inner if state.thread.path == path]
        first = together[0].event
        node = first[0] if isinstance(first, tuple) else first
        if isinstance(node, n.Subgroup):
            values = {s.lane: s.event[1] for s in together if isinstance(s.event, tuple)}
            for state in together:
                state.advance(_exchange(node, values, state.lane))
        else:
            if len(together) != len(members) and node.mask is None:
                raise EvaluationError("a subgroup's barrier that only some of its threads reach")
            for state in together:
                state.advance()
        progress = True
    return progress


def _is_block_barrier(event: Event | None) -> bool:
    return isinstance(event, n.Barrier) and event.scope == "block"


def _pass_barrier(waiting: list[_State]) -> None:
    if any(state.event is not waiting[0].event for state in waiting):
        raise EvaluationError("threads of a block wait at different barriers")
    for state in waiting:
        state.advance()


def _exchange(node: n.Subgroup, values: dict[int, tuple[Any, ...]], lane: int) -> Any:
    """What a subgroup operation gives to the thread in `lane`; `values` are the active lanes'."""
    own = values[lane]
    if node.mask is not None:
        mask = own[-1]
        if not mask >> lane & 1:
            raise EvaluationError("a thread in a subgroup operation is not in its own mask")
        values = {key: value[:-1] for key, value in values.items() if mask >> key & 1}
        own = values[lane]
    if node.op == "active":
        return sum(1 << key for key in values)
    if node.op.startswith("match"):
        bits = {key: np.array(value[0]).tobytes() for key, value in values.items()}
        same = sum(1 << key for key in values if bits[key] == bits[lane])
        return same if node.op == "match_any" or len(set(bits.values())) == 1 else 0
    if node.op.startswith("shuffle"):
        by = own[1]
        source = {
            "shuffle": by,
            "shuffle_up": lane - by,
            "shuffle_down": lane + by,
            "shuffle_xor": lane ^ by,
        }[node.op]
        return values.get(source, own)[0]
    wanted = own[1] if node.op in n.REDUCTIONS and len(own) == 2 else (1 << 32) - 1
    active = [values[key][0] for key in sorted(values) if wanted >> key & 1]
    if node.op == "vote_all":
        return all(active)
    if node.op == "vote_any":
        return any(active)
    if node.op == "ballot":
        return sum(1 << key for key in values if values[key][0])
    if node.op in n.REDUCTIONS and not active:
        neutral = neutral_value(node)
        return None if neutral is None else neutral.value
    type = node.operands[0].type
    if node.op == "prefix_sum":
        active = [values[key][0] for key in sorted(values) if key < lane]
    total = zero(type) if node.op in ("sum", "prefix_sum") else active.pop(0)
    for value in active:
        total = combine("add" if "sum" in node.op else node.op, total, value, type)
    return total


# --- one thread ----------------------------------------------------------------------------------


class _Returned:
    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class _Frame:
    """The names of a function while it runs."""

    variables: dict[str, Any]
    memories: dict[str, Bytes]


class _Evaluator:
    def __init__(
        self,
        launch: _Launch,
        block_index: tuple[int, int, int],
        thread_index: tuple[int, int, int],
        lane: int,
        shared: dict[str, Bytes],
    ) -> None:
        self.launch = launch
        self.shared = shared
        self.builtins: dict[str, tuple[int, ...]] = {
            "thread_idx": thread_index,
            "block_idx": block_index,
            "block_dim": launch.block,
            "grid_dim": launch.grid,
            "lane": (lane,),
            "subgroup_size": (launch.subgroup_size,),
        }
        self.frame = _Frame({}, {})
        self.path: list[int] = []  # how far it is: statements of blocks, and turns of loops

    def kernel(self) -> Thread:
        launch = self.launch
        memories = launch.memories | self.shared
        memories |= owned_memories(launch.kernel.memories, "local", 0)
        self.frame = _Frame(dict(launch.parameters), memories)
        yield from self.block(launch.kernel.body)

    # Statements. A block gives None, _BREAK, _CONTINUE or a _Returned.

    def block(self, block: n.Block) -> Thread:
        self.path.append(0)
        signal = yield from self.statements(block)
        self.path.pop()
        return signal

    def statements(self, block: n.Block) -> Thread:
        for statement in block:
            self.path[-1] += 1
            match statement:
                case n.If():
                    taken = self.value(statement.condition)
                    self.path.append(not taken)
                    signal = yield from self.block(statement.then if taken else statement.otherwise)
                    self.path.pop()
                case n.For():
                    signal = yield from self.for_loop(statement)
                case n.While():
                    signal = yield from self.while_loop(statement)
                case n.Break():
                    return _BREAK
                case n.Continue():
                    return _CONTINUE
                case n.Return():
                    value = None if statement.value is None else self.value(statement.value)
                    return _Returned(value)
                case n.Barrier():
                    signal = yield statement
                case n.Subgroup():
                    given = statement.operands
                    if statement.mask is not None:
                        given = (*given, statement.mask)
                    operands = tuple(self.value(operand) for operand in given)
                    result = yield (statement, operands)
                    self.frame.variables[statement.result.name] = result
                    signal = None
                case n.CallStatement():
                    result = yield from self.call(statement.function, statement.arguments)
                    if statement.result is not None:
                        self.frame.variables[statement.result.name] = result
                    signal = None
                case _:
                    self.simple(statement)
                    signal = None
            if signal is not None:
                return signal
        return None

    def for_loop(self, loop: n.For) -> Thread:
        step = loop.step if loop.by is None else self.value(loop.by)
        indices: Sequence[int] = range(self.value(loop.start), self.value(loop.stop), step or 1)
        if not step:
            indices = ()
        if loop.parallel and self.launch.reverse:
            indices = indices[::-1]
        self.path.append(0)
        for index in indices:
            self.path[-1] += 1
            self.frame.variables[loop.variable.name] = index
            signal = yield from self.block(loop.body)
            if signal is _BREAK:
                break
            if isinstance(signal, _Returned):
                return signal
        self.path.pop()
        return None

    def while_loop(self, loop: n.While) -> Thread:
        turns = 0
        self.path.append(0)
        while self.value(loop.condition):
            self.path[-1] += 1
            signal = yield from self.block(loop.body)
            if signal is _BREAK:
                break
            if isinstance(signal, _Returned):
                return signal
            self.path[-1] += 1
            yield from self.block(loop.update)
            turns += 1
            if turns > 1_000_000:
                raise EvaluationError("a loop that does not end")
        self.path.pop()
        return None

    def call(self, name: str, arguments: tuple[n.Argument, ...]) -> Thread:
        function = self.launch.functions[name]
        variables: dict[str, Any] = {}
        memories = {
            own.name: self.shared[f"{name}/{own.name}"]
            for own in function.memories
            if own.space == "shared"
        } | owned_memories(function.memories, "local", 0)
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            if isinstance(argument, n.MemoryReference):
                memories[parameter.name] = self.frame.memories[argument.memory]
            else:
                variables[parameter.name] = self.value(argument)
        caller, self.frame = self.frame, _Frame(variables, memories)
        signal = yield from self.block(function.body)
        self.frame = caller
        return signal.value if isinstance(signal, _Returned) else None

    def simple(self, statement: n.Statement) -> None:
        match statement:
            case n.Declare():
                given = statement.value
                variable = statement.variable
                value = zero(variable.type) if given is None else self.value(given)
                self.frame.variables[variable.name] = value
            case n.Assign():
                self.assign(statement.place, self.value(statement.value))
            case n.Atomic():
                self.atomic(statement)
            case n.Print():
                self.launch.outcome.printed.append("".join(map(self.printed, statement.parts)))
            case n.Assert():
                if not self.value(statement.condition):
                    self.launch.outcome.failed.append(statement.message)
            case n.Clock():
                self.launch.cycles += 1
                self.frame.variables[statement.result.name] = self.launch.cycles
            case n.Fence() | n.Copies():
                pass
            case _:
                raise EvaluationError(f"not a statement: {statement!r}")

    def printed(self, part: str | n.Expression | n.Formatted) -> str:
        if isinstance(part, str):
            return part
        if not isinstance(part, n.Formatted):
            return str(self.value(part))
        assert isinstance(part.value.type, t.Scalar)
        values = [self.value(value) for value in (*part.stars, part.value)]
        return Spelling(conversion(part.spec), part.value.type).text(values)

    def atomic(self, atomic: n.Atomic) -> None:
        type = atomic.place.type
        assert isinstance(type, t.Scalar)
        operands = [self.value(operand) for operand in atomic.operands]
        address = self.address(atomic.place)
        old = zero(type)
        if address is not None:
            memory, offset = address
            old = memory.read(offset, type)
            if atomic.op == "cas":
                new = operands[1] if old == operands[0] else old
            elif atomic.op == "exchange":
                new = operands[0]
            elif atomic.op == "inc":
                new = old + 1 if old < operands[0] else 0
            elif atomic.op == "dec":
                new = operands[0] if old == 0 or old > operands[0] else old - 1
            else:
                new = combine(atomic.op, old, operands[0], type)
            memory.write(offset, type, new)
        if atomic.result is not None:
            self.frame.variables[atomic.result.name] = old

    # Places.

    def assign(self, place: n.Place, value: Any) -> None:
        path = path_of(place)
        if isinstance(path[0], n.Variable):
            steps = [self.step(part) for part in path[1:]]
            if any(step is None for step in steps):
                return
            name = path[0].name
            self.frame.variables[name] = replaced(self.frame.variables[name], steps, value)
            return
        address = self.address(place)
        if address is not None:
            address[0].write(address[1], place.type, value)

    def part(self, load: n.Load) -> Any:
        """A part of a variable, zero if a check fails."""
        root, *parts = path_of(load.place)
        assert isinstance(root, n.Variable)
        value = self.frame.variables[root.name]
        for part in parts:
            step = self.step(part)
            if step is None:
                return zero(load.type)
            if not 0 <= step < len(value):
                raise EvaluationError(f"item {step} of {len(value)}")
            value = value[step]
        return value

    def step(self, part: n.Place) -> int | None:
        """The position of a Member or Item in its base; None if its checks fail."""
        if isinstance(part, n.Member):
            return position_of(part.base.type, part.name)
        assert isinstance(part, n.Item)
        return self.value(part.index) if self.passes(part.checks) else None

    def passes(self, checks: tuple[n.Check, ...]) -> bool:
        return all(0 <= self.value(check.index) < self.value(check.bound) for check in checks)

    def address(self, place: n.Place) -> tuple[Bytes, int] | None:
        """The memory and byte offset of a place; None if its checks fail."""
        match place:
            case n.Element():
                if not self.passes(place.checks):
                    return None
                memory = self.frame.memories[place.memory]
                return memory, self.value(place.index) * t.size_of(place.type)
            case n.Member() | n.Item():
                base = self.address(place.base)
                position = self.step(place)
                if base is None or position is None:
                    return None
                holder = place.base.type
                if isinstance(holder, t.Struct):
                    return base[0], base[1] + t.field_offset(holder, holder.fields[position].name)
                return base[0], base[1] + position * t.size_of(place.type)
        raise EvaluationError("a variable has no address")

    # Expressions.

    def value(self, node: n.Expression) -> Any:
        match node:
            case n.Constant():
                return node.value
            case n.Variable():
                return self.frame.variables[node.name]
            case n.Builtin():
                return self.builtins[node.name][node.axis]
            case n.Binary():
                return self.binary(node)
            case n.Load() if isinstance(path_of(node.place)[0], n.Variable):
                return self.part(node)
            case n.Load():
                address = self.address(node.place)
                return (
                    zero(node.type) if address is None else address[0].read(address[1], node.type)
                )
            case n.Unary():
                return each_part(
                    lambda value, type: arithmetic.unary(node.op, value, type),
                    self.value(node.operand),
                    node.operand.type,
                )
            case n.Select():
                values = self.value(node.if_true), self.value(node.if_false)
                return values[0] if self.value(node.condition) else values[1]
            case n.Cast():
                target = scalar_of(node.type)
                return each_part(
                    lambda value, type: arithmetic.cast(value, type, target),
                    self.value(node.operand),
                    node.operand.type,
                )
            case n.Bitcast():
                return self.bitcast(node)
            case n.Intrinsic():
                return self.intrinsic(node)
            case n.Call():
                return self.pure_call(node)
            case n.Construct():
                return tuple(self.value(operand) for operand in node.operands)
            case n.Extract():
                return self.value(node.operand)[position_of(node.operand.type, node.name)]
        raise EvaluationError(f"not an expression: {node!r}")

    def binary(self, node: n.Binary) -> Any:
        left = self.value(node.left)
        if node.op in n.LOGICAL:
            decided = left if node.op == "logical_or" else not left
            return left if decided else self.value(node.right)
        return combine(node.op, left, self.value(node.right), node.left.type)

    def bitcast(self, node: n.Bitcast) -> Any:
        scratch = Bytes("a bitcast", memoryview(bytearray(t.size_of(node.type))))
        scratch.write(0, node.operand.type, self.value(node.operand))
        return scratch.read(0, node.type)

    def intrinsic(self, node: n.Intrinsic) -> Any:
        operands = tuple(self.value(operand) for operand in node.operands)
        type = node.operands[0].type
        if node.op == "dot":
            assert isinstance(type, t.Vector)
            total = zero(type.element)
            for product in combine("mul", operands[0], operands[1], type):
                total = combine("add", total, product, type.element)
            return total
        if isinstance(type, t.Vector):
            return tuple(
                exact_or_close(node.op, parts, type.element)
                for parts in zip(*operands, strict=True)
            )
        return exact_or_close(node.op, operands, scalar_of(type))

    def pure_call(self, node: n.Call) -> Any:
        generator = self.call(node.function, node.arguments)
        try:
            next(generator)
        except StopIteration as end:
            return end.value
        raise EvaluationError(f"{node.function!r} waits for other threads inside an expression")
