"""Tables of tiles of packed texts, and second derivatives of their attention."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.kernels.text_tiles import text_tiles

attend = td.nn.functional.packed_attention


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


def table(starts, key_starts, rows, keys, tile):
    pair = [td.asarray(x.astype(np.int32), device="cpu")._array for x in (starts, key_starts)]
    with poisoned(td.device("cpu")):
        return text_tiles((pair[0], pair[1]), rows, keys, tile).to_host().reshape(-1, 5)


def test_each_row_is_in_one_tile_of_its_text(rng):
    for _ in range(60):
        texts, tile = rng.integers(0, 7), int(rng.choice([1, 2, 3, 16, 64]))
        rows, keys = (int(n) for n in rng.integers(1, 200, 2))
        starts, key_starts = (np.sort(rng.integers(0, n + 1, texts + 1)) for n in (rows, keys))
        found = table(starts, key_starts, rows, keys, tile)
        own = np.searchsorted(starts, np.arange(rows), side="right") - 1
        inside = (own >= 0) & (own < texts)
        seen = np.zeros(rows, int)
        for row, begin, count, first, many in found:
            here = np.arange(begin + row, begin + min(row + tile, count))
            seen[here] += 1
            assert row % tile == 0
            if not here.size:
                assert count == many == 0
            elif inside[here[0]]:
                text = own[here[0]]
                assert (begin, begin + count) == tuple(starts[text : text + 2])
                assert (first, first + many) == tuple(key_starts[text : text + 2])
            else:
                assert many == 0
                assert (own[begin : begin + count] == own[here[0]]).all()
        assert (seen == 1).all()
        assert len(found) <= -(-rows // tile) + texts + 2


def test_one_long_text_has_no_more_tiles_than_without_packing():
    found = table(np.array([0, 4096]), np.array([0, 4096]), 4096, 4096, 64)
    assert (found[:, 2] > 0).sum() == 64
    assert len(found) == 66


def test_starts_that_decrease_or_lie_outside_stay_within_the_rows(rng):
    """What they give is undefined, and nothing outside is read or written."""
    for _ in range(20):
        starts = rng.integers(-(2**31), 2**31, 6) // rng.choice([1, 1 << 25])
        row, begin, count, first, many = table(starts, starts[::-1], 70, 50, 8).T
        assert ((row >= 0) & (row <= count)).all()
        assert ((begin >= 0) & (count >= 0) & (begin + count <= 70)).all()
        assert ((first >= 0) & (many >= 0) & (first + many <= 50)).all()


def test_too_many_tiles_are_refused():
    starts = td.zeros((1 << 14,), dtype=td.int32, device="cpu")._array
    with pytest.raises(td.errors.ShapeError, match=r"16383 packed texts.*split the texts"):
        text_tiles((starts, starts), 9, 9, 1 << 15)


def squares(arrays, starts):
    """The sum of the squares of the gradients of query, key and value, in NumPy."""
    total = 0.0
    for a, b in itertools.pairwise(starts):
        q, k, v, g = (x[:, a:b] for x in arrays)
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        powers = np.tril(np.exp(scores))
        weights = powers / powers.sum(axis=-1, keepdims=True)
        of_weights = g @ v.swapaxes(-1, -2)
        slopes = weights * (of_weights - (weights * of_weights).sum(axis=-1, keepdims=True))
        slopes *= q.shape[-1] ** -0.5
        turned = slopes.swapaxes(-1, -2), weights.swapaxes(-1, -2)
        total += sum((x**2).sum() for x in (slopes @ k, turned[0] @ q, turned[1] @ g))
    return total


def test_second_derivatives(rng, monkeypatch):
    """Composed, as on devices whose kernels make first derivatives of packed texts."""
    packed = importlib.import_module("treadle.tensor.functional.packed_attention")
    monkeypatch.setattr(packed, "derived_by_fragments", lambda *_: True)
    starts = [1, 6, 6, 14]
    arrays = [rng.standard_normal((2, 15, columns)) for columns in (8, 8, 6, 6)]

    def derivatives(arrays):
        *leaves, g = (td.asarray(x, device="cpu").requires_grad_() for x in arrays)
        out = attend(*leaves, starts, is_causal=True)
        first = td.autograd.grad(out, leaves, grad_outputs=g, create_graph=True)
        total = sum((x * x).sum() for x in first)
        return [x.numpy() for x in td.autograd.grad(total, [*leaves, g])]

    found = derivatives(arrays)
    moves = [rng.standard_normal(x.shape) for x in arrays]
    there, back = ([x + h * m for x, m in zip(arrays, moves, strict=True)] for h in (1e-5, -1e-5))
    wanted = (squares(there, starts) - squares(back, starts)) / 2e-5
    along = sum((x * m).sum() for x, m in zip(found, moves, strict=True))
    np.testing.assert_allclose(along, wanted, 1e-6, 1e-6)
    for x in found:
        assert not x[:, [0, 14]].any()
    arrays[2][:, 7], arrays[3][:, 8], arrays[1][:, 14] = np.nan, np.inf, np.nan
    rest = [*range(6), 14]
    for one, other in zip(found, derivatives(arrays), strict=True):
        np.testing.assert_array_equal(one[:, rest], other[:, rest])
