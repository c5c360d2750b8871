"""What 64-bit integers do, on pairs of words: functions in IR, callees before callers.

They are written in the IR's own notation, where `pair` stands for vec2<u32> and `1u` for a u32.
Like the functions of `codegen.prelude` they use operations only where all targets agree on them:
shifts by less than 32, divisors that are not 0, casts of floats that fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.wide.layout import PAIR
from treadle.ir.prelude_names import PREFIX, is_prelude
from treadle.ir.traverse import walk
from treadle.ir.types import Scalar

_ARITHMETIC = """
function widen_i32(a: i32) -> pair {
  return pair{u32(a), u32(a >> 31)}
}

function add_u64(a: pair, b: pair) -> pair {
  var low: u32 = a->x + b->x
  return pair{low, (a->y + b->y) + select(low < a->x, 1u, 0u)}
}

function sub_u64(a: pair, b: pair) -> pair {
  return pair{a->x - b->x, (a->y - b->y) - select(a->x < b->x, 1u, 0u)}
}

function neg_u64(a: pair) -> pair {
  return pair{0u - a->x, (~(a->y)) + select(a->x == 0u, 1u, 0u)}
}

function product_u32(a: u32, b: u32) -> pair {
  var low: u32 = (a & 65535u) * (b & 65535u)
  var cross: u32 = ((a >> 16u) * (b & 65535u)) + (low >> 16u)
  var middle: u32 = ((a & 65535u) * (b >> 16u)) + (cross & 65535u)
  var high: u32 = ((a >> 16u) * (b >> 16u)) + ((cross >> 16u) + (middle >> 16u))
  return pair{a * b, high}
}

function mul_u64(a: pair, b: pair) -> pair {
  var low: pair = @product_u32(a->x, b->x)
  return pair{low->x, low->y + ((a->x * b->y) + (a->y * b->x))}
}

function equal_u64(a: pair, b: pair) -> bool {
  return ((a->x ^ b->x) | (a->y ^ b->y)) == 0u
}

# Without a comparison for equality: NVIDIA's Vulkan driver gets it wrong (`codegen.faults`).
function less_u64(a: pair, b: pair) -> bool {
  return select(a->y < b->y, true, select(b->y < a->y, false, a->x < b->x))
}

function less_i64(a: pair, b: pair) -> bool {
  var left: i32 = bitcast<i32>(a->y)
  var right: i32 = bitcast<i32>(b->y)
  return select(left < right, true, select(right < left, false, a->x < b->x))
}

function min_u64(a: pair, b: pair) -> pair {
  return select(@less_u64(b, a), b, a)
}

function min_i64(a: pair, b: pair) -> pair {
  return select(@less_i64(b, a), b, a)
}

function max_u64(a: pair, b: pair) -> pair {
  return select(@less_u64(a, b), b, a)
}

function max_i64(a: pair, b: pair) -> pair {
  return select(@less_i64(a, b), b, a)
}

function abs_i64(a: pair) -> pair {
  return select(bitcast<i32>(a->y) < 0, @neg_u64(a), a)
}
"""

_BITS = """
function shift_amount(by: pair) -> u32 {
  return select(by->y == 0u, min(by->x, 64u), 64u)
}

function shl_u64(a: pair, by: u32) -> pair {
  if (by >= 64u) {
    return pair{0u, 0u}
  }
  if (by >= 32u) {
    return pair{0u, a->x << (by - 32u)}
  }
  if (by == 0u) {
    return a
  }
  return pair{a->x << by, (a->y << by) | (a->x >> (32u - by))}
}

function shr_u64(a: pair, by: u32) -> pair {
  if (by >= 64u) {
    return pair{0u, 0u}
  }
  if (by >= 32u) {
    return pair{a->y >> (by - 32u), 0u}
  }
  if (by == 0u) {
    return a
  }
  return pair{(a->x >> by) | (a->y << (32u - by)), a->y >> by}
}

function shr_i64(a: pair, by: u32) -> pair {
  var high: i32 = bitcast<i32>(a->y)
  var sign: u32 = bitcast<u32>(high >> 31)
  if (by >= 64u) {
    return pair{sign, sign}
  }
  if (by >= 32u) {
    return pair{bitcast<u32>(high >> i32(by - 32u)), sign}
  }
  if (by == 0u) {
    return a
  }
  return pair{(a->x >> by) | (a->y << (32u - by)), bitcast<u32>(high >> i32(by))}
}

function popcount_u64(a: pair) -> i32 {
  return popcount(a->x) + popcount(a->y)
}

function clz_u64(a: pair) -> i32 {
  return select(a->y == 0u, clz(a->x) + 32, clz(a->y))
}

function ctz_u64(a: pair) -> i32 {
  return select(a->x == 0u, ctz(a->y) + 32, ctz(a->x))
}

function reverse_bits_u64(a: pair) -> pair {
  return pair{reverse_bits(a->y), reverse_bits(a->x)}
}

