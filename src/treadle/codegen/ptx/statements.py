"""Statements of a kernel or of a function that is printed in place of its call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.codegen.leaves import leaf_types, must_not_speculate
from treadle.codegen.ptx import atomics, copies, matrices, memory, stages, subgroups
from treadle.codegen.ptx.accesses import Known, Scope
from treadle.codegen.ptx.emitter import unless, when
from treadle.codegen.ptx.spelling import KINDS, REGISTERS
from treadle.codegen.ptx.tensor_maps import TensorMaps
from treadle.codegen.ptx.values import Value
from treadle.codegen.ptx.variables import Variables, assigned_names, placed_names
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval
from treadle.ir.passes.choices import Choice, choice_of
from treadle.ir.traverse import root_of, statements_in, walk
from treadle.ir.types import Scalar, Void, align_of, size_of

_SCOPES = {"block": "cta", "device": "gpu", "system": "sys"}  # of fences
_LARGEST_ROW = 4  # numbers that are compared one by one
_LARGEST_CONDITION = 12  # nodes of a loop's condition that is written twice


class Statements(Variables):
    """Printing of statements. Every rule says whether what follows can be reached."""

    functions: dict[str, n.Function]
    maps: TensorMaps

    def setup(self, body: n.Block, functions: dict[str, n.Function]) -> None:
        """Prepare to print a kernel's body."""
        self.functions = functions
        self.returns: Callable[[n.Return], None] = lambda _: self.e.do("ret")
        self.loops: list[tuple[str, str]] = []  # where break and continue go
        self.locals = []
        self.changing = {}
        self.line = 0
        self.begin(body)

    def begin(self, body: n.Block) -> None:
        """Look at a body before it is printed."""
        self.scope.assigned = assigned_names(body)
        self.placed = placed_names(body)

    def block(self, body: n.Block) -> bool:
        """Print statements; what cannot be reached is left out."""
        for statement in body:
            if self.is_kernel and statement.span.line not in (0, self.line):
                self.line = statement.span.line
                self.e.comment(f"line {self.line}")
            if not getattr(self, _RULES[type(statement)])(statement):
                return False
        return True

    def region(self, body: n.Block) -> bool:
        """Print statements that may be skipped: what is computed there is not known after them."""
        before = self.known.snapshot()
        reached = self.block(body)
        self.known.restore(before)
        self.known.forget(assigned_names(body))
        return reached

    # --- branches ---------------------------------------------------------------------------------

    def branch(self, node: n.If) -> bool:
        choice = choice_of(node)
        if choice is not None:
            return self.choose(choice)
        condition = self.scalar(node.condition)
        end = self.e.new_label("end")
        if not node.otherwise:
            self.e.jump(end, unless(condition))
            self.region(node.then)
            self.e.place(end)
            return True
        otherwise = self.e.new_label("else")
        self.e.jump(otherwise, unless(condition))
        reached = self.region(node.then)
        if reached:
            self.e.jump(end)
        self.e.place(otherwise)
        reached_too = self.region(node.otherwise)
        if reached:
            self.e.place(end)
        return reached or reached_too

    def choose(self, choice: Choice) -> bool:
        """A switch: a search for the value, then the cases."""
        assert isinstance(choice.value.type, Scalar)
        value, end = self.scalar(choice.value), self.e.new_label("end")
        bodies = [(self.e.new_label("case"), body) for _, body in choice.cases]
        default = self.e.new_label("else") if choice.default else end
        places = [
            (number, label)
            for (numbers, _), (label, _) in zip(choice.cases, bodies, strict=True)
            for number in numbers
        ]
        self.search(value, KINDS[choice.value.type.name], sorted(places), default)
        reached = not choice.default
        if choice.default:
            bodies.append((default, choice.default))
        for label, body in bodies:
            self.e.place(label)
            if self.region(body):
                self.e.jump(end)
                reached = True
        if reached:
            self.e.place(end)
        return reached

    def search(self, value: str, kind: str, places: list[tuple[int, str]], default: str) -> None:
        """Go to the label of a number, by halves; to `default` if there is none."""
        e = self.e
        if len(places) > _LARGEST_ROW:
            middle, upper = len(places) // 2, e.new_label("upper")
            bound = str(places[middle][0])
            e.jump(upper, when(e.op("pred", f"setp.ge.{kind}", value, bound)))
            self.search(value, kind, places[:middle], default)
            e.place(upper)
            self.search(value, kind, places[middle:], default)
            return
        for number, label in places:
            e.jump(label, when(e.op("pred", f"setp.eq.{kind}", value, str(number))))
        e.jump(default)

    # --- loops ------------------------------------------------------------------------------------

    def repeat(self, node: n.While) -> bool:
        """A loop with its test at the end, and before it if that is short."""
        changed = assigned_names(node.body) | assigned_names(node.update)
        self.known.forget(changed)
        before = self.known.snapshot()
        again, proceed, done = (self.e.new_label(m) for m in ("loop", "next", "end"))
        forever = isinstance(node.condition, n.Constant) and node.condition.value
        twice = not forever and _is_short(node.condition)
        if twice:
            self.e.jump(done, unless(self.scalar(node.condition)))
        self.e.place(again)
        if not (forever or twice):
            self.e.jump(done, unless(self.scalar(node.condition)))
        self.loops.append((done, proceed))
        self.block(node.body)
        self.loops.pop()
        self.known.restore(before)
        if _continues(node.body):
            self.e.place(proceed)
        self.block(node.update)
        self.known.restore(before)
        if twice:
            self.e.jump(again, when(self.scalar(node.condition)))
        else:
            self.e.jump(again)
        self.e.place(done)
        self.known.restore(before)
        return True

    def count(self, node: n.For) -> bool:
        """A counted loop, tested at its end; before it only if it may not run at all."""
        e, type = self.e, node.variable.type
        assert isinstance(type, Scalar)
        kind, compute = REGISTERS[type.name], KINDS[type.name]
        start, stop = self.value(node.start), self.value(node.stop)
        last = stop.leaves[0]
        if last in self.changing:
            last = memory.copy_of(e, kind, last)
        counter = e.variable(node.variable.name, kind)
        e.move(kind, counter, start.leaves[0])
        again, proceed, done = (e.new_label(m) for m in ("loop", "next", "end"))
        if not _runs(node, start.interval, stop.interval):
            relation = "ge" if node.step > 0 else "le"
            e.jump(done, when(e.op("pred", f"setp.{relation}.{compute}", counter, last)))
        self.known.forget(assigned_names(node.body))
        before = self.known.snapshot()
        self.scope.values[node.variable.name] = Value(
            (counter,), loop_interval(node, start.interval, stop.interval)
        )
        e.place(again)
        self.loops.append((done, proceed))
        self.block(node.body)
        self.loops.pop()
        if _continues(node.body):
            e.place(proceed)
        self.known.restore(before)
        e.jump(again, when(self.step(node, counter, last, stop.interval)))
        e.place(done)
        return True

    def step(self, node: n.For, counter: str, last: str, stop: Interval | None) -> str:
        """Count on; whether the loop goes on. Where the next number might be beyond its type, the
        distance that is left decides."""
        e, type = self.e, node.variable.type
        assert isinstance(type, Scalar)
        kind, compute = REGISTERS[type.name], KINDS[type.name]
        relation = "lt" if node.step > 0 else "gt"
        step = str(node.step)
        if type.bits < 32 or abs(node.step) == 1 or _stays_inside(type, node.step, stop):
            e.ops([counter], f"add.{compute}", counter, step)
            return e.op("pred", f"setp.{relation}.{compute}", counter, last)
        ends = (last, counter) if node.step > 0 else (counter, last)
        left = e.op(kind, f"sub.{compute}", *ends)
        more = e.op("pred", f"setp.gt.u{type.bits}", left, str(abs(node.step)))
        e.ops([counter], f"add.{compute}", counter, step)
        return more

    def leave(self, node: n.Break) -> bool:
        self.e.jump(self.loops[-1][0])
        return False

    def proceed(self, node: n.Continue) -> bool:
        self.e.jump(self.loops[-1][1])
        return False

    def finish(self, node: n.Return) -> bool:
        self.returns(node)
        return False

    # --- functions --------------------------------------------------------------------------------

    def called(self, name: str, arguments: list[Value]) -> Value:
        """A function's body in place of its call."""
        function = self.functions[name]
        outer = self.scope, self.known, self.placed, self.loops, self.returns, self.is_kernel
        self.scope, self.known, self.loops, self.is_kernel = Scope(), Known(), [], False
        self.begin(function.body)
        for parameter, value in zip(function.parameters, arguments, strict=True):
            assert isinstance(parameter, n.Variable)
            self.scope.values[parameter.name] = value
        for own in function.memories:
            size = size_of(own.element) * (own.length or 0)
            self.scope.memories[own.name] = self.local_memory(own.name, size, align_of(own.element))
        result = self.body_of(function)
        self.scope, self.known, self.placed, self.loops, self.returns, self.is_kernel = outer
        return result

    def body_of(self, function: n.Function) -> Value:
        """Print a function's body; what it returns."""
        last = function.body[-1] if function.body else None
        returns = sum(isinstance(node, n.Return) for node in statements_in(function.body))
        if isinstance(last, n.Return) and last.value is not None and returns == 1:
            self.block(function.body[:-1])
            return self.value(last.value)
        if isinstance(function.result, Void):
            scalars: tuple[Scalar, ...] = ()
        else:
            scalars = leaf_types(function.result)
        kinds = [REGISTERS[scalar.name] for scalar in scalars]
        results = [self.e.keep(self.e.register(kind)) for kind in kinds]
        end = self.e.new_label("end")

        def returned(node: n.Return) -> None:
            since = len(self.e.lines)
            leaves = self.value(node.value).leaves if node.value is not None else ()
            for kind, result, leaf in zip(kinds, results, leaves, strict=True):
                if leaves.count(leaf) > 1:
                    self.e.move(kind, result, leaf)
                else:
                    self.e.settle(kind, result, leaf, since)
            self.e.jump(end)

        self.returns = returned
        self.block(function.body)
        self.e.place(end)
        return Value(tuple(results))

    def call_statement(self, node: n.CallStatement) -> bool:
        since = len(self.e.lines)
        value = self.call(node)
        if node.result is not None:
            self.receive(node.result, value, since)
        return True

    # --- other threads ----------------------------------------------------------------------------

    def atomic(self, node: n.Atomic) -> bool:
        type = node.place.type
        assert isinstance(type, Scalar)
        since = len(self.e.lines)
        guard = self.guard(node.place)
        operands = [self.scalar(operand) for operand in node.operands]
        wanted = node.result is not None

        def run(predicate: str = "") -> Value:
            address = self.address(node.place)
            old = atomics.atomic(self.e, node.op, type, address, operands, wanted, predicate)
            return Value((old,) if wanted else ())

        if guard is None:
            value = run()
        elif atomics.is_native(node.op, type, self.space_of(node.place)) and not self.must_wait(
            node.place
        ):
            value = run(guard)
        elif wanted:
            value = self.guarded(guard, type, run)
        else:
            self.only_if(guard, run)
            return True
        if node.result is not None:
            self.receive(node.result, value, since)
        return True

    def space_of(self, place: n.MemoryPlace) -> str:
        """The space of the memory that a place is in."""
        root = root_of(place)
        assert isinstance(root, n.Element)
        return self.storage(root).space

    def subgroup(self, node: n.Subgroup) -> bool:
        since = len(self.e.lines)
        if node.op in n.MATRIX_OPERATIONS:
            self.receive(node.result, Value(matrices.matrices(self, node)), since)
            return True
        operands = [self.value(operand).leaves[0] for operand in node.operands]
        self.receive(node.result, Value((subgroups.subgroup(self, node, operands),)), since)
        return True

    def assign(self, node: n.Assign) -> bool:
        return (node.later and copies.copied(self, node)) or super().assign(node)

    def copies(self, node: n.Copies) -> bool:
        copies.group(self.e, node)
        return True

    def staged(self, node: n.Staged) -> bool:
        stages.staged(self, self.maps, node)
        names = {each.name for each in node.places if isinstance(each, n.Variable)}
        self.known.forget(frozenset(names))
        return True

    def clock(self, node: n.Clock) -> bool:
        since = len(self.e.lines)
        self.receive(node.result, Value((self.e.op("b64", "mov.u64", "%clock64"),)), since)
        return True

    def barrier(self, node: n.Barrier) -> bool:
        if node.part:
            self.e.do("bar.sync", *(self.value(one).leaves[0] for one in node.part))
        elif node.scope == "block":
            self.e.do("bar.sync", "0")
        else:
            self.e.do("bar.warp.sync", subgroups.named(self, node.mask).mask)
        return True

    def fence(self, node: n.Fence) -> bool:
        order = "sc" if node.sequential else "acq_rel"
        self.e.do(f"fence.{order}.{_SCOPES[node.scope]}")
        return True

    def check_only(self, node: n.Assert) -> bool:
        return True

    def print_line(self, node: n.Print) -> bool:
        raise UnsupportedOnTarget(
            "print() on a GPU needs the instrumented kernel (ir.passes.instrument)", node.span
        )


