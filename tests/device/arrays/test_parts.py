"""Loops over rows and elements: one kernel for all, whichever come, and the right values."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.graph.realize import watchers


@pytest.fixture
def programs():
    """The programs that are planned while a test runs."""
    found = []

    def watch(group):
        found.append(group.program)

    watchers.append(watch)
    yield found
    watchers.remove(watch)


def test_elements_one_by_one_are_one_kernel(device, programs):
    a, b = td.zeros((40, 40)), np.zeros((40, 40), np.float32)
    for j in range(40):
        a[j, (j * 7) % 40] = j
        b[j, (j * 7) % 40] = j
    np.testing.assert_array_equal(a.numpy(), b)
    assert len(set(programs)) <= 2  # zeros, and an element


def test_sums_of_rows_are_one_kernel_whichever_they_are(device, programs):
    data = np.arange(60, dtype=np.float32).reshape(12, 5)
    x = td.asarray(data)
    found = set()
    for first in range(6):
        programs.clear()
        total = td.zeros(5)
        for i in range(6):
            total = total + x[(first + i * 5) % 12]
        expected = sum(data[(first + i * 5) % 12] for i in range(6))
        np.testing.assert_array_equal(total.numpy(), expected)
        found |= set(programs)
    assert len(found) == 1


def test_positions_may_coincide_or_not(device, rng):
    """Plans are remembered for graphs that differ in positions alone: those must not be mistaken
    in which parts of an array are the same."""
    x, a = td.zeros((9, 4)), np.zeros((9, 4), np.float32)
    for turn in range(60):
        i, j, k = (int(number) for number in rng.integers(0, 9, 3))
        x[i] = x[j] * 0.5 + turn
        a[i] = a[j] * 0.5 + turn
        x[j, 1:3] += x[k, 0:2]
        a[j, 1:3] += a[k, 0:2]
        before, old = x[k] + x[j], a[k] + a[j]
        x[k] = x[i] - x[j]
        a[k] = a[i] - a[j]
        x[:, turn % 4] += 1
        a[:, turn % 4] += 1
        if turn % 3 == 0:
            np.testing.assert_array_equal(x.numpy(), a)
            np.testing.assert_array_equal(before.numpy(), old)
        elif turn % 3 == 1:
            np.testing.assert_array_equal(before.numpy(), old)
        a *= 0.5
        x *= 0.5
    np.testing.assert_array_equal(x.numpy(), a)


def test_overlapping_parts_of_one_array(device):
    for first in range(1, 6):
        x, a = td.arange(12, dtype=td.float32), np.arange(12, dtype=np.float32)
        x.realize()
        x[first : first + 6] = x[first - 1 : first + 5]
        a[first : first + 6] = a[first - 1 : first + 5].copy()
        np.testing.assert_array_equal(x.numpy(), a)
        x[first : first + 6] = x[first : first + 6] * 2
        a[first : first + 6] *= 2
        np.testing.assert_array_equal(x.numpy(), a)


def test_a_part_seen_through_further_views(device):
    data = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    x = td.asarray(data)
    for i, j in [(0, 0), (1, 0), (0, 3), (1, 2), (0, 1)]:
        row = x[i, j]
        spread = td.broadcast_to(row * 1, (3, 6)) + row[::-1] + td.flip(x[i, j : j + 1], axis=1)
        expected = data[i, j] + data[i, j, ::-1] * 2 + np.zeros((3, 1), np.float32)
        np.testing.assert_array_equal(spread.numpy(), expected)
        column = x[i].T[j, 1:] + x[i, 1:, j]
        np.testing.assert_array_equal(column.numpy(), data[i, 1:, j] * 2)


def test_aligned_and_unaligned_parts(device):
    data = np.arange(4096, dtype=np.float32)
    x = td.asarray(data)
    for first in (0, 4, 1, 8, 2, 3, 5, 1024, 7):
        found = x[first : first + 2048] + x[first + 1 : first + 2049] * 2
        expected = data[first : first + 2048] + data[first + 1 : first + 2049] * 2
        np.testing.assert_array_equal(found.numpy(), expected)
        assert td.sum(x[first : first + 1024]).item() == data[first : first + 1024].sum()


def test_gradients_of_elements_one_by_one(device):
    x = td.asarray(np.arange(1.0, 9.0, dtype=np.float32)).requires_grad_()
    for first in range(3):
        x.grad = None
        total = x[first] * x[first + 1]
        for i in range(first, first + 5):
            total = total + x[i] ** 2
        total.backward()
        expected = np.zeros(8, np.float32)
        expected[first : first + 5] += 2 * np.arange(first + 1, first + 6)
        expected[first] += first + 2
        expected[first + 1] += first + 1
        np.testing.assert_allclose(x.grad.numpy(), expected)
