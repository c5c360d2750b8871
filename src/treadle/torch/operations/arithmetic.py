"""Arithmetic of two and three operands, with PyTorch's promotion."""

from __future__ import annotations

from typing import Any, NamedTuple

import treadle as td
from treadle.core.dtypes import DType, bool_
from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.elementwise_functions import FUNCTIONS as OF
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import result_type
from treadle.torch.operations.operands import cast, common, promoted


def _scaled(name: str, input: Any, other: Any, alpha: Any) -> Any:
    if type(alpha) is int and alpha == 1:
        return other
    dtype = result_type(input, other)
    if isinstance(alpha, float) and dtype.kind in ("int", "uint", "bool"):
        raise RuntimeError(
            f"{name}: for integral input tensors, argument alpha must not be a floating point "
            "number."
        )
    if isinstance(alpha, bool) and dtype is not bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    scaled = cast(other, dtype)
    return mul(scaled, alpha) if isinstance(scaled, Inner) else scaled * alpha


def add(input: Any, other: Any, *, alpha: Any = 1) -> Inner:
    """Input + alpha * other."""
    return promoted("add", input, _scaled("add", input, other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Inner:
    """Input - alpha * other. RuntimeError for bools."""
    for each in (input, other):
        if isinstance(each, bool) or getattr(each, "dtype", None) is bool_:
            raise RuntimeError(
                "Subtraction, the `-` operator, with a bool tensor is not supported: use `^` or "
                "logical_xor, or `~` to invert one"
            )
    return promoted("subtract", input, _scaled("sub", input, other, alpha))


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Inner:
    """Other - alpha * input."""
    return sub(other, input, alpha=alpha)


def mul(input: Any, other: Any) -> Inner:
    """Input * other."""
    return promoted("multiply", input, other)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Inner:
    """Input / other, in floating numbers; "trunc" and "floor" round the quotient and leave
    integers integers."""
    if rounding_mode is None:
        return promoted("divide", input, other, floats=True)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r}"
        )
    one, two = _numbers("div", input, other)
    if result_type(one, two).kind == "float":
        return apply("trunc", apply("divide", one, two))
    _check_divisor(two)
    quotient = apply("floor_divide", one, two)
    exact = apply("multiply", quotient, two)
    return OF["where"]((quotient < 0) & apply("not_equal", exact, one), quotient + 1, quotient)


def _numbers(name: str, input: Any, other: Any) -> list[Any]:
    """Operands in their common dtype. RuntimeError for bools."""
    found = common(name, input, other)
    if result_type(*found) is bool_:
        raise RuntimeError(f"{name} is not there for bools: cast one to integers, x.long()")
    return found


def floor_divide(input: Any, other: Any) -> Inner:
    """Input / other, rounded down."""
    one, two = _numbers("floor_divide", input, other)
    if result_type(one, two).kind != "float":
        _check_divisor(two)
    made = apply("floor_divide", one, two)
    if made.dtype.kind != "float":
        return made
    # x // 0 is infinite, as x / 0 is.
    return OF["where"](_is_zero(two), apply("divide", one, two), made)


def _check_divisor(value: Any) -> None:
    """RuntimeError for an integer divisor of 0, if it is a number or in the host's memory."""
    if not isinstance(value, Inner):
        is_there = not value
    else:
        with in_host_memory():
            is_there = bool(value.size) and looked_at(value.device) and not value.numpy().all()
    if is_there:
        raise RuntimeError("ZeroDivisionError")


def _is_zero(value: Any) -> Any:
    return apply("equal", value, 0) if isinstance(value, Inner) else value == 0


def remainder(input: Any, other: Any) -> Inner:
    """What is left of input by multiples of other, with the sign of other."""
    one, two = _numbers("remainder", input, other)
    if result_type(one, two).kind != "float":
        _check_divisor(two)
    return apply("remainder", one, two)


def fmod(input: Any, other: Any) -> Inner:
    """What is left of input by multiples of other, with the sign of input."""
    one, two = _numbers("fmod", input, other)
    if result_type(one, two).kind != "float":
        _check_divisor(two)
    if not isinstance(one, Inner):
        one = td.asarray(one, dtype=two.dtype, device=two.device)
    if one.dtype.kind == "uint":
        return apply("remainder", one, two)
    size = apply("remainder", _size(one), _size(two))
    return OF["where"](one < 0, -size, size)


def _size(value: Any) -> Any:
    """The absolute value, whose derivative at 0 is 1."""
    return OF["where"](value < 0, -value, value) if isinstance(value, Inner) else abs(value)


def pow(input: Any, exponent: Any) -> Inner:
    """Input to the power of exponent. RuntimeError for integers to a negative number."""
    one, two = common("pow", input, exponent)
    dtype = result_type(one, two)
    if dtype.is_integer and not isinstance(exponent, Inner) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if dtype is bool_ and isinstance(one, Inner) and not isinstance(two, Inner):
        return one.copied() if two else td.ones_like(one)
    if dtype is bool_:
        raise RuntimeError("pow is not there for bools: cast one to integers, x.long()")
    return apply("pow", one, two)


