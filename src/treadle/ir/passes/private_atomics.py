"""Atomic updates of local memory, as plain ones: no other thread can reach it.

A device function that updates an array atomically may get a local array. WGSL has atomics in
storage and in shared memory only, so there a load, an operation and a store replace the atomic.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_block, root_of
from treadle.ir.types import BOOL, SCALARS, U32, Scalar


def plain_private_atomics(kernel: n.Kernel) -> n.Kernel:
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
        n.Assign(node.place, updated(node.op, old, node.operands), span),
    )
    if node.result is not None:
        statements += (n.Assign(node.result, old, span),)
    return statements


def updated(op: str, old: n.Expression, operands: tuple[n.Expression, ...]) -> n.Expression:
    """What a place holds after an atomic update that found `old` there."""
    type, span = old.type, old.span
    match op:
        case "exchange":
            return operands[0]
        case "cas":
            same = n.Binary("eq", _bits(old), _bits(operands[0]), BOOL, span)
            return n.Select(same, operands[1], old, type, span)
        case "min" | "max":
            return n.Intrinsic(op, (old, operands[0]), type, span)
        case "inc":
            less = n.Binary("lt", old, operands[0], BOOL, span)
            more = n.Binary("add", old, n.Constant(1, U32), type, span)
            return n.Select(less, more, n.Constant(0, U32), type, span)
        case "dec":  # 0 wraps around to more than any operand
            fewer = n.Binary("sub", old, n.Constant(1, U32), type, span)
            return n.Intrinsic("min", (fewer, operands[0]), type, span)
    return n.Binary(op, old, operands[0], type, span)


def _bits(value: n.Expression) -> n.Expression:
    """A value whose equality is that of its bits."""
    type = value.type
    assert isinstance(type, Scalar)
    return n.Bitcast(value, SCALARS[f"u{type.bits}"]) if type.is_float else value
