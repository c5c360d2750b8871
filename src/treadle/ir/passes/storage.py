"""Where each variable of a kernel that is split into regions lives.

- In the region itself, if only that region mentions it.
- Once for all threads (`Once` units), if it is uniform and assigned where all threads pass.
- Nowhere: cheap values are recomputed in every region that reads them.
- In an array with a slot for each thread that a hardware lane runs, or for each lane of a warp.

For example, split at the barrier into two loops over threads:

    i = block_idx.x * 256 + k      recomputed: in both regions
    v = x[i] * 2                   in an array, `v.threads[256]`: a load must not be repeated, since
    barrier                        its element may have been written meanwhile
    w = v + 1                      in its region
    y[i] = w

Slots cost a store and a load a thread, and what LLVM cannot keep in registers. So the arithmetic of
indices is recomputed: LLVM could not see that a stored index grows by 1 from thread to thread, and
would load the elements one by one.
"""

from __future__ import annotations

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
    leaves_of,
    names_in,
)
from treadle.ir.passes.threads import Place, Threads, arithmetic, number
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import I32, size_of

_CHEAP = 24  # operations up to which a value is recomputed rather than stored
_CHEAP_INTRINSICS = frozenset({"abs", "min", "max"})


@dataclass(slots=True)
class Storage:
    """Where every variable and memory of a kernel lives."""

    leaves: list[Leaf] = field(default_factory=list)
    variables: dict[str, n.Variable] = field(default_factory=dict)
    recomputed: dict[str, n.Expression] = field(default_factory=dict)  # in order of declaration
    item_arrays: dict[str, n.Memory] = field(default_factory=dict)
    lane_arrays: dict[str, n.Memory] = field(default_factory=dict)
    exchanged: dict[str, n.Memory] = field(default_factory=dict)  # always read and written in slots
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
        """The variables that a region recomputes at its start, dependencies first."""
        needed = {name for name in leaf.names - leaf.declared if name in self.recomputed}
        for name in reversed(self.recomputed):
            if name in needed:
                needed |= names_in(self.recomputed[name]) & self.recomputed.keys() - leaf.declared
        return [name for name in self.recomputed if name in needed]

    def is_live_into(self, leaf: Leaf, name: str) -> bool:
        """Whether a region may read a variable before it assigns it."""
        assert isinstance(leaf.unit, Region)
        statement = leaf.first_uses.get(name)
        return not (
            isinstance(statement, n.Assign)
            and isinstance(statement.place, n.Variable)
            and name not in names_in(statement.value)
        )

    def is_live_out_of(self, leaf: Leaf, name: str) -> bool:
        """Whether a region changes a variable that a later one, or a later iteration, may read."""
        if name not in leaf.assigned:
            return False
        (home,) = (other for other in self.leaves if name in other.declared)
        later = [o for o in self.leaves[leaf.order + 1 :] if name in o.names]
        if later and later[0].around == leaf.around and home.loops == leaf.loops:
            following = later[0]
            if isinstance(following.unit, Region) and not self.is_live_into(following, name):
                return False  # the next region overwrites it, and no region runs between
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
    kernel: n.Kernel,
    units: list[Unit],
    plain: set[str],
    exchanged: dict[str, n.Memory],
    threads: Threads,
    names: Names,
) -> Storage:
    """Where the variables of a kernel that is split into regions live.

    `plain`: variables shared by all threads; `exchanged`: those that are slots of a memory already.
    """
    storage = Storage(leaves=leaves_of(units), exchanged=exchanged)
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
    return storage


def _find_recomputed(storage: Storage, plain: set[str]) -> None:
    """Record every variable, and those with one assignment, of a cheap value."""
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
    fixed = {name for name in plain if changes.get(name, 0) <= 1}
    for name, value in declared.items():
        if value is None or changes[name] != 1 or name in plain:
            continue
        cost = _cost(value, costs, fixed)
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
    """The number of operations of a value, or None if it must not be recomputed: a load may give
    another value later, and a variable may have been assigned again."""
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
    """A local memory with a part for every thread, unless one region holds all its uses: then it
    need not outlive an iteration, and a smaller memory stays in the cache."""
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
