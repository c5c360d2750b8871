"""Statements of a function whose loops LLVM vectorizes or leaves scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.codegen.leaves import holds_array, leaf_range, leaf_types
from treadle.codegen.llvm import arithmetic, atomics, memory
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.expressions import Expressions
from treadle.codegen.llvm.memory import Storage
from treadle.codegen.llvm.spelling import constant, value_type
from treadle.codegen.llvm.values import Value, zero
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval
from treadle.ir.passes.choices import Choice, choice_of
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import Scalar, Type, align_of, size_of


def assigned_names(body: n.Block) -> frozenset[str]:
    """The variables that something writes after they were declared."""
    names: set[str] = set()
    for node in walk(body):
        match node:
            case n.Assign():
                root = root_of(node.place)
                if isinstance(root, n.Variable):
                    names.add(root.name)
            case (
                n.Atomic(result=n.Variable() as result)
                | n.Clock(result=n.Variable() as result)
                | n.CallStatement(result=n.Variable() as result)
            ):
                names.add(result.name)
    return frozenset(names)


class Statements(Expressions):
    """Printing of statements. Every rule says whether what follows can be reached."""

    assigned: frozenset[str] = frozenset()
    returns: Callable[[n.Return], None]  # how a `return` ends this thread or function
    # Prints a parallel loop many lanes at a time, and says whether that is possible.
    print_lanes: Callable[[Statements, n.For], bool] | None = None

    def setup(self, body: n.Block, returns: Callable[[n.Return], None]) -> None:
        """Prepare to print a function's body."""
        self.assigned = assigned_names(body)
        self.returns = returns
        self.loops: list[tuple[str, str]] = []  # where break and continue go
        self.groups: list[str] = []  # access groups of the parallel loops around

    def block(self, body: n.Block) -> bool:
        """Print statements; what cannot be reached is left out."""
        return all(getattr(self, _RULES[type(statement)])(statement) for statement in body)

    # --- variables --------------------------------------------------------------------------------

    def declare(self, node: n.Declare) -> bool:
        type = node.variable.type
        self.declare_value(
            node.variable, self.value(node.value) if node.value is not None else zero(type)
        )
        return True

    def declare_value(self, variable: n.Variable, value: Value) -> None:
        """Give a name a value: for good, unless something assigns to it later."""
        scope = self.scope
        if holds_array(variable.type):
            if variable.name not in scope.frames:
                scope.frames[variable.name] = self.frame_memory(variable.type)
            memory.store(self.e, self.frame(variable), variable.type, value, "")
        elif variable.name not in self.assigned:
            scope.values[variable.name] = value
        else:
            if variable.name not in scope.slots:
                scope.slots[variable.name] = tuple(
                    self.e.alloca(value_type(scalar)) for scalar in leaf_types(variable.type)
                )
            self.set_leaves(variable, 0, value)

    def frame_memory(self, type: Type, count: int = 1) -> Storage:
        """Memory in the function's frame."""
        size = size_of(type) * count
        alignment = 64 if size >= 64 else max(align_of(type), 16)
        pointer = self.e.alloca(f"[{size} x i8]", alignment)
        return Storage(pointer, grouped=False, atomic=False)

    def set_leaves(self, variable: n.Variable, start: int, value: Value) -> None:
        """Store leaves of a variable, from leaf `start` on."""
        slots = self.scope.slots.get(variable.name)
        if slots is None:
            raise CompileError(
                f"`{variable.name}` is assigned before it is declared", variable.span
            )
        types = leaf_types(variable.type)
        for i, leaf in enumerate(value.leaves, start):
            self.e.do(f"store {value_type(types[i])} {leaf}, ptr {slots[i]}")

    def assign(self, node: n.Assign) -> bool:
        place, root = node.place, root_of(node.place)
        if isinstance(root, n.Variable) and not holds_array(root.type):
            self.set_leaves(root, leaf_start(place), self.value(node.value))
            return True
        guard = self.guard(place)
        value = self.value(node.value)
        if guard is None:
            self.put(place, value)
        else:
            self.when(guard.leaves[0], lambda: self.put(place, value))
        return True

    def put(self, place: n.Place, value: Value) -> None:
        """Store a value at a place in memory, without its checks."""
        address = self.address(place)
        memory.store(self.e, address, place.type, value, self.marks(address.storage))

    def when(self, condition: str, run: Callable[[], None]) -> None:
        """Do something only if a condition holds."""
        inside, join = self.e.new_label(), self.e.new_label()
        self.e.branch(condition, inside, join)
        self.e.place(inside)
        run()
        self.e.jump(join)
        self.e.place(join)

    def atomic(self, node: n.Atomic) -> bool:
        type = node.place.type
        assert isinstance(type, Scalar)
        guard = self.guard(node.place)
        operands = [self.scalar(operand) for operand in node.operands]

        def run() -> Value:
            address = self.address(node.place)
            pointer = memory.byte_pointer(self.e, address)
            return Value(
                (atomics.atomic(self.e, node.op, type, pointer, operands, address.storage),)
            )

        old = run() if guard is None else self.guarded(guard.leaves[0], type, run)
        if node.result is not None:
            self.set_leaves(node.result, 0, old)
        return True

    # --- control flow -----------------------------------------------------------------------------

    def branch(self, node: n.If) -> bool:
        choice = choice_of(node)
        if choice is not None:
            return self.choose_case(choice, self.scalar(choice.value))
        condition = self.scalar(node.condition)
        then, join = self.e.new_label(), self.e.new_label()
        otherwise = self.e.new_label() if node.otherwise else join
        self.e.branch(condition, then, otherwise)
        reached = not node.otherwise
        for label, body in ((then, node.then), (otherwise, node.otherwise)):
            if label == join:
                continue
            self.e.place(label)
            if self.block(body):
                self.e.jump(join)
                reached = True
        if reached:
            self.e.place(join)
        return reached

    def choose_case(self, choice: Choice, value: str) -> bool:
        """A switch."""
        join, bodies = self.switch(choice, value)
        reached = not choice.default
        for label, body in bodies:
            self.e.place(label)
            if self.block(body):
                self.e.jump(join)
                reached = True
        if reached:
            self.e.place(join)
        return reached

    def switch(self, choice: Choice, value: str) -> tuple[str, list[tuple[str, n.Block]]]:
        """The instruction; the label behind it, and the labels and blocks to print before that."""
        type = choice.value.type
        assert isinstance(type, Scalar)
        join, llvm = self.e.new_label(), value_type(type)
        bodies = [(self.e.new_label(), body) for _, body in choice.cases]
        labels = [
            (f"{llvm} {constant(type, number)}", label)
            for (numbers, _), (label, _) in zip(choice.cases, bodies, strict=True)
            for number in numbers
        ]
        default = join
        if choice.default:
            default = self.e.new_label()
            bodies.append((default, choice.default))
        self.e.switch(f"{llvm} {value}", default, labels)
        return join, bodies

    def repeat(self, node: n.While) -> bool:
        test, body, again, done = (self.e.new_label() for _ in range(4))
        self.e.jump(test)
        self.e.place(test)
        self.e.branch(self.scalar(node.condition), body, done)
        self.e.place(body)
        self.loops.append((done, again))
        if self.block(node.body):
            self.e.jump(again)
        self.loops.pop()
        self.e.place(again)
        if self.block(node.update):
            self.e.jump(test)
        self.e.place(done)
        return True

    def count(self, node: n.For) -> bool:
        """A counted loop. A step other than 1 counts its iterations, so that nothing can wrap."""
        if node.parallel and self.print_lanes is not None and self.print_lanes(self, node):
            return True
        type = node.variable.type
        assert isinstance(type, Scalar)
        llvm = value_type(type)
        start, stop = self.value(node.start), self.value(node.stop)
        interval = loop_interval(node, start.interval, stop.interval)
        first, last = start.leaves[0], stop.leaves[0]
        by_iterations = abs(node.step) != 1
        limit = trip_count(self.e, node, start, stop).leaves[0] if by_iterations else last
        from_, step = ("0", 1) if by_iterations else (first, node.step)
        test, body, again, done = (self.e.new_label() for _ in range(4))
        before = self.e.current
        self.e.jump(test)
        self.e.place(test)
        counter, following = f"%i{test}", f"%n{test}"
        self.e.do(f"{counter} = phi {llvm} [ {from_}, %{before} ], [ {following}, %{again} ]")
        sign = "s" if type.is_signed and not by_iterations else "u"
        relation = f"{sign}lt" if step > 0 else f"{sign}gt"
        self.e.branch(self.e.op(f"icmp {relation} {llvm} {counter}, {limit}"), body, done)
        self.e.place(body)
        index = counter
        if by_iterations:
            scaled = self.e.op(f"mul {llvm} {counter}, {constant(type, node.step)}")
            index = self.e.op(f"add {llvm} {scaled}, {first}")
        self.scope.values[node.variable.name] = Value((index,), 1, interval)
        self.loop_body(node, done, again)
        self.e.place(again)
        flags = " nsw" if type.is_signed and not by_iterations else " nuw" if step > 0 else ""
        self.e.do(f"{following} = add{flags} {llvm} {counter}, {constant(type, step)}")
        self.e.do(f"br label %{test}{self.loop_marks(node)}")
        if node.parallel:
            self.leave_parallel()
        self.e.place(done)
        return True

    def loop_body(self, node: n.For, done: str, again: str) -> None:
        if node.parallel:
            self.groups.append(self.e.module.node("", distinct=True))
            self.mark_group()
        self.loops.append((done, again))
        outer = self.returns
        if node.parallel:
            # A `return` ends one thread, which is one iteration of the innermost parallel loop.
            self.returns = lambda _: self.e.jump(again)
        if self.block(node.body):
            self.e.jump(again)
        self.returns = outer
        self.loops.pop()

    def mark_group(self) -> None:
        """Mark accesses from here on as those of the parallel loops around."""
        if not self.groups:
            self.group = ""
        elif len(self.groups) == 1:
            self.group = f", !llvm.access.group {self.groups[0]}"
        else:
            every = self.e.module.node(", ".join(self.groups))
            self.group = f", !llvm.access.group {every}"

    def leave_parallel(self) -> None:
        self.groups.pop()
        self.mark_group()

    def loop_marks(self, node: n.For) -> str:
        """The metadata of a loop: what it promises, and what is asked for."""
        module = self.e.module
        properties: list[str] = []
        if node.parallel:
            properties.append(module.node(f'!"llvm.loop.parallel_accesses", {self.groups[-1]}'))
        if node.unroll:
            properties.append(module.node('!"llvm.loop.unroll.enable"'))
        if not properties:
            return ""
        loop = module.node(", ".join(("{self}", *properties)), distinct=True)
        return f", !llvm.loop {loop}"

    def leave(self, node: n.Break) -> bool:
        self.e.jump(self.loops[-1][0])
        return False

    def proceed(self, node: n.Continue) -> bool:
        self.e.jump(self.loops[-1][1])
        return False

    def finish(self, node: n.Return) -> bool:
        self.returns(node)
        return False

    # --- other statements -------------------------------------------------------------------------

    def fence(self, node: n.Fence) -> bool:
        if node.scope != "block":  # one thread runs a block: it sees its own writes anyway
            self.e.do("fence seq_cst" if node.sequential else "fence acq_rel")
        return True

    def clock(self, node: n.Clock) -> bool:
        self.set_leaves(
            node.result, 0, Value((self.e.intrinsic("readcyclecounter", "i64", (), ()),))
        )
        return True

    def check_only(self, node: n.Assert) -> bool:
        return True

    def unexpected(self, node: n.Statement) -> bool:
        raise CompileError(
            f"a {type(node).__name__} reached the LLVM printer: passes replace it before a kernel "
            "is printed",
            node.span,
        )

    def print_line(self, node: n.Print) -> bool:
        raise UnsupportedOnTarget(
            "print() on the cpu needs the instrumented kernel (ir.passes.instrument)", node.span
        )


