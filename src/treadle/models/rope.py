"""Rotary embeddings: the angles by which pairs of elements of queries and keys are rotated.

The first of `pairs` pairs is rotated by its position, the others ever more slowly: by the position
times `base ** (-i / pairs)`. What models for longer texts do to these frequencies are functions
here, from float64 arrays to float64 arrays. (J. Su and others, "RoFormer", 2021.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
FINE = 256  # positions that a table has one after the other


@dataclass(frozen=True, eq=False)
class Rotary:
    """How queries and keys are rotated.

    `frequencies` are angles per position (float64), one for each pair; cosines and sines are
    multiplied by `scale`. Pairs are neighbouring elements where `adjacent` is true (as in GGUF
    files of the llama architecture), else element i and element i + the number of pairs."""

    frequencies: Floats
    scale: float = 1.0
    adjacent: bool = False

    @property
    def pairs(self) -> int:
        """The number of pairs of a head; further elements are not rotated."""
        return len(self.frequencies)

    def table(self, positions: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Cosines and sines for as many positions at least, of shape (rows, pairs, 2): the rows of
        positions 0 to `FINE` - 1, then those of each `FINE`-th position. The angle of a position is
        the sum of one of the former and one of the latter, which have the scale as a factor."""
        coarse = np.arange(-(-positions // FINE) or 1, dtype=np.float64) * FINE
        at = np.concatenate([np.arange(FINE, dtype=np.float64), coarse])
        angles = at[:, None] * self.frequencies
        found = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        found[FINE:] *= self.scale
        return found.astype(np.float32)

    def cosines(self, positions: Any) -> tuple[Floats, Floats]:
        """Cosines and sines of some positions, in float64: what the table gives."""
        angles = np.asarray(positions, np.float64)[..., None] * self.frequencies
        return np.cos(angles) * self.scale, np.sin(angles) * self.scale


def frequencies(pairs: int, base: float = 10000.0) -> Floats:
    """Those of the paper."""
    return float(base) ** (-np.arange(pairs, dtype=np.float64) / pairs)


def linear(plain: Floats, factor: float) -> Floats:
    """Positions divided by a factor."""
    return plain / factor


def ntk_base(base: float, factor: float, pairs: int) -> float:
    """A larger base, so that the slowest pair turns as if positions were divided by a factor, and
    the fastest as before."""
    return base * factor ** (pairs / (pairs - 1)) if pairs > 1 else base


def dynamic_ntk_base(base: float, factor: float, pairs: int, length: int, original: int) -> float:
    """The same for a text that is longer than the model's original context, by its length."""
    if length <= original:
        return base
    return ntk_base(base, factor * length / original - (factor - 1), pairs)


def yarn(
    plain: Floats, factor: float, original: int, base: float, fast: float = 32.0, slow: float = 1.0
) -> Floats:
    """Pairs that turn more than `fast` times within the original context keep their frequencies,
    those that turn fewer than `slow` times are divided by the factor, those between are blended.
    (B. Peng and others, "YaRN", 2023.)"""
    pairs = len(plain)

    def pair_of(turns: float) -> float:
        return pairs * math.log(original / (turns * 2 * math.pi)) / math.log(base)

    low = max(math.floor(pair_of(fast)), 0)
    high = min(math.ceil(pair_of(slow)), 2 * pairs - 1)
    ramp = (np.arange(pairs, dtype=np.float64) - low) / max(high - low, 0.001)
    kept = 1 - np.clip(ramp, 0, 1)
    return plain / factor * (1 - kept) + plain * kept


def yarn_scale(factor: float, weight: float = 1.0) -> float:
    """By how much YaRN multiplies queries and keys."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def llama3_factors(plain: Floats, factor: float, low: float, high: float, original: int) -> Floats:
    """What Llama 3 divides frequencies by: `factor` for pairs that turn fewer than `low` times
    within the original context, 1 for those that turn more than `high` times. GGUF files have
    these numbers as the tensor `rope_freqs.weight`."""
    turns = original * plain / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / factor + smooth)


def long_scale(context: int, original: int) -> float:
    """By how much Phi-3 multiplies queries and keys for contexts beyond the original one."""
    if context <= original:
        return 1.0
    return math.sqrt(1 + math.log(context / original) / math.log(original))


Scaling = Literal["none", "linear", "ntk", "yarn", "longrope"]
SCALINGS: tuple[Scaling, ...] = ("none", "linear", "ntk", "yarn", "longrope")
