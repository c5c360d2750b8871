"""cuda_fp16.h and cuda_bf16.h: __half, __nv_bfloat16 and pairs of them.

A pair (`__half2`) is a vec2. Mathematics is computed in float and rounded once, which is about the
accuracy of CUDA's `hexp` and similar functions.
"""

from __future__ import annotations

from treadle.cuda_cpp.builtins.conversions import MODES, in_mode
from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import (
    INTEGERS,
    LIBRARY,
    UNFUSED,
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
    negated,
    negative,
    number,
    of_binary,
    of_bits,
    of_cast,
    of_intrinsic,
    pair,
    part,
    saturated,
    test,
    unfused_binary,
)
from treadle.cuda_cpp.builtins.rounding import integer_to_half, narrowed, rounded_to_integer
from treadle.ir import nodes as n
from treadle.ir import types as t

_FLOAT2 = t.Vector(t.F32, 2)
# The names of types in those of functions: "half" in __float2half, "half2" in __half22float2.
_NAMES = ((t.F16, "half", "half2"), (t.BF16, "bfloat16", "bfloat162"))
_INTEGERS = {
    "short": t.I16, "ushort": t.U16, "int": t.I32, "uint": t.U32, "ll": t.I64, "ull": t.U64,
}  # fmt: skip

# --- recipes for one number ----------------------------------------------------------------------


def _in_float(recipe: Recipe) -> Recipe:
    """A recipe that is computed in float and rounded."""
    return lambda maker, x: cast(recipe(maker, cast(x, t.F32)), x.type)


def _library(name: str) -> Recipe:
    return _in_float(lambda maker, x: maker.library(name, x))


def _fast(op: str) -> Recipe:
    return _in_float(lambda maker, x: intrinsic(op, x))


def _reciprocal(maker: Maker, x: n.Expression) -> n.Expression:
    return binary("div", number(1, x.type), x)


def _clamped_product_sum(
    maker: Maker, a: n.Expression, b: n.Expression, c: n.Expression
) -> n.Expression:
    return saturated(maker, intrinsic("fma", a, b, c))


def _positive_product_sum(
    maker: Maker, a: n.Expression, b: n.Expression, c: n.Expression
) -> n.Expression:
    """A fused product sum that is at least 0; NaN stays."""
    result = maker.let(intrinsic("fma", a, b, c))
    return choose(compare("lt", result, 0.0), number(0, result.type), result)


def _saturated(op: str) -> Recipe:
    return lambda maker, a, b: saturated(maker, binary(op, a, b))


def _sign_of_infinity(maker: Maker, x: n.Expression) -> n.Expression:
    """1 for infinity, -1 for minus infinity, else 0."""
    x = maker.let(x)
    sign = choose(compare("lt", x, 0.0), number(-1, t.I32), 1)
    return choose(test("isinf", x), sign, 0)


def _ordered(op: str) -> Recipe:
    """A comparison that is false with NaN, `ne` as well, which is true in C."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
        if op != "ne":
            return compare(op, a, b)
        a, b = maker.let(a), maker.let(b)
        return either(compare("lt", a, b), compare("gt", a, b))

    return build


def _unordered(op: str) -> Recipe:
    """A comparison that is true with NaN."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
        if op == "ne":
            return compare("ne", a, b)
        opposite = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
        if op != "eq":
            return negated(compare(opposite[op], a, b))
        a, b = maker.let(a), maker.let(b)
        return negated(either(compare("lt", a, b), compare("gt", a, b)))

    return build


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_ONE: dict[str, tuple[int, Recipe, str]] = {  # of a number: arity, recipe, note
    "neg": (1, lambda maker, x: negative(x), ""),
    "abs": (1, of_intrinsic("abs"), ""),
    "add": (2, of_binary("add"), ""),
    "sub": (2, of_binary("sub"), ""),
    "mul": (2, of_binary("mul"), ""),
    "div": (2, of_binary("div"), ""),
    "add_rn": (2, unfused_binary("add"), UNFUSED),
    "sub_rn": (2, unfused_binary("sub"), UNFUSED),
    "mul_rn": (2, unfused_binary("mul"), UNFUSED),
    "add_sat": (2, _saturated("add"), ""),
    "sub_sat": (2, _saturated("sub"), ""),
    "mul_sat": (2, _saturated("mul"), ""),
    "fma": (3, of_intrinsic("fma"), ""),
    "fma_sat": (3, _clamped_product_sum, ""),
    "fma_relu": (3, _positive_product_sum, ""),
    "min": (2, least, ""),
    "max": (2, greatest, ""),
    "min_nan": (2, of_intrinsic("min"), ""),
    "max_nan": (2, of_intrinsic("max"), ""),
}
_FUNCTIONS: dict[str, tuple[Recipe, str]] = {  # hexp, h2exp …
    "sqrt": (_in_float(of_intrinsic("sqrt")), ""),
    "rcp": (_reciprocal, ""),
    "floor": (of_intrinsic("floor"), ""),
    "ceil": (of_intrinsic("ceil"), ""),
    "trunc": (of_intrinsic("trunc"), ""),
    "rint": (of_intrinsic("rint"), ""),
    "tanh_approx": (_fast("fast_tanh"), ""),
} | {
    name: (_library(name), LIBRARY)
    for name in (
        "rsqrt", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tanh",
    )
}  # fmt: skip


