"""CUDA's mathematics in single and double precision: sinf, sin, fmaxf, isnan, norm3d …

In C a function of float ends in `f`; C++ overloads the plain name for each type, and converts
integers to `double` (see FLOATING). Functions without an operation on every target are those of
`treadle.lang.math`.
"""

from __future__ import annotations

from treadle.cuda_cpp.builtins.fast import fast_exp10, fast_log10
from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import (
    LIBRARY,
    Recipe,
    Table,
    binary,
    both,
    cast,
    choose,
    compare,
    either,
    greatest,
    intrinsic,
    least,
    merged,
    number,
    of_intrinsic,
    of_library,
    of_library_or_fast,
    overloads,
    test,
    with_sign,
)
from treadle.cuda_cpp.builtins.rounding import whole_number
from treadle.ir import nodes as n
from treadle.ir import types as t

_BOTH = (t.F32, t.F64)

# --- recipes -------------------------------------------------------------------------------------


def _fmod(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    return binary("rem", x, y)


def _fdim(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    """The difference where it is positive, else 0; NaN if either is NaN."""
    x, y = maker.let(x), maker.let(y)
    return choose(compare("le", x, y), number(0, x.type), binary("sub", x, y))


def _copysign(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    return with_sign(x, y)


def _round(maker: Maker, x: n.Expression) -> n.Expression:
    """To the nearest whole number, halves away from zero (`rint` rounds them to even)."""
    x = maker.let(x)
    whole = maker.let(intrinsic("trunc", x))
    rest = intrinsic("abs", binary("sub", x, whole))
    outwards = binary("add", whole, with_sign(number(1, x.type), x))
    return choose(compare("ge", rest, 0.5), outwards, whole)


def _to_integer(rounding: Recipe) -> Recipe:
    return lambda maker, x: whole_number(maker, rounding(maker, x), t.I64)


def _reciprocal_root(maker: Maker, x: n.Expression) -> n.Expression:
    """The device's own: in float32 it is within the 2 ULP that CUDA guarantees."""
    if x.type == t.F32:
        return intrinsic("fast_rsqrt", x)
    return maker.library("rsqrt", x)


def _test(op: str, result: t.Scalar) -> Recipe:
    return lambda maker, x: cast(test(op, x), result)


def _is_normal(maker: Maker, x: n.Expression) -> n.Expression:
    smallest = 1.1754943508222875e-38 if x.type == t.F32 else 2.2250738585072014e-308
    x = maker.let(x)
    large = compare("ge", intrinsic("abs", x), smallest)
    return both(large, test("isfinite", x))


def _unordered(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    return either(test("isnan", x), test("isnan", y))


def _less_or_greater(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    x, y = maker.let(x), maker.let(y)
    return either(compare("lt", x, y), compare("gt", x, y))


def _exp10(maker: Maker, x: n.Expression) -> n.Expression:
    if maker.fastmath and x.type == t.F32:
        return fast_exp10(maker, x)
    return maker.library("exp10", x)


def _log10(maker: Maker, x: n.Expression) -> n.Expression:
    if maker.fastmath and x.type == t.F32:
        return fast_log10(maker, x)
    return maker.library("log10", x)


def _scale_by_long(maker: Maker, x: n.Expression, exponent: n.Expression) -> n.Expression:
    """Scaling by a long, which is clamped: scaling by 2^16384 gives 0 or infinity already."""
    low = intrinsic("max", exponent, number(-16384, t.I64))
    held = intrinsic("min", low, number(16384, t.I64))
    return maker.library("ldexp", x, cast(held, t.I32))


def _comparison(op: str) -> Recipe:
    return lambda maker, x, y: compare(op, x, y)


def _order_first(name: str) -> Recipe:
    """The function jn(n, x), whose operands the library has in the other order."""
    return lambda maker, order, x: maker.library(name, x, order)


# --- tables --------------------------------------------------------------------------------------

# name of a unary function: its recipe, and what it is emulated by
_UNARY: dict[str, tuple[Recipe, str]] = {
    "fabs": (of_intrinsic("abs"), ""),
    "sqrt": (of_intrinsic("sqrt"), ""),
    "floor": (of_intrinsic("floor"), ""),
    "ceil": (of_intrinsic("ceil"), ""),
    "trunc": (of_intrinsic("trunc"), ""),
    "rint": (of_intrinsic("rint"), ""),
    "nearbyint": (of_intrinsic("rint"), ""),
    "round": (_round, "trunc and a step away from zero"),
    "rsqrt": (_reciprocal_root, LIBRARY),
    "exp10": (_exp10, LIBRARY),
    "log10": (_log10, LIBRARY),
    "tgamma": (of_library("gamma"), LIBRARY),
}
_UNARY |= {
    name: (of_library_or_fast(name, f"fast_{name}"), LIBRARY)
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh")
}
_UNARY |= {
    name: (of_library(name), LIBRARY)
    for name in (
        "expm1", "log1p", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
        "cbrt", "rcbrt", "erf", "erfc", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv",
        "lgamma", "sinpi", "cospi", "logb", "j0", "j1", "y0", "y1", "cyl_bessel_i0",
        "cyl_bessel_i1",
    )
}  # fmt: skip

# name: number of arguments, recipe, what it is emulated by
_SEVERAL: dict[str, tuple[int, Recipe, str]] = {
    "fmod": (2, _fmod, ""),
    "fdim": (2, _fdim, ""),
    "fmin": (2, least, ""),
    "fmax": (2, greatest, ""),
    "copysign": (2, _copysign, ""),
    "fma": (3, of_intrinsic("fma"), ""),
    "pow": (2, of_library_or_fast("pow", "fast_pow"), LIBRARY),
    "atan2": (2, of_library("atan2"), LIBRARY),
    "hypot": (2, of_library("hypot"), LIBRARY),
    "rhypot": (2, of_library("rhypot"), LIBRARY),
    "nextafter": (2, of_library("nextafter"), LIBRARY),
    "remainder": (2, of_library("remainder"), LIBRARY),
    "norm3d": (3, of_library("norm3d"), LIBRARY),
    "rnorm3d": (3, of_library("rnorm3d"), LIBRARY),
    "norm4d": (4, of_library("norm4d"), LIBRARY),
    "rnorm4d": (4, of_library("rnorm4d"), LIBRARY),
}

# name: types of the parameters (None: the function's own), result, recipe, emulation
_Mixed = tuple[tuple[t.Scalar | None, ...], t.Scalar | None, Recipe, str]
_MIXED: dict[str, _Mixed] = {
    "ldexp": ((None, t.I32), None, of_library("ldexp"), LIBRARY),
    "scalbn": ((None, t.I32), None, of_library("ldexp"), LIBRARY),
    "scalbln": ((None, t.I64), None, _scale_by_long, LIBRARY),
    "ilogb": ((None,), t.I32, of_library("ilogb"), LIBRARY),
    "jn": ((t.I32, None), None, _order_first("jn"), LIBRARY),
    "yn": ((t.I32, None), None, _order_first("yn"), LIBRARY),
    "lrint": ((None,), t.I64, _to_integer(of_intrinsic("rint")), ""),
    "llrint": ((None,), t.I64, _to_integer(of_intrinsic("rint")), ""),
    "lround": ((None,), t.I64, _to_integer(_round), ""),
    "llround": ((None,), t.I64, _to_integer(_round), ""),
}


def _in_both_types() -> Table:
    """`sin` for float and double, and `sinf`."""
    table: Table = {}

    def add(name: str, parameters: tuple[t.Scalar | None, ...], result: t.Scalar | None,
            recipe: Recipe, note: str) -> None:  # fmt: skip
        found = tuple(
            Overload(tuple(p or type for p in parameters), result or type, recipe, note)
            for type in _BOTH
        )
        table[name] = found
        table[f"{name}f"] = found[:1]

    for name, (recipe, note) in _UNARY.items():
        add(name, (None,), None, recipe, note)
    for name, (arity, recipe, note) in _SEVERAL.items():
        add(name, (None,) * arity, None, recipe, note)
    for name, (parameters, result, recipe, note) in _MIXED.items():
        add(name, parameters, result, recipe, note)
    return table


def _one(type: t.Scalar, result: t.Scalar, recipe: Recipe) -> tuple[Overload, ...]:
    return (Overload((type,), result, recipe),)


_TESTS: Table = {
    name: tuple(Overload((type,), t.BOOL, _test(name, t.BOOL)) for type in _BOTH)
    for name in ("isnan", "isinf", "isfinite", "signbit")
} | {
    "isnormal": tuple(Overload((type,), t.BOOL, _is_normal) for type in _BOTH),
    "isunordered": tuple(Overload((type, type), t.BOOL, _unordered) for type in _BOTH),
    "islessgreater": tuple(Overload((type, type), t.BOOL, _less_or_greater) for type in _BOTH),
    # Functions that the headers' macros call: these return int.
    "__isnanf": _one(t.F32, t.I32, _test("isnan", t.I32)),
    "__isnan": _one(t.F64, t.I32, _test("isnan", t.I32)),
    "__isinff": _one(t.F32, t.I32, _test("isinf", t.I32)),
    "__isinf": _one(t.F64, t.I32, _test("isinf", t.I32)),
    "__finitef": _one(t.F32, t.I32, _test("isfinite", t.I32)),
    "__isfinited": _one(t.F64, t.I32, _test("isfinite", t.I32)),
    "__finite": _one(t.F64, t.I32, _test("isfinite", t.I32)),
    "__signbitf": _one(t.F32, t.I32, _test("signbit", t.I32)),
    "__signbitd": _one(t.F64, t.I32, _test("signbit", t.I32)),
    "__signbit": _one(t.F64, t.I32, _test("signbit", t.I32)),
}
_ORDERED: Table = {
    name: tuple(Overload((type, type), t.BOOL, _comparison(op)) for type in _BOTH)
    for name, op in (
        ("isless", "lt"), ("islessequal", "le"), ("isgreater", "gt"), ("isgreaterequal", "ge"),
    )
}  # fmt: skip


def _in_double(recipe: Recipe) -> tuple[Overload, ...]:
    """Overloads for a float and a double, which return double."""

    def build(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
        return recipe(maker, cast(x, t.F64), cast(y, t.F64))

    return tuple(Overload(pair, t.F64, build) for pair in (_BOTH, _BOTH[::-1]))


# `abs`, `min` and `max` of floats; the integers' are in `integers`.
_SHARED: Table = {
    "abs": overloads(_BOTH, 1, of_intrinsic("abs")),
    "min": overloads(_BOTH, 2, least) + _in_double(least),
    "max": overloads(_BOTH, 2, greatest) + _in_double(greatest),
}

FUNCTIONS: Table = merged(_in_both_types(), _TESTS, _ORDERED, _SHARED)

# Names that <cmath> has for every arithmetic type. Where not every argument whose parameter is
# floating in all overloads is a float, they all count as double: sin(1), pow(2.0f, 2) and
# fmax(1.0f, 2.0) are double. (Names that end in f, and intrinsics, convert as usual.)
FLOATING: frozenset[str] = frozenset({*_UNARY, *_SEVERAL, *_MIXED, *_TESTS, *_ORDERED}) - {
    name for name in _TESTS if name.startswith("__")
}
