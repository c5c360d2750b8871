"""Atomics on numbers of 16 bits as a loop: a target that compares and swaps u16 exchanges the bits
for those of the new value, until no other thread has come between."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.private_atomics import updated
from treadle.ir.traverse import Node, rewrite_block, root_of
from treadle.ir.types import U16, Scalar


def with_swapped_halves(kernel: n.Kernel) -> n.Kernel:
    """The kernel whose atomics on 16 bits are compare and swap of u16 alone."""
    own = {memory.name for memory in kernel.memories if memory.space == "local"}
    names = Names(kernel)

    def change(node: Node) -> object:
        if not isinstance(node, n.Atomic) or (node.place.type == U16 and node.op == "cas"):
            return node
        root, type = root_of(node.place), node.place.type
        is_own = isinstance(root, n.Element) and root.memory in own
        return node if is_own or not _is_narrow(type) else _loop(node, names)

    return replace(kernel, body=rewrite_block(kernel.body, change))


def _is_narrow(type: object) -> bool:
    return isinstance(type, Scalar) and type.bits == 16


def _loop(node: n.Atomic, names: Names) -> n.Block:
    span, type = node.span, node.place.type
    if not isinstance(node.place, n.Element):
        raise UnsupportedOnTarget(
            f"an atomic on a {type} in a struct: give it an array of its own", span
        )
    place = replace(node.place, type=U16)
    seen, expected, new = (
        n.Variable(names.fresh(name), U16, span) for name in ("seen", "expected", "new")
    )
    value = n.Variable(names.fresh("value"), type, span)
    given = [n.Variable(names.fresh("operand"), type, span) for _ in node.operands]
    same = b.equal(seen, expected)
    body: n.Block = (
        n.Declare(expected, seen, span),
        n.Declare(value, n.Bitcast(expected, type), span),
        n.Declare(new, n.Bitcast(updated(node.op, value, tuple(given)), U16), span),
        n.Atomic("cas", place, (expected, new), seen, span),
        n.If(same, (n.Break(span),), (), span),
    )
    statements: tuple[n.Statement, ...] = (
        *(n.Declare(one, operand, span) for one, operand in zip(given, node.operands, strict=True)),
        n.Declare(seen, n.Load(place, U16, span), span),
        n.While(n.TRUE, body, (), span),
    )
    if node.result is not None:
        statements += (n.Assign(node.result, n.Bitcast(seen, type), span),)
    return statements