def loop_interval(node: n.For, start: Interval | None, stop: Interval | None) -> Interval | None:
    """Where a loop's variable lies."""
    if start is None or stop is None:
        return None
    if node.step > 0:
        return start[0], max(stop[1] - 1, start[0])
    return min(stop[0] + 1, start[1]), start[1]


def _runs(node: n.For, start: Interval | None, stop: Interval | None) -> bool:
    """Whether a loop certainly runs at least once."""
    if start is None or stop is None:
        return False
    return start[1] < stop[0] if node.step > 0 else start[0] > stop[1]


def _stays_inside(type: Scalar, step: int, stop: Interval | None) -> bool:
    """Whether one step from before the stop cannot leave the type."""
    if stop is None:
        return False
    low = -(1 << type.bits - 1) if type.is_signed else 0
    high = (1 << type.bits - type.is_signed) - 1
    return low <= stop[0] + step and stop[1] + step <= high


def _is_short(condition: n.Expression) -> bool:
    parts = list(walk(condition))
    return len(parts) <= _LARGEST_CONDITION and not must_not_speculate(condition)


def _continues(block: n.Block) -> bool:
    """Whether a `continue` in the block belongs to the loop that the block is the body of."""
    return any(
        isinstance(statement, n.Continue)
        or (
            isinstance(statement, n.If)
            and (_continues(statement.then) or _continues(statement.otherwise))
        )
        for statement in block
    )


_RULES: dict[type[Any], str] = {
    n.Declare: "declare",
    n.Assign: "assign",
    n.If: "branch",
    n.For: "count",
    n.While: "repeat",
    n.Break: "leave",
    n.Continue: "proceed",
    n.Return: "finish",
    n.Barrier: "barrier",
    n.Fence: "fence",
    n.Atomic: "atomic",
    n.Subgroup: "subgroup",
    n.Clock: "clock",
    n.Copies: "copies",
    n.Staged: "staged",
    n.CallStatement: "call_statement",
    n.Print: "print_line",
    n.Assert: "check_only",
}
