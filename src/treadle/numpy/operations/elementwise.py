"""What ufuncs compute: by NumPy's names, of operands in the dtype that NumPy has chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import treadle as td
from treadle.core.dtypes import ALL_DTYPES
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner

Computation = Callable[..., Any]

# NumPy's name: treadle's, where both mean the same for every dtype.
SAME = {
    "absolute": "abs", "add": "add", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "cbrt": "cbrt", "ceil": "ceil", "conjugate": "conj", "copysign": "copysign", "cos": "cos",
    "cosh": "cosh", "divide": "divide", "equal": "equal", "exp": "exp", "exp2": "exp2",
    "expm1": "expm1", "fabs": "abs", "floor": "floor", "floor_divide": "floor_divide",
    "hypot": "hypot", "invert": "bitwise_invert", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "left_shift": "bitwise_left_shift", "log": "log", "log10": "log10",
    "log1p": "log1p", "log2": "log2", "logical_and": "logical_and", "logical_not": "logical_not",
    "logical_or": "logical_or", "logical_xor": "logical_xor", "multiply": "multiply",
    "negative": "negative", "nextafter": "nextafter", "not_equal": "not_equal",
    "positive": "positive", "power": "pow", "remainder": "remainder",
    "right_shift": "bitwise_right_shift", "rint": "round", "sign": "sign", "signbit": "signbit",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "subtract": "subtract",
    "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip


def _same(name: str) -> Computation:
    return lambda *operands: apply(name, *operands)


def _is_complex(*operands: Any) -> bool:
    return any(type(each) is Inner and each.dtype.kind == "complex" for each in operands)


# --- orders, also of complex numbers --------------------------------------------------------------


def _mixed(inner: str, signed: Inner, unsigned: Inner) -> Inner:
    """A comparison of integers of 64 bits, of which one side has signs and the other has not."""
    is_negative = signed < 0
    same = apply(inner, signed.to(unsigned.dtype), unsigned)
    of_negative = inner in ("less", "less_equal", "not_equal")
    return td.where(is_negative, of_negative, same)


_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less",
           "greater_equal": "less_equal", "equal": "equal", "not_equal": "not_equal"}  # fmt: skip


def _comparison(inner: str) -> Computation:
    """`<` and its like. Complex numbers are compared by their real parts, then the others."""

    def function(one: Any, other: Any) -> Inner:
        if not _is_complex(one, other):
            if type(one) is Inner and type(other) is Inner:
                kinds = one.dtype.kind, other.dtype.kind
                if kinds == ("int", "uint"):
                    return _mixed(inner, one, other)
                if kinds == ("uint", "int"):
                    return _mixed(_TURNED[inner], other, one)
            return apply(inner, one, other)
        if inner in ("equal", "not_equal"):
            return apply(inner, one, other)
        one, other = _of_pairs(one, other)
        ahead = apply(
            "less" if inner.startswith("less") else "greater", td.real(one), td.real(other)
        )
        second = apply(inner, td.imag(one), td.imag(other))
        tied = apply("equal", td.real(one), td.real(other))
        return apply("logical_or", ahead, apply("logical_and", tied, second))

    return function


def _extreme(inner: str, comparison: str, is_lenient: bool) -> Computation:
    """The greater or the smaller of two; NaN if one is NaN, or (`fmax`) if both are."""

    def function(one: Any, other: Any) -> Any:
        dtype = one.dtype if type(one) is Inner else other.dtype
        if dtype.kind in ("bool", "int", "uint") or (dtype.kind == "float" and not is_lenient):
            return apply(inner, one, other)
        if type(one) is not Inner:
            one = td.full((), one, dtype=dtype, device=other.device)
        if type(other) is not Inner:
            other = td.full((), other, dtype=dtype, device=one.device)
        if is_lenient:
            chosen = FUNCTIONS[comparison](one, other) | td.isnan(other)
            chosen = td.where(td.isnan(one), td.isnan(other) & td.isnan(one), chosen)
            return td.where(chosen, one, other)
        return td.where(FUNCTIONS[comparison](one, other) | td.isnan(one), one, other)

    return function


# --- integers -------------------------------------------------------------------------------------


@td.elementwise
def _gcd(a: Any, b: Any) -> Any:
    x = a
    y = b
    while y != 0:
        rest = x % y
        x = y
        y = rest
    return x if x >= 0 else -x


@td.elementwise
def _gcd_unsigned(a: Any, b: Any) -> Any:
    x = a
    y = b
    while y != 0:
        rest = x % y
        x = y
        y = rest
    return x


def _of_pairs(one: Any, other: Any) -> tuple[Inner, Inner]:
    like = one if type(one) is Inner else other
    found = [
        each if type(each) is Inner else td.full((), each, dtype=like.dtype, device=like.device)
        for each in (one, other)
    ]
    return found[0], found[1]


def _in_wide(function: Callable[[Inner, Inner], Inner]) -> Computation:
    """Small integers are computed in 32 bits."""

    def call(one: Any, other: Any) -> Inner:
        one, other = _of_pairs(one, other)
        own = one.dtype
        if own.itemsize < 4:
            wide = td.int32 if own.kind == "int" else td.uint32
            return function(one.to(wide), other.to(wide)).to(own)
        return function(one, other)

    return call


def _greatest_divisor(one: Inner, other: Inner) -> Inner:
    made: Inner = (_gcd if one.dtype.kind == "int" else _gcd_unsigned)(one, other)
    return made


def _least_multiple(one: Inner, other: Inner) -> Inner:
    divisor = _greatest_divisor(one, other)
    quotient = apply("floor_divide", one, td.where(divisor == 0, 1, divisor).to(one.dtype))
    return apply("abs", apply("multiply", quotient, other)) if one.dtype.kind == "int" else (
        apply("multiply", quotient, other)
    )  # fmt: skip


@td.elementwise
def _bits_of_int(x: td.i32) -> Any:
    return td.popcount(td.u32(x))


@td.elementwise
def _bits_of_uint(x: td.u32) -> Any:
    return td.popcount(x)


def _bitwise_count(x: Inner) -> Any:
    """The ones of an absolute value."""
    if x.dtype.kind == "bool":
        return x.to(td.uint8)
    if x.dtype.kind == "int":
        x = apply("abs", x).to(getattr(td, f"u{x.dtype.name}"))
    if x.dtype.itemsize < 8:
        return _bits_of_uint(x.to(td.uint32)).to(td.uint8)
    low = (x & 0xFFFFFFFF).to(td.uint32)
    high = apply("bitwise_right_shift", x, 32).to(td.uint32)
    return (_bits_of_uint(low) + _bits_of_uint(high)).to(td.uint8)


def _reciprocal(x: Inner) -> Inner:
    if x.dtype.kind in ("float", "complex"):
        return apply("reciprocal", x)
    inverse = td.where(x == 1, 1, 0).to(x.dtype)
    if x.dtype.kind == "uint":
        return inverse
    inverse = td.where(x == -1, -1, inverse)
    if x.dtype.itemsize >= 4:  # infinity as an integer, as processors cast it
        inverse = td.where(x == 0, td.iinfo(x.dtype).min, inverse)
    return inverse.to(x.dtype)


def _fmod(one: Any, other: Any) -> Inner:
    """The remainder with the dividend's sign."""
    one, other = _of_pairs(one, other)
    if one.dtype.kind == "float":
        rest = apply("remainder", apply("abs", one), apply("abs", other))
        rest = td.where(td.isinf(other) & td.isfinite(one), apply("abs", one), rest)
        return apply("copysign", rest, one)
    if one.dtype.kind == "uint":
        return apply("remainder", one, other)
    rest = apply("remainder", one, other)
    return td.where((rest != 0) & ((one < 0) != (other < 0)), rest - other, rest)