def float_power(input: Any, exponent: Any) -> Inner:
    """The power, in float64 or complex128."""
    is_complex = result_type(input, exponent).is_complex
    dtype = td.complex128 if is_complex else td.float64
    return apply("pow", *(cast(each, dtype) for each in (input, exponent)))


def ldexp(input: Inner, other: Inner) -> Inner:
    """Input * 2**other."""
    return mul(input, pow(2.0, other))


def _bounded(name: str, input: Any, bound: Any, other: Any = None) -> list[Any]:
    """The elements and bounds in the dtype of the result."""
    found = common(name, *(each for each in (input, bound, other) if each is not None))
    if result_type(*found).is_complex:
        raise RuntimeError(f"{name} is not supported for complex types")
    return found


def clamp(input: Inner, min: Any = None, max: Any = None) -> Inner:
    """Elements limited to min … max: numbers, or tensors. RuntimeError if both are None."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_min(input, min)
    if min is None:
        return clamp_max(input, max)
    x, low, high = _bounded("clamp", input, min, max)
    if not isinstance(low, Inner) and not isinstance(high, Inner) and x.dtype is not bool_:
        return OF["clip"](x, low, high)
    return clamp_max(clamp_min(x, low), high)


def clamp_min(input: Inner, min: Any) -> Inner:
    """Elements, or the bound where they are smaller. NaN stays NaN."""
    x, low = _bounded("clamp_min", input, min)
    if x.dtype.kind != "float":
        return apply("maximum", x, low)
    return OF["where"](apply("isnan", x) | (x >= low), x, low)


def clamp_max(input: Inner, max: Any) -> Inner:
    """Elements, or the bound where they are greater. NaN stays NaN."""
    x, high = _bounded("clamp_max", input, max)
    if x.dtype.kind != "float":
        return apply("minimum", x, high)
    return OF["where"](apply("isnan", x) | (x <= high), x, high)


def lerp(input: Inner, end: Inner, weight: Any) -> Inner:
    """Input + weight * (end - input)."""
    if input.dtype is not end.dtype:
        raise RuntimeError(f"expected dtype {input.dtype} for `end` but got dtype {end.dtype}")
    return td.lerp(input, end, weight)


def addcmul(input: Inner, tensor1: Inner, tensor2: Inner, *, value: Any = 1) -> Inner:
    """Input + value * tensor1 * tensor2."""
    return add(input, mul(mul(tensor1, tensor2), value) if value != 1 else mul(tensor1, tensor2))


def addcdiv(input: Inner, tensor1: Inner, tensor2: Inner, *, value: Any = 1) -> Inner:
    """Input + value * tensor1 / tensor2. RuntimeError for integers."""
    if not {each.dtype.kind for each in (tensor1, tensor2)} & {"float", "complex"}:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert the tensors to floats"
        )
    quotient = div(tensor1, tensor2)
    return add(input, mul(quotient, value) if value != 1 else quotient)


def bitwise_left_shift(input: Any, other: Any) -> Inner:
    """Input << other; 0 for shifts by as many bits as there are, or more, or by negative ones."""
    return _shifted("bitwise_left_shift", input, other)


def bitwise_right_shift(input: Any, other: Any) -> Inner:
    """Input >> other; the sign fills it for shifts by as many bits as there are, or more."""
    return _shifted("bitwise_right_shift", input, other)


def _shifted(name: str, input: Any, other: Any) -> Inner:
    one, by = common(name, input, other)
    dtype = result_type(one, by)
    if not dtype.is_integer:
        raise RuntimeError(f"{name} takes integers, not {dtype}")
    bits = dtype.bits
    if not isinstance(one, Inner):
        one = td.asarray(one, dtype=dtype, device=by.device)
    if not isinstance(by, Inner):
        if 0 <= by < bits:
            return apply(name, one, by)
        by = td.asarray(by, dtype=dtype, device=one.device)
    is_within = (by >= 0) & (by < bits)
    made = apply(name, one, OF["where"](is_within, by, 0))
    is_signed = name == "bitwise_right_shift" and dtype.kind == "int"
    beyond: Any = OF["where"](one < 0, -1, 0) if is_signed else 0
    return OF["where"](is_within, made, cast(beyond, dtype))


# --- choices and comparisons ---------------------------------------------------------------------


def where(condition: Inner, input: Any = None, other: Any = None) -> Any:
    """Input where the condition holds, else other; of the condition alone the indices where it
    holds, a tensor for each axis."""
    if input is None and other is None:
        return tuple(each.to(td.int64) for each in td.nonzero(condition))
    if (
        type(input) is Inner
        and type(other) is Inner
        and condition.dtype is bool_
        and input.dtype is other.dtype
        and input.device is other.device is condition.device
    ):
        return OF["where"](condition, input, other)
    if condition.dtype not in (bool_, td.uint8):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, not {condition.dtype}"
        )
    dtype = result_type(input, other)
    test = condition.to(bool_)
    if not isinstance(input, Inner) and not isinstance(other, Inner):
        input = td.full((), input, dtype=dtype, device=condition.device)
    _, one, two = _on_one_device(test, cast(input, dtype), cast(other, dtype))
    return OF["where"](test, one, two)


def where_method(input: Any, condition: Inner, other: Any) -> Any:
    """Input where the condition holds, else other: the method."""
    return where(condition, input, other)


def _on_one_device(first: Inner, *others: Any) -> list[Any]:
    return [
        first,
        *(
            each.to(first.device) if isinstance(each, Inner) and not each.shape else each
            for each in others
        ),
    ]


def masked_fill(input: Inner, mask: Inner, value: Any) -> Inner:
    """A number (or a tensor without axes) where the mask is true, else the elements."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got {mask.dtype}")
    if isinstance(value, Inner):
        if value.shape:
            raise RuntimeError(
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value.shape)} dimension(s)."
            )
        value = value.to(input.device)
    if result_type(value).is_complex and not input.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {input.dtype} without overflow")
    if not isinstance(value, Inner):
        value = bool(value) if input.dtype is bool_ else value
        value = int(value) if input.dtype.is_integer else value
    return OF["where"](mask, cast(value, input.dtype), input)


