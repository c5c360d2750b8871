"""The kernels of attention on every target: what `test_attention` has in all its variety, small."""

from __future__ import annotations

import pytest

import treadle as td
from tests.device.nn.test_attention import attend, close, drawn, formula, visible
from tests.support.poison import poisoned


@pytest.fixture(autouse=True)
def poison(device):
    with poisoned(device):
        yield


def test_vectors_of_four(device, rng):
    """Windows, outside of which tiles are skipped, in the tiles of large GPUs from the largest."""
    for queries, width, left, right in (
        (66, 68, 5, 3), (66, 36, None, 0), (33, 8, None, None), (9, 36, 0, 40), (3, 8, None, 1),
    ):  # fmt: skip
        q, k, v = drawn(rng, (1, queries, 8), (1, 70, 8), (1, 70, width))
        found = attend(*map(td.asarray, (q, k, v)), window=(left, right))
        close(found, formula(q, k, v, visible(queries, 70, left, right)))


def test_masks_and_single_columns(device, rng):
    q, k, v = drawn(rng, (2, 2, 17, 5), (2, 1, 67, 5), (2, 2, 67, 3))
    mask = rng.random((2, 1, 1, 67)) < 0.3
    mask[1] = False  # queries that see nothing
    found = attend(*map(td.asarray, (q, k, v, mask)))
    close(found, formula(q, k, v, mask))
    assert not found.numpy()[1].any()


def test_halves(device, rng):
    q, k, v = drawn(rng, (1, 9, 8), (1, 33, 8), (1, 33, 8), dtype="float16")
    close(attend(*map(td.asarray, (q, k, v))), formula(q, k, v), "float16")
