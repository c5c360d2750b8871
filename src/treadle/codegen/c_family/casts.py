"""Conversions between types, and of bits."""

from __future__ import annotations

from treadle.codegen.c_family import vectors
from treadle.codegen.c_family.scope import COMPARISON, PRIMARY, SUM, UNARY, Scope
from treadle.ir import nodes as n
from treadle.ir.types import BF16, F16, F32, F64, Scalar, Vector

Text = tuple[str, int]


def cast(scope: Scope, node: n.Cast) -> Text:
    """A value as another type."""
    operand, source, target = node.operand, node.operand.type, node.type
    if isinstance(source, Vector) and isinstance(target, Vector):
        return vectors.componentwise(scope, node, f"to_{scope.module.register(target)}")
    assert isinstance(source, Scalar)
    assert isinstance(target, Scalar)
    module = scope.module
    register = module.scalar(target, node)
    if target.kind == "bool":
        if source.bits == 16 and source.is_float:
            return f"{_single(scope, operand)} != 0.0f", COMPARISON
        return f"{scope.text(operand, SUM)} != {module.zero(source)}", COMPARISON
    if source.is_float and target.is_integer:
        return _float_to_integer(scope, operand, source, target)
    if target.name in ("f16", "bf16"):
        return _to_half(scope, operand, source, target)
    if source.bits == 16 and source.is_float:
        single = _single(scope, operand)
        return (single, PRIMARY) if target == F32 else (f"({register}){single}", UNARY)
    return f"({register}){scope.text(operand, UNARY)}", UNARY


def _single(scope: Scope, operand: n.Expression) -> str:
    """A 16-bit float as a float32, as a primary."""
    type = operand.type
    assert isinstance(type, Scalar)
    if type.name in scope.module.language.structs:
        return f"{scope.module.helper('to_float', type)}({scope.text(operand)})"
    return f"{scope.module.scalar(F32)}({scope.text(operand)})"


def _to_half(scope: Scope, operand: n.Expression, source: Scalar, target: Scalar) -> Text:
    module = scope.module
    if isinstance(operand, n.Constant) and source == F32:
        return module.real(float(operand.value), target), PRIMARY
    if source.bits == 16 and source.is_float:
        text = _single(scope, operand)
    elif _rounds_twice(source, target):
        text = f"{module.helper('odd_float', source)}({scope.text(operand)})"
    elif source == F32:
        text = scope.text(operand)
    else:
        text = f"(float){scope.text(operand, UNARY)}"
    return narrow_float(scope, text, target), PRIMARY


def narrow_float(scope: Scope, text: str, target: Scalar) -> str:
    """A float32 (any text) rounded to a 16-bit float."""
    name = scope.module.scalar(target)
    if target.name in scope.module.language.structs:
        return f"{scope.module.helper(f'to_{name}')}({text})"
    return f"{name}({text})"


def _rounds_twice(old: Scalar, new: Scalar) -> bool:
    """Whether a cast by way of float32 could round wrongly the second time."""
    if new == BF16:
        return old == F64 or (old.is_integer and old.bits >= 32)
    return new == F16 and old == F64


def _float_to_integer(scope: Scope, operand: n.Expression, source: Scalar, target: Scalar) -> Text:
    if source.bits == 16:
        text, source = _single(scope, operand), F32
    else:
        text = scope.text(operand)
    scope.module.scalar(source, operand)
    name = scope.module.helper("to_{name}", target, source)
    return f"{name}({text})", PRIMARY


def bitcast(scope: Scope, node: n.Bitcast) -> Text:
    """The bits of a value as another type of the same size."""
    operand, source, target = node.operand, node.operand.type, node.type
    if isinstance(source, Vector) and isinstance(target, Vector):
        return vectors.componentwise(scope, node, f"bits_as_{scope.module.register(target)}")
    assert isinstance(source, Scalar)
    assert isinstance(target, Scalar)
    module = scope.module
    register = module.scalar(target, node)
    module.scalar(source, operand)
    form = module.language.bitcasts.get((source.name, target.name))
    if form is not None:
        return form.format(scope.text(operand)), PRIMARY
    if source == target:
        return scope.render(scope, operand)
    if target.kind == "bool":
        return f"{scope.text(operand, SUM)} != 0", COMPARISON
    return f"({register}){scope.text(operand, UNARY)}", UNARY