def _floor_divide(one: Any, other: Any) -> Inner:
    """As Python's: of floating numbers by the remainder, so that `x == y * (x // y) + x % y`."""
    one, other = _of_pairs(one, other)
    if one.dtype.kind != "float":
        return apply("floor_divide", one, other)
    quotient = apply("divide", one, other)
    rest = apply("remainder", one, other)
    exact = apply("round", (one - rest) / other)
    return td.where(
        td.isfinite(quotient) & (other != 0) & td.isfinite(other),
        td.where(exact == 0, apply("copysign", exact, quotient), exact),
        td.where(
            td.isfinite(one) & td.isinf(other),
            td.where(
                (one != 0) & ((one < 0) != (other < 0)),
                -1.0,
                apply("copysign", quotient * 0, quotient),
            ),
            td.where(td.isinf(one) & (other != 0), math.nan, quotient),
        ),
    ).to(one.dtype)


def _power(one: Any, other: Any) -> Inner:
    """ValueError for negative powers of integers, for which exponents on the device are read."""
    is_empty = any(type(each) is Inner and not each.size for each in (one, other))
    if type(other) is Inner and other.dtype.kind == "int":
        if not is_empty and not _is_traced() and bool(td.any(other < 0)):
            raise ValueError("Integers to negative integer powers are not allowed.")
    elif type(other) is int and other < 0 and _is_integer(one):
        if not is_empty:
            raise ValueError("Integers to negative integer powers are not allowed.")
        other = 0  # nothing is computed
    return apply("pow", one, other)


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is Inner and value.dtype.kind in ("int", "uint"))


