"""The best of rows, counts of values, distances between rows."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import has
from tests.support.poison import poisoned


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


@pytest.mark.parametrize(
    ("shape", "k"),
    [((1,), 1), ((7,), 3), ((7,), 7), ((3, 1000), 10), ((2, 40009), 5),
     ((2, 90011), 5), ((5, 33), 0), ((2, 5000), 700), ((0, 4), 2)],
)  # fmt: skip
def test_topk(device, rng, shape, k):
    for dtype in ("float32", "int16"):
        x = (rng.standard_normal(shape) * 50).astype(dtype)
        if dtype == "float32" and x.size > 20:
            x.flat[3], x.flat[5], x.flat[7] = np.nan, -np.inf, -0.0
        for largest in (True, False):
            values, places = td.topk(td.asarray(x), k, largest=largest)
            ordered = np.sort(x, axis=-1)
            wanted = (ordered[..., ::-1] if largest else ordered)[..., :k]
            np.testing.assert_array_equal(values, wanted)
            at = places.numpy().astype(np.int64)
            np.testing.assert_array_equal(np.take_along_axis(x, at, -1), wanted)
            ascending = np.sort(at, -1)
            assert (ascending[..., 1:] != ascending[..., :-1]).all()


def test_topk_along_an_axis(device, rng):
    x = rng.standard_normal((5, 9, 2)).astype(np.float32)
    values, places = td.asarray(x).topk(4, dim=1)
    np.testing.assert_array_equal(values, np.sort(x, axis=1)[:, ::-1][:, :4])
    np.testing.assert_array_equal(td.take_along_axis(td.asarray(x), places, axis=1), values)
    with pytest.raises(td.errors.ShapeError, match=r"0 to 9"):
        td.topk(td.asarray(x), 10, axis=1)


def test_bincount(device, rng):
    x = rng.integers(0, 20, 500).astype(np.int32)
    weights = rng.standard_normal(500).astype(np.float32)
    np.testing.assert_array_equal(td.bincount(td.asarray(x)), np.bincount(x))
    found = td.bincount(td.asarray(x), td.asarray(weights), minlength=30)
    np.testing.assert_allclose(found, np.bincount(x, weights, 30), 1e-4, 1e-5)
    assert td.bincount(td.zeros(0, dtype=td.int32), minlength=2).tolist() == [0, 0]
    with pytest.raises(ValueError, match="-3"):
        td.bincount(td.asarray([1, -3]))
    with pytest.raises(td.errors.DtypeError):
        td.bincount(td.asarray([1.0]))


def test_bincount_of_every_integer(device, rng):
    for dtype in (td.u8, td.i16, td.u16, td.u32, td.i64, td.u64):
        if has(device, dtype):
            x = rng.integers(0, 100, 300).astype(dtype.numpy)
            np.testing.assert_array_equal(td.bincount(td.asarray(x)), np.bincount(x.astype(int)))


def test_histogram(device, rng):
    x = rng.standard_normal(999).astype(np.float32)
    x[:3] = np.float32(-1), np.float32(1), np.nan
    for arguments in ((10, (-1, 1)), (7, (-2.5, 0.5)), ([-1.0, 0.0, 0.25, 3.0],)):
        counts, edges = td.histogram(td.asarray(x), *arguments)
        finite = x[~np.isnan(x)].astype(np.float64)
        _, wanted_edges = np.histogram(finite, *arguments)
        np.testing.assert_allclose(edges, wanted_edges, 1e-6, 1e-7)
        wanted, _ = np.histogram(finite, edges.numpy().astype(np.float64))
        np.testing.assert_array_equal(counts, wanted)
    for edges in (np.array([-1.0, 0.0, 3.0], np.float32), td.asarray([-1.0, 0.0, 3.0])):
        wanted, _ = np.histogram(finite, [-1.0, 0.0, 3.0])
        np.testing.assert_array_equal(td.histogram(td.asarray(x), edges).hist, wanted)
    y = rng.integers(-5, 6, 300).astype(np.int32)
    weights = rng.random(300).astype(np.float32)
    found = td.histogram(td.asarray(y), 5, weights=td.asarray(weights), density=True)
    wanted, _ = np.histogram(y, 5, weights=weights, density=True)
    np.testing.assert_allclose(found.hist, wanted, 1e-4)
    assert td.histc(td.asarray([1.0, 2.0, 1.0]), 4, 0, 3).tolist() == [0.0, 2.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="ascend"):
        td.histogram(td.asarray(y), [1, 0])
    with pytest.raises(ValueError, match="range"):
        td.histogram(td.asarray([1.0, np.inf]))


def test_cdist(device, rng):
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 1, 5, 3), (4, 7, 3)))
    away = np.abs(x[..., :, None, :].astype(np.float64) - y[..., None, :, :])
    for p, wanted in (
        (2.0, np.sqrt((away**2).sum(-1))), (1.0, away.sum(-1)), (np.inf, away.max(-1)),
        (0.0, (away != 0).sum(-1)), (3.0, (away**3).sum(-1) ** (1 / 3)),
    ):  # fmt: skip
        found = td.cdist(td.asarray(x), td.asarray(y), p)
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    assert td.cdist(td.zeros((3, 0)), td.zeros((2, 0))).tolist() == [[0.0, 0.0]] * 3
    with pytest.raises(td.errors.ShapeError, match=r"\(3, 2\) and x2 \(3, 4\)"):
        td.cdist(td.zeros((3, 2)), td.zeros((3, 4)))
