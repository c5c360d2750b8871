"""Loop fission: one hardware lane runs several threads of a block, as loops.

Barriers split a kernel into regions. Each region becomes a loop over the threads that a lane runs.
A value that a thread carries from one region to another lives in an array, one slot for a thread:

    v = x[i]                       for k in range(256): v_threads[k] = x[block_idx.x * 256 + k]
    t[k] = v                                            t[k] = v_threads[k]
    barrier                        for k in range(256): y[...] = t[255 - k] + v_threads[k]
    y[i] = t[255 - k] + v

The CPU runs a whole block on one lane: its barriers disappear, and the loops are marked parallel
for the vectorizer. A GPU that allows fewer invocations than the block has threads gets lanes that
run every lanes-th thread each; there the barriers stay. If a kernel has subgroup operations, a lane
runs whole warps, one after another, and within a region the lanes of the warp are split again at
those operations.

What printers must know of a kernel that went through here:

- `thread_idx.x` is the hardware lane if there are several, and does not occur if there is one;
  block_dim, lane and subgroup_size are gone; `kernel.block` is still the block as users see it.
- The local memories in `FissionResult.private` belong to one iteration of the parallel loop they
  are used in. Iterations that run at once need copies of them, or the loop must not be declared
  free of dependences.
  All other local memories have disjoint parts for the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.agreement import Agreement
from treadle.ir.passes.live_ranges import split_live_ranges
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import negate, remove_returns
from treadle.ir.passes.regions import Control, Jump, Once, Region, Sync, Unit
from treadle.ir.passes.shared_values import split_at_barriers
from treadle.ir.passes.storage import Storage, place_variables
from treadle.ir.passes.threads import Place, Threads
from treadle.ir.passes.uniformity import (
    WARP_WIDTH,
    analyze,
    has_sync,
    is_sync,
    written_memories,
)
from treadle.ir.passes.warps import WarpArrays
from treadle.ir.traverse import rewrite_block, statements_in, walk

Change = Callable[[object], object]


@dataclass(frozen=True, slots=True)
class FissionOptions:
    """`lanes`: invocations that the device may run for a block. `width`: threads in a warp."""

    lanes: int = 1
    width: int = WARP_WIDTH


@dataclass(frozen=True, slots=True)
class FissionResult:
    """The rewritten kernel, the invocations that run a block of it, and its memories that belong
    to one iteration of a parallel loop."""

    kernel: n.Kernel
    workgroup: Dim3
    private: frozenset[str] = frozenset()


def fission(kernel: n.Kernel, options: FissionOptions = FissionOptions()) -> FissionResult:
    """The kernel for at most `options.lanes` invocations a block, all along x.

    The block must be known, calls pure, and barriers uniform (`check_barriers`).
    """
    block = kernel.block
    if block is None:
        raise ValueError("fission needs a kernel whose block is known")
    warps = _has_warp_operations(kernel)
    kernel = _prepared(remove_returns(kernel, options.width), block, options.width)
    return _run(kernel, block, options, warps)


def _has_warp_operations(kernel: n.Kernel) -> bool:
    """Whether a kernel holds warp operations (to read its lane, a thread needs no other)."""
    return any(is_sync(node) and node != n.Barrier("block") for node in statements_in(kernel.body))


def _prepared(kernel: n.Kernel, block: Dim3, width: int) -> n.Kernel:
    """The kernel with the block's extent known."""
    _refuse_hidden_threads(kernel)

    def change(node: object) -> object:
        match node:
            case n.Builtin("block_dim", axis, type):
                return n.Constant(block[axis], type, node.span)
            case n.Builtin("subgroup_size", _, type):
                return n.Constant(width, type, node.span)
            case n.Builtin("thread_idx", axis, type) if block[axis] == 1:
                return n.Constant(0, type, node.span)
        return node

    body = rewrite_block(kernel.body, change)
    functions = tuple(
        replace(function, body=rewrite_block(function.body, change))
        for function in kernel.functions
    )
    return replace(kernel, body=body, functions=functions)


def _refuse_hidden_threads(kernel: n.Kernel) -> None:
    for function in kernel.functions:
        for node in walk(function.body):
            if isinstance(node, n.Builtin) and node.name in ("thread_idx", "lane"):
                raise CompileError(
                    f"{function.name} asks for {node.name}; functions that do are inlined first",
                    node.span,
                )


def _run(kernel: n.Kernel, block: Dim3, options: FissionOptions, whole: bool) -> FissionResult:
    names = Names(kernel)
    threads = Threads(block, options.lanes, options.width, whole, names)
    # Without a barrier there is one region, and nothing to share between several.
    uniformity = analyze(kernel, options.width) if has_sync(kernel.body) else None
    warps = WarpArrays(names, options.width)
    kernel = replace(kernel, body=warps.expand(kernel.body))
    units, plain = split_at_barriers(kernel, uniformity, threads, warps)
    split_live_ranges(units, plain | warps.arrays.keys(), names)
    storage = place_variables(kernel, units, plain, warps.arrays, threads, names)
    constant = frozenset(b.name for b in kernel.buffers) - written_memories(kernel)
    agreement = Agreement(names, constant)
    emitter = _Emitter(threads, storage, names, warps.count, agreement)
    body = tuple(emitter.units(units, None))
    result = replace(kernel, body=body, memories=(*storage.memories, *agreement.memories))
    return FissionResult(result, Dim3(threads.lanes), storage.private)


