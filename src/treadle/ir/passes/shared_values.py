"""Shared values: variables that are computed once for all threads of a block, or of a warp.

A variable is shared if it is uniform, assigned only where all threads pass, and mentioned in more
than one region or in a condition of uniform control flow. Uniform variables of a single region stay
in it: a compiler hoists them out of the loop over threads by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.ir import nodes as n
from treadle.ir.passes.regions import (
    Control,
    Leaf,
    Once,
    Region,
    Unit,
    assigned_in,
    cut,
    leaves_of,
    names_in,
)
from treadle.ir.passes.threads import Threads
from treadle.ir.passes.uniformity import Level, Uniformity, written_memories
from treadle.ir.passes.warps import CUT, WarpArrays
from treadle.ir.traverse import root_of, statements_in, walk


def split_at_barriers(
    kernel: n.Kernel, uniformity: Uniformity | None, threads: Threads, warps: WarpArrays
) -> tuple[list[Unit], set[str]]:
    """The units of a kernel, and its plain variables: those that all threads share.

    `uniformity` may be missing for a kernel without barriers.
    """
    plain = {parameter.name for parameter in kernel.parameters}
    if uniformity is None:
        return cut(kernel.body, n.Barrier("block"), lambda _: False), plain
    known = uniformity.variables.keys()
    chooser = _Chooser(kernel, uniformity, {id(statement) for statement in warps.once})
    units, plain = chooser.choose(
        kernel.body, n.Barrier("block"), Level.BLOCK, names_in(kernel.body) & known, plain
    )
    outer = leaves_of(units)
    for region in _regions(units):
        if CUT not in statements_in(tuple(region.statements)):
            continue
        elsewhere = {name for leaf in outer if leaf.unit is not region for name in leaf.names}
        candidates = (names_in(region.statements) & known) - elsewhere
        region.warp = threads.new_warp()
        region.inner, plain = chooser.choose(
            tuple(region.statements), CUT, Level.WARP, candidates, plain | warps.plain
        )
    return units, plain | warps.plain


def _regions(units: list[Unit]) -> list[Region]:
    found: list[Region] = []
    for unit in units:
        if isinstance(unit, Region):
            found.append(unit)
        elif isinstance(unit, Control):
            for part in unit.parts:
                found.extend(_regions(part))
    return found


class _Chooser:
    """Finds the variables to compute once for all threads of a block or warp."""

    def __init__(self, kernel: n.Kernel, uniformity: Uniformity, forced: set[int]) -> None:
        self.uniformity = uniformity
        self.forced = forced  # ids of statements that are executed once in any case
        self.readable = {b.name for b in kernel.buffers} - written_memories(kernel)

    def choose(
        self,
        block: n.Block,
        divider: n.Barrier,
        level: Level,
        candidates: set[str],
        plain: set[str],
    ) -> tuple[list[Unit], set[str]]:
        """The units of a block, and all variables that are plain (of no single thread) in it."""
        units = cut(block, divider, self._selector(set(), level, plain))
        plain = plain | _loop_variables(units)
        variables = self.uniformity.variables
        able = {name for name in candidates - plain if variables[name].level <= level}
        able = self._assigned_for_all(units, able, level, plain)
        shared: set[str] = set()
        while True:
            wanted = self._wanted(leaves_of(units), able, shared, level, plain)
            if wanted == shared:
                return units, plain | shared
            shared = wanted
            units = cut(block, divider, self._selector(shared, level, plain))

    def _selector(
        self, shared: set[str], level: Level, plain: set[str]
    ) -> Callable[[n.Statement], bool]:
        def is_shared(statement: n.Statement) -> bool:
            if id(statement) in self.forced:
                return level == Level.WARP
            return bool(assigned_in((statement,)) & shared) and self._computes(
                statement, shared, level, plain, False
            )

        return is_shared

    def _assigned_for_all(
        self, units: list[Unit], able: set[str], level: Level, plain: set[str]
    ) -> set[str]:
        """Those that are only assigned where all threads pass, from values of the same kind."""
        statements = [statement for region in _regions(units) for statement in region.statements]
        while True:
            lost: set[str] = set()
            for statement in statements:
                if not self._computes(statement, able, level, plain, False):
                    lost |= assigned_in((statement,)) & able
            if not lost:
                return able
            able = able - lost

    def _wanted(
        self,
        leaves: list[Leaf],
        able: set[str],
        shared: set[str],
        level: Level,
        plain: set[str],
    ) -> set[str]:
        """Those that more than one leaf mentions, or that decide where all threads go."""
        wanted = set(shared)
        for name in able:
            places = [leaf for leaf in leaves if name in leaf.names]
            if len(places) > 1 or any(isinstance(leaf.unit, Control) for leaf in places):
                wanted.add(name)
        statements = [s for leaf in leaves if isinstance(leaf.unit, (Region, Once))
                      for s in leaf.unit.statements]  # fmt: skip
        while True:
            before = len(wanted)
            for statement in statements:
                assigned = assigned_in((statement,)) & able
                if assigned & wanted and self._computes(statement, able, level, plain, False):
                    wanted |= names_in(statement) & able
            if len(wanted) == before:
                return wanted

    def _computes(
        self, statement: n.Statement, able: set[str], level: Level, plain: set[str], inside: bool
    ) -> bool:
        """Whether a statement only computes variables of `able`, the same for all threads."""

        def same(expression: n.Expression | n.Place) -> bool:
            return self._is_same(expression, able | plain, level)

        def all_of(*blocks: n.Block, loop: bool) -> bool:
            return all(
                self._computes(s, able, level, plain, inside or loop) for b in blocks for s in b
            )

        match statement:
            case n.Declare(variable, value):
                if variable.name not in able:
                    return False
                if value is None or same(value):
                    return True
                return id(statement) in self.uniformity.shared_loads and _place_is(value, same)
            case n.Assign(place, value):
                root = root_of(place)
                if not isinstance(root, n.Variable) or root.name not in able or not same(place):
                    return False
                if same(value):
                    return True
                return id(statement) in self.uniformity.shared_loads and _place_is(value, same)
            case n.If(condition, then, otherwise):
                return same(condition) and all_of(then, otherwise, loop=False)
            case n.For(variable, start, stop, _, body):
                known = variable.name in able and same(start) and same(stop)
                return known and all_of(body, loop=True)
            case n.While(condition, body, update):
                return same(condition) and all_of(body, update, loop=True)
            case n.Break() | n.Continue():
                return inside
        return False

    def _is_same(self, part: n.Expression | n.Place, known: set[str], level: Level) -> bool:
        own = False
        for node in walk(part):
            match node:
                case n.Variable():
                    if node.name not in known:
                        return False
                case n.Element():
                    if node.memory not in self.readable:
                        return False
                case n.Builtin("thread_idx" | "lane"):
                    own = True
        if not own:
            return True
        return level == Level.WARP and self.uniformity.is_uniform(part, level)


def _place_is(value: n.Expression, same: Callable[[n.Expression], bool]) -> bool:
    """Whether a shared load's index and checks are the same for all threads."""
    assert isinstance(value, n.Load)
    place: n.Place = value.place
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Item) and not same(place.index):
            return False
        place = place.base
    assert isinstance(place, n.Element)
    checks = [part for check in place.checks for part in (check.index, check.bound)]
    return all(same(part) for part in (place.index, *checks))


def _loop_variables(units: list[Unit]) -> set[str]:
    found: set[str] = set()
    for unit in units:
        if isinstance(unit, Control):
            if isinstance(unit.statement, n.For):
                found.add(unit.statement.variable.name)
            for part in unit.parts:
                found |= _loop_variables(part)
    return found