function mul_high_u64(a: pair, b: pair) -> pair {
  var low: pair = @product_u32(a->x, b->x)
  var cross: pair = @add_u64(@product_u32(a->y, b->x), pair{low->y, 0u})
  var middle: pair = @add_u64(@product_u32(a->x, b->y), pair{cross->x, 0u})
  var high: pair = @add_u64(@product_u32(a->y, b->y), pair{cross->y, 0u})
  return @add_u64(high, pair{middle->y, 0u})
}

# A negative factor counts 2**64 too much as an unsigned one: take the other factor off.
function mul_high_i64(a: pair, b: pair) -> pair {
  var high: pair = @mul_high_u64(a, b)
  if (bitcast<i32>(a->y) < 0) {
    high = @sub_u64(high, b)
  }
  if (bitcast<i32>(b->y) < 0) {
    high = @sub_u64(high, a)
  }
  return high
}
"""

_DIVISION = """
# One digit of 16 bits of a quotient: an estimate by the divisor's upper half, too high by 2 at
# most, brought down by its lower one. The divisor's highest bit is set.
function quotient_digit(top: u32, next: u32, upper: u32, lower: u32) -> u32 {
  var digit: u32 = top / upper
  var rest: u32 = top - (digit * upper)
  while ((rest < 65536u) && ((digit >= 65536u) || ((digit * lower) > ((rest << 16u) | next)))) {
    digit = digit - 1u
    rest = rest + upper
  }
  return digit
}

# Two words by one that is above the first: the quotient is a word.
function divide_words(high: u32, low: u32, by: u32) -> u32 {
  var shift: u32 = u32(clz(by))
  var divisor: u32 = by << shift
  var top: u32 = high
  if (shift > 0u) {
    top = (high << shift) | (low >> (32u - shift))
  }
  var bottom: u32 = low << shift
  var upper: u32 = divisor >> 16u
  var lower: u32 = divisor & 65535u
  var first: u32 = @quotient_digit(top, bottom >> 16u, upper, lower)
  top = ((top << 16u) + (bottom >> 16u)) - (first * divisor)
  return (first << 16u) + @quotient_digit(top, bottom & 65535u, upper, lower)
}

function div_u64(a: pair, b: pair) -> pair {
  if (b->y == 0u) {
    if (b->x == 0u) {
      return pair{0u, 0u}
    }
    if (a->y == 0u) {
      return pair{a->x / b->x, 0u}
    }
    var high: u32 = a->y / b->x
    return pair{@divide_words(a->y - (high * b->x), a->x, b->x), high}
  }
  # By the divisor's 32 highest bits: right, or one too high, which taking one off makes sure of.
  var shift: u32 = u32(clz(b->y))
  var divisor: pair = @shl_u64(b, shift)
  var half: pair = @shr_u64(a, 1u)
  var quotient: u32 = @divide_words(half->y, half->x, divisor->y) >> (31u - shift)
  if (quotient != 0u) {
    quotient = quotient - 1u
  }
  var rest: pair = @sub_u64(a, @mul_u64(pair{quotient, 0u}, b))
  if (!(@less_u64(rest, b))) {
    quotient = quotient + 1u
  }
  return pair{quotient, 0u}
}

function rem_u64(a: pair, b: pair) -> pair {
  if ((b->x | b->y) == 0u) {
    return pair{0u, 0u}
  }
  return @sub_u64(a, @mul_u64(@div_u64(a, b), b))
}

function div_i64(a: pair, b: pair) -> pair {
  var quotient: pair = @div_u64(@abs_i64(a), @abs_i64(b))
  return select(bitcast<i32>(a->y ^ b->y) < 0, @neg_u64(quotient), quotient)
}

function rem_i64(a: pair, b: pair) -> pair {
  var remainder: pair = @rem_u64(@abs_i64(a), @abs_i64(b))
  return select(bitcast<i32>(a->y) < 0, @neg_u64(remainder), remainder)
}

# Truncation rounds towards zero: one too high if there is a remainder and the signs differ.
function floordiv_i64(a: pair, b: pair) -> pair {
  if ((b->x | b->y) == 0u) {
    return pair{0u, 0u}
  }
  var quotient: pair = @div_i64(a, b)
  var exact: bool = @equal_u64(@mul_u64(quotient, b), a)
  if ((!exact) && (bitcast<i32>(a->y ^ b->y) < 0)) {
    quotient = @sub_u64(quotient, pair{1u, 0u})
  }
  return quotient
}

function mod_i64(a: pair, b: pair) -> pair {
  var remainder: pair = @rem_i64(a, b)
  if (((remainder->x | remainder->y) != 0u) && (bitcast<i32>(remainder->y ^ b->y) < 0)) {
    remainder = @add_u64(remainder, b)
  }
  return remainder
}
"""

_WHOLE_DIVISION = "\n".join(
    f"""