class _Emitter:
    """Units back to statements."""

    def __init__(
        self,
        threads: Threads,
        storage: Storage,
        names: Names,
        count: n.Variable,
        agreement: Agreement,
    ) -> None:
        self.agreement = agreement
        self.threads = threads
        self.storage = storage
        self.names = names
        self.count = count
        self.leaves = {id(leaf.unit): leaf for leaf in storage.leaves}
        self.named: set[str] = set()  # variables that some region has declared by their own name

    def units(self, units: list[Unit], region: Region | None) -> list[n.Statement]:
        """The statements of units; `region` is the region of warps that they are in, if any."""
        warp = None if region is None else region.warp
        statements: list[n.Statement] = []
        for unit in units:
            match unit:
                case Region() if unit.inner is not None and unit.warp is not None:
                    inner = tuple(self.units(unit.inner, unit))
                    statements.extend(self.threads.over_warps(unit.warp, inner))
                case Region():
                    statements.extend(self._region(unit, warp))
                case Once():
                    statements.extend(rewrite_block(unit.statements, self._for_first(warp)))
                case Sync():
                    if self.threads.lanes > 1 and region is None:
                        statements.append(unit.statement)
                case Jump():
                    statements.append(unit.statement)
                case Control():
                    statements.extend(self._control(unit, region))
        return statements

    def _control(self, unit: Control, region: Region | None) -> list[n.Statement]:
        """Uniform control flow, whose conditions several lanes must agree on."""
        statement = unit.statement
        warp = None if region is None else region.warp
        parts = tuple(tuple(self.units(part, region)) for part in unit.parts)
        if isinstance(statement, n.For):
            heads = (self._once(statement.start, warp), self._once(statement.stop, warp))
            before, (start, stop) = self._agreed(heads, region)
            return [*before, replace(statement, start=start, stop=stop, body=parts[0])]
        before, (condition,) = self._agreed((self._once(statement.condition, warp),), region)
        if isinstance(statement, n.If):
            result = replace(statement, condition=condition, then=parts[0], otherwise=parts[1])
            return [*before, result]
        if not before:
            return [replace(statement, condition=condition, body=parts[0], update=parts[1])]
        leave = n.If(negate(condition), (n.Break(statement.span),), (), statement.span)
        body = (*before, leave, *parts[0])  # agreed on in every iteration
        return [replace(statement, condition=n.TRUE, body=body, update=parts[1])]

    def _agreed(
        self, heads: tuple[n.Expression, ...], region: Region | None
    ) -> tuple[list[n.Statement], tuple[n.Expression, ...]]:
        if region is not None or self.threads.lanes == 1:
            return [], heads  # one lane agrees with itself
        return self.agreement.on(heads)

    # --- a uniform value is computed for the first thread of the block or warp ---

    def _once(self, expression: n.Expression, warp: n.Variable | None) -> n.Expression:
        (result,) = rewrite_block((expression,), self._for_first(warp))
        computed: n.Expression = result
        return computed

    def _for_first(self, warp: n.Variable | None) -> Change:
        first = self.threads.first(warp)

        def change(node: object) -> object:
            match node:
                case n.Builtin():
                    return first.builtin(node)
                case n.Variable() if node.name in self.storage.recomputed:
                    return self._once(self.storage.recomputed[node.name], warp)
                case n.Variable():
                    return self._slot(node, first)
            return node

        return change

    def _slot(self, variable: n.Variable, place: Place) -> n.Expression:
        """A variable as a thread reads it: its slot, if it has one."""
        if variable == self.count:
            return place.count
        slot = self.storage.slot_of(variable, place)
        return variable if slot is None else n.Load(slot, variable.type, variable.span)

    # --- a loop over threads ---

    def _region(self, unit: Region, warp: n.Variable | None) -> list[n.Statement]:
        leaf = self.leaves[id(unit)]
        storage = self.storage
        each = self.threads.each(warp)
        own: dict[str, str] = {}
        body: list[n.Statement] = []
        stores: list[n.Statement] = []
        for name in storage.recomputed_for(leaf):
            variable = storage.variables[name]
            own[name] = self._own_name(name)
            body.append(n.Declare(variable, storage.recomputed[name], variable.span))
        for name in storage.arrays_of(leaf):
            variable = storage.variables[name]
            own[name] = self._own_name(name)
            slot = storage.slot_of(variable, each.place)
            assert slot is not None
            if name not in leaf.declared:
                given = n.Load(slot, variable.type) if storage.is_live_into(leaf, name) else None
                body.append(n.Declare(variable, given, variable.span))
            if storage.is_live_out_of(leaf, name):
                stores.append(n.Assign(slot, variable, variable.span))
        for name in leaf.declared & storage.recomputed.keys():
            own[name] = self._own_name(name)
        body += [*unit.statements, *stores]

        def change(node: object) -> object:
            match node:
                case n.Builtin():
                    return each.place.builtin(node)
                case n.Variable() if node.name in own:
                    return replace(node, name=own[node.name])
                case n.Variable():
                    return self._slot(node, each.place)
                case n.Assign():
                    return _with_slot(node)
                case n.Element():
                    return storage.shifted(node, each.place)
            return node

        return each.loop(rewrite_block(tuple(body), change))

    def _own_name(self, name: str) -> str:
        """A name for a variable that no other region declares."""
        own = self.names.fresh(name) if name in self.named else name
        self.named.add(name)
        return own


def _with_slot(statement: n.Assign) -> n.Assign:
    """The assignment to a slot, where its variable became a load from one."""
    place: object = statement.place
    return replace(statement, place=place.place) if isinstance(place, n.Load) else statement
