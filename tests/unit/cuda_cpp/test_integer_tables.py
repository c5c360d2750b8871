"""CUDA's functions of integers, and of several small ones in a word, against Python's integers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from tests.support.cuda_builtins import apply, overload
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.tables import FUNCTIONS
from treadle.ir import arithmetic
from treadle.ir import types as t

EDGES = {
    type: (0, 1, arithmetic.lowest(type), arithmetic.highest(type), 5, 24)
    for type in (t.I32, t.U32, t.I64, t.U64)
}


def values(overload: Overload, count: int = 12) -> list[tuple[int, ...]]:
    """Arguments from everywhere, the ends of the ranges among them."""
    rng = random.Random(7)

    def one(type: t.Scalar | t.Vector) -> int:
        assert isinstance(type, t.Scalar)
        drawn = rng.randint(arithmetic.lowest(type), arithmetic.highest(type))
        return rng.choice((drawn, drawn, *EDGES[type]))

    return [tuple(one(type) for type in overload.parameters) for _ in range(count)]


def check(name: str, expected: Callable[..., int], *parameters: t.Scalar) -> None:
    """Every result is that of Python's integers, wrapped to the type."""
    found = overload(name, *parameters)
    assert isinstance(found.result, t.Scalar)
    for given in values(found):
        true = arithmetic.wrap(expected(*given), found.result)
        assert apply(found, *given) == true, f"{name}{given}"


def bits(value: int, width: int) -> str:
    return format(value & ((1 << width) - 1), f"0{width}b")


def low_24(value: int, signed: bool) -> int:
    value &= 0xFFFFFF
    return value - (1 << 24) if signed and value >> 23 else value


def funnel(low: int, high: int, left: bool, by: int) -> int:
    both = (high << 32) | low
    return both << by >> 32 if left else both >> by


def ends(value: int, width: int) -> int:
    return (value & -value & ((1 << width) - 1)).bit_length()


