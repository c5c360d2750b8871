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
    if _is_product(node.right):
        factor = _negative(node.right.left) if minus else node.right.left
        operands = factor, node.right.right, node.left
    elif _is_product(node.left):
        rest = _negative(node.right) if minus else node.right
        operands = node.left.left, node.left.right, rest
    else:
        return node
    return n.Intrinsic("fma", operands, node.type, node.span)


def _is_product(node: n.Expression) -> bool:
    return isinstance(node, n.Binary) and node.op == "mul"


def _negative(node: n.Expression) -> n.Expression:
    if isinstance(node, n.Constant):
        return replace(node, value=-node.value)
    return n.Unary("neg", node, node.type, node.span)
