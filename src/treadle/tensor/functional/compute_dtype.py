"""The dtypes that functions of layers compute in, and results in place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError
from treadle.graph.history import recording
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import cast
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor

P = ParamSpec("P")
_HALVES = (float16, bfloat16)


def widened(x: ArrayLike) -> tuple[Tensor, DType]:
    """An operand as a tensor in the dtype to compute in, and the dtype of the result."""
    tensor = x if type(x) is Tensor else asarray(x)
    work, result = compute_dtypes(tensor.dtype)
    return tensor.to(work), result


def compute_dtypes(own: DType) -> tuple[DType, DType]:
    """The dtype to compute elements of a dtype in, and the dtype of the result.

    >>> compute_dtypes(float16)
    (treadle.float32, treadle.float16)
    """
    if own in _HALVES or own.kind in ("bool", "int", "uint"):
        return float32, own if own.kind == "float" else float32
    return own, own


def result_or_input(name: str, input: ArrayLike, result: Tensor, inplace: bool) -> Tensor:
    """The result; with `inplace` the input, into which it is written."""
    if not inplace:
        return result
    if type(input) is not Tensor:
        raise TypeError(f"{name}: inplace=True writes a tensor, not {type(input).__name__}")
    if result.dtype is not input.dtype:
        raise DtypeError(
            f"{name}: the result is {result.dtype}, which does not fit into {input.dtype}: leave "
            "inplace out, or cast the input first"
        )
    node = result._node
    if node is input._cell.value:
        return input
    input._write(cast(node, input.dtype))
    return input


def may_write(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Let a function of layers write its result into its first argument if `inplace`. The
    derivative then uses a copy of the overwritten elements, if it needs them."""
    name, signature = function.__name__, inspect.signature(function)
    position = list(signature.parameters).index("inplace")

    @functools.wraps(function)
    def either(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        if len(args) <= position and "inplace" not in kwargs:
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        inplace, bound.arguments["inplace"] = bound.arguments["inplace"], False
        given = bound.arguments["input"]
        if inplace and type(given) is Tensor and given.requires_grad and recording.get():
            bound.arguments["input"] = given.copied()
        return result_or_input(name, given, function(*bound.args, **bound.kwargs), inplace)

    return either


def widened_real(name: str, x: ArrayLike) -> tuple[Tensor, DType]:
    """`widened` for functions of real numbers. DtypeError for complex numbers and bools.

    >>> import treadle as td
    >>> widened_real("f", td.asarray([1, 2], dtype=td.int32, device="cpu"))[1].name
    'float32'
    """
    given = x if type(x) is Tensor else asarray(x)
    if given.dtype.kind in ("bool", "complex"):
        raise DtypeError(f"{name} takes real numbers, and x is of {given.dtype}: cast it before")
    return widened(given)
