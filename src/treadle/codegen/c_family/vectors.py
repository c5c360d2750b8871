"""Operations on vectors: the language's own, or functions that take them by component."""

from __future__ import annotations

from dataclasses import replace

from treadle.codegen.c_family.scope import PRIMARY, PRODUCT, SUM, UNARY, Scope
from treadle.ir import nodes as n
from treadle.ir.types import COMPONENTS, Scalar, Type, Vector

Text = tuple[str, int]

_SIGNS = {
    "add": ("+", SUM, SUM, PRODUCT), "sub": ("-", SUM, SUM, PRODUCT),
    "mul": ("*", PRODUCT, PRODUCT, UNARY), "div": ("/", PRODUCT, PRODUCT, UNARY),
}  # fmt: skip


def unary(scope: Scope, node: n.Unary) -> Text:
    """`neg`, `not` or `invert` of each component."""
    assert isinstance(node.type, Vector)
    sign = {"neg": "-", "invert": "~", "not": "!"}[node.op]
    if not scope.module.language.native_vector(node.op, node.type):
        make(scope, node, f"operator{sign}")
    return f"{sign}{scope.text(node.operand, PRIMARY)}", UNARY


def binary(scope: Scope, node: n.Binary) -> Text:
    """An operation on each pair of components."""
    assert isinstance(node.type, Vector)
    language = scope.module.language
    native = language.native_vector(node.op, node.type)
    # What the language has for these types, and means otherwise, cannot be called an operator.
    can_be_operator = native or not language.native_vector("operators", node.type)
    if node.op not in _SIGNS or not can_be_operator:
        return componentwise(scope, node, f"each_{node.op}")
    sign, level, left, right = _SIGNS[node.op]
    if not native:
        make(scope, node, f"operator{sign}")
    return f"{scope.text(node.left, left)} {sign} {scope.text(node.right, right)}", level


def componentwise(scope: Scope, node: n.Expression, name: str) -> Text:
    """A call of a function that does an operation on each component of its operands."""
    operands = operands_of(node)
    make(scope, node, name)
    return f"{name}({', '.join(scope.text(operand) for operand in operands)})", PRIMARY


def make(scope: Scope, node: n.Expression, name: str) -> None:
    """Add the function for an operation, if it is new."""
    operands = operands_of(node)
    types = tuple(operand.type for operand in operands)
    variables = tuple(n.Variable("abc"[i], type) for i, type in enumerate(types))
    assert isinstance(node.type, Vector)
    parts = tuple(
        with_operands(
            node,
            tuple(n.Extract(v, COMPONENTS[i], _element(v.type)) for v in variables),
            node.type.element,
        )
        for i in range(node.type.count)
    )
    body = (n.Return(n.Construct(parts, node.type)),)
    add(scope, (name, types, node.type), name, n.Function(name, variables, node.type, body))


def add(scope: Scope, key: object, name: str, function: n.Function) -> None:
    """Add a function made here."""
    for variable in function.parameters:
        assert isinstance(variable, n.Variable)
        scope.module.register(variable.type, variable)
    scope.module.register(function.result)
    scope.module.function(key, name, function)


def operands_of(node: n.Expression) -> tuple[n.Expression, ...]:
    """What an operation works on."""
    match node:
        case n.Binary():
            return (node.left, node.right)
        case n.Unary() | n.Cast() | n.Bitcast():
            return (node.operand,)
        case n.Intrinsic():
            return node.operands
    raise AssertionError(f"{type(node).__name__} has no operands")


def with_operands(
    node: n.Expression, operands: tuple[n.Expression, ...], type: Type
) -> n.Expression:
    """The operation on other operands."""
    match node:
        case n.Binary():
            return replace(node, left=operands[0], right=operands[1], type=type)
        case n.Unary() | n.Cast() | n.Bitcast():
            return replace(node, operand=operands[0], type=type)
        case n.Intrinsic():
            return replace(node, operands=operands, type=type)
    raise AssertionError("no operation")


def _element(type: Type) -> Scalar:
    assert isinstance(type, Vector)
    return type.element
