"""A kernel split at its barriers, into the units that loop fission runs one after another.

A block of statements becomes a list of units. A `Region` is a sequence of statements that every
thread runs without waiting for another; it will become a loop over threads. Control flow with
barriers inside is uniform: it becomes a `Control`, executed once for all threads, with units
inside. A statement that computes only values shared by all threads is a `Once`:

    t[k] = x[i]                    Region
    n = 128                        Once (uniform, and read in several regions)
    while n > 0:                   Control
      barrier                        Sync
      if k < n: t[k] += t[k + n]     Region
      n = n / 2                      Once

A kernel is split at two levels: the block's threads at block barriers, and within a region that
holds warp operations, the lanes of each warp at those (`Region.inner`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from treadle.ir import nodes as n
from treadle.ir.traverse import root_of, statements_in, walk


@dataclass(eq=False, slots=True)
class Region:
    """Statements for every thread, without a barrier among them."""

    statements: list[n.Statement]
    inner: list[Unit] | None = None  # the units of one warp, if warp operations are inside
    warp: n.Variable | None = None  # the number of the warp, where there is `inner`


@dataclass(eq=False, slots=True)
class Once:
    """Statements executed once for all threads: uniform computations, serial loops over lanes."""

    statements: tuple[n.Statement, ...]


@dataclass(eq=False, slots=True)
class Sync:
    """A barrier between regions."""

    statement: n.Barrier


@dataclass(eq=False, slots=True)
class Jump:
    """A break or continue that all threads take, of a loop that is a Control."""

    statement: n.Break | n.Continue


@dataclass(eq=False, slots=True)
class Control:
    """An if or a loop whose control flow is uniform; `parts` are the units of its blocks."""

    statement: n.If | n.For | n.While
    parts: tuple[list[Unit], ...]


Unit = Region | Once | Sync | Jump | Control


def cut(block: n.Block, divider: n.Barrier, is_shared: Callable[[n.Statement], bool]) -> list[Unit]:
    """The units of a block that all threads reach, split at `divider` barriers.

    `is_shared` says which statements are a Once. They run before the region that they are in,
    or after the part of it that was to see the old values.
    """
    units: list[Unit] = []
    pending: list[n.Statement] = []

    def flush() -> None:
        if pending:
            units.append(Region(list(pending)))
            pending.clear()

    for statement in block:
        if statement == divider and isinstance(statement, n.Barrier):
            flush()
            units.append(Sync(statement))
        elif isinstance(statement, (n.Break, n.Continue)):
            flush()
            units.append(Jump(statement))
        elif is_shared(statement):
            if names_in(pending) & assigned_in((statement,)):
                flush()
            units.append(Once((statement,)))
        elif isinstance(statement, (n.If, n.For, n.While)) and _is_common(statement, divider):
            flush()
            parts = tuple(cut(part, divider, is_shared) for part in blocks_of(statement))
            units.append(Control(statement, parts))
        else:
            pending.append(statement)
    flush()
    return units


def _is_common(statement: n.If | n.For | n.While, divider: n.Barrier) -> bool:
    """Whether the control flow of a statement must be uniform: it holds a barrier, or a jump."""
    return leaves_loop((statement,)) or any(node == divider for node in statements_in((statement,)))


def blocks_of(statement: n.If | n.For | n.While) -> tuple[n.Block, ...]:
    """The blocks inside a control statement."""
    match statement:
        case n.If():
            return (statement.then, statement.otherwise)
        case n.For():
            return (statement.body,)
    return (statement.body, statement.update)


def leaves_loop(block: n.Block) -> bool:
    """Whether a block may leave the loop around it, or the current iteration."""
    for statement in block:
        match statement:
            case n.Break() | n.Continue():
                return True
            case n.If(_, then, otherwise):
                if leaves_loop(then) or leaves_loop(otherwise):
                    return True
    return False


def names_in(part: object) -> set[str]:
    """The variables that a node, or the statements of a sequence, mention."""
    roots = part if isinstance(part, (list, tuple)) else (part,)
    return {node.name for root in roots for node in walk(root) if isinstance(node, n.Variable)}


def memories_in(part: object) -> set[str]:
    """The memories that a node, or the statements of a sequence, mention."""
    roots = part if isinstance(part, (list, tuple)) else (part,)
    return {node.memory for root in roots for node in walk(root) if isinstance(node, n.Element)}


def assigned_in(block: n.Block | list[n.Statement]) -> set[str]:
    """The variables that statements declare, assign or receive results in."""
    names: set[str] = set()
    for node in statements_in(tuple(block)):
        match node:
            case n.Declare() | n.For():
                names.add(node.variable.name)
            case n.Assign():
                root = root_of(node.place)
                if isinstance(root, n.Variable):
                    names.add(root.name)
            case n.Atomic() | n.CallStatement() | n.Subgroup() | n.Clock():
                if node.result is not None:
                    names.add(node.result.name)
    return names


# --- the order and nesting of units --------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Leaf:
    """A unit (or the condition of a Control) that mentions variables, and its position."""

    unit: Unit
    order: int
    around: tuple[Control, ...]  # the control flow around it, outermost first
    region: Region | None  # the block region it is in, if it is a unit of a warp
    names: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    memories: set[str] = field(default_factory=set)
    first_uses: dict[str, n.Statement] = field(default_factory=dict)  # of variables, in a region

    @property
    def loops(self) -> tuple[Control, ...]:
        """The loops around it."""
        return tuple(c for c in self.around if not isinstance(c.statement, n.If))


def leaves_of(units: list[Unit]) -> list[Leaf]:
    """All leaves in order of execution, those of warps in place of their region."""
    found: list[Leaf] = []
    for unit, around, region in _visit(units, (), None):
        leaf = Leaf(unit, len(found), around, region)
        match unit:
            case Region(statements):
                _note(leaf, statements)
            case Once(statements=statements):
                _note(leaf, list(statements))
            case Control(statement):
                head = _head(statement)
                leaf.names = names_in(head)
                leaf.memories = memories_in(head)
                if isinstance(statement, n.For):
                    leaf.names.add(statement.variable.name)
                    leaf.assigned = leaf.declared = {statement.variable.name}
        found.append(leaf)
    return found


def _note(leaf: Leaf, statements: list[n.Statement]) -> None:
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, n.Variable):
                leaf.first_uses.setdefault(node.name, statement)
            elif isinstance(node, n.Element):
                leaf.memories.add(node.memory)
    leaf.names = set(leaf.first_uses)
    leaf.assigned = assigned_in(statements)
    leaf.declared = {
        node.variable.name
        for node in statements_in(tuple(statements))
        if isinstance(node, (n.Declare, n.For))
    }


def _head(statement: n.If | n.For | n.While) -> list[n.Expression]:
    if isinstance(statement, n.For):
        return [statement.start, statement.stop]
    return [statement.condition]


def _visit(
    units: list[Unit], around: tuple[Control, ...], region: Region | None
) -> Iterator[tuple[Unit, tuple[Control, ...], Region | None]]:
    for unit in units:
        if isinstance(unit, Region) and unit.inner is not None:
            yield from _visit(unit.inner, around, unit)
        elif isinstance(unit, Control):
            inside = (*around, unit)
            # The condition of a while loop is evaluated in every iteration.
            yield unit, inside if isinstance(unit.statement, n.While) else around, region
            for part in unit.parts:
                yield from _visit(part, inside, region)
        elif isinstance(unit, (Region, Once)):
            yield unit, around, region