INTEGERS: dict[str, Callable[..., int]] = {
    "__clz": lambda x: 32 - len(bits(x, 32).lstrip("0")),
    "__clzll": lambda x: 64 - len(bits(x, 64).lstrip("0")),
    "__popc": lambda x: bits(x, 32).count("1"),
    "__popcll": lambda x: bits(x, 64).count("1"),
    "__ffs": lambda x: ends(x, 32),
    "__ffsll": lambda x: ends(x, 64),
    "__brev": lambda x: int(bits(x, 32)[::-1], 2),
    "__brevll": lambda x: int(bits(x, 64)[::-1], 2),
    "__mulhi": lambda x, y: x * y >> 32,
    "__umulhi": lambda x, y: x * y >> 32,
    "__mul64hi": lambda x, y: x * y >> 64,
    "__umul64hi": lambda x, y: x * y >> 64,
    "__mul24": lambda x, y: low_24(x, True) * low_24(y, True),
    "__umul24": lambda x, y: low_24(x, False) * low_24(y, False),
    "__sad": lambda x, y, z: abs(x - y) + z,
    "__usad": lambda x, y, z: abs(x - y) + z,
    "__rhadd": lambda x, y: (x + y + 1) >> 1,
    "__uhadd": lambda x, y: (x + y) >> 1,
    "__urhadd": lambda x, y: (x + y + 1) >> 1,
    "__funnelshift_l": lambda low, high, by: funnel(low, high, True, by % 32),
    "__funnelshift_lc": lambda low, high, by: funnel(low, high, True, min(by, 32)),
    "__funnelshift_r": lambda low, high, by: funnel(low, high, False, by % 32),
    "__funnelshift_rc": lambda low, high, by: funnel(low, high, False, min(by, 32)),
    "labs": abs,
    "llabs": abs,
    "umin": min,
    "umax": max,
    "llmin": min,
    "llmax": max,
    "ullmin": min,
    "ullmax": max,
    "__viaddmax_s32": lambda a, b, c: max(arithmetic.wrap(a + b, t.I32), c),
    "__viaddmin_s32_relu": lambda a, b, c: max(min(arithmetic.wrap(a + b, t.I32), c), 0),
    "__vimax3_u32": max,
    "__vimin_s32_relu": lambda a, b: max(min(a, b), 0),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    check(name, INTEGERS[name])


def test_overloads_of_integers() -> None:
    check("__hadd", lambda x, y: (x + y) >> 1, t.I32, t.I32)
    check("abs", abs, t.I32)
    check("abs", abs, t.I64)
    for op, function in (("min", min), ("max", max)):
        for type in (t.I32, t.U32, t.I64, t.U64):
            check(op, function, type, type)
    assert apply(overload("min", t.I32, t.U32), -1, 7) == 7  # -1 is the greatest unsigned number
    assert apply(overload("max", t.U64, t.I64), 7, -1) == 2**64 - 1


def test_bytes_are_picked() -> None:
    picked = overload("__byte_perm")
    assert apply(picked, 0x33221100, 0x77665544, 0x3210) == 0x33221100
    assert apply(picked, 0x33221100, 0x77665544, 0x0167) == 0x00116677
    assert apply(picked, 0x33221100, 0x77665544, 0xFFFFCD41) == 0x44554411


# --- several in a word ---------------------------------------------------------------------------


def lanes(word: int, width: int, signed: bool) -> list[int]:
    type = t.Scalar("lane", "int" if signed else "uint", width)
    return [arithmetic.wrap(word >> at, type) for at in range(0, 32, width)]


def join(values: list[int], width: int) -> int:
    return sum((value & ((1 << width) - 1)) << (at * width) for at, value in enumerate(values))


def hold(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def away(total: int) -> int:
    return (total + (total >= 0)) >> 1


Packed = Callable[..., int]


def packed(width: int) -> dict[str, tuple[bool, Packed]]:
    """name: whether lanes are signed, and what is done in each."""
    low, high, most = -(1 << (width - 1)), (1 << (width - 1)) - 1, (1 << width) - 1
    table: dict[str, tuple[bool, Packed]] = {
        "add": (False, lambda a, b: a + b), "addss": (True, lambda a, b: hold(a + b, low, high)),
        "addus": (False, lambda a, b: hold(a + b, 0, most)), "sub": (False, lambda a, b: a - b),
        "subss": (True, lambda a, b: hold(a - b, low, high)),
        "subus": (False, lambda a, b: hold(a - b, 0, most)), "neg": (True, lambda a: -a),
        "negss": (True, lambda a: hold(-a, low, high)), "abs": (True, abs),
        "absss": (True, lambda a: hold(abs(a), low, high)),
        "absdiffs": (True, lambda a, b: abs(a - b)), "absdiffu": (False, lambda a, b: abs(a - b)),
        "avgs": (True, lambda a, b: away(a + b)), "avgu": (False, lambda a, b: (a + b + 1) >> 1),
        "haddu": (False, lambda a, b: (a + b) >> 1),
        "mins": (True, min), "minu": (False, min), "maxs": (True, max), "maxu": (False, max),
        "cmpeq": (False, lambda a, b: -(a == b)), "cmpne": (False, lambda a, b: -(a != b)),
        "seteq": (False, lambda a, b: a == b), "setne": (False, lambda a, b: a != b),
        "cmplts": (True, lambda a, b: -(a < b)), "cmpltu": (False, lambda a, b: -(a < b)),
        "cmples": (True, lambda a, b: -(a <= b)), "setgtu": (False, lambda a, b: a > b),
        "cmpgeu": (False, lambda a, b: -(a >= b)), "setges": (True, lambda a, b: a >= b),
    }  # fmt: skip
    return table


WORDS = (0, 0xFFFFFFFF, 0x80007FFF, 0x7F80FF01, 0x12345678, 0x00FF8001, 0xDEADBEEF, 0x7F80FF01)


@pytest.mark.parametrize("width", [16, 8])
@pytest.mark.parametrize("name", packed(8))
def test_lanes(name: str, width: int) -> None:
    signed, do = packed(width)[name]
    found = overload(f"__v{name}{32 // width}")
    for start in range(len(WORDS)):
        words = (WORDS * 2)[start : start + len(found.parameters)]
        parts = zip(*(lanes(word, width, signed) for word in words), strict=True)
        assert apply(found, *words) == join([do(*part) for part in parts], width)


def test_sums_over_lanes() -> None:
    for width, count in ((16, 2), (8, 4)):
        for letter, signed in (("s", True), ("u", False)):
            found = overload(f"__vsad{letter}{count}")
            for a, b in itertools.pairwise(WORDS):
                pairs = zip(lanes(a, width, signed), lanes(b, width, signed), strict=True)
                assert apply(found, a, b) == sum(abs(x - y) for x, y in pairs)


def test_extremes_of_halves() -> None:
    assert apply(overload("__vimax3_s16x2"), 0x00018000, 0xFFFF7FFF, 0x00000002) == 0x00017FFF
    assert apply(overload("__viaddmax_s16x2_relu"), 0x7FFF0001, 0x00010001, 0x8000FFFF) == 2
    assert apply(overload("__viaddmin_u16x2"), 0xFFFF0001, 0x00010001, 0x00050005) == 2
    assert apply(overload("__vimin_s16x2_relu"), 0xFFFF0005, 0x00040007) == 5


# --- dot products --------------------------------------------------------------------------------


def test_dot_products() -> None:
    for signed, word in ((True, t.I32), (False, t.U32)):
        for a, b in itertools.pairwise(WORDS):
            c = 0x7FFFFFF0
            left, right = (arithmetic.wrap(value, word) for value in (a, b))
            four = sum(x * y for x, y in zip(lanes(a, 8, signed), lanes(b, 8, signed), strict=True))
            found = overload("__dp4a", word, word, word)
            assert apply(found, left, right, c) == arithmetic.wrap(four + c, word)
            for ending, first in (("lo", 0), ("hi", 2)):
                found = overload(f"__dp2a_{ending}", word, word, word)
                taken = lanes(b, 8, signed)[first : first + 2]
                two = sum(x * y for x, y in zip(lanes(a, 16, signed), taken, strict=True))
                assert apply(found, left, right, c) == arithmetic.wrap(two + c, word)


def test_dot_products_of_vectors() -> None:
    found = FUNCTIONS["__dp4a"][1]
    assert apply(found, (1, -2, 3, -128), (5, 6, -7, -128), 100) == 5 - 12 - 21 + 16384 + 100
    found = FUNCTIONS["__dp2a_hi"][3]
    assert apply(found, (65535, 2), (1, 2, 255, 7), 1) == 65535 * 255 + 14 + 1
