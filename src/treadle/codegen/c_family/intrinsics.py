"""The IR's intrinsics as calls."""

from __future__ import annotations

from treadle.codegen.c_family import vectors
from treadle.codegen.c_family.casts import narrow_float
from treadle.codegen.c_family.scope import PRIMARY, Scope
from treadle.ir import nodes as n
from treadle.ir.rules import TESTS
from treadle.ir.types import COMPONENTS, F32, I32, Scalar, Vector

Text = tuple[str, int]


def intrinsic(scope: Scope, node: n.Intrinsic) -> Text:
    """A call of what the language has, or of a helper."""
    type = node.operands[0].type
    module = scope.module
    if node.op == "dot":
        return _dot(scope, node)
    if isinstance(type, Vector):
        if module.language.native_vector(node.op, type):
            form = module.language.intrinsics[node.op, type.element.name]
            return form.format(*(scope.text(operand) for operand in node.operands)), PRIMARY
        return vectors.componentwise(scope, node, f"each_{node.op}")
    assert isinstance(type, Scalar)
    if type.is_float and type.bits == 16:
        return _in_single(scope, node, type)
    op = node.op
    if op in ("min", "max") and type.is_float and module.fastmath:
        op = f"fast_{op}"
    computed = I32 if type.is_integer and type.bits < 32 else type
    form = module.language.intrinsics.get((op, computed.name), "")
    if not form:
        places = ", ".join(["{}"] * len(node.operands))
        form = f"{module.helper(_HELPERS.get(op, op), computed)}({places})"
    text = form.format(*(scope.text(operand) for operand in node.operands))
    if node.type == type and type.is_integer and type.bits < 32:
        return f"({module.scalar(type)}){text}", 1
    return text, PRIMARY


_HELPERS = {"min": "minimum", "max": "maximum", "abs": "wrap_abs"}


def _in_single(scope: Scope, node: n.Intrinsic, type: Scalar) -> Text:
    """Of a 16-bit float, by way of float32."""
    wide = tuple(n.Cast(operand, F32, node.span) for operand in node.operands)
    if node.op in TESTS:
        return intrinsic(scope, n.Intrinsic(node.op, wide, node.type, node.span))
    if node.op == "fma":
        text = ", ".join(scope.text(operand) for operand in wide)
        return narrow_float(scope, f"{scope.module.helper('odd_fma')}({text})", type), PRIMARY
    result = n.Intrinsic(node.op, wide, F32, node.span)
    return scope.render(scope, n.Cast(result, type, node.span))


def _dot(scope: Scope, node: n.Intrinsic) -> Text:
    type = node.operands[0].type
    assert isinstance(type, Vector)
    if not scope.module.language.native_vector("dot", type):
        a, b = n.Variable("a", type), n.Variable("b", type)
        total: n.Expression | None = None
        for axis in COMPONENTS[: type.count]:
            left, right = (n.Extract(v, axis, type.element) for v in (a, b))
            product = n.Binary("mul", left, right, type.element)
            total = n.Binary("add", total, product, type.element) if total else product
        assert total is not None
        function = n.Function("dot", (a, b), type.element, (n.Return(total),))
        vectors.add(scope, ("dot", type), "dot", function)
    return f"dot({', '.join(scope.text(operand) for operand in node.operands)})", PRIMARY
