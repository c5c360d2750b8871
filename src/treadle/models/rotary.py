"""A model's rotary embedding: what its file says, made into frequencies."""

from __future__ import annotations

import numpy as np

from treadle.models import rope
from treadle.models.config import DecoderConfig
from treadle.models.layers import Weights
from treadle.models.rope import Floats, Rotary

_FACTORS = "rope_freqs.weight"
_SHORT, _LONG = "rope_factors_short.weight", "rope_factors_long.weight"


def rotary_of(
    config: DecoderConfig, weights: Weights, context: int, *, adjacent: bool = False
) -> Rotary:
    """How positions are encoded in a context of so many tokens.

    What a file may say: a factor by which positions are divided ("linear"), a larger base ("ntk"),
    YaRN, or a divisor for each frequency, of which Phi-3 has two sets, for short and long contexts.
    """
    given, pairs = config.rope, config.rope.dims // 2
    plain, scale = rope.frequencies(pairs, given.base), 1.0
    if given.scaling == "linear":
        plain = rope.linear(plain, given.factor)
    elif given.scaling == "ntk":
        plain = rope.frequencies(pairs, rope.ntk_base(given.base, given.factor, pairs))
    elif given.scaling == "yarn":
        plain = rope.yarn(plain, given.factor, given.original, given.base, given.fast, given.slow)
        scale = rope.yarn_scale(given.factor)
    if given.attention_factor is not None:
        scale *= given.attention_factor
    elif given.scaling == "longrope":
        scale = rope.long_scale(config.context, given.original)
    divisors = _divisors(weights, pairs, context > given.original)
    return Rotary(plain if divisors is None else plain / divisors, scale, adjacent)


def _divisors(weights: Weights, pairs: int, is_long: bool) -> Floats | None:
    """What the file divides frequencies by."""
    for name in (_FACTORS, _LONG if is_long else _SHORT):
        if weights.has(name):
            return weights.numpy(name, pairs).astype(np.float64)
    return None
