"""Philox against the published known answers; uniform and normal numbers against their laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.kernel_shim import EXACT, Value, arithmetic, run, vectorized
from treadle.lang.math import random

# From the authors' distribution (Random123, kat_vectors): counter, key, output.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter: Any, key: Any, expected: Any) -> None:
    with arithmetic(EXACT):
        words = vectorized(random.philox)(*(Value(np.uint32(v)) for v in (*counter, *key)))
    assert tuple(int(getattr(words, part).array) for part in "xyzw") == expected


def test_uniform_fills_the_unit_interval_evenly() -> None:
    counters = np.arange(100_001, dtype=np.uint32)
    x = run(random.rand_uniform, np.uint32(2024), counters)
    assert x.dtype == np.float32
    assert 0 <= x.min() < 1e-4
    assert 1 - 1e-4 < x.max() < 1
    shares = np.histogram(x, bins=16, range=(0, 1))[0] / x.size
    assert np.abs(shares - 1 / 16).max() < 0.005  # six standard deviations
    # Neighbours, and streams, are not related.
    other = run(random.rand_uniform, np.uint32(2025), counters)
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(x, other)[0, 1]) < 0.02


def test_normal_has_its_moments_and_tails() -> None:
    counters = np.arange(100_001, dtype=np.uint32)
    x = run(random.rand_normal, np.uint32(1), counters).astype(np.float64)
    assert abs(x.mean()) < 0.02
    assert abs(x.std() - 1) < 0.015
    assert abs((x**3).mean()) < 0.05
    assert abs((x**4).mean() - 3) < 0.15
    assert abs((np.abs(x) > 1.959964).mean() - 0.05) < 0.005
    assert np.isfinite(x).all()


def test_normal_is_box_and_mullers() -> None:
    """The angle is reduced exactly, so all that can differ is the library's own rounding."""
    counters = np.arange(2003, dtype=np.uint32)
    with arithmetic(EXACT):
        words = vectorized(random.random_words)(Value(np.uint32(9)), Value(counters))
    u = 1 - (words.x.array >> np.uint32(8)) * 2.0**-24
    angle = words.y.array * (2 * np.pi / 2**32)
    expected = np.sqrt(-2 * np.log(u)) * np.cos(angle)
    got = run(random.rand_normal, np.uint32(9), counters)
    np.testing.assert_allclose(got, expected, rtol=4e-7, atol=1e-8)
