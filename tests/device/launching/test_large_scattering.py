"""Writing at places of arrays with more elements than 32 bits count, also at small sizes."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.kernels import scatter

BEYOND = (1 << 31) + 10


def test_places_beyond_32_bits():
    x = td.empty(BEYOND, dtype=td.uint8, device="cpu").realize()  # untouched memory is not there
    x[[BEYOND - 3, 1, BEYOND - 3]] = td.asarray([1, 2, 3], dtype=td.uint8, device="cpu")
    x[td.asarray([BEYOND - 7, 5], device="cpu")] = 9
    found = [x[at].item() for at in (1, 5, BEYOND - 7, BEYOND - 3)]
    assert found == [2, 9, 9, 3]
    assert x[[BEYOND - 3, 1]].tolist() == [3, 2]


@pytest.fixture
def small(monkeypatch):
    """What is done with huge arrays, done with small ones."""
    monkeypatch.setattr(scatter, "MOST_NARROW", 4)
    monkeypatch.setattr(scatter, "_MOST_THREADS", 3)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int32", "complex64"])
def test_the_ways_of_huge_arrays(device, small, dtype):
    x = td.astype(td.zeros(10, device=device), getattr(td, dtype))
    x[td.asarray([7, 0, 7, 2], device=device)] = td.astype(
        td.asarray([1, 2, 3, 4], device=device), x.dtype
    )
    expected = np.zeros(10)
    expected[[0, 2, 7]] = [2, 4, 3]
    np.testing.assert_array_equal(x.numpy(), expected)
    x.index_add_(0, td.asarray([7, 9, 7], device=device), td.astype(td.ones(3), x.dtype))
    expected[[7, 9]] += [2, 1]
    np.testing.assert_array_equal(x.numpy(), expected)
