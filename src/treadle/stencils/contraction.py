"""Products and sums that are rounded once, decided in the IR.

A compiler may fuse a multiplication with the addition that uses it, and does so by what else uses
the product: adjacent rows that are computed at once share products, and a single row does not. A
cell is to be the same to the last bit in whichever kernel it is computed. So a sum with a product
as its operand becomes an `fma` here, for all kernels of a stencil alike; also where the product is
in a variable that is never assigned again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import LoweredKernel
from treadle.ir.traverse import Node, rewrite_block, statements_in

_FUSED = (t.F32, t.F64)
_Factors = tuple[n.Expression, n.Expression]


def with_fused_products(lowered: LoweredKernel) -> LoweredKernel:
    """A kernel whose sums of products of float32 and float64 are fused."""
    kernel = lowered.kernel
    functions = tuple(
        replace(function, body=_in_block(function.body)) for function in kernel.functions
    )
    return replace(
        lowered, kernel=replace(kernel, body=_in_block(kernel.body), functions=functions)
    )


def _in_block(body: n.Block) -> n.Block:
    return rewrite_block(body, _fusing(_products_kept(body)))


def _products_kept(body: n.Block) -> dict[str, _Factors]:
    """The variables that are products and nothing else, with variables for their factors."""
    kept: dict[str, _Factors] = {}
    written: Counter[str] = Counter()
    for statement in statements_in(body):
        if isinstance(statement, n.Declare):
            variable = statement.variable
            written[variable.name] += 1
            if statement.value is not None and _is_product(statement.value):
                one, other = (
                    n.Variable(f"{variable.name}.{part}", variable.type, statement.span)
                    for part in ("factor", "by")
                )
                kept[variable.name] = one, other
        elif isinstance(statement, n.Assign):
            place: n.Place = statement.place
            while isinstance(place, (n.Member, n.Item)):
                place = place.base
            if isinstance(place, n.Variable):
                written[place.name] += 1
    return {name: factors for name, factors in kept.items() if written[name] == 1}


def _fusing(kept: dict[str, _Factors]) -> Callable[[Node], Node]:
    def factors(node: n.Expression) -> _Factors | None:
        if isinstance(node, n.Variable):
            return kept.get(node.name)
        return (node.left, node.right) if isinstance(node, n.Binary) and _is_product(node) else None

    def change(node: Node) -> Node:
        if isinstance(node, n.Declare) and node.variable.name in kept:
            return _declared(node, kept[node.variable.name])
        if not isinstance(node, n.Binary) or node.op not in ("add", "sub"):
            return node
        if node.type not in _FUSED:
            return node
        minus = node.op == "sub"
        if found := factors(node.right):
            one, other = found
            operands = _negative(one) if minus else one, other, node.left
        elif found := factors(node.left):
            operands = *found, _negative(node.right) if minus else node.right
        else:
            return node
        return n.Intrinsic("fma", operands, node.type, node.span)

    return change


def _declared(node: n.Declare, factors: _Factors) -> tuple[n.Statement, ...]:
    """A product's factors, then the product, which what is not a sum uses."""
    product = node.value
    one, other = factors
    assert isinstance(product, n.Binary)
    assert isinstance(one, n.Variable)
    assert isinstance(other, n.Variable)
    return (
        n.Declare(one, product.left, node.span),
        n.Declare(other, product.right, node.span),
        replace(node, value=replace(product, left=one, right=other)),
    )


def _is_product(node: n.Expression) -> bool:
    return isinstance(node, n.Binary) and node.op == "mul" and node.type in _FUSED


def _negative(node: n.Expression) -> n.Expression:
    if isinstance(node, n.Constant):
        return replace(node, value=-node.value)
    return n.Unary("neg", node, node.type, node.span)
