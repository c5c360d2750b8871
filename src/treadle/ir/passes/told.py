"""Shared values that decide about barriers, read where all threads are told the same.

CUDA code lets a thread write a shared variable, waits, and then has all threads branch on it, with
other statements between. What is read from shared memory counts as one value for the block only
right behind a barrier (`uniformity`), so a barrier is put before such reads where one is missing.
All threads of the block reach it, so it changes nothing but time; kernels that need none get none.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.uniformity import Level, Uniformity, analyze, check_barriers
from treadle.ir.traverse import rewrite, root_of, walk

_ROUNDS = 8  # each may find more statements that all threads reach
_BARRIER = n.Barrier("block")


def meeting_at_barriers(kernel: n.Kernel, also_written: frozenset[str] = frozenset()) -> n.Kernel:
    """The kernel, with barriers before shared reads if its barriers need that. Raises what
    `check_barriers` raises if even so some threads may skip one."""
    try:
        check_barriers(kernel, also_written=also_written)
        return kernel
    except CompileError as refusal:
        told = kernel
        for _ in range(_ROUNDS):
            further = _tell(told, analyze(told, also_written=also_written))
            if further == told:
                raise refusal from None
            told = further
            try:
                check_barriers(told, also_written=also_written)
                return told
            except CompileError:
                continue
        raise


def _tell(kernel: n.Kernel, uniformity: Uniformity) -> n.Kernel:
    shared = frozenset(memory.name for memory in kernel.memories if memory.space == "shared")
    return replace(kernel, body=_Teller(shared, uniformity, Names(kernel)).block(kernel.body))


class _Teller:
    def __init__(self, shared: frozenset[str], uniformity: Uniformity, names: Names) -> None:
        self.shared = shared
        self.uniformity = uniformity
        self.names = names

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Statement] = []
        for statement in block:
            together = self.uniformity.flow(statement).level == Level.BLOCK
            match statement:
                case n.Declare(value=value) | n.Assign(place=n.Variable(), value=value) if (
                    together and value is not None and self.is_read(value)
                ):
                    if id(statement) not in self.uniformity.shared_loads:
                        out.append(_BARRIER)
                    out.append(statement)
                case n.If():
                    out.extend(self.branch(statement, together))
                case n.For() | n.While():
                    out.append(replace(statement, body=self.block(statement.body)))
                case _:
                    out.append(statement)
        return tuple(out)

    def branch(self, statement: n.If, together: bool) -> list[n.Statement]:
        then, otherwise = self.block(statement.then), self.block(statement.otherwise)
        made = replace(statement, then=then, otherwise=otherwise)
        reads = [node for node in walk(statement.condition) if self.is_read(node)]
        if not together or not reads:
            return [made]
        before: list[n.Statement] = []
        known: dict[object, n.Variable] = {}
        for read in dict.fromkeys(reads):
            assert isinstance(read, n.Load)
            known[read] = n.Variable(self.names.fresh("told"), read.type, read.span)
            before.append(n.Declare(known[read], read, read.span))
        condition = rewrite(statement.condition, lambda node: known.get(node, node))
        return [_BARRIER, *before, replace(made, condition=condition)]

    def is_read(self, node: object) -> bool:
        """Whether a node is a read of one place of shared memory that all threads mean."""
        if not isinstance(node, n.Load):
            return False
        root = root_of(node.place)
        return (
            isinstance(root, n.Element)
            and root.memory in self.shared
            and self.uniformity.is_uniform(root.index)
        )
