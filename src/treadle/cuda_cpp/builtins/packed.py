"""Several small integers in a 32-bit word: dot products of bytes and halves, and the arithmetic of
two 16-bit or four 8-bit numbers at once (__vadd4, __vmaxs2 …).

Each lane is extracted as an i32, computed, and inserted, which every target supports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

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
    intrinsic,
    merged,
    number,
    overloads,
    part,
)
from treadle.ir import nodes as n
from treadle.ir import types as t

# The operation on one lane: operands and result are i32.
Lane = Callable[..., n.Expression]


def lane(word: n.Expression, at: int, bits: int, signed: bool) -> n.Expression:
    """Lane `at` of a word, as an i32."""
    if signed:
        raised = binary("shl", bits_as(word, t.I32), 32 - bits * (at + 1))
        return binary("shr", raised, 32 - bits)
    moved = binary("shr", word, bits * at) if at else word
    if bits * (at + 1) < 32:
        moved = binary("and", moved, (1 << bits) - 1)
    return bits_as(moved, t.I32)


def joined(lanes: Sequence[n.Expression], bits: int) -> n.Expression:
    """A word of lanes, from the low bits of each i32."""
    parts: list[n.Expression] = []
    for at, value in enumerate(lanes):
        found = bits_as(value, t.U32)
        if bits * (at + 1) < 32:
            found = binary("and", found, (1 << bits) - 1)
        parts.append(binary("shl", found, bits * at) if at else found)
    return reduce(lambda one, other: binary("or", one, other), parts)


def each_lane(bits: int, signed: bool, do: Lane) -> Recipe:
    """A recipe that applies an operation to every lane of words."""

    def build(maker: Maker, *words: n.Expression) -> n.Expression:
        kept = [maker.let(word) for word in words]
        lanes = [
            do(*(maker.let(lane(word, at, bits, signed)) for word in kept))
            for at in range(32 // bits)
        ]
        return joined(lanes, bits)

    return build


def _summed_lanes(bits: int, signed: bool, do: Lane) -> Recipe:
    """A recipe for the sum of an operation over the lanes, as an unsigned number."""

    def build(maker: Maker, *words: n.Expression) -> n.Expression:
        kept = [maker.let(word) for word in words]
        lanes = [
            do(*(maker.let(lane(word, at, bits, signed)) for word in kept))
            for at in range(32 // bits)
        ]
        return bits_as(reduce(lambda one, other: binary("add", one, other), lanes), t.U32)

    return build


# --- operations on lanes -------------------------------------------------------------------------


def _clamped(low: int, high: int, do: Lane) -> Lane:
    """An operation with its result clamped between two bounds."""

    def build(*operands: n.Expression) -> n.Expression:
        above = intrinsic("max", do(*operands), number(low, t.I32))
        return intrinsic("min", above, number(high, t.I32))

    return build


def _sum(a: n.Expression, b: n.Expression) -> n.Expression:
    return binary("add", a, b)


def _difference(a: n.Expression, b: n.Expression) -> n.Expression:
    return binary("sub", a, b)


def _distance(a: n.Expression, b: n.Expression) -> n.Expression:
    return intrinsic("abs", binary("sub", a, b))


def _negative(a: n.Expression) -> n.Expression:
    return binary("sub", number(0, t.I32), a)


def _size(a: n.Expression) -> n.Expression:
    return intrinsic("abs", a)


def _mean_down(a: n.Expression, b: n.Expression) -> n.Expression:
    return binary("shr", binary("add", a, b), 1)


def _mean_up(a: n.Expression, b: n.Expression) -> n.Expression:
    return binary("shr", binary("add", binary("add", a, b), 1), 1)


def _mean_outwards(a: n.Expression, b: n.Expression) -> n.Expression:
    """A signed mean; halves are rounded away from zero."""
    total = binary("add", a, b)
    return binary(
        "shr", binary("add", total, choose(compare("lt", total, 0), number(0, t.I32), 1)), 1
    )


def _lesser(a: n.Expression, b: n.Expression) -> n.Expression:
    return intrinsic("min", a, b)


def _greater(a: n.Expression, b: n.Expression) -> n.Expression:
    return intrinsic("max", a, b)


def _comparison(op: str, if_true: int) -> Lane:
    return lambda a, b: choose(compare(op, a, b), number(if_true, t.I32), 0)


# --- tables --------------------------------------------------------------------------------------


def _arithmetic(lanes: int) -> Table:
    bits = 32 // lanes
    low, high, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, (1 << bits) - 1
    # name: number of operands, whether lanes are signed, operation
    ways: dict[str, tuple[int, bool, Lane]] = {
        "vadd": (2, False, _sum),
        "vaddss": (2, True, _clamped(low, high, _sum)),
        "vaddus": (2, False, _clamped(0, most, _sum)),
        "vsub": (2, False, _difference),
        "vsubss": (2, True, _clamped(low, high, _difference)),
        "vsubus": (2, False, _clamped(0, most, _difference)),
        "vneg": (1, True, _negative),
        "vnegss": (1, True, _clamped(low, high, _negative)),
        "vabs": (1, True, _size),
        "vabsss": (1, True, _clamped(low, high, _size)),
        "vabsdiffs": (2, True, _distance),
        "vabsdiffu": (2, False, _distance),
        "vavgs": (2, True, _mean_outwards),
        "vavgu": (2, False, _mean_up),
        "vhaddu": (2, False, _mean_down),
        "vmins": (2, True, _lesser),
        "vminu": (2, False, _lesser),
        "vmaxs": (2, True, _greater),
        "vmaxu": (2, False, _greater),
        "vcmpeq": (2, False, _comparison("eq", -1)),
        "vcmpne": (2, False, _comparison("ne", -1)),
        "vseteq": (2, False, _comparison("eq", 1)),
        "vsetne": (2, False, _comparison("ne", 1)),
    }
    for op in ("lt", "le", "gt", "ge"):
        for letter, signed in (("s", True), ("u", False)):
            ways[f"vcmp{op}{letter}"] = (2, signed, _comparison(op, -1))
            ways[f"vset{op}{letter}"] = (2, signed, _comparison(op, 1))
    table = {
        f"__{name}{lanes}": overloads((t.U32,), count, each_lane(bits, signed, do), INTEGERS)
        for name, (count, signed, do) in ways.items()
    }
    for letter, signed in (("s", True), ("u", False)):
        recipe = _summed_lanes(bits, signed, _distance)
        table[f"__vsad{letter}{lanes}"] = overloads((t.U32,), 2, recipe, INTEGERS)
    return table


def _extremes_of_halves() -> Table:
    """__vimax3_s16x2, __viaddmin_u16x2_relu …"""
    table: Table = {}
    for op in ("min", "max"):
        for ending, signed in (("s16x2", True), ("u16x2", False)):
            recipes: dict[str, tuple[int, Lane]] = {
                f"__vi{op}3": (3, _of_three(op)),
                f"__viadd{op}": (3, _sum_and(op, signed)),
            }
            for name, (arity, do) in recipes.items():
                recipe = each_lane(16, signed, do)
                table[f"{name}_{ending}"] = overloads((t.U32,), arity, recipe, INTEGERS)
                if signed:
                    recipe = each_lane(16, True, _clamped(0, 0x7FFF, do))
                    table[f"{name}_{ending}_relu"] = overloads((t.U32,), arity, recipe, INTEGERS)
        relu = each_lane(16, True, _clamped(0, 0x7FFF, _lesser if op == "min" else _greater))
        table[f"__vi{op}_s16x2_relu"] = overloads((t.U32,), 2, relu, INTEGERS)
    return table


def _of_three(op: str) -> Lane:
    return lambda a, b, c: intrinsic(op, intrinsic(op, a, b), c)


def _sum_and(op: str, signed: bool) -> Lane:
    """The minimum or maximum of a wrapped sum and a third number."""
    return lambda a, b, c: intrinsic(
        op, lane(bits_as(binary("add", a, b), t.U32), 0, 16, signed), c
    )


# --- dot products --------------------------------------------------------------------------------

_Lanes = list[n.Expression]


def _lanes_of(maker: Maker, value: n.Expression, bits: int, signed: bool) -> _Lanes:
    """The numbers in a word or in a vector like char4, as i32."""
    value = maker.let(value)
    if isinstance(value.type, t.Vector):
        names = t.COMPONENTS[: value.type.count]
        return [cast(part(value, name), t.I32) for name in names]
    word = bits_as(value, t.U32)
    return [lane(word, at, bits, signed) for at in range(32 // bits)]


def _dot(signed: bool, left_bits: int, start: int) -> Recipe:
    """The sum of the products of lanes and a third number. Of the right operand's bytes, those from
    `start` on are used."""

    def build(maker: Maker, a: n.Expression, b: n.Expression, total: n.Expression) -> n.Expression:
        left = _lanes_of(maker, a, left_bits, signed)
        right = _lanes_of(maker, b, 8, signed)[start : start + len(left)]
        result = total
        for one, other in zip(left, right, strict=True):
            result = binary("add", result, bits_as(binary("mul", one, other), total.type))
        return result

    return build


def _dot_of_bytes(signed: bool) -> Recipe:
    """`__dp4a` of words, which is an operation of the IR."""
    op = "dot4_i8" if signed else "dot4_u8"

    def build(maker: Maker, *words: n.Expression) -> n.Expression:
        first, *others = (bits_as(word, t.I32) for word in words)
        return bits_as(intrinsic(op, first, *others), words[0].type)

    return build


def _dot_overloads(halves: bool, start: int) -> tuple[Overload, ...]:
    found = []
    for signed in (True, False):
        word = t.I32 if signed else t.U32
        byte = t.I8 if signed else t.U8
        wide = t.Vector(t.I16 if signed else t.U16, 2) if halves else t.Vector(byte, 4)
        recipe = _dot(signed, 16 if halves else 8, start)
        for a, b in ((word, word), (wide, t.Vector(byte, 4))):
            of_words = a == word and not halves
            chosen = _dot_of_bytes(signed) if of_words else recipe
            found.append(Overload((a, b, word), word, chosen, INTEGERS))
    return tuple(found)


_DOTS: Table = {
    "__dp4a": _dot_overloads(False, 0),
    "__dp2a_lo": _dot_overloads(True, 0),
    "__dp2a_hi": _dot_overloads(True, 2),
}

FUNCTIONS: Table = merged(_arithmetic(2), _arithmetic(4), _extremes_of_halves(), _DOTS)
