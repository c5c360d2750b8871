"""Random numbers: Philox 4x32-10, counter-based, the same bits on every device.

Ten rounds of multiplications and exclusive ors transform a counter and a key into four words (J. K.
Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
2011). There is no state: number `counter` of stream `seed` is a function of the two.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_root
from treadle.lang.math.logarithm import log
from treadle.lang.math.trigonometry import cos_near, sin_near

MULTIPLY_0 = 0xD2511F53
MULTIPLY_1 = 0xCD9E8D57
WEYL_0 = 0x9E3779B9  # the golden ratio
WEYL_1 = 0xBB67AE85  # sqrt(3) - 1
TWO_PI = 6.283185307179586


def philox(
    c0: td.u32, c1: td.u32, c2: td.u32, c3: td.u32, k0: td.u32, k1: td.u32
) -> td.vec4[td.u32]:
    """The four words of Philox 4x32-10 for the counter c0 … c3 and the key k0, k1."""
    for _ in td.static_range(10):
        low_0 = c0 * MULTIPLY_0
        high_0 = td.mul_high(c0, td.u32(MULTIPLY_0))
        low_1 = c2 * MULTIPLY_1
        high_1 = td.mul_high(c2, td.u32(MULTIPLY_1))
        c0 = high_1 ^ c1 ^ k0
        c1 = low_1
        c2 = high_0 ^ c3 ^ k1
        c3 = low_0
        k0 = k0 + WEYL_0
        k1 = k1 + WEYL_1
    return td.vec4[td.u32](c0, c1, c2, c3)


def random_words(seed: td.u32, counter: td.u32) -> td.vec4[td.u32]:
    """Four words: number `counter` of stream `seed`."""
    zero = td.u32(0)
    return philox(counter, zero, zero, zero, seed, zero)


def unit_interval(bits: td.u32) -> td.f32:
    """A number in [0, 1) from the upper 24 bits, all equally likely."""
    return td.f32(bits >> 8) * 5.960464477539063e-08


def rand_uniform(seed: td.u32, counter: td.u32) -> td.f32:
    """Number `counter` of stream `seed`, in [0, 1): one of 2^24 equally likely ones."""
    return unit_interval(random_words(seed, counter).x)


def rand_normal(seed: td.u32, counter: td.u32) -> td.f32:
    """Number `counter` of stream `seed` of the standard normal distribution.

    By G. E. P. Box and M. E. Muller ("A note on the generation of random normal deviates", 1958):
    sqrt(-2 log u) cos(2 pi v), where u in (0, 1] comes from word 0 and v in [0, 1) from word 1.
    """
    words = random_words(seed, counter)
    u = 1.0 - unit_interval(words.x)
    return exact_root.f32(-2.0 * log.f32(u)) * cosine_of_turn(words.y)


def cosine_of_turn(turn: td.u32) -> td.f32:
    """cos(2 pi turn / 2^32)."""
    # The nearest quarter turn, and the signed remainder: exact, since they are integers.
    quarter = td.i32((turn + 0x20000000) >> 30)
    remainder = td.f32(td.bitcast(turn + 0x20000000 - (td.u32(quarter) << 30), td.i32) - 0x20000000)
    r = remainder * (TWO_PI / 4294967296.0)
    cosine = td.where((quarter & 1) != 0, sin_near.f32(r), cos_near.f32(r))
    return td.where(((quarter + 1) & 2) != 0, -cosine, cosine)
