"""Products and sums that are rounded once, decided in the IR.

A compiler may fuse a multiplication with the addition that uses it, and does so by what else uses
the product: adjacent rows that are computed at once share products, and a single row does not. A
cell is to be the same to the last bit in whichever kernel it is computed. So a sum with a product
as its operand becomes an `fma` here, for all kernels of a stencil alike.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import LoweredKernel
from treadle.ir.traverse import Node, rewrite_kernel


def with_fused_products(lowered: LoweredKernel) -> LoweredKernel:
    """A kernel whose sums of products of float32 and float64 are fused."""
    return replace(lowered, kernel=rewrite_kernel(lowered.kernel, _fused))


def _fused(node: Node) -> Node:
    if not isinstance(node, n.Binary) or node.op not in ("add", "sub"):
        return node
    if node.type not in (t.F32, t.F64):
        return node
    minus = node.op == "sub"
    left, right = node.left, node.right
    operands: tuple[n.Expression, ...]
    if isinstance(right, n.Binary) and right.op == "mul":
        operands = _negative(right.left) if minus else right.left, right.right, left
    elif isinstance(left, n.Binary) and left.op == "mul":
        operands = left.left, left.right, _negative(right) if minus else right
    else:
        return node
    return n.Intrinsic("fma", operands, node.type, node.span)


def _negative(node: n.Expression) -> n.Expression:
    if isinstance(node, n.Constant):
        return replace(node, value=-node.value)
    return n.Unary("neg", node, node.type, node.span)
