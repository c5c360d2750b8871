"""Random numbers for arrays: element i of a draw, as a function of i, the draw and the seed.

The counter of Philox is (block, draw) and its key the seed, each two words, the lower one first. A
block has four words: those of elements 4k … 4k+3 if an element takes one word, of 2k and 2k+1 if it
takes two (the second is the upper one), of one element if it takes four. A kernel that computes
adjacent elements in one thread evaluates each block only once, with the same numbers.

Results that are guaranteed to have the same bits everywhere use only integers, exact operations,
and roundings that every target performs: between a product and an addition the last bit is cleared,
so that the two cannot be fused.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_root
from treadle.lang.math.logarithm import log
from treadle.lang.math.random import cosine_of_turn, philox, unit_interval
from treadle.lang.math.trigonometry import cos_near, sin_near

TWO_PI_OVER_2_64 = 6.283185307179586 / 2.0**64


# --- bits ----------------------------------------------------------------------------------------


def random_word(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.u32:
    """32 bits for element index + above * 2^32."""
    words = philox((index >> 2) | (above << 30), above >> 2, d0, d1, k0, k1)
    odd = (index & 1) != 0
    first = td.where(odd, words.y, words.x)
    second = td.where(odd, words.w, words.z)
    return td.where((index & 2) != 0, second, first)


def random_pair(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.vec2[td.u32]:
    """64 bits, the lower word first."""
    words = philox((index >> 1) | (above << 31), above >> 1, d0, d1, k0, k1)
    odd = (index & 1) != 0
    low = td.where(odd, words.z, words.x)
    high = td.where(odd, words.w, words.y)
    return td.vec2[td.u32](low, high)


def random_low(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.u32:
    """The lower word of `random_pair`."""
    return random_pair(index, above, d0, d1, k0, k1).x


def random_high(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.u32:
    """The upper word of `random_pair`."""
    return random_pair(index, above, d0, d1, k0, k1).y


def random_word_64(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.u64:
    """64 bits."""
    pair = random_pair(index, above, d0, d1, k0, k1)
    return (td.u64(pair.y) << 32) | td.u64(pair.x)


# --- uniform -------------------------------------------------------------------------------------


def unit_f32(word: td.u32) -> td.f32:
    """A number in [0, 1), one of 2^24 equally likely ones."""
    return unit_interval(word)


def unit_f64(word: td.u64) -> td.f64:
    """A number in [0, 1), one of 2^53 equally likely ones."""
    return td.f64(word >> 11) * 1.1102230246251565e-16


def interval_f32(unit: td.f32, low: td.f32, width: td.f32, last: td.f32) -> td.f32:
    """A number from low to last, which is the greatest number below the end."""
    along = td.bitcast(td.bitcast(unit * width, td.u32) & 0xFFFFFFFE, td.f32)
    return td.maximum(td.minimum(low + along, last), low)


def interval_f64(unit: td.f64, low: td.f64, width: td.f64, last: td.f64) -> td.f64:
    """A number from low to last, which is the greatest number below the end."""
    along = td.bitcast(td.bitcast(unit * width, td.u64) & 0xFFFFFFFFFFFFFFFE, td.f64)
    return td.maximum(td.minimum(low + along, last), low)


# --- integers ------------------------------------------------------------------------------------


def random_below(
    index: td.u32,
    above: td.u32,
    d0: td.u32,
    d1: td.u32,
    k0: td.u32,
    k1: td.u32,
    count: td.u32,
) -> td.u32:
    """An integer from 0 to count-1; a count of 0 means 2^32.

    It is the upper word of a 64-bit number times the count, so that the shares of the 2^64 numbers
    differ by at most one.
    """
    pair = random_pair(index, above, d0, d1, k0, k1)
    low = pair.y * count
    carried = low + td.mul_high(pair.x, count)
    upper = td.mul_high(pair.y, count)
    found = td.where(carried < low, upper + 1, upper)
    return td.where(count == 0, pair.y, found)


def random_below_64(
    index: td.u32,
    above: td.u32,
    d0: td.u32,
    d1: td.u32,
    k0: td.u32,
    k1: td.u32,
    count: td.u64,
) -> td.u64:
    """An integer from 0 to count-1, from a number of 128 bits; a count of 0 means 2^64."""
    words = philox(index, above, d0, d1, k0, k1)
    x = (td.u64(words.y) << 32) | td.u64(words.x)
    y = (td.u64(words.w) << 32) | td.u64(words.z)
    low = y * count
    carried = low + td.mul_high(x, count)
    upper = td.mul_high(y, count)
    found = td.where(carried < low, upper + 1, upper)
    return td.where(count == 0, y, found)


def random_chance(
    index: td.u32,
    above: td.u32,
    d0: td.u32,
    d1: td.u32,
    k0: td.u32,
    k1: td.u32,
    p: td.f32,
) -> td.bool:
    """True with probability p, exact to 2^-64: whether 64 bits are below p * 2^64."""
    pair = random_pair(index, above, d0, d1, k0, k1)
    scaled = p * 4294967296.0
    whole = td.floor(scaled)
    high = td.u32(whole)
    low = td.u32((scaled - whole) * 4294967296.0)
    below = (pair.y < high) | ((pair.y == high) & (pair.x < low))
    return (p >= 1.0) | ((p > 0.0) & below)


# --- other distributions -------------------------------------------------------------------------


def positive_f32(word: td.u32) -> td.f32:
    """A number in (0, 1], with the finest resolution near 0."""
    return td.f32(word) * 2.3283064365386963e-10 + 1.1641532182693481e-10


def positive_f64(word: td.u64) -> td.f64:
    """A number in (0, 1], with the finest resolution near 0."""
    return td.f64(word) * 5.421010862427522e-20 + 2.710505431213761e-20


def exponential_f32(word: td.u32) -> td.f32:
    """The exponential distribution with mean 1."""
    return td.maximum(-log.f32(positive_f32(word)), 0.0)


def exponential_f64(word: td.u64) -> td.f64:
    """The exponential distribution with mean 1."""
    return td.maximum(-log.f64(positive_f64(word)), 0.0)


def random_normal(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.f32:
    """The standard normal distribution, by Box and Muller: sqrt(-2 log u) cos(2 pi v) and
    sqrt(-2 log u) sin(2 pi v) are two elements."""
    words = philox((index >> 2) | (above << 30), above >> 2, d0, d1, k0, k1)
    second = (index & 2) != 0
    u = td.where(second, words.z, words.x)
    v = td.where(second, words.w, words.y)
    turn = v - ((index & 1) << 30)  # sin(a) = cos(a - a quarter turn)
    radius = exact_root.f32(td.maximum(-2.0 * log.f32(positive_f32(u)), 0.0))
    return radius * cosine_of_turn(turn)


def random_normal_64(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32
) -> td.f64:
    """The standard normal distribution."""
    words = philox((index >> 1) | (above << 31), above >> 1, d0, d1, k0, k1)
    u = (td.u64(words.y) << 32) | td.u64(words.x)
    v = (td.u64(words.w) << 32) | td.u64(words.z)
    turn = v - (td.u64(index & 1) << 62)
    radius = exact_root.f64(td.maximum(-2.0 * log.f64(positive_f64(u)), 0.0))
    return radius * cosine_of_turn_f64(turn)


def cosine_of_turn_f64(turn: td.u64) -> td.f64:
    """cos(2 pi turn / 2^64)."""
    quarter = td.i32((turn + 0x2000000000000000) >> 62)
    remainder = td.bitcast(turn + 0x2000000000000000 - (td.u64(quarter) << 62), td.i64)
    r = td.f64(remainder - 0x2000000000000000) * TWO_PI_OVER_2_64
    cosine = td.where((quarter & 1) != 0, sin_near.f64(r), cos_near.f64(r))
    return td.where(((quarter + 1) & 2) != 0, -cosine, cosine)
