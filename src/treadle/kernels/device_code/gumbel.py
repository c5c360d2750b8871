"""Gumbel's distribution, for drawing a token without a sum over the vocabulary."""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.random import philox


def gumbel(token: td.u32, drawn_before: td.u32, low: td.u32, high: td.u32) -> td.f32:
    """A number of Gumbel's distribution, -log(-log(u)) for u uniform in (0, 1), which is a function
    of a token, of how many were drawn before it, and of the seed's two words.

    u is 1 - word / 2^32: the largest numbers, which decide, come from the smallest words, and those
    have all bits in float32.
    """
    words = philox(token, drawn_before, td.u32(0), td.u32(0), low, high)
    share = (td.f32(words.x) + 0.5) * 2.3283064365386963e-10
    return -td.log(-td.log1p(-td.minimum(share, 0.99999994)))