def _is_traced() -> bool:
    """Whether elements are not known: in a function within `td.vmap` or `td.compile`."""
    from treadle.graph.placeholders import within

    return within.get() is not None


# --- floating numbers -----------------------------------------------------------------------------


def _float_power(one: Any, other: Any) -> Inner:
    return apply("pow", one, other)


def _scaled(factor: float) -> Computation:
    return lambda x: x * factor


def _divmod(one: Any, other: Any) -> tuple[Inner, Inner]:
    return _floor_divide(one, other), apply("remainder", one, other)


def _modf(x: Inner) -> tuple[Inner, Inner]:
    whole = apply("trunc", x)
    rest = td.where(td.isinf(x), 0, x - whole).to(x.dtype)
    return apply("copysign", rest, x), apply("copysign", whole, x)


def _heaviside(x: Any, middle: Any) -> Any:
    x, middle = _of_pairs(x, middle)
    steps = td.where(x > 0, 1, 0).to(x.dtype)
    return td.where(td.isnan(x), x, td.where(x == 0, middle, steps))


def _logaddexp2(one: Any, other: Any) -> Inner:
    one, other = _of_pairs(one, other)
    factor, own = math.log(2.0), one.dtype
    if own.itemsize == 2:
        one, other = one.to(td.float32), other.to(td.float32)
    return (apply("logaddexp", one * factor, other * factor) / factor).to(own)


def _logaddexp(one: Any, other: Any) -> Inner:
    return apply("logaddexp", *_of_pairs(one, other))


_LEAST = {"float16": -14, "float32": -126, "float64": -1022}  # exponents of normal numbers
_MANTISSA = {"float16": 10, "float32": 23, "float64": 52}
_BITS = {"float16": td.int16, "float32": td.int32, "float64": td.int64}


def _exponent(x: Inner) -> Inner:
    """The exponent of |x| in [0.5, 1) * 2**e, as int32; 0 of 0 and of what is not finite."""
    least = _LEAST[x.dtype.name]
    digits = _MANTISSA[x.dtype.name]
    is_small = apply("abs", x) < 2.0**least
    scaled = td.where(is_small, x * 2.0 ** (digits + 1), x)
    guess = apply("floor", apply("log2", apply("abs", scaled)))
    guess = td.where(td.isfinite(x) & (x != 0), guess, 0).to(td.int32)
    # The logarithm is rounded: near powers of two it may be one off.
    size = apply("abs", scaled) * apply("exp2", (-guess).to(x.dtype))
    guess = td.where(size >= 2, guess + 1, td.where(size < 1, guess - 1, guess))
    guess = guess - td.where(is_small, digits + 1, 0).to(td.int32)
    return td.where(td.isfinite(x) & (x != 0), guess + 1, 0).to(td.int32)


def _times_power(x: Inner, exponent: Inner) -> Inner:
    """X * 2**exponent in three steps, none of which overflows alone."""
    least = -_LEAST[x.dtype.name]
    limit = 4 * least
    rest = td.clip(exponent, -limit, limit).to(td.int32)
    for _ in range(4):
        step = td.clip(rest, -least, least)
        x = x * apply("exp2", step.to(x.dtype))
        rest = rest - step
    return x


def _frexp(x: Inner) -> tuple[Inner, Inner]:
    exponent = _exponent(x)
    mantissa = _times_power(x, -exponent)
    return td.where(td.isfinite(x), mantissa, x), exponent


def _ldexp(x: Any, exponent: Any) -> Inner:
    if type(x) is not Inner:
        x = td.full((), x, dtype=td.float64, device=exponent.device)
    if type(exponent) is not Inner:
        exponent = td.full((), exponent, dtype=td.int32, device=x.device)
    return _times_power(x, exponent)


