"""Variables of a kernel or of a function that is printed in place of its call.

A variable that is never assigned is a name for the operands of its value. The others are registers,
one for each scalar. Memory of the thread holds only those with arrays of which an item is assigned
by a number that is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from treadle.codegen.leaves import holds_array, leaf_range, leaf_types
from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import unless
from treadle.codegen.ptx.expressions import Expressions
from treadle.codegen.ptx.memory import Storage
from treadle.codegen.ptx.spelling import REGISTERS, is_literal
from treadle.codegen.ptx.values import Value, zero
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval
from treadle.ir.traverse import root_of, statements_in
from treadle.ir.types import Scalar, align_of, size_of


def assigned_names(body: n.Block) -> frozenset[str]:
    """The variables that something writes after they were declared."""
    names: set[str] = set()
    for node in statements_in(body):
        match node:
            case n.Assign():
                root = root_of(node.place)
                if isinstance(root, n.Variable):
                    names.add(root.name)
            case (
                n.Atomic(result=n.Variable() as result)
                | n.Subgroup(result=n.Variable() as result)
                | n.Clock(result=n.Variable() as result)
                | n.CallStatement(result=n.Variable() as result)
            ):
                names.add(result.name)
            case n.Staged():
                names.update(each.name for each in node.places if isinstance(each, n.Variable))
    return frozenset(names)


def placed_names(body: n.Block) -> frozenset[str]:
    """The variables with arrays of which an item is assigned whose number is not known."""
    names: set[str] = set()
    for node in statements_in(body):
        if not isinstance(node, n.Assign):
            continue
        root = root_of(node.place)
        if isinstance(root, n.Variable) and holds_array(root.type):
            place = node.place
            while isinstance(place, (n.Member, n.Item)):
                if isinstance(place, n.Item) and not _is_known(place):
                    names.add(root.name)
                place = place.base
    return frozenset(names)


def _is_known(item: n.Item) -> bool:
    return isinstance(item.index, n.Constant) and not item.checks


class Variables(Expressions):
    """Printing of declarations and assignments."""

    placed: frozenset[str] = frozenset()
    is_kernel = True
    locals: list[str]  # declarations of local memories
    changing: dict[str, str]  # registers of variables that are assigned: their type
    ranges: Mapping[str, Interval]  # of variables, beyond what follows from their values

    def declare(self, node: n.Declare) -> bool:
        since = len(self.e.lines)
        value = (
            self.value(node.value) if node.value is not None else zero(self.e, node.variable.type)
        )
        self.declare_value(node.variable, value, since)
        if node.value is not None and node.variable.name in self.scope.values:
            self.remember_split(node.variable, node.value)
        return True

    def declare_value(self, variable: n.Variable, value: Value, since: int) -> None:
        """Give a name a value: for good, unless something assigns to it later."""
        scope, name = self.scope, variable.name
        if name in self.placed:
            if name not in scope.frames:
                scope.frames[name] = self.local_memory(
                    name, size_of(variable.type), align_of(variable.type)
                )
            memory.store(self.e, self.address(variable), variable.type, value)
        elif name in scope.assigned:
            if name not in scope.registers:
                scope.registers[name] = self.new_registers(variable)
            self.set_leaves(variable, 0, value, since)
            self.known.forget(frozenset((name,)))
        else:
            scope.values[name] = self.fixed(variable, value, since)

    def new_registers(self, variable: n.Variable) -> tuple[str, ...]:
        """Registers for a variable, named after it."""
        kinds = [(name, REGISTERS[scalar.name]) for name, scalar in _leaf_names(variable)]
        registers = tuple(self.e.variable(name, kind) for name, kind in kinds)
        self.changing.update(
            (register, kind) for register, (_, kind) in zip(registers, kinds, strict=True)
        )
        return registers

    def fixed(self, variable: n.Variable, value: Value, since: int) -> Value:
        """A value that no later assignment changes, in registers named after its variable where
        it was made just now."""
        leaves = []
        for (name, scalar), leaf in zip(_leaf_names(variable), value.leaves, strict=True):
            kind = REGISTERS[scalar.name]
            if leaf in self.changing:
                leaf = memory.copy_of(self.e, kind, leaf)
            elif self.is_kernel and value.leaves.count(leaf) == 1:
                leaf = self.e.named(kind, name, leaf, since)
            leaves.append(leaf)
        return Value(tuple(leaves), self.ranges.get(variable.name, value.interval))

    def remember_split(self, variable: n.Variable, value: n.Expression) -> None:
        """Note that a variable is something else and a number, if that does not change."""
        if not (isinstance(value, n.Binary) and value.op in ("add", "sub")):
            return
        if not (isinstance(variable.type, Scalar) and variable.type.is_integer):
            return
        rest, number = self.split(value)
        if rest is None or not number or isinstance(rest, n.Binary):
            return
        if isinstance(rest, n.Variable) and rest.name not in self.scope.assigned:
            self.scope.splits[variable.name] = rest, number

    def local_memory(self, name: str, size: int, alignment: int) -> Storage:
        """New memory of this thread."""
        unique = self.e.module.names.fresh(name)
        self.locals.append(f"    .local .align {max(alignment, 16)} .b8 {unique}[{size}];")
        return Storage("local", unique)

    def set_leaves(self, variable: n.Variable, start: int, value: Value, since: int) -> None:
        """Assign leaves of a variable, from leaf `start` on."""
        registers = self.scope.registers.get(variable.name)
        if registers is None:
            raise CompileError(
                f"`{variable.name}` is assigned before it is declared", variable.span
            )
        targets = registers[start : start + len(value.leaves)]
        kinds = [REGISTERS[scalar.name] for scalar in leaf_types(variable.type)][start:]
        leaves = value.leaves
        crossing = any(
            leaf in targets and leaf != target for leaf, target in zip(leaves, targets, strict=True)
        )
        if crossing:  # all are read before any is written
            leaves = tuple(
                leaf if is_literal(leaf) else memory.copy_of(self.e, kind, leaf)
                for kind, leaf in zip(kinds, leaves, strict=False)
            )
        for kind, target, leaf in zip(kinds, targets, leaves, strict=False):
            if crossing or leaves.count(leaf) > 1:
                self.e.move(kind, target, leaf)
            else:
                self.e.settle(kind, target, leaf, since)

    def receive(self, variable: n.Variable, value: Value, since: int) -> None:
        """Assign a statement's result."""
        self.set_leaves(variable, 0, value, since)
        self.known.forget(frozenset((variable.name,)))

    def assign(self, node: n.Assign) -> bool:
        place, root = node.place, root_of(node.place)
        since = len(self.e.lines)
        if isinstance(root, n.Variable) and root.name not in self.placed:
            self.set_leaves(root, leaf_start(place), self.value(node.value), since)
            self.known.forget(frozenset((root.name,)))
            return True
        guard = self.guard(place)
        value = self.value(node.value)
        if guard is not None and self.must_wait(place):
            self.only_if(guard, lambda: self.put(place, value))
        else:
            self.put(place, value, guard or "")
        return True

    def put(self, place: n.Place, value: Value, predicate: str = "") -> None:
        """Store a value at a place in memory, if a predicate holds."""
        memory.store(self.e, self.address(place), place.type, value, predicate)

    def only_if(self, condition: str, run: Callable[[], object]) -> None:
        """Do something only if a condition holds."""
        skip = self.e.new_label()
        self.e.jump(skip, unless(condition))
        before = self.known.snapshot()
        run()
        self.known.restore(before)
        self.e.place(skip)


def _leaf_names(variable: n.Variable) -> list[tuple[str, Scalar]]:
    """A name for each scalar of a variable."""
    scalars = leaf_types(variable.type)
    if len(scalars) == 1:
        return [(variable.name, scalars[0])]
    if len(scalars) <= 4 and not holds_array(variable.type):
        return [(f"{variable.name}.{c}", s) for c, s in zip("xyzw", scalars, strict=False)]
    return [(f"{variable.name}.{i}", scalar) for i, scalar in enumerate(scalars)]


def leaf_start(place: n.Place) -> int:
    """The first leaf, in its variable, of a place whose items are known by number."""
    start = 0
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Member):
            start += leaf_range(place.base.type, place.name)[0]
        else:
            assert isinstance(place.index, n.Constant)
            start += int(place.index.value) * len(leaf_types(place.type))
        place = place.base
    return start
