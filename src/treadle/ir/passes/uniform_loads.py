"""Uniform shared loads: shared values that decide about barriers, read right after a barrier.

In CUDA code one thread writes a shared variable, the block synchronizes, and later all threads
branch on the variable. What is read from shared memory counts as uniform only right after a barrier
(`uniformity`: Tint accepts no other read). So a barrier is put before such reads where one is
missing:

    barrier                        barrier
    y[i] = 0                       y[i] = 0
    if count[0] > 0 {              barrier
      barrier                      loaded = count[0]
      …                            if loaded > 0 {barrier; …}
    }

All threads of the block reach the new barrier, so it costs time and changes nothing else. A kernel
that passes `check_barriers` without it is not changed.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.uniformity import Level, Uniformity, analyze, check_barriers
from treadle.ir.traverse import rewrite, root_of, walk

_MOST_PASSES = 8  # a uniform load makes more statements uniform, which the next pass finds
_BARRIER = n.Barrier("block")


def with_uniform_loads(kernel: n.Kernel, also_written: frozenset[str] = frozenset()) -> n.Kernel:
    """The kernel, with barriers before shared reads if its barriers need that. Raises what
    `check_barriers` raises if even so some threads may skip one."""
    try:
        check_barriers(kernel, also_written=also_written)
        return kernel
    except CompileError as refusal:
        current = kernel
        for _ in range(_MOST_PASSES):
            further = _with_barriers(current, analyze(current, also_written=also_written))
            if further == current:
                raise refusal from None
            current = further
            try:
                check_barriers(current, also_written=also_written)
                return current
            except CompileError:
                continue
        raise


def _with_barriers(kernel: n.Kernel, uniformity: Uniformity) -> n.Kernel:
    shared = frozenset(memory.name for memory in kernel.memories if memory.space == "shared")
    return replace(kernel, body=_Rewriter(shared, uniformity, Names(kernel)).block(kernel.body))


class _Rewriter:
    def __init__(self, shared: frozenset[str], uniformity: Uniformity, names: Names) -> None:
        self.shared = shared
        self.uniformity = uniformity
        self.names = names

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Statement] = []
        for statement in block:
            uniform = self.uniformity.flow(statement).level == Level.BLOCK
            match statement:
                case n.Declare(value=value) | n.Assign(place=n.Variable(), value=value) if (
                    uniform and value is not None and self.is_read(value)
                ):
                    if id(statement) not in self.uniformity.shared_loads:
                        out.append(_BARRIER)
                    out.append(statement)
                case n.If():
                    out.extend(self.branch(statement, uniform))
                case n.For() | n.While():
                    out.append(replace(statement, body=self.block(statement.body)))
                case _:
                    out.append(statement)
        return tuple(out)

    def branch(self, statement: n.If, uniform: bool) -> list[n.Statement]:
        then, otherwise = self.block(statement.then), self.block(statement.otherwise)
        made = replace(statement, then=then, otherwise=otherwise)
        reads = [node for node in walk(statement.condition) if self.is_read(node)]
        if not uniform or not reads:
            return [made]
        before: list[n.Statement] = []
        known: dict[object, n.Variable] = {}
        for read in dict.fromkeys(reads):
            assert isinstance(read, n.Load)
            known[read] = n.Variable(self.names.fresh("loaded"), read.type, read.span)
            before.append(n.Declare(known[read], read, read.span))
        condition = rewrite(statement.condition, lambda node: known.get(node, node))
        return [_BARRIER, *before, replace(made, condition=condition)]

    def is_read(self, node: object) -> bool:
        """Whether a node reads one place of shared memory, the same in all threads."""
        if not isinstance(node, n.Load):
            return False
        root = root_of(node.place)
        return (
            isinstance(root, n.Element)
            and root.memory in self.shared
            and self.uniformity.is_uniform(root.index)
        )
