"""CUDA's mathematical intrinsics: __sinf and others that trade accuracy for speed, and operations
with a rounding mode in their name (__fadd_rn, __drcp_rz)."""

from __future__ import annotations

from treadle.cuda_cpp.builtins.overload import Maker
from treadle.cuda_cpp.builtins.recipes import (
    UNFUSED,
    UNSIGNED,
    Recipe,
    Table,
    binary,
    bits_as,
    intrinsic,
    merged,
    number,
    of_binary,
    of_intrinsic,
    overloads,
    saturated,
    sign_mask,
    unfused_binary,
)
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.math.directed import DOWN, UP, ZERO

HARDWARE = "the target's own, with its accuracy"
_ON_INTEGERS = "treadle's own arithmetic on the digits"


def fast_exp10(maker: Maker, x: n.Expression) -> n.Expression:
    """Ten to the power x, as 2^(x log2 10)."""
    return intrinsic("fast_exp2", binary("mul", x, 3.321928094887362))


def fast_log10(maker: Maker, x: n.Expression) -> n.Expression:
    """The logarithm to base 10, from the one to base 2."""
    return binary("mul", intrinsic("fast_log2", x), 0.3010299956639812)


def _reciprocal(maker: Maker, x: n.Expression) -> n.Expression:
    return binary("div", number(1, x.type), x)


def _reciprocal_root(maker: Maker, x: n.Expression) -> n.Expression:
    return maker.library("rsqrt", x)


_FAST: Table = {
    name: overloads((t.F32,), arity, recipe, HARDWARE)
    for name, arity, recipe in (
        ("__sinf", 1, of_intrinsic("fast_sin")),
        ("__cosf", 1, of_intrinsic("fast_cos")),
        ("__tanf", 1, of_intrinsic("fast_tan")),
        ("__tanhf", 1, of_intrinsic("fast_tanh")),
        ("__expf", 1, of_intrinsic("fast_exp")),
        ("__exp10f", 1, fast_exp10),
        ("__logf", 1, of_intrinsic("fast_log")),
        ("__log2f", 1, of_intrinsic("fast_log2")),
        ("__log10f", 1, fast_log10),
        ("__powf", 2, of_intrinsic("fast_pow")),
    )
}

_FLOAT_AND_DOUBLE = (("f", t.F32), ("d", t.F64))


def _rounded_to_nearest() -> Table:
    table: Table = {}
    recipes: tuple[tuple[str, int, Recipe, str], ...] = (
        ("add", 2, unfused_binary("add"), UNFUSED),
        ("sub", 2, unfused_binary("sub"), UNFUSED),
        ("mul", 2, unfused_binary("mul"), UNFUSED),
        ("div", 2, of_binary("div"), ""),
        ("rcp", 1, _reciprocal, ""),
        ("sqrt", 1, of_intrinsic("sqrt"), ""),
    )
    for letter, type in _FLOAT_AND_DOUBLE:
        for name, arity, recipe, note in recipes:
            table[f"__{letter}{name}_rn"] = overloads((type,), arity, recipe, note)
    table["__frsqrt_rn"] = overloads((t.F32,), 1, _reciprocal_root)
    for name in ("__fmaf_rn", "__fmaf_ieee_rn"):
        table[name] = overloads((t.F32,), 3, of_intrinsic("fma"))
    table["__fma_rn"] = overloads((t.F64,), 3, of_intrinsic("fma"))
    return table


# The library's numbers for the directions.
_DIRECTIONS = {"rz": ZERO, "ru": UP, "rd": DOWN}


def _directed(name: str, direction: int) -> Recipe:
    return lambda maker, *operands: maker.library(name, *operands, number(direction, t.I32))


def _difference(direction: int) -> Recipe:
    """A difference rounded in a direction: the sum with the sign bit flipped."""

    def build(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
        assert isinstance(y.type, t.Scalar)
        flipped = binary("xor", bits_as(y, UNSIGNED[y.type]), sign_mask(y.type))
        other = bits_as(flipped, y.type)
        return maker.library("add_directed", x, other, number(direction, t.I32))

    return build


def _directed_reciprocal(direction: int) -> Recipe:
    return lambda maker, x: maker.library(
        "div_directed", number(1, x.type), x, number(direction, t.I32)
    )


def _rounded_in_directions() -> Table:
    table: Table = {}
    for mode, direction in _DIRECTIONS.items():
        recipes: tuple[tuple[str, int, Recipe], ...] = (
            ("add", 2, _directed("add_directed", direction)),
            ("sub", 2, _difference(direction)),
            ("mul", 2, _directed("mul_directed", direction)),
            ("div", 2, _directed("div_directed", direction)),
            ("rcp", 1, _directed_reciprocal(direction)),
            ("sqrt", 1, _directed("sqrt_directed", direction)),
        )
        for letter, type in _FLOAT_AND_DOUBLE:
            for name, arity, recipe in recipes:
                table[f"__{letter}{name}_{mode}"] = overloads((type,), arity, recipe, _ON_INTEGERS)
        fused = _directed("fma_directed", direction)
        for name in ("__fmaf", "__fmaf_ieee"):
            table[f"{name}_{mode}"] = overloads((t.F32,), 3, fused, _ON_INTEGERS)
        table[f"__fma_{mode}"] = overloads((t.F64,), 3, fused, _ON_INTEGERS)
    return table


_OTHERS: Table = {
    "__fdividef": overloads((t.F32,), 2, of_binary("div")),
    "fdividef": overloads((t.F32,), 2, of_binary("div")),
    "fdivide": overloads((t.F32, t.F64), 2, of_binary("div")),
    "__saturatef": overloads((t.F32,), 1, saturated),
}

FUNCTIONS: Table = merged(_FAST, _rounded_to_nearest(), _rounded_in_directions(), _OTHERS)
