"""Which values and which places of a kernel are the same for all threads of a block, or of a warp.

A barrier must be reached by all threads of its block, a subgroup operation by all threads of its
warp. What counts as uniform follows the strictest target (WGSL as Tint reads it), so that a kernel
accepted here is accepted everywhere:

- constants, scalar parameters, block_idx, block_dim, grid_dim are uniform; thread_idx is not;
- a load is uniform if its index is and the kernel never writes that buffer; loads from buffers
  that are written, from shared and from local memory are not; nor are results of atomics;
- votes, ballots and reductions over a subgroup are uniform over the warp, shuffles are not;
- what is assigned under divergent control is divergent; a break or continue that only some threads
  take makes its whole loop divergent, a return all that follows.

For example, with what is known of each line on the right:

    n = length                     block: a scalar parameter
    i = block_idx.x * 256 + thread_idx.x
                                   thread
    w = thread_idx.x // 32         warp: arithmetic on thread indices is done for every thread of a
                                   warp (`patterns`), and all 32 give one value
    if i < n:                      reached by the block, and taken by single threads
      barrier                      refused: "the condition on line …" divides them
    if w == 0: vote_any p          accepted: a subgroup operation needs whole warps only
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.abstract_run import AbstractRun, Flow, Level, Value
from treadle.ir.traverse import root_of, statements_in

__all__ = [
    "WARP_WIDTH",
    "Flow",
    "Level",
    "Uniformity",
    "Value",
    "analyze",
    "check_barriers",
    "has_sync",
    "is_sync",
    "may_diverge",
    "refusal",
    "uniform_shared_loads",
    "written_memories",
]  # fmt: skip

WARP_WIDTH = 32


@dataclass(frozen=True, slots=True)
class Uniformity:
    """The analysis of one kernel object. Statements are keyed by identity, since two equal
    statements may stand where different threads reach them; a rewritten kernel needs a new
    analysis."""

    width: int
    variables: Mapping[str, Value]  # over the whole life of each variable
    flows: Mapping[int, Flow]  # by id of the statement
    shared_loads: frozenset[int]  # ids of statements that read a shared value uniformly
    _analysis: AbstractRun

    def level(self, expression: n.Expression | n.Place) -> Level:
        """The widest group of threads for which an expression is uniform, wherever it is evaluated:
        each variable counts as the least uniform value that it ever has."""
        return self._analysis.value(expression, self.variables).level

    def is_uniform(self, expression: n.Expression | n.Place, level: Level = Level.BLOCK) -> bool:
        """Whether an expression is the same for the whole block (or `level`)."""
        return self.level(expression) <= level

    def flow(self, statement: n.Statement) -> Flow:
        """The widest group of threads that reaches a statement as a whole."""
        return self.flows[id(statement)]


def analyze(
    kernel: n.Kernel,
    width: int = WARP_WIDTH,
    *,
    ignore_returns: bool = False,
    also_written: frozenset[str] = frozenset(),
) -> Uniformity:
    """The uniformity of a kernel whose calls are pure.

    `ignore_returns`: threads that returned count as running on, for passes that turn returns into
    flags. `also_written`: buffers that are written under another name (one array passed twice).
    """
    analysis = AbstractRun(kernel, width, ignore_returns, written_memories(kernel) | also_written)
    analysis.run()
    return Uniformity(
        width,
        MappingProxyType(analysis.variables),
        MappingProxyType(analysis.flows),
        frozenset(analysis.shared_loads),
        analysis,
    )


def check_barriers(
    kernel: n.Kernel, width: int = WARP_WIDTH, also_written: frozenset[str] = frozenset()
) -> None:
    """Refuse a barrier that some threads of its block may skip, and a subgroup operation that some
    threads of its warp may skip.

    Raises CompileError at the barrier's place; the message names the condition and the reason.
    `also_written` is as in `analyze`.
    """
    if not has_sync(kernel.body):
        return
    analysis = analyze(kernel, width, also_written=also_written)
    for node in statements_in(kernel.body):
        if not is_sync(node):
            continue
        whole = isinstance(node, n.Staged) or node == n.Barrier("block")
        needed = Level.BLOCK if whole else Level.WARP
        flow = analysis.flow(node)
        if flow.level > needed:
            raise refusal(node, flow)


def uniform_shared_loads(kernel: n.Kernel) -> tuple[n.Declare | n.Assign, ...]:
    """Statements that read a shared value into a variable right after a barrier.

    They count as uniform: all threads read one place, and no thread may write it before the next
    barrier without a data race. Tint proves nothing about memory, so WGSL's printer uses
    workgroupUniformLoad for them.
    """
    marked = analyze(kernel).shared_loads
    return tuple(
        node
        for node in statements_in(kernel.body)
        if id(node) in marked and isinstance(node, (n.Declare, n.Assign))
    )


_REACHES = {
    "block": "sync_threads() must be reached by all threads of the block",
    "staged": "work on tiles in stages must be reached by all threads of the block",
    "subgroup": "a subgroup operation must be reached by all threads of its warp",
}


def refusal(node: n.Statement, flow: Flow) -> CompileError:
    """The error for a barrier or subgroup operation that some threads may skip."""
    if isinstance(node, n.Staged):
        scope = "staged"
    else:
        scope = node.scope if isinstance(node, n.Barrier) else "subgroup"
    reason = f", because {flow.cause}" if flow.cause else ""
    fix = _FIXES[flow.kind]
    if flow.cause and flow.cause.fix:
        fix += f", or {flow.cause.fix}"
    message = f"{_REACHES[scope]}, but {flow.where} divides them{reason}; {fix}"
    return CompileError(message, node.span)


_FIXES = {
    "if": "move it out of the `if` and keep only the work inside",
    "loop": "let all threads run the same number of iterations, with an `if` around the work",
    "break": "let all threads leave the loop together, with an `if` around the other work",
    "continue": "put an `if` around the other work instead of `continue`",
    "return": "put an `if` around the other work instead of `return`",
}


def is_sync(node: object) -> bool:
    """Whether all threads of a block or warp must reach a node: a barrier or a subgroup operation
    without a mask."""
    if isinstance(node, n.Staged):
        return True
    return isinstance(node, (n.Barrier, n.Subgroup, n.OpaqueStore)) and not may_diverge(node)


def may_diverge(node: n.Barrier | n.Subgroup | n.OpaqueStore) -> bool:
    """Whether a node may stand where the threads of a warp have diverged: it has a mask, or asks
    which threads are active."""
    if isinstance(node, n.OpaqueStore):
        return False
    return node.mask is not None or (isinstance(node, n.Subgroup) and node.op == "active")


def has_sync(block: n.Block) -> bool:
    """Whether any statement in a block waits for other threads."""
    return any(is_sync(node) for node in statements_in(block))


def written_memories(kernel: n.Kernel) -> frozenset[str]:
    """Names of all memories that the kernel stores to or updates."""
    names: set[str] = set()
    for node in statements_in(kernel.body):
        if isinstance(node, (n.Assign, n.Atomic, n.OpaqueStore)):
            root = root_of(node.place)
            if isinstance(root, n.Element):
                names.add(root.memory)
        elif isinstance(node, n.CallStatement):
            names.update(a.memory for a in node.arguments if isinstance(a, n.MemoryReference))
        elif isinstance(node, n.Staged):
            roots = map(root_of, node.places)
            names.update(root.memory for root in roots if isinstance(root, n.Element))
    return frozenset(names)