# --- pairs ---------------------------------------------------------------------------------------


def _in_each(recipe: Recipe) -> Recipe:
    """A recipe for numbers, applied to both elements of pairs."""

    def build(maker: Maker, *operands: n.Expression) -> n.Expression:
        kept = [maker.let(operand) for operand in operands]
        results = [recipe(maker, *(part(value, name) for value in kept)) for name in "xy"]
        return pair(results[0], results[1])

    return build


def _whole(op: str) -> Recipe:
    """An arithmetic operation on vectors."""
    return lambda maker, a, b: binary(op, a, b)


def _ones(recipe: Recipe) -> Recipe:
    """A comparison of pairs whose results are 1.0 or 0.0."""
    return _in_each(lambda maker, *operands: _as_number(recipe(maker, *operands), operands[0].type))


def _as_number(condition: n.Expression, type: t.Type) -> n.Expression:
    return choose(condition, number(1, type), 0.0)


def _masks(recipe: Recipe) -> Recipe:
    """A comparison of pairs whose results are 0xFFFF or 0 in the halves of a word."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
        a, b = maker.let(a), maker.let(b)
        masks = [
            choose(recipe(maker, part(a, name), part(b, name)), number(mask, t.U32), 0)
            for name, mask in (("x", 0xFFFF), ("y", 0xFFFF0000))
        ]
        return binary("or", masks[0], masks[1])

    return build


def _in_both(recipe: Recipe) -> Recipe:
    """Whether a comparison is true for both elements of a pair."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
        a, b = maker.let(a), maker.let(b)
        return both(*(recipe(maker, part(a, name), part(b, name)) for name in "xy"))

    return build


def _complex_product_sum(
    maker: Maker, a: n.Expression, b: n.Expression, c: n.Expression
) -> n.Expression:
    """The complex sum a b + c."""
    a, b, c = maker.let(a), maker.let(b), maker.let(c)
    ax, ay, bx, by = part(a, "x"), part(a, "y"), part(b, "x"), part(b, "y")
    real = intrinsic("fma", negative(ay), by, intrinsic("fma", ax, bx, part(c, "x")))
    imaginary = intrinsic("fma", ay, bx, intrinsic("fma", ax, by, part(c, "y")))
    return pair(real, imaginary)


def _swizzled(first: tuple[int, str], second: tuple[int, str]) -> Recipe:
    """A pair of components, each by the index of an operand and the component's name."""

    def build(maker: Maker, *operands: n.Expression) -> n.Expression:
        kept = [maker.let(operand) for operand in operands]
        return pair(part(kept[first[0]], first[1]), part(kept[second[0]], second[1]))

    return build


def _repeated(maker: Maker, x: n.Expression) -> n.Expression:
    x = maker.let(x)
    return pair(x, x)


def _taken(name: str, type: t.Scalar | None = None) -> Recipe:
    return lambda maker, x: part(x, name) if type is None else cast(part(x, name), type)


# --- tables --------------------------------------------------------------------------------------


def _arithmetic(one: t.Scalar) -> Table:
    """__hadd, __hadd2, hexp, h2exp …, for one of the types."""
    two = t.Vector(one, 2)
    table: Table = {}
    for name, (arity, recipe, note) in _ONE.items():
        table[f"__h{name}"] = (Overload((one,) * arity, one, recipe, note),)
        base, _, ending = name.partition("_")
        for_pairs = _whole(base) if base in ("add", "sub", "mul", "div") and not ending else None
        table[f"__h{base}2" + (f"_{ending}" if ending else "")] = (
            Overload((two,) * arity, two, for_pairs or _in_each(recipe), note),
        )
    table["__h2div"] = table.pop("__hdiv2")  # its name in the headers
    for name, (recipe, note) in _FUNCTIONS.items():
        table[f"h{name}"] = (Overload((one,), one, recipe, note),)
        table[f"h2{name}"] = (Overload((two,), two, _in_each(recipe), note),)
    for name in _COMPARED:
        for ending, recipe in (("", _ordered(name)), ("u", _unordered(name))):
            table[f"__h{name}{ending}"] = (Overload((one, one), t.BOOL, recipe),)
            table[f"__h{name}{ending}2"] = (Overload((two, two), two, _ones(recipe)),)
            table[f"__hb{name}{ending}2"] = (Overload((two, two), t.BOOL, _in_both(recipe)),)
            table[f"__h{name}{ending}2_mask"] = (
                Overload((two, two), t.U32, _masks(recipe), INTEGERS),
            )
    table["__hisnan"] = (Overload((one,), t.BOOL, lambda maker, x: test("isnan", x)),)
    table["__hisnan2"] = (Overload((two,), two, _ones(lambda maker, x: test("isnan", x))),)
    table["__hisinf"] = (Overload((one,), t.I32, _sign_of_infinity),)
    table["__hcmadd"] = (Overload((two, two, two), two, _complex_product_sum),)
    return table