def isclose(
    input: Inner, other: Inner, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Inner:
    """Whether |input - other| <= atol + rtol * |other|. RuntimeError for different dtypes."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"rtol and atol must not be negative, but got {rtol} and {atol}")
    return td.isclose(input, other, rtol, atol, equal_nan)


def allclose(
    input: Inner, other: Inner, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, as by `isclose`."""
    return bool(td.all(isclose(input, other, rtol, atol, equal_nan)).item())


def equal(input: Inner, other: Inner) -> bool:
    """Whether both have one shape and the same elements."""
    if input.shape != other.shape:
        return False
    return bool(td.all(promoted("equal", input, other)).item())


# --- fractions and exponents ---------------------------------------------------------------------


class FractionExponent(NamedTuple):
    """What `frexp` returns: x is mantissa * 2**exponent."""

    mantissa: Inner
    exponent: Inner


# For each width: the exponent of a number that is neither 0 nor below the normal ones, and 2**n.


@td.elementwise
def _exponent_32(x: td.f32):  # type: ignore[no-untyped-def]
    return td.i32((td.bitcast(x, td.u32) >> 23) & 255) - 126


@td.elementwise
def _power_32(n: td.i32):  # type: ignore[no-untyped-def]
    return td.bitcast(td.u32(n + 127) << 23, td.f32)


@td.elementwise
def _exponent_64(x: td.f64):  # type: ignore[no-untyped-def]
    return td.i32((td.bitcast(x, td.u64) >> 52) & 2047) - 1022


@td.elementwise
def _power_64(n: td.i32):  # type: ignore[no-untyped-def]
    return td.bitcast(td.u64(n + 1023) << 52, td.f64)


def frexp(input: Inner) -> FractionExponent:
    """Mantissas from 0.5 up to 1 (or their negatives), and exponents of 2."""
    dtype = input.dtype
    if dtype.kind != "float":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    if dtype.bits < 32:
        mantissa, exponent = frexp(input.to(td.float32))
        return FractionExponent(mantissa.to(dtype), exponent)
    of, power, least = (
        (_exponent_32, _power_32, 24) if dtype.bits == 32 else (_exponent_64, _power_64, 53)
    )
    plain = input.detach()
    is_small = apply("abs", plain) < float(td.finfo(dtype).smallest_normal) * 2.0**least
    exponent = of(OF["where"](is_small, plain * 2.0**least, plain)) - OF["where"](
        is_small, least, 0
    )
    is_usual = apply("isfinite", plain) & (plain != 0)
    exponent = OF["where"](is_usual, exponent.to(td.int32), 0).to(td.int32)
    # Two factors, since 2**-exponent may be beyond the dtype.
    half = apply("floor_divide", exponent, 2)
    mantissa = input * power(-half) * power(half - exponent)
    return FractionExponent(mantissa, exponent)


# --- integers ------------------------------------------------------------------------------------


@td.elementwise
def _gcd(x, y):  # type: ignore[no-untyped-def]
    while y != 0:
        rest = x % y
        x = y
        y = rest
    return x


def gcd(input: Inner, other: Inner) -> Inner:
    """The greatest common divisor."""
    one, two = common("gcd", input, other)
    dtype: DType = result_type(one, two)
    if not dtype.is_integer:
        raise RuntimeError(f"gcd takes integers, not {dtype}")
    return _gcd(apply("abs", one), apply("abs", two)).to(dtype)


def lcm(input: Inner, other: Inner) -> Inner:
    """The least common multiple."""
    one, two = common("lcm", input, other)
    divisor = gcd(one, two)
    safe = OF["where"](divisor == 0, 1, divisor)
    return apply("abs", apply("floor_divide", one, safe) * two)


def matmul(input: Inner, other: Inner) -> Inner:
    """The product of matrices and vectors."""
    if input.dtype is not other.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {input.dtype} != {other.dtype}"
        )
    return td.matmul(input, other)
