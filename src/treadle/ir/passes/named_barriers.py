"""Barriers of a part of a block, for targets that have only those of the whole block.

`bar.sync 1, 64` of PTX is waited for by 64 threads, the others go on. Elsewhere all threads wait,
those of other parts of the block with nothing to do. Two branches that wait at different barriers
do not wait for each other, so they run one after the other:

    if warp < 2: a, barrier 1, b          part = warp < 2
    else: c, barrier 2, d                 if part: a, barrier 1, b
                                          if not part: c, barrier 2, d

The passes behind make of that what they make of all barriers that divide a block
(`masked_barriers.py`).
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import statements_in
from treadle.ir.types import BOOL


def has_named_barriers(kernel: n.Kernel) -> bool:
    """Whether a kernel has barriers of a part of a block."""
    return any(isinstance(node, n.Barrier) and node.part for node in statements_in(kernel.body))


def without_named_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel with barriers of the whole block only. Raises CompileError where branches wait at
    the same barrier of a part, and at others too."""
    names = Names(kernel)
    return replace(kernel, body=_block(kernel.body, names))


def _block(block: n.Block, names: Names) -> n.Block:
    out: list[n.Statement] = []
    for statement in block:
        match statement:
            case n.Barrier() if statement.part:
                out.append(n.Barrier("block", None, statement.span))
            case n.If(condition, then, otherwise):
                both = _block(then, names), _block(otherwise, names)
                if _are_apart(statement):
                    part = n.Variable(names.fresh("part"), BOOL)
                    out.append(n.Declare(part, condition, statement.span))
                    other = n.Unary("not", part, BOOL)
                    out.append(replace(statement, condition=part, then=both[0], otherwise=()))
                    out.append(n.If(other, both[1], (), statement.span))
                else:
                    out.append(replace(statement, then=both[0], otherwise=both[1]))
            case n.For() | n.While():
                out.append(replace(statement, body=_block(statement.body, names)))
            case _:
                out.append(statement)
    return tuple(out)


def _are_apart(node: n.If) -> bool:
    """Whether both branches have barriers, and each only of its own part."""
    then, otherwise = map(_barriers, (node.then, node.otherwise))
    if not then or not otherwise:
        return False
    numbers = [{_number(one) for one in branch} for branch in (then, otherwise)]
    unknown = None in numbers[0] or None in numbers[1]
    if not unknown and numbers[0].isdisjoint(numbers[1]):
        return not any(isinstance(one, n.Return) for one in statements_in((node,)))
    if not unknown and numbers[0] == numbers[1] and len(numbers[0]) == 1:
        return False  # they wait for each other
    raise CompileError(
        "these branches wait at barriers of parts of the block that they share: this device has "
        "barriers of whole blocks only. Give each branch its own barriers, or use __syncthreads",
        node.span,
    )


def _barriers(block: n.Block) -> list[n.Barrier]:
    return [
        one for one in statements_in(block) if isinstance(one, n.Barrier) and one.scope == "block"
    ]


def _number(barrier: n.Barrier) -> int | None:
    """The number of a barrier, 0 for that of the block; None if it is not known here."""
    if not barrier.part:
        return 0
    number = barrier.part[0]
    return int(number.value) if isinstance(number, n.Constant) else None