def trip_count(e: Emitter, node: n.For, start: Value, stop: Value) -> Value:
    """The trip count of a loop, unsigned: the distance over the step, rounded up. `start` and
    `stop` have one width."""
    type = node.variable.type
    assert isinstance(type, Scalar)
    width = start.width
    llvm, zero, one = (value_type(type, width), constant(type, 0, width), constant(type, 1, width))
    low, high = (start, stop) if node.step > 0 else (stop, start)
    a, b = low.leaves[0], high.leaves[0]
    relation = "slt" if type.is_signed else "ult"
    runs = e.op(f"icmp {relation} {llvm} {a}, {b}")
    distance = e.op(f"sub {llvm} {b}, {a}")
    count = distance
    if abs(node.step) != 1:
        before = e.op(f"sub {llvm} {distance}, {one}")
        whole = e.op(f"udiv {llvm} {before}, {constant(type, abs(node.step), width)}")
        count = e.op(f"add {llvm} {whole}, {one}")
    return Value((arithmetic.select(e, runs, llvm, count, zero, width),), width)


def leaf_start(place: n.Place) -> int:
    """The first leaf, in its variable, of a place without arrays."""
    start = 0
    while isinstance(place, n.Member):
        start += leaf_range(place.base.type, place.name)[0]
        place = place.base
    return start


def loop_interval(node: n.For, start: Interval | None, stop: Interval | None) -> Interval | None:
    """Where a loop's variable lies."""
    if start is None or stop is None:
        return None
    if node.step > 0:
        return start[0], max(stop[1] - 1, start[0])
    return min(stop[0] + 1, start[1]), start[1]


_RULES: dict[type[Any], str] = {
    n.Declare: "declare",
    n.Assign: "assign",
    n.If: "branch",
    n.For: "count",
    n.While: "repeat",
    n.Break: "leave",
    n.Continue: "proceed",
    n.Return: "finish",
    n.Barrier: "unexpected",
    n.Fence: "fence",
    n.Atomic: "atomic",
    n.Subgroup: "unexpected",
    n.Clock: "clock",
    n.CallStatement: "unexpected",
    n.Print: "print_line",
    n.Assert: "check_only",
}