def _spacing(x: Inner) -> Inner:
    """The distance to the next number away from 0."""
    size = apply("abs", x)
    inf = td.full((), math.inf, dtype=x.dtype, device=x.device)
    gap = apply("nextafter", size, inf) - size
    gap = td.where(td.isfinite(x), gap, math.nan).to(x.dtype)
    return gap if x.dtype is td.float16 else apply("copysign", gap, x)  # NumPy's halves, too


def _exp2(x: Inner) -> Inner:
    return apply("exp2", x)


FUNCTIONS: dict[str, Computation] = {
    **{name: _same(inner) for name, inner in SAME.items()},
    "bitwise_count": _bitwise_count,
    "deg2rad": _scaled(math.pi / 180),
    "degrees": _scaled(180 / math.pi),
    "divmod": _divmod,
    "equal": _comparison("equal"),
    "float_power": _float_power,
    "floor_divide": _floor_divide,
    "fmax": _extreme("maximum", "greater_equal", True),
    "fmin": _extreme("minimum", "less_equal", True),
    "fmod": _fmod,
    "frexp": _frexp,
    "gcd": _in_wide(_greatest_divisor),
    "greater": _comparison("greater"),
    "greater_equal": _comparison("greater_equal"),
    "heaviside": _heaviside,
    "lcm": _in_wide(_least_multiple),
    "ldexp": _ldexp,
    "less": _comparison("less"),
    "less_equal": _comparison("less_equal"),
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
    "maximum": _extreme("maximum", "greater_equal", False),
    "minimum": _extreme("minimum", "less_equal", False),
    "modf": _modf,
    "not_equal": _comparison("not_equal"),
    "power": _power,
    "rad2deg": _scaled(180 / math.pi),
    "radians": _scaled(math.pi / 180),
    "reciprocal": _reciprocal,
    "spacing": _spacing,
}

# Functions of treadle's that are NumPy's for two tensors of one dtype, of these kinds: operators
# take them without promotion.
DIRECT: dict[str, tuple[str, str]] = {
    "add": ("add", "int uint float complex bool"),
    "bitwise_and": ("bitwise_and", "int uint bool"),
    "bitwise_or": ("bitwise_or", "int uint bool"),
    "bitwise_xor": ("bitwise_xor", "int uint bool"),
    "divide": ("divide", "float complex"),
    "equal": ("equal", "int uint float complex bool"),
    "greater": ("greater", "int uint float bool"),
    "greater_equal": ("greater_equal", "int uint float bool"),
    "less": ("less", "int uint float bool"),
    "less_equal": ("less_equal", "int uint float bool"),
    "maximum": ("maximum", "int uint float bool"),
    "minimum": ("minimum", "int uint float bool"),
    "multiply": ("multiply", "int uint float complex bool"),
    "not_equal": ("not_equal", "int uint float complex bool"),
    "power": ("pow", "float complex"),
    "floor_divide": ("floor_divide", "int uint"),
    "remainder": ("remainder", "int uint float"),
    "subtract": ("subtract", "int uint float complex"),
}


class Direct(NamedTuple):
    """Treadle's function that is NumPy's for operands that need no promotion."""

    function: str
    same: frozenset[str]
    """The dtypes that two tensors may have."""
    floating: frozenset[str]
    """The dtypes of a tensor that a number of Python's beside it takes, floating or an integer."""
    integral: frozenset[str]
    """Those that an integer takes, if it fits."""


def direct_of(name: str) -> Direct:
    """The short way of a ufunc of two operands; without dtypes if there is none."""
    function, kinds = DIRECT.get(name, ("", ""))
    known = [each for each in ALL_DTYPES if each.name != "bfloat16"]
    dtypes = [each for each in known if each.kind in kinds.split()]
    return Direct(
        function,
        frozenset(each.name for each in dtypes),
        frozenset(each.name for each in dtypes if each.kind == "float"),
        frozenset(each.name for each in dtypes if each.kind in ("int", "uint")),
    )


def unary_of(name: str) -> dict[str, str]:
    """Treadle's function that is the ufunc of one operand, by the names of floating dtypes."""
    function = SAME.get(name)
    if function is None or name == "invert":
        return {}
    return {f"float{bits}": function for bits in (16, 32, 64)}
