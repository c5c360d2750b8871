"""Where each variable of a cut kernel lives.

- In the region itself, if only that region mentions it.
- Once for all threads (`Once` units), if it is uniform and assigned where all threads pass.
- Nowhere: values that cost little are computed again in every region that wants them.
- In an array with a slot for each thread that a hardware lane runs, or for each lane of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import lcm

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
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
from treadle.ir.passes.threads import Place, Threads, arithmetic, number
from treadle.ir.passes.uniformity import Level, Uniformity, written_memories
from treadle.ir.passes.warps import WarpArrays
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import I32, size_of

_CHEAP = 24  # operations up to which a value is computed again rather than kept
_CHEAP_INTRINSICS = frozenset({"abs", "min", "max"})


@dataclass(slots=True)
class Storage:
    """The decision for every variable and memory of a kernel."""

    leaves: list[Leaf] = field(default_factory=list)
    variables: dict[str, n.Variable] = field(default_factory=dict)
    recomputed: dict[str, n.Expression] = field(default_factory=dict)  # in order of declaration
    item_arrays: dict[str, n.Memory] = field(default_factory=dict)
    lane_arrays: dict[str, n.Memory] = field(default_factory=dict)
    exchanged: dict[str, n.Memory] = field(default_factory=dict)  # slots wherever they are named
    strides: dict[str, int] = field(default_factory=dict)  # bytes a thread of a local memory
    private: frozenset[str] = frozenset()
    memories: tuple[n.Memory, ...] = ()

    def arrays_of(self, leaf: Leaf) -> list[str]:
        """The variables of a leaf that have slots, in a fixed order."""
        return sorted(leaf.names & (self.item_arrays.keys() | self.lane_arrays.keys()))

    def slot_of(self, variable: n.Variable, place: Place) -> n.Element | None:
        """The slot of a variable in a thread, if it has one."""
        name = variable.name
        if name in self.item_arrays:
            return n.Element(self.item_arrays[name].name, place.slot, variable.type)
        memory = self.lane_arrays.get(name) or self.exchanged.get(name)
        return None if memory is None else n.Element(memory.name, place.lane, variable.type)

    def shifted(self, element: n.Element, place: Place) -> n.Element:
        """An element of a local memory in the part of its thread."""
        stride = self.strides.get(element.memory)
        if stride is None:
            return element
        step = arithmetic("mul", place.slot, number(stride // size_of(element.type)))
        kind = element.index.type
        if kind == I32:
            return replace(element, index=arithmetic("add", step, element.index))
        wide = n.Binary("add", n.Cast(step, kind), element.index, kind)
        return replace(element, index=wide)

    def recomputed_for(self, leaf: Leaf) -> list[str]:
        """What a region computes again at its start, dependencies first."""
        needed = {name for name in leaf.names - leaf.declared if name in self.recomputed}
        for name in reversed(self.recomputed):
            if name in needed:
                needed |= names_in(self.recomputed[name]) & self.recomputed.keys() - leaf.declared
        return [name for name in self.recomputed if name in needed]

    def is_live_into(self, leaf: Leaf, name: str) -> bool:
        """Whether a region may read the value that a variable comes with."""
        assert isinstance(leaf.unit, Region)
        for statement in leaf.unit.statements:
            if name in names_in(statement):
                return not (
                    isinstance(statement, n.Assign)
                    and isinstance(statement.place, n.Variable)
                    and name not in names_in(statement.value)
                )
        return True

    def is_live_out_of(self, leaf: Leaf, name: str) -> bool:
        """Whether a region changes a variable that a later one, or a later round, may read."""
        if name not in leaf.assigned:
            return False
        (home,) = (other for other in self.leaves if name in other.declared)
        later = [o for o in self.leaves[leaf.order + 1 :] if name in o.names]
        if later and later[0].around == leaf.around and home.loops == leaf.loops:
            following = later[0]
            if isinstance(following.unit, Region) and not self.is_live_into(following, name):
                return False  # nothing comes between them
        for other in self.leaves:
            if name not in other.names:
                continue
            if other.order > leaf.order:
                return True
            around = [loop for loop in leaf.loops if loop in other.loops]
            if any(loop not in home.loops for loop in around):
                return True
        return False


def place_variables(
    kernel: n.Kernel, uniformity: Uniformity, threads: Threads, names: Names, warps: WarpArrays
) -> tuple[list[Unit], Storage]:
    """Cut a kernel into units and decide where its variables live."""
    parameters = {parameter.name for parameter in kernel.parameters}
    chooser = _Chooser(kernel, uniformity, {id(statement) for statement in warps.once})
    mentioned = names_in(kernel.body)
    candidates = {name for name in mentioned - parameters if name in uniformity.variables}
    units, plain = chooser.choose(
        kernel.body, n.Barrier("block"), Level.BLOCK, candidates, parameters
    )
    outer = leaves_of(units)
    for region in _regions(units):
        barrier = n.Barrier("subgroup")
        if not any(node == barrier for s in region.statements for node in walk(s)):
            continue
        elsewhere = {name for leaf in outer if leaf.unit is not region for name in leaf.names}
        candidates = (names_in(region.statements) & uniformity.variables.keys()) - elsewhere
        region.warp = threads.new_warp()
        region.inner, inside = chooser.choose(
            tuple(region.statements), barrier, Level.WARP, candidates, plain | warps.plain
        )
        plain |= inside
    plain |= warps.plain
    storage = Storage(leaves=leaves_of(units), exchanged=dict(warps.arrays))
    _store(kernel, storage, plain, threads, names)
    return units, storage


def _regions(units: list[Unit]) -> list[Region]:
    found: list[Region] = []
    for unit in units:
        if isinstance(unit, Region):
            found.append(unit)
        elif isinstance(unit, Control):
            for part in unit.parts:
                found.extend(_regions(part))
    return found


# --- what all threads share ----------------------------------------------------------------------


class _Chooser:
    """Finds the variables that are worth computing once for all threads at hand."""

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
            wanted = self._wanted(leaves_of(units), block, able, shared, level, plain)
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
        block: n.Block,
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


# --- what each thread keeps ----------------------------------------------------------------------


def _store(
    kernel: n.Kernel, storage: Storage, plain: set[str], threads: Threads, names: Names
) -> None:
    places: dict[str, list[Leaf]] = {}
    for leaf in storage.leaves:
        for name in leaf.names - plain - storage.exchanged.keys():
            places.setdefault(name, []).append(leaf)
    _find_recomputed(storage, plain)
    for name, leaves in sorted(places.items()):
        if name in storage.recomputed or (
            len(leaves) == 1 and not isinstance(leaves[0].unit, Control)
        ):
            continue
        variable = storage.variables[name]
        warp = leaves[0].region
        if warp is not None and all(leaf.region is warp for leaf in leaves):
            array = names.fresh(f"{name}.lanes")
            storage.lane_arrays[name] = n.Memory(array, "local", variable.type, threads.width)
        else:
            array = names.fresh(f"{name}.threads")
            storage.item_arrays[name] = n.Memory(array, "local", variable.type, threads.slots)
    storage.memories = (
        *(_grown(memory, storage, threads) for memory in kernel.memories),
        *storage.item_arrays.values(),
        *storage.lane_arrays.values(),
        *storage.exchanged.values(),
    )


def _find_recomputed(storage: Storage, plain: set[str]) -> None:
    """Notes every variable, and those that keep one cheap value for life."""
    declared: dict[str, n.Expression | None] = {}
    changes: dict[str, int] = {}
    for leaf in storage.leaves:
        statements = leaf.unit.statements if isinstance(leaf.unit, (Region, Once)) else ()
        for statement in statements:
            for node in walk(statement):
                match node:
                    case n.Variable():
                        storage.variables.setdefault(node.name, node)
                    case n.Declare():
                        declared[node.variable.name] = node.value
                match node:
                    case n.Declare() | n.Assign() | n.Atomic() | n.For():
                        for name in _changed_by(node):
                            changes[name] = changes.get(name, 0) + 1
    costs: dict[str, int] = {}
    for name, value in declared.items():
        if value is None or changes[name] != 1 or name in plain:
            continue
        cost = _cost(value, costs, {p for p in plain if changes.get(p, 0) <= 1})
        if cost is not None and cost <= _CHEAP:
            costs[name] = cost
            storage.recomputed[name] = value


def _changed_by(node: n.Declare | n.Assign | n.Atomic | n.For) -> set[str]:
    match node:
        case n.Declare() | n.For():
            return {node.variable.name}
        case n.Assign():
            root = root_of(node.place)
            return {root.name} if isinstance(root, n.Variable) else set()
    return {node.result.name} if node.result is not None else set()


def _cost(value: n.Expression, costs: dict[str, int], fixed: set[str]) -> int | None:
    """The operations that a value takes, or None if it must not be computed again."""
    total = 0
    for node in walk(value):
        match node:
            case n.Constant() | n.Builtin():
                pass
            case n.Variable():
                if node.name in costs:
                    total += costs[node.name]
                elif node.name not in fixed:
                    return None
            case n.Unary() | n.Binary() | n.Select() | n.Cast() | n.Bitcast():
                total += 1
            case n.Intrinsic(op) if op in _CHEAP_INTRINSICS:
                total += 1
            case _:
                return None
    return total


def _grown(memory: n.Memory, storage: Storage, threads: Threads) -> n.Memory:
    """A local memory with a part for every thread, unless each use is a thread's alone."""
    leaves = [leaf for leaf in storage.leaves if memory.name in leaf.memories]
    if memory.space != "local" or memory.length is None or not leaves:
        return memory
    if len(leaves) == 1 and not leaves[0].loops and isinstance(leaves[0].unit, Region):
        storage.private |= {memory.name}
        return memory
    sizes = [size_of(memory.element)]
    for leaf in leaves:
        if isinstance(leaf.unit, Region):
            for statement in leaf.unit.statements:
                sizes.extend(
                    size_of(node.type)
                    for node in walk(statement)
                    if isinstance(node, n.Element) and node.memory == memory.name
                )
    unit = lcm(*sizes)
    stride = -(-memory.length * sizes[0] // unit) * unit
    storage.strides[memory.name] = stride
    return replace(memory, length=stride // sizes[0] * threads.slots)
