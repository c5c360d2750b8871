"""Names from outside: constants that a kernel captures, functions that it calls, td's own names."""

from __future__ import annotations

import ast
import builtins
import enum
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, FixedArray, as_number_dtype
from treadle.core.errors import DtypeError
from treadle.ir import types as t
from treadle.lang.builtins import BuiltinFunction, Place
from treadle.lang.captures import MISSING, read_name
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import constant, literal
from treadle.lang.lower.values import PythonObject, TupleValue, Value
from treadle.lang.types import ArrayType, VectorFamily, VectorType, is_struct


def outside_value(cx: Context, node: ast.Name) -> Value:
    """What a name means that the function does not assign."""
    value = read_name(cx.function, node.id)
    if value is MISSING:
        known = [*cx.scope.stores, *cx.function.__globals__, "range", "print", "abs"]
        raise cx.refusal("unknown_name", node, name=node.id, hint=cx.similar(node.id, known))
    return from_python(cx, value, node.id, node)


def from_python(cx: Context, value: Any, name: str, node: ast.AST) -> Value:
    """A Python object as a value of the kernel language."""
    if isinstance(value, enum.Enum) and not isinstance(value, int):
        value = value.value
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return literal(cx, int(value) if isinstance(value, enum.Enum) else value, node)
    if isinstance(value, np.generic):
        try:
            dtype = as_number_dtype(value.dtype)
        except DtypeError:
            kind = f"NumPy {value.dtype}"
            raise cx.refusal("captured_object", node, name=name, kind=kind) from None
        return constant(value.item(), t.SCALARS[dtype.short], cx, node)
    if isinstance(value, tuple):
        return TupleValue(tuple(from_python(cx, item, name, node) for item in value))
    if _usable(value):
        return PythonObject(value, name)
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        raise cx.refusal("captured_array", node, name=name)
    raise cx.refusal("captured_object", node, name=name, kind=type(value).__name__)


def _usable(value: Any) -> bool:
    """Whether an object may stand in a kernel's source, to be called or looked into."""
    from treadle.lang.kernel import Function, Kernel

    kinds = (
        DType, VectorFamily, VectorType, ArrayType, FixedArray, BuiltinFunction, Place, ModuleType,
        FunctionType, Function, Kernel, str, type, type(None), type(len), type(Ellipsis),
    )  # fmt: skip
    return isinstance(value, kinds) or is_struct(value) or not _is_data(value)


def _is_data(value: Any) -> bool:
    """Whether an object is a container or array, which a kernel can't look into."""
    return isinstance(value, (list, dict, set, bytes, complex, np.ndarray)) or hasattr(
        value, "__dlpack__"
    )


def attribute_of_object(cx: Context, owner: PythonObject, name: str, node: ast.AST) -> Value:
    """`module.name`, or an attribute of another object from outside."""
    if isinstance(owner.value, (str, type(None))):
        raise cx.refusal(
            "unknown_attribute", node, owner=owner.name, name=name, choices="none in a kernel"
        )
    value = getattr(owner.value, name, MISSING)
    if value is MISSING:
        hint = cx.similar(name, [each for each in dir(owner.value) if not each.startswith("_")])
        raise cx.refusal("unknown_name", node, name=f"{owner.name}.{name}", hint=hint)
    if isinstance(value, property):
        raise cx.refusal("captured_object", node, name=f"{owner.name}.{name}", kind="property")
    return from_python(cx, value, f"{owner.name}.{name}", node)


# Python's own functions that kernels know, and the name in td that each means.
PYTHON_FUNCTIONS: dict[Any, str] = {
    builtins.abs: "abs",
    builtins.min: "minimum",
    builtins.max: "maximum",
    builtins.pow: "pow",
}
# Functions of math and NumPy that td has under another name.
_OTHER_NAMES: dict[str, str] = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "fabs": "abs", "float_power": "pow",
    "fmax": "maximum", "fmin": "minimum", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "mod": "remainder", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip


def twin_of(function: Any) -> str | None:
    """The name of td's function or dtype that does what one of Python's or NumPy's does."""
    from treadle import lang

    if (getattr(function, "__module__", None) or "numpy").split(".")[0] not in _TWINNED:
        return None
    name = getattr(function, "__name__", "")
    name = _OTHER_NAMES.get(name, name)
    known = name in lang.__all__ and isinstance(getattr(lang, name), (BuiltinFunction, DType))
    return name if known else None


_TWINNED = ("builtins", "math", "numpy")
PYTHON_CASTS: dict[Any, t.Scalar] = {
    builtins.int: t.I32,
    builtins.float: t.F32,
    builtins.bool: t.BOOL,
}
