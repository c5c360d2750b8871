"""Atomic updates of memory that is a thread's own, as plain ones: nobody can come between.

A device function that updates an array atomically may be given a local one. WGSL has atomics in
storage and in shared memory only.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_block, root_of
from treadle.ir.types import BOOL, SCALARS, Scalar


def plain_own_updates(kernel: n.Kernel) -> n.Kernel:
    """The kernel without atomics on local memory. Functions that take memory are inlined first."""
    own = {memory.name for memory in kernel.memories if memory.space == "local"}
    names = Names(kernel)

    def change(node: Node) -> object:
        if isinstance(node, n.Atomic):
            root = root_of(node.place)
            if isinstance(root, n.Element) and root.memory in own:
                return _plain(node, names)
        return node

    return replace(kernel, body=rewrite_block(kernel.body, change))


def _plain(node: n.Atomic, names: Names) -> tuple[n.Statement, ...]:
    type, span = node.place.type, node.span
    old = n.Variable(names.fresh("old"), type, span)
    statements: tuple[n.Statement, ...] = (
        n.Declare(old, n.Load(node.place, type, span), span),
        n.Assign(node.place, _updated(node, old), span),
    )
    if node.result is not None:
        statements += (n.Assign(node.result, old, span),)
    return statements


def _updated(node: n.Atomic, old: n.Variable) -> n.Expression:
    type, span, operands = node.place.type, node.span, node.operands
    match node.op:
        case "exchange":
            return operands[0]
        case "cas":
            same = n.Binary("eq", _bits(old), _bits(operands[0]), BOOL, span)
            return n.Select(same, operands[1], old, type, span)
        case "min" | "max":
            return n.Intrinsic(node.op, (old, operands[0]), type, span)
    return n.Binary(node.op, old, operands[0], type, span)


def _bits(value: n.Expression) -> n.Expression:
    """A value whose equality is that of its bits."""
    type = value.type
    assert isinstance(type, Scalar)
    return n.Bitcast(value, SCALARS[f"u{type.bits}"]) if type.is_float else value
