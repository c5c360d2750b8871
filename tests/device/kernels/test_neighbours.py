"""Neighbours that a thread loads and stores together, of dtypes of every width.

Whether they lie as vectors depends on where an array begins and how long its rows are, so views
begin anywhere here, results and operands are of different widths, and writes go into the middle.
"""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

DTYPES = ("bool", "int8", "uint16", "float16", "bfloat16")
CUTS = (  # rows of 24: all that can be vectors, and what can't for its begin, its end, its pitch
    np.s_[:], np.s_[:, 4:16], np.s_[:, 2:22], np.s_[:, 4:23], np.s_[:, 3:11], np.s_[:, ::-1],
)  # fmt: skip


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


@pytest.mark.parametrize("name", DTYPES)
def test_views_that_begin_and_end_anywhere(device, rng, name):
    dtype = getattr(td, name)
    x = rng.integers(0, 2 if name == "bool" else 100, (5, 24))
    t = td.asarray(x, dtype=td.int32).to(dtype).realize()
    y = np.float32(rng.integers(0, 100, 24))
    row = td.asarray(y)
    for cut in CUTS:
        seen, line = x[cut], y[: x[cut].shape[1]]
        part = t[cut]
        np.testing.assert_array_equal(part.to(td.int32).numpy(), seen)
        found = part.to(td.float32) + row[: part.shape[1]]
        np.testing.assert_array_equal(found.numpy(), seen + line)
        np.testing.assert_array_equal((found > 90).numpy(), seen + line > 90)
        here = td.asarray(t, copy=True)
        here[cut] = row[: part.shape[1]].to(dtype)  # the words' other parts stay as they are
        wanted = x.copy()
        wanted[cut] = (line != 0) if name == "bool" else line
        np.testing.assert_array_equal(here.to(td.int32).numpy(), wanted)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rows_of_halves(device, rng, name):
    for length in (33, 130, 260):
        x = td.asarray(rng.standard_normal((3, length)).astype(np.float32)).to(getattr(td, name))
        wide = x.to(td.float32).numpy().astype(float)
        powers = np.exp(wide - wide.max(axis=1, keepdims=True))
        found = td.nn.functional.softmax(x, dim=1)
        wanted = powers / powers.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.to(td.float32).numpy(), wanted, 1e-2, 1e-4)


@pytest.mark.parametrize("left", [1, 3])
def test_the_last_ones_of_a_long_axis_are_no_vector(device, rng, left):
    x = rng.integers(0, 100, (1 << 16) + left).astype(np.float32)
    t = td.asarray(x)
    halves = (t + 1).to(td.bfloat16).realize()
    np.testing.assert_array_equal(halves.to(td.float32).numpy(), x + 1)
    here = td.zeros(x.size + 9, dtype=td.bfloat16).realize()
    here[8:-1] = halves
    np.testing.assert_array_equal(here.to(td.int32).numpy(), [0] * 8 + [*(x + 1)] + [0])
