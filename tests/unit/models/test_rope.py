"""Frequencies of rotary embeddings, beside numbers that are computed otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treadle.models import rope
from treadle.models.rope import Rotary, frequencies


def test_tables_are_exact_for_long_texts() -> None:
    """Two rows are combined for a position, which is exact in float32 where a product of position
    and frequency in float32 is not."""
    rotary = Rotary(frequencies(64, 1e6), 1.25)
    table = rotary.table(40000).astype(np.float64)
    positions = np.array([0, 1, 255, 256, 12345, 39999])
    near, far = table[positions % rope.FINE], table[rope.FINE + positions // rope.FINE]
    cosines = far[..., 0] * near[..., 0] - far[..., 1] * near[..., 1]
    sines = far[..., 1] * near[..., 0] + far[..., 0] * near[..., 1]
    wanted = rotary.cosines(positions)
    np.testing.assert_allclose(cosines, wanted[0], atol=3e-7)
    np.testing.assert_allclose(sines, wanted[1], atol=3e-7)
    for pair in (0, 1, 63):  # by another way
        angle = math.fmod(39999 * 1e6 ** (-pair / 64), 2 * math.pi)
        assert abs(wanted[0][-1, pair] - 1.25 * math.cos(angle)) < 1e-9


def test_larger_bases_stretch_the_slowest_pair() -> None:
    plain = frequencies(32)
    stretched = frequencies(32, rope.ntk_base(10000.0, 4.0, 32))
    assert stretched[0] == plain[0] == 1
    assert stretched[-1] == pytest.approx(plain[-1] / 4)
    assert rope.dynamic_ntk_base(1e4, 2.0, 32, 100, 128) == 1e4
    grown = rope.dynamic_ntk_base(1e4, 2.0, 32, 256, 128)  # 2 * 256 / 128 - 1 = 3
    assert frequencies(32, grown)[-1] == pytest.approx(plain[-1] / 3)


def test_yarn_keeps_fast_pairs_and_divides_slow_ones() -> None:
    plain = frequencies(64)
    found = rope.yarn(plain, 8.0, 4096, 1e4)
    turns = 4096 * plain / (2 * math.pi)
    assert np.array_equal(found[turns > 40], plain[turns > 40])
    np.testing.assert_allclose(found[turns < 0.9], plain[turns < 0.9] / 8)
    assert np.all((found <= plain) & (found >= plain / 8))
    assert rope.yarn_scale(8.0) == pytest.approx(0.1 * math.log(8) + 1)


def test_llama_3_divides_slow_pairs() -> None:
    plain = frequencies(64, 5e5)
    factors = rope.llama3_factors(plain, 8.0, 1.0, 4.0, 8192)
    waves = 2 * math.pi / plain
    for wave, factor in zip(waves, factors, strict=True):
        if wave < 8192 / 4:
            assert factor == 1
        elif wave > 8192:
            assert factor == 8
        else:
            smooth = (8192 / wave - 1) / 3
            assert 1 / factor == pytest.approx((1 - smooth) / 8 + smooth)


def test_scale_of_long_contexts() -> None:
    assert rope.long_scale(4096, 4096) == 1
    assert rope.long_scale(131072, 4096) == pytest.approx(
        math.sqrt(1 + math.log(32) / math.log(4096))
    )
