"""Rows of tables, bags of them, one-hot rows, and products with weights, beside PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned

try:
    import torch
except ImportError:
    torch = None

BAGS = [
    {"mode": "sum"}, {"mode": "mean"}, {"mode": "max"}, {"mode": "mean", "padding_idx": 2},
    {"mode": "max", "padding_idx": -1}, {"mode": "sum", "include_last_offset": True},
]  # fmt: skip


@pytest.fixture(autouse=True)
def poison(device):
    with poisoned(device):
        yield


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def same(found, wanted, tolerance=0.0):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), tolerance, tolerance)


if torch is not None:

    def test_rows(device, rng):
        table, index = numbers(rng, 9, 5), rng.integers(0, 9, (3, 4), np.int32)
        wanted = torch.nn.functional.embedding(torch.asarray(index), torch.asarray(table), 3)
        same(F.embedding(td.asarray(index), td.asarray(table), 3), wanted)
        for dtype in ("int32", "uint8"):
            found = F.embedding(td.asarray(index).to(dtype), td.asarray(table).T.copied().T)
            same(found, wanted)
        same(F.embedding(td.asarray(index[0, 0]), td.asarray(table)), wanted[0, 0])

    def test_long_rows_are_scaled_in_the_table(device, rng):
        table, index = numbers(rng, 9, 5), rng.integers(0, 9, 7, np.int32)
        for p in (2.0, 1.0):
            ours, theirs = td.asarray(table), torch.asarray(table.copy())
            wanted = torch.nn.functional.embedding(torch.asarray(index), theirs, None, 1.5, p)
            same(F.embedding(td.asarray(index), ours, None, 1.5, p), wanted, 1e-6)
            same(ours, theirs, 1e-6)

    @pytest.mark.parametrize("options", BAGS, ids=str)
    def test_bags(device, rng, options):
        table, index = numbers(rng, 9, 21), rng.integers(0, 9, 17, np.int32)
        offsets = np.asarray([0, 4, 4, 9, 17], np.int32)
        arrays = (index, table, offsets)
        wanted = torch.nn.functional.embedding_bag(*map(torch.asarray, arrays), **options)
        same(F.embedding_bag(*map(td.asarray, arrays), **options), wanted, 1e-6)

    def test_bags_of_one_length(device, rng):
        table, weights = numbers(rng, 9, 5), numbers(rng, 4, 3)
        index = rng.integers(0, 9, (4, 3), np.int32)
        ours, theirs = ([make(x) for x in (index, table)] for make in (td.asarray, torch.asarray))
        wanted = torch.nn.functional.embedding_bag(*theirs)
        same(F.embedding_bag(*ours), wanted, 1e-6)
        wanted = torch.nn.functional.embedding_bag(
            *theirs, mode="sum", per_sample_weights=torch.asarray(weights)
        )
        found = F.embedding_bag(*ours, mode="sum", per_sample_weights=td.asarray(weights))
        same(found, wanted, 1e-6)

    def test_products(device, rng):
        x, y, w, b = (
            numbers(rng, 2, 3, 5),
            numbers(rng, 2, 3, 4),
            numbers(rng, 6, 5, 4),
            numbers(rng, 6),
        )
        ours, theirs = ([make(a) for a in (x, y, w, b)] for make in (td.asarray, torch.asarray))
        same(F.bilinear(*ours), torch.nn.functional.bilinear(*theirs), 2e-5)
        linear = torch.nn.functional.linear
        wanted = linear(theirs[0], theirs[2][:, :, 0], theirs[3])
        same(F.linear(ours[0], ours[2][:, :, 0], ours[3]), wanted, 1e-5)
        same(F.linear(ours[0], ours[2][0, :, 1]), linear(theirs[0], theirs[2][0, :, 1]), 1e-5)


def test_nan_is_the_greatest(device):
    table = td.asarray([[1.0, math.nan], [2.0, 3.0]])
    found = F.embedding_bag(td.asarray([[1, 0], [0, 1]]), table, mode="max")
    np.testing.assert_array_equal(found.numpy(), [[2, math.nan], [2, math.nan]])


def test_narrow_tables(device, rng):
    table = np.round(numbers(rng, 6, 4) * 8)
    for dtype in ("float16", "bfloat16"):
        found = F.embedding_bag(td.asarray([[0, 5, 5]]), td.asarray(table).to(dtype), mode="sum")
        assert found.dtype == dtype
        wanted = table[0] + table[5] * 2
        np.testing.assert_array_equal(found.to(td.float32).numpy()[0], wanted)


def test_one_hot(device):
    index = td.asarray([[2, 0], [1, 2]])
    found = F.one_hot(index)
    assert found.dtype in (td.int32, td.int64)
    np.testing.assert_array_equal(found.numpy(), np.eye(3)[[[2, 0], [1, 2]]])
    assert F.one_hot(td.asarray([1]), 4).tolist() == [[0, 1, 0, 0]]
    assert F.one_hot(td.zeros((2, 0), dtype=td.int32), 3).shape == (2, 0, 3)


def test_numbers_of_no_row(device):
    table, wrong = td.ones((3, 2)), td.asarray([-1, 1, 3])
    assert F.embedding(wrong, table).tolist() == [[0, 0], [1, 1], [0, 0]]
    assert F.embedding_bag(wrong, table, td.asarray([0]), mode="sum").tolist() == [[1, 1]]
    F.embedding(wrong, table, max_norm=1.0)
    np.testing.assert_allclose((table * table).sum(axis=1).numpy(), [2, 1, 2], 1e-5)
    for call in (lambda: F.embedding([0, 3], table), lambda: F.one_hot(np.asarray([-1]), 3)):
        with pytest.raises(IndexError, match="is not from 0 to 2"):
            call()


def test_refusals(device):
    table, index = td.zeros((3, 2), device="cpu"), td.zeros(4, dtype=td.int32, device="cpu")
    cases = {
        r"a table of shape \(rows, columns\), not \(3,\)": (F.embedding, index, table[:, 0]),
        "an input of one axis needs offsets": (F.embedding_bag, index, table),
        "has bags without offsets": (F.embedding_bag, index.reshape(2, 2), table, [0]),
        "offsets begin at 0 and rise to at most 4": (F.embedding_bag, index, table, [0, 5]),
        "num_classes must be positive": (F.one_hot, index, 0),
        r"an input of shape \(3, 2\) does not fit a weight of shape \(2, 3\)": (
            F.linear, table, table.T,
        ),
        r"bias has shape \(2,\), not \(3,\)": (F.linear, table, table, table[0]),
        r"do not fit a weight of shape \(3, 2\)": (F.bilinear, table, table, table),
    }  # fmt: skip
    for message, (function, *arguments) in cases.items():
        with pytest.raises(ValueError, match=message):
            function(*arguments)
    with pytest.raises(
        ValueError, match='mode is one of sum, mean, max, not "min"'.replace('"', "'")
    ):
        F.embedding_bag(index, table, [0], mode="min")
    with pytest.raises(ValueError, match='per_sample_weights are for mode="sum"'):
        F.embedding_bag(index, table, [0], per_sample_weights=index)
    with pytest.raises(IndexError, match="padding_idx=3 is not a row"):
        F.embedding(index, table, 3)
    with pytest.raises(td.errors.DtypeError, match="takes integers, not float32"):
        F.embedding(table, table)
