"""Names from outside: captured constants, functions that a kernel calls, td's own names."""

from __future__ import annotations

import ast
import builtins
import difflib
import enum
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, FixedArray, as_number_dtype
from treadle.core.errors import DtypeError
from treadle.ir import types as t
from treadle.lang import namespace
from treadle.lang.builtins import BuiltinFunction, BuiltinVariable
from treadle.lang.captures import MISSING, is_library, read_name
from treadle.lang.definitions import DeviceFunction, KernelFunction
from treadle.lang.lower.constant_arrays import constant_array
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import constant, literal
from treadle.lang.lower.values import PythonObject, TupleValue, Value
from treadle.lang.types import ArrayType, TypeFamily, VectorType, is_struct


def outside_value(cx: Context, node: ast.Name) -> Value:
    """The value of a name that the function does not assign."""
    value = read_name(cx.function, node.id)
    if value is MISSING:
        known = {name: name for name in (*cx.scope.stores, *cx.function.__code__.co_freevars)}
        known |= {name: name for name in cx.function.__globals__ if not name.startswith("_")}
        known |= {each.__name__: each.__name__ for each in _PYTHONS_OWN}
        hint = hint_at(node.id, known)
        raise cx.refusal("unknown_name", node, name=node.id, hint=hint)
    return from_python(cx, value, node.id, node)


def hides_function(name: str) -> bool:
    """Whether something of this name hides a function of Python's own that a kernel can call."""
    return any(name == each.__name__ for each in _PYTHONS_OWN)


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
    if isinstance(value, np.ndarray):
        return constant_array(cx, value, name, node)
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        raise cx.refusal("captured_array", node, name=name)
    raise cx.refusal("captured_object", node, name=name, kind=type(value).__name__)


def _usable(value: Any) -> bool:
    """Whether a kernel's source may name an object, to call it or read its attributes."""
    kinds = (
        DType, TypeFamily, VectorType, ArrayType, FixedArray, BuiltinFunction, BuiltinVariable,
        ModuleType, FunctionType, DeviceFunction, KernelFunction, str, type, type(None), type(len),
        type(Ellipsis),
    )  # fmt: skip
    return isinstance(value, kinds) or is_struct(value) or not _is_data(value)


def _is_data(value: Any) -> bool:
    """Whether an object is a container or array, whose contents a kernel can't read."""
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
        known = {each: f"{owner.name}.{each}" for each in _public_names(owner.value)}
        hint = hint_at(name, known)
        raise cx.refusal("unknown_member", node, owner=owner.name, name=name, hint=hint)
    if isinstance(value, property):
        raise cx.refusal("captured_object", node, name=f"{owner.name}.{name}", kind="property")
    return from_python(cx, value, f"{owner.name}.{name}", node)


def _public_names(owner: Any) -> list[str]:
    """The names of an object that a kernel may use; of td, those of the kernel language."""
    if is_library(owner):
        return sorted(namespace.PUBLIC)
    public = getattr(owner, "__all__", None) if isinstance(owner, ModuleType) else None
    return [
        name
        for name in public or dir(owner)
        if not name.startswith("_") and not isinstance(getattr(owner, name, None), ModuleType)
    ]


def hint_at(name: str, known: Mapping[str, str]) -> str:
    """A spelling hint for the end of a message. `known` has the existing names, and how each is
    written."""
    plain = name.strip("_")
    meant = _FROM_ELSEWHERE.get(plain)
    if meant is None and plain in namespace.PUBLIC and plain not in known:
        meant = f"td.{plain}"
    if meant is None:
        close = difflib.get_close_matches(name, known, 1, 0.7)
        meant = known[close[0]] if close else None
    return f" (did you mean {meant}?)" if meant else ""


# Names in CUDA, Numba, Python and other libraries, and their equivalents in the kernel language.
_FROM_ELSEWHERE = {
    "threadIdx": "td.thread_idx", "blockIdx": "td.block_idx", "blockDim": "td.block_dim",
    "gridDim": "td.grid_dim", "gridsize": "td.grid_size", "program_id": "td.block_idx.x",
    "num_programs": "td.grid_dim.x", "syncthreads": "td.sync_threads", "barrier":
    "td.sync_threads", "syncwarp": "td.sync_subgroup", "threadfence": "td.thread_fence",
    "threadfence_block": "td.thread_fence_block", "warpsize": "td.subgroup_size",
    "warpSize": "td.subgroup_size", "laneid": "td.lane", "laneId": "td.lane",
    "shfl_sync": "td.shuffle", "shfl_up_sync": "td.shuffle_up", "shfl_down_sync":
    "td.shuffle_down", "shfl_xor_sync": "td.shuffle_xor", "all_sync": "td.vote_all",
    "any_sync": "td.vote_any", "ballot_sync": "td.ballot", "atomicAdd": "td.atomic_add",
    "atomicSub": "td.atomic_sub", "atomicMin": "td.atomic_min", "atomicMax": "td.atomic_max",
    "atomicCAS": "td.atomic_cas", "atomicExch": "td.atomic_exchange", "atomic": "td.atomic_add",
    "int": "td.i32", "float": "td.f32", "double": "td.f64", "half": "td.f16", "long": "td.i64",
    "uint": "td.u32", "size_t": "td.u64", "relu": "td.maximum(x, 0)", "power": "td.pow",
    "max": "td.maximum", "min": "td.minimum", "mod": "td.remainder", "fmod": "td.remainder",
    "absolute": "td.abs", "fabs": "td.abs", "arctan2": "td.atan2", "arcsin": "td.asin",
    "arccos": "td.acos", "arctan": "td.atan", "rint": "td.round", "clamp": "td.clip",
    "mad": "td.fma", "float2": "td.vec2[td.f32]", "float3": "td.vec3[td.f32]",
    "float4": "td.vec4[td.f32]", "int2": "td.vec2[td.i32]", "cuda": "td, as in td.grid(1)",
}  # fmt: skip
# Python's own functions that a kernel can call.
_PYTHONS_OWN = (
    range, print, len, int, float, bool, abs, min, max, pow, round, divmod, sum, any, all,
    enumerate, zip,
)  # fmt: skip


def is_of_arrays(function: Any) -> bool:
    """Whether a function that kernels can't call is one of treadle's or NumPy's for arrays."""
    module = getattr(function, "__module__", None) or ""
    return module.split(".")[0] in ("treadle", "numpy") and not isinstance(function, np.ufunc)


PYTHON_CASTS: dict[Any, t.Scalar] = {
    builtins.int: t.I32,
    builtins.float: t.F32,
    builtins.bool: t.BOOL,
}