def _pairs(one: t.Scalar, name: str, name2: str) -> Table:
    """Pairs from numbers, numbers from pairs, pairs from pairs."""
    two = t.Vector(one, 2)
    short = "2half2" if one == t.F16 else "2bfloat162"
    to_one, to_floats = of_cast(one), lambda maker, x: cast(x, _FLOAT2)

    def from_float(maker: Maker, x: n.Expression) -> n.Expression:
        return _repeated(maker, cast(x, one))

    def from_floats(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
        return pair(to_one(maker, x), to_one(maker, y))

    lows = f"__low2{name}", f"__low{short}", f"__lows{short}"
    highs = f"__high2{name}", f"__high{short}", f"__highs{short}"
    return {
        lows[0]: (Overload((two,), one, _taken("x")),),
        highs[0]: (Overload((two,), one, _taken("y")),),
        lows[1]: (Overload((two,), two, _swizzled((0, "x"), (0, "x"))),),
        highs[1]: (Overload((two,), two, _swizzled((0, "y"), (0, "y"))),),
        lows[2]: (Overload((two, two), two, _swizzled((0, "x"), (1, "x"))),),
        highs[2]: (Overload((two, two), two, _swizzled((0, "y"), (1, "y"))),),
        "__lowhigh2highlow": (Overload((two,), two, _swizzled((0, "y"), (0, "x"))),),
        "__low2float": (Overload((two,), t.F32, _taken("x", t.F32)),),
        "__high2float": (Overload((two,), t.F32, _taken("y", t.F32)),),
        f"__{name}{short}": (Overload((one,), two, _repeated),),
        f"__halves{short}": (Overload((one, one), two, lambda maker, x, y: pair(x, y)),),
        f"make_{name2}": (Overload((one, one), two, lambda maker, x, y: pair(x, y)),),
        f"__float{short}_rn": (Overload((t.F32,), two, from_float),),
        f"__floats{short}_rn": (Overload((t.F32, t.F32), two, from_floats),),
        f"__float2{short}_rn": (Overload((_FLOAT2,), two, lambda maker, x: cast(x, two)),),
        f"__{name2}2float2": (Overload((two,), _FLOAT2, to_floats),),
    }


def _conversions(one: t.Scalar, name: str) -> Table:
    """Between one of the types and float, double, integers."""
    table: Table = {
        f"__float2{name}": (Overload((t.F32,), one, of_cast(one)),),
        f"__double2{name}": (Overload((t.F64,), one, of_cast(one)),),
        f"__{name}2float": (Overload((one,), t.F32, of_cast(t.F32)),),
    }
    for mode in MODES:
        note = "" if mode == "rn" else INTEGERS
        table[f"__float2{name}_{mode}"] = (
            Overload((t.F32,), one, in_mode(narrowed, one, mode), note),
        )
        for integer, type in _INTEGERS.items():
            table[f"__{name}2{integer}_{mode}"] = (Overload((one,), type, _to_integer(type, mode)),)
            table[f"__{integer}2{name}_{mode}"] = (
                Overload((type,), one, in_mode(integer_to_half, one, mode), INTEGERS),
            )
    for integer, type in (("char", t.I8), ("uchar", t.U8)):
        table[f"__{name}2{integer}_rz"] = (Overload((one,), type, _to_integer(type, "rz")),)
    for integer, type in (("short", t.I16), ("ushort", t.U16)):
        table[f"__{name}_as_{integer}"] = (Overload((one,), type, of_bits(type)),)
        table[f"__{integer}_as_{name}"] = (Overload((type,), one, of_bits(one)),)
    return table


def _to_integer(type: t.Scalar, mode: str) -> Recipe:
    return lambda maker, x: rounded_to_integer(maker, cast(x, t.F32), type, mode)


FUNCTIONS: Table = merged(
    *(_arithmetic(one) for one, _, _ in _NAMES),
    *(_pairs(one, name, name2) for one, name, name2 in _NAMES),
    *(_conversions(one, name) for one, name, _ in _NAMES),
)
