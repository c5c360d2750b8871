"""The interpreter's arithmetic: NumPy scalars by the rules of kernels, with the same bits.

A typed number is a NumPy scalar (or a `Vector`); a Python number is a literal, as in the source.
The typing rules are shared with the lowering, and `treadle.ir.arithmetic` computes the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, DType, as_number_dtype
from treadle.core.errors import DtypeError, LaunchError, TreadleError
from treadle.ir import arithmetic
from treadle.ir import types as t
from treadle.lang import matrices, rules
from treadle.lang.definitions import DeviceFunction
from treadle.lang.interpreter_state import current_run
from treadle.lang.lower.mathematics import EXACT_POWER, NEGATIVE_POWER
from treadle.lang.lower.operators import ARITHMETIC, BITWISE, COMPARISONS, SHIFTS
from treadle.lang.math import library
from treadle.lang.matrices import Matrix
from treadle.lang.rules import Literal
from treadle.lang.source import source_of
from treadle.lang.types import Vector, VectorType
from treadle.runtime import settings

_TABLE = ARITHMETIC | BITWISE | SHIFTS


def is_literal(value: Any) -> bool:
    """Whether a number is Python's own, so that it takes the other operand's type."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def is_number(value: Any) -> bool:
    """Whether a value is one number, typed or not."""
    return is_literal(value) or isinstance(value, np.generic)


def scalar_type(value: np.generic) -> t.Scalar:
    """The type of a typed number."""
    return t.SCALARS[as_number_dtype(value.dtype).short]


def operand(value: Any) -> rules.Operand:
    """A value as the typing rules take it."""
    if is_literal(value):
        return Literal(value)
    if isinstance(value, np.generic):
        return scalar_type(value)
    raise DtypeError(f"{value!r} is not a number")


def plain(value: Any) -> bool | int | float:
    """A number as a Python number."""
    if isinstance(value, np.generic):
        type = scalar_type(value)
        return float(value) if type.is_float else value.item()
    return value  # type: ignore[no-any-return]


def make(value: bool | int | float, type: t.Scalar) -> Any:
    """A value of `type` as a NumPy scalar."""
    return BY_SHORT_NAME[type.name].numpy.type(value)


def cast(value: Any, type: t.Scalar) -> Any:
    """A number as another type."""
    if is_literal(value):
        return make(rules.round_to(value, type), type)
    return make(arithmetic.cast(plain(value), scalar_type(value), type), type)


def typed(value: Any) -> Any:
    """A number with a type; a literal gets its default type."""
    return make(value, rules.default_type(value)) if is_literal(value) else value


def binary(op: str, left: Any, right: Any) -> Any:
    """`left op right`."""
    if isinstance(left, tuple) and isinstance(right, tuple) and op == "+":
        return left + right
    if op == "@":
        return matrices.times(left, right, binary)
    if isinstance(left, Matrix) or isinstance(right, Matrix):
        return matrices.elementwise(op, left, right, binary)
    if isinstance(left, Vector) or isinstance(right, Vector):
        return _vectors(op, left, right)
    if is_literal(left) and is_literal(right):
        return left**right if op == "**" else _TABLE[op][1](left, right)
    if op == "**":
        return power(left, right)
    first, second = operand(left), operand(right)
    if op in ARITHMETIC:
        type = rules.arithmetic_type(op, first, second)
    elif op in BITWISE:
        type = rules.bitwise_type(op, first, second)
    else:
        type = rules.shift_type(op, first, second)
    return _compute(_TABLE[op][0], left, right, type)


def _compute(name: str, left: Any, right: Any, type: t.Scalar) -> Any:
    result = arithmetic.binary(name, plain(cast(left, type)), plain(cast(right, type)), type)
    return make(result, type)


def _vectors(op: str, left: Any, right: Any) -> Vector:
    count = len(left.parts if isinstance(left, Vector) else right.parts)
    firsts = left.parts if isinstance(left, Vector) else [left] * count
    seconds = right.parts if isinstance(right, Vector) else [right] * count
    parts = [binary(op, a, b) for a, b in zip(firsts, seconds, strict=True)]
    return vector(parts)


def vector(parts: list[Any]) -> Vector:
    """A vector of typed numbers of one type."""
    return Vector(VectorType(as_number_dtype(parts[0].dtype), len(parts)), *parts)


