"""Integers: bit counts and shifts, high halves of products, averages, minima and maxima."""

from __future__ import annotations

from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import (
    INTEGERS,
    Recipe,
    Table,
    binary,
    bits_as,
    cast,
    choose,
    compare,
    count,
    intrinsic,
    merged,
    number,
    of_intrinsic,
    of_library,
    overloads,
)
from treadle.ir import nodes as n
from treadle.ir import types as t

# --- recipes -------------------------------------------------------------------------------------


def _counted(op: str) -> Recipe:
    return lambda maker, x: count(op, x)


def _first_set(maker: Maker, x: n.Expression) -> n.Expression:
    """The position of the lowest set bit, counted from 1; 0 for 0."""
    x = maker.let(x)
    return choose(compare("eq", x, 0), number(0, t.I32), binary("add", count("ctz", x), 1))


def _product_24(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    """The low 32 bits of the product of two numbers of 24 bits."""
    return binary("mul", _low_24(x), _low_24(y))


def _low_24(x: n.Expression) -> n.Expression:
    if x.type == t.U32:
        return binary("and", x, 0xFFFFFF)
    return binary("shr", binary("shl", x, 8), 8)


def _distance_plus(maker: Maker, x: n.Expression, y: n.Expression, z: n.Expression) -> n.Expression:
    """The sum |x - y| + z, unsigned."""
    x, y = maker.let(x), maker.let(y)
    distance = binary("sub", intrinsic("max", x, y), intrinsic("min", x, y))
    return binary("add", bits_as(distance, t.U32), z)


def _mean(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    """(x + y) / 2 rounded down, without overflow: the common bits, and half of the others."""
    x, y = maker.let(x), maker.let(y)
    return binary("add", binary("and", x, y), binary("shr", binary("xor", x, y), 1))


def _mean_up(maker: Maker, x: n.Expression, y: n.Expression) -> n.Expression:
    """(x + y) / 2 rounded up."""
    x, y = maker.let(x), maker.let(y)
    return binary("sub", binary("or", x, y), binary("shr", binary("xor", x, y), 1))


def _funnel(left: bool, clamped: bool) -> Recipe:
    """32 of the 64 bits of (high, low), shifted. (In the IR a shift by 32 gives 0.)"""

    def build(
        maker: Maker, low: n.Expression, high: n.Expression, shift: n.Expression
    ) -> n.Expression:
        by = intrinsic("min", shift, number(32, t.U32)) if clamped else binary("and", shift, 31)
        by = maker.let(by)
        rest = binary("sub", number(32, t.U32), by)
        if left:
            return binary("or", binary("shl", high, by), binary("shr", low, rest))
        return binary("or", binary("shr", low, by), binary("shl", high, rest))

    return build


def _extreme_of(op: str, type: t.Scalar) -> Recipe:
    """The minimum or maximum of two integers of a common type."""
    return lambda maker, x, y: intrinsic(op, cast(x, type), cast(y, type))


def _of_three(op: str) -> Recipe:
    return lambda maker, a, b, c: intrinsic(op, intrinsic(op, a, b), c)


def _sum_and(op: str) -> Recipe:
    return lambda maker, a, b, c: intrinsic(op, binary("add", a, b), c)


def _not_below_zero(recipe: Recipe) -> Recipe:
    """The `_relu` forms: at least 0."""
    return lambda maker, *operands: intrinsic(
        "max", recipe(maker, *operands), number(0, operands[0].type)
    )


# --- tables --------------------------------------------------------------------------------------

_COUNTS: Table = {
    "__clz": (Overload((t.I32,), t.I32, _counted("clz")),),
    "__clzll": (Overload((t.I64,), t.I32, _counted("clz")),),
    "__popc": (Overload((t.U32,), t.I32, _counted("popcount")),),
    "__popcll": (Overload((t.U64,), t.I32, _counted("popcount")),),
    "__ffs": (Overload((t.I32,), t.I32, _first_set),),
    "__ffsll": (Overload((t.I64,), t.I32, _first_set),),
    "__brev": overloads((t.U32,), 1, of_intrinsic("reverse_bits")),
    "__brevll": overloads((t.U64,), 1, of_intrinsic("reverse_bits")),
}
_PRODUCTS: Table = {
    "__mulhi": overloads((t.I32,), 2, of_intrinsic("mul_high")),
    "__umulhi": overloads((t.U32,), 2, of_intrinsic("mul_high")),
    "__mul64hi": overloads((t.I64,), 2, of_intrinsic("mul_high")),
    "__umul64hi": overloads((t.U64,), 2, of_intrinsic("mul_high")),
    "__mul24": overloads((t.I32,), 2, _product_24, INTEGERS),
    "__umul24": overloads((t.U32,), 2, _product_24, INTEGERS),
    "mul24": overloads((t.I32,), 2, _product_24, INTEGERS),
    "umul24": overloads((t.U32,), 2, _product_24, INTEGERS),
    "mulhi": overloads((t.I32, t.U32), 2, of_intrinsic("mul_high")),
    "mul64hi": overloads((t.I64, t.U64), 2, of_intrinsic("mul_high")),
}
_MEANS: Table = {
    "__sad": (Overload((t.I32, t.I32, t.U32), t.U32, _distance_plus, INTEGERS),),
    "__usad": (Overload((t.U32, t.U32, t.U32), t.U32, _distance_plus, INTEGERS),),
    "__hadd": overloads((t.I32,), 2, _mean, INTEGERS),
    "__rhadd": overloads((t.I32,), 2, _mean_up, INTEGERS),
    "__uhadd": overloads((t.U32,), 2, _mean, INTEGERS),
    "__urhadd": overloads((t.U32,), 2, _mean_up, INTEGERS),
}
_MOVED: Table = {
    "__byte_perm": overloads((t.U32,), 3, of_library("byte_perm"), INTEGERS),
    "__funnelshift_l": overloads((t.U32,), 3, _funnel(True, False), INTEGERS),
    "__funnelshift_lc": overloads((t.U32,), 3, _funnel(True, True), INTEGERS),
    "__funnelshift_r": overloads((t.U32,), 3, _funnel(False, False), INTEGERS),
    "__funnelshift_rc": overloads((t.U32,), 3, _funnel(False, True), INTEGERS),
}


def _extremes() -> Table:
    """`min` and `max` as CUDA overloads them: with one operand unsigned, both are."""
    table: Table = {}
    for op in ("min", "max"):
        mixed = [
            Overload((a, b), b if b.kind == "uint" else a, _extreme_of(op, unsigned))
            for signed, unsigned in ((t.I32, t.U32), (t.I64, t.U64))
            for a, b in ((signed, unsigned), (unsigned, signed))
        ]
        table[op] = (*overloads((t.I32, t.U32, t.I64, t.U64), 2, of_intrinsic(op)), *mixed)
        for prefix, type in (("u", t.U32), ("ll", t.I64), ("ull", t.U64)):
            table[f"{prefix}{op}"] = overloads((type,), 2, of_intrinsic(op))
        for ending, type in (("s32", t.I32), ("u32", t.U32)):
            recipes = {
                f"__vi{op}3": (3, _of_three(op)),
                f"__viadd{op}": (3, _sum_and(op)),
            }
            for name, (arity, recipe) in recipes.items():
                table[f"{name}_{ending}"] = overloads((type,), arity, recipe, INTEGERS)
                if type == t.I32:
                    table[f"{name}_{ending}_relu"] = overloads(
                        (type,), arity, _not_below_zero(recipe), INTEGERS
                    )
        table[f"__vi{op}_s32_relu"] = overloads(
            (t.I32,), 2, _not_below_zero(of_intrinsic(op)), INTEGERS
        )
    return table


_ABSOLUTE: Table = {
    "abs": overloads((t.I32, t.I64), 1, of_intrinsic("abs")),
    "labs": overloads((t.I64,), 1, of_intrinsic("abs")),
    "llabs": overloads((t.I64,), 1, of_intrinsic("abs")),
}

FUNCTIONS: Table = merged(_COUNTS, _PRODUCTS, _MEANS, _MOVED, _extremes(), _ABSOLUTE)
