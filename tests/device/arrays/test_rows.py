"""Rows that are visited more than once: held in registers, or read again, on every device.

Small sizes reach all that an emitter tells apart: the threads of a row, whether each has as many
elements, whether these lie as vectors, what the passes need of each other.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

# None for a thread or for most; one a thread; vectors, and some threads without the last of them;
# more threads than a subgroup; more elements than are held by a thread of a software adapter.
LENGTHS = (1, 3, 31, 33, 68, 130, 256, 1100)


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(device, rng, length):
    x = rng.standard_normal((5, length)).astype(np.float32)
    scale = rng.standard_normal(length).astype(np.float32)
    t = td.asarray(x)
    powers = td.exp(t - td.max(t, axis=1, keepdims=True))
    found = powers / td.sum(powers, axis=1, keepdims=True) * td.asarray(scale)
    wide = np.exp(x.astype(float) - x.max(axis=1, keepdims=True))
    wanted = wide / wide.sum(axis=1, keepdims=True) * scale
    np.testing.assert_allclose(found.numpy(), wanted, 3e-6, 1e-7)


@pytest.mark.parametrize("shape", [(300, 40), (33, 129), (7, 5), (1, 3), (2, 35, 6)])
def test_rows_across_memory(device, rng, shape):
    axis = len(shape) - 2
    x = rng.standard_normal(shape).astype(np.float32)
    t = td.asarray(x)
    powers = td.exp(t - td.max(t, axis=axis, keepdims=True))
    found = powers / td.sum(powers, axis=axis, keepdims=True)
    wide = np.exp(x.astype(float) - x.max(axis=axis, keepdims=True))
    np.testing.assert_allclose(found.numpy(), wide / wide.sum(axis=axis, keepdims=True), 3e-6)


@pytest.mark.parametrize("special", [0.0, -math.inf, math.inf, math.nan])
def test_sums_of_exponentials_beside_a_maximum_so_far(device, rng, special):
    """In rows that are too long to be held, a lane may have met nothing but -inf."""
    x = rng.standard_normal((1, 140_001 if device.backend == "cpu" else 33_001)).astype(np.float32)
    x[0, 7::2] = special
    t = td.asarray(x)
    greatest = td.max(t, axis=1)
    found = td.sum(td.exp(t - td.max(t, axis=1, keepdims=True)), axis=1) + greatest
    wide = x.astype(float)
    with np.errstate(invalid="ignore"):
        wanted = np.exp(wide - wide.max()).sum() + wide.max()
    np.testing.assert_allclose(found.numpy(), [wanted], 1e-5)
    nothing = td.asarray(np.full((1, 33_001), -math.inf, np.float32))
    below = nothing - td.max(nothing, axis=1, keepdims=True)
    assert np.isnan((below - td.log(td.sum(td.exp(below), axis=1, keepdims=True))).numpy()).all()


def test_several_values_of_an_element_are_held(device, rng):
    x, y = rng.standard_normal((2, 3, 100)).astype(np.float32)
    a, b = td.asarray(x), td.asarray(y)
    product = a * b
    found = product - td.sum(product, axis=1, keepdims=True) * td.exp(a)
    found = found * td.max(found, axis=1, keepdims=True)
    wide = x.astype(float) * y - (x.astype(float) * y).sum(axis=1, keepdims=True) * np.exp(x)
    wanted = wide * wide.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found.numpy(), wanted, 2e-4, 2e-4)


def test_places_and_truths_are_joined(device, rng):
    x = rng.integers(0, 4, (6, 200)).astype(np.int32)
    t = td.asarray(x)
    place = td.argmax(t, axis=1, keepdims=True)
    found = td.where(t > place.to(td.int32) % 4, t, td.any(t == 3, axis=1, keepdims=True))
    place = x.argmax(axis=1, keepdims=True) % 4
    wanted = np.where(x > place, x, (x == 3).any(axis=1, keepdims=True))
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_rows_of_several_axes_and_halves(device, rng):
    x = rng.standard_normal((7, 4, 6, 5)).astype(np.float16)
    t = td.asarray(x).to(td.float32)
    middle = td.mean(t, axis=(0, 2, 3), keepdims=True)
    found = (t - middle).to(td.float16)
    wide = x.astype(float)
    wanted = wide - wide.mean(axis=(0, 2, 3), keepdims=True)
    np.testing.assert_allclose(found.numpy(), wanted, 2e-3, 1e-3)
    spread = td.var(t[:, :, 0, 0], axis=1)
    np.testing.assert_allclose(spread.numpy(), wide[:, :, 0, 0].var(axis=1), 1e-5)


def test_columns_in_parts(device, rng):
    """Few and long ones: parts of each are joined by a second kernel."""
    x = rng.standard_normal((5003, 3)).astype(np.float32)
    t = td.asarray(x)
    powers = td.exp(t - td.max(t, axis=0, keepdims=True))
    found = powers / td.sum(powers, axis=0, keepdims=True)
    wide = np.exp(x.astype(float) - x.max(axis=0, keepdims=True))
    np.testing.assert_allclose(found.numpy(), wide / wide.sum(axis=0, keepdims=True), 3e-6)