def unary(op: str, value: Any) -> Any:
    """`-x`, `+x` or `~x`."""
    if isinstance(value, Matrix):
        return matrices.of_rows([unary(op, row) for row in value])
    if isinstance(value, Vector):
        return vector([unary(op, part) for part in value.parts])
    if is_literal(value):
        return {"-": lambda: -value, "+": lambda: +value, "~": lambda: ~value}[op]()
    type = scalar_type(value)
    if type == t.BOOL:
        value, type = cast(value, t.I32), t.I32
    if op == "+":
        return value
    return make(arithmetic.unary("neg" if op == "-" else "invert", plain(value), type), type)


def compare(signs: str, *values: Any) -> Any:
    """A chain of comparisons; `signs` are separated by spaces."""
    result: Any = True
    for op, left, right in zip(signs.split(), values, values[1:], strict=False):
        if is_number(left) and is_number(right) and not (is_literal(left) and is_literal(right)):
            type = rules.common_type(operand(left), operand(right))
            same = COMPARISONS[op][1](plain(cast(left, type)), plain(cast(right, type)))
            result = np.bool_(result and same)
        else:
            result = result and COMPARISONS[op][1](left, right)
    return result


def common_type(values: Sequence[Any]) -> t.Scalar:
    """The common type of numbers."""
    kind: rules.Operand = operand(values[0])
    for value in values[1:]:
        kind = rules.common_type(kind, operand(value))
    return rules.default_type(kind.value) if isinstance(kind, Literal) else kind


def common(values: list[Any]) -> tuple[list[Any], t.Scalar]:
    """Numbers in their common type (bools count as i32)."""
    kind = common_type(values)
    if kind == t.BOOL:
        kind = t.I32
    return [cast(value, kind) for value in values], kind


def floats(values: list[Any]) -> tuple[list[Any], t.Scalar]:
    """Numbers in their common floating point type: f32 if they are integers."""
    found, type = common(values)
    if type.is_float:
        return found, type
    return [cast(value, t.F32) for value in values], t.F32


def intrinsic(op: str, values: list[Any], type: t.Scalar) -> Any:
    """An exact operation on numbers of `type`."""
    result = arithmetic.intrinsic(op, tuple(plain(value) for value in values), type)
    assert result is not None, op
    if op in ("isnan", "isinf", "isfinite", "signbit", "has_near_functions"):
        return np.bool_(result)
    return make(result, t.I32 if op in ("popcount", "clz", "ctz") else type)


def bitcast(value: Any, dtype: DType) -> Any:
    """The bits of a number as another dtype of its size."""
    wanted = t.SCALARS[dtype.short]
    if is_literal(value) and not isinstance(value, float) and wanted.is_float:
        value = cast(value, t.SCALARS[f"u{wanted.bits}"])
    value = typed(value)
    return make(arithmetic.bitcast(plain(value), scalar_type(value), wanted), wanted)


# --- the library ---------------------------------------------------------------------------------


def call_definition(definition: Any, values: list[Any]) -> Any:
    """The result of a function of the kernel language, run in the interpreter."""
    function = definition.definition if isinstance(definition, DeviceFunction) else definition
    current = current_run()
    assert current is not None
    return current.call(function, source_of(function), values, {})


def run_library(name: str, values: list[Any]) -> Any:
    """The result of a library function, which is written in the kernel language and interpreted."""
    definitions = library()
    if name in definitions:
        return call_definition(definitions[name], values)
    operands, type = floats(values)
    work = t.F32 if type in (t.F16, t.BF16) else type
    operands = [cast(value, work) for value in operands]
    definition = definitions.get(f"{name}_{work}")
    if definition is not None:
        return cast(call_definition(definition, operands), type)
    if name == "rsqrt":
        root = intrinsic("sqrt", operands, work)
        return cast(binary("/", 1, root), type)
    raise TreadleError(f"td.{name} does not work on {type}")


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`, computed as the lowering does."""
    type = rules.common_type(operand(base), operand(exponent))
    if is_literal(exponent) and not isinstance(exponent, float):
        times = int(exponent)
        if times >= 0 and (times <= EXACT_POWER or not type.is_float):
            return _multiplied(base, times)
    if type.is_float:
        return run_library("pow", [base, exponent])
    (base, exponent), type = common([base, exponent])
    times = int(plain(exponent))
    if times >= 0:
        return _multiplied(base, times)
    if settings.check:
        raise LaunchError(f"{plain(base)} ** {times}: {NEGATIVE_POWER}")
    one = abs(int(plain(base))) == 1
    return _multiplied(base, times & 1 or 2) if one else make(0, type)


def _multiplied(base: Any, times: int) -> Any:
    (square,), type = common([base])
    result = None
    while times:
        if times & 1:
            result = square if result is None else binary("*", result, square)
        times >>= 1
        if times:
            square = binary("*", square, square)
    return make(1, type) if result is None else result