function {op}_words_{type}(a: {type}, b: {type}) -> {type} {{
  var low: pair = pair{{u32(a), u32(a >> {type}(32))}}
  var by: pair = pair{{u32(b), u32(b >> {type}(32))}}
  var result: pair = @{op}_{type}(low, by)
  return ({type}(result->y) << {type}(32)) | {type}(result->x)
}}
"""
    for op, type in (
        ("div", "u64"), ("rem", "u64"),
        ("div", "i64"), ("rem", "i64"), ("floordiv", "i64"), ("mod", "i64"),
    )
)  # fmt: skip
"""Division of whole 64-bit integers by way of their words."""

_CASTS = """
# 24 bits, rounded to the nearest, ties to even: a carry out of them goes into the exponent.
function cast_u64_f32(a: pair) -> f32 {
  if ((a->x | a->y) == 0u) {
    return 0.0
  }
  var shift: u32 = u32(@clz_u64(a))
  var bits: pair = @shl_u64(a, shift)
  var mantissa: u32 = bits->y >> 8u
  var rest: u32 = (bits->y & 255u) | u32(bits->x != 0u)
  var up: bool = (rest > 128u) || ((rest == 128u) && ((mantissa & 1u) == 1u))
  return bitcast<f32>((((189u - shift) << 23u) + mantissa) + u32(up))
}

function cast_i64_f32(a: pair) -> f32 {
  if (bitcast<i32>(a->y) < 0) {
    return -(@cast_u64_f32(@neg_u64(a)))
  }
  return @cast_u64_f32(a)
}

# 24 bits, the last of them set if any bit after it is: what is then rounded to fewer bits is
# rounded as the whole number would be.
function odd_u64_f32(a: pair) -> f32 {
  if ((a->x | a->y) == 0u) {
    return 0.0
  }
  var shift: u32 = u32(@clz_u64(a))
  var bits: pair = @shl_u64(a, shift)
  var rest: u32 = (bits->y & 255u) | bits->x
  var mantissa: u32 = (bits->y >> 8u) | u32(rest != 0u)
  return bitcast<f32>(((189u - shift) << 23u) + mantissa)
}

function odd_i64_f32(a: pair) -> f32 {
  if (bitcast<i32>(a->y) < 0) {
    return -(@odd_u64_f32(@neg_u64(a)))
  }
  return @odd_u64_f32(a)
}

# The multiplications are by powers of two, and the difference leaves fewer bits: all is exact.
function cast_f32_u64(a: f32) -> pair {
  if (isnan(a) || (a <= 0.0)) {
    return pair{0u, 0u}
  }
  if (a >= 18446744073709551616.0) {
    return pair{4294967295u, 4294967295u}
  }
  var high: u32 = u32(a * 2.3283064365386963e-10)
  return pair{u32(a - (f32(high) * 4294967296.0)), high}
}

function cast_f32_i64(a: f32) -> pair {
  if (isnan(a)) {
    return pair{0u, 0u}
  }
  if (a >= 9223372036854775808.0) {
    return pair{4294967295u, 2147483647u}
  }
  if (a <= -9223372036854775808.0) {
    return pair{0u, 2147483648u}
  }
  if (a < 0.0) {
    return @neg_u64(@cast_f32_u64(-a))
  }
  return @cast_f32_u64(a)
}
"""


@cache
def _library() -> dict[str, n.Function]:
    """Every function by its name in the texts, in their order."""
    return _parsed(_ARITHMETIC + _BITS + _DIVISION + _CASTS, PREFIX)


@cache
def _division_library() -> dict[str, n.Function]:
    """What divides whole integers, under names that the functions of `prelude` do not have."""
    return _parsed(_ARITHMETIC + _BITS + _DIVISION + _WHOLE_DIVISION, PREFIX + "pair_")


def _parsed(text: str, prefix: str) -> dict[str, n.Function]:
    text = re.sub(r"(function |@)(\w+)", rf"\1{prefix}\2", text)
    text = re.sub(r"\b(\d+)u\b", r"\1:u32", re.sub(r"\bpair\b", str(PAIR), text))
    kernel = from_text(text + "\nkernel none block(1) {\n}\n", "<64-bit integers>")
    return {function.name.removeprefix(prefix): function for function in kernel.functions}


def call(name: str, *arguments: n.Expression) -> n.Call:
    """A call of one of the functions."""
    return n.Call(PREFIX + name, arguments, _library()[name].result)


def division_by_words(op: str, type: Scalar) -> tuple[n.Function, ...]:
    """The function `prelude_name(f"{op}_words", type)`, that divides 64-bit integers by way of
    their words, after those that it calls."""
    name = f"{op}_words_{type}"
    function = _division_library()[name]
    callees = _called([function.body], _division_library(), PREFIX + "pair_")
    return (*callees, replace(function, name=PREFIX + name))


def called_functions(blocks: Iterable[n.Block]) -> list[n.Function]:
    """The functions of this module that blocks call, directly or through others, callees first."""
    return _called(blocks, _library(), PREFIX)


def _called(
    blocks: Iterable[n.Block], library: Mapping[str, n.Function], prefix: str
) -> list[n.Function]:
    waiting = list(blocks)
    found: set[str] = set()
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, n.Call) and is_prelude(node.function):
                name = node.function.removeprefix(prefix)
                if name in library and name not in found:
                    found.add(name)
                    waiting.append(library[name].body)
    return [function for name, function in library.items() if name in found]
