"""Functions with NumPy's names beside NumPy's, which compute in float64: drawn arrays of odd sizes,
with NaN and infinity, empty ones, and what is refused."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError, ShapeError

INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def quiet():
    """NumPy warns of empty slices; treadle's functions say what they give."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def close(found, wanted, rtol=3e-6, atol=3e-6):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.numpy(), wanted, rtol, atol)


def drawn(rng, *shape, nan=0.0, inf=0.0):
    x = rng.standard_normal(shape)
    x[rng.random(shape) < inf] = INF
    x[rng.random(shape) < inf] = -INF
    x[rng.random(shape) < nan] = NAN
    x = x.astype(np.float32)
    return td.asarray(x), x.astype(np.float64)


def test_isclose(device, rng):
    x, wide = drawn(rng, 5, 13, nan=0.1, inf=0.1)
    other = np.where(rng.random(wide.shape) < 0.5, wide, wide * (1 + 1e-4)).astype(np.float32)
    for options in ({}, {"rtol": 1e-3, "equal_nan": True}, {"rtol": 0.0, "atol": 0.5}):
        found = td.isclose(x, td.asarray(other), **options)
        wanted = np.isclose(wide, other.astype(np.float64), **options)
        np.testing.assert_array_equal(found.numpy(), wanted)
    low, high = td.iinfo(td.int32).min, td.iinfo(td.int32).max  # whose difference overflows
    integers = td.asarray([low, high - 1, 7], dtype=td.int32)
    assert td.isclose(integers, [high, high, 7], rtol=0, atol=1.5).tolist() == [False, True, True]
    unsigned = td.asarray([0, 5], dtype=td.uint8)
    assert td.isclose(unsigned, 1, rtol=0, atol=1).tolist() == [True, False]
    assert td.allclose(x[:, :0], 1.0) is True
    assert td.allclose(td.asarray([1.0, NAN]), td.asarray([1.0, NAN])) is False
    with pytest.raises(ValueError, match="0 or more"):
        td.allclose(x, x, rtol=-1)


def test_nan_to_num_and_lerp(device, rng):
    x, wide = drawn(rng, 7, 11, nan=0.2, inf=0.2)
    most = float(td.finfo(td.float32).max)
    close(td.nan_to_num(x), np.nan_to_num(wide, posinf=most, neginf=-most), 0, 0)
    options = {"nan": 1.5, "posinf": 3.0, "neginf": -4.0}
    close(td.nan_to_num(x, **options), np.nan_to_num(wide, **options), 0, 0)
    assert td.nan_to_num(td.asarray([3, 4])).tolist() == [3, 4]
    pair = td.asarray([complex(NAN, 1), complex(2, INF)])
    assert td.nan_to_num(pair, posinf=5.0).tolist() == [1j, 2 + 5j]
    one, other, by = (td.asarray(v) for v in ([0.0, 1.0, 1e8], [4.0, NAN, 1.0], [0.25, 0.5, 1.0]))
    np.testing.assert_array_equal(td.lerp(one, other, by).numpy(), [1.0, NAN, 1.0])
    assert td.lerp(td.asarray([1, 2]), td.asarray([3, 6]), weight=0.5).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("axis", [None, 1, (0, 2)], ids=str)
def test_nan_reductions(device, rng, axis):
    x, wide = drawn(rng, 3, 5, 7, nan=0.3)
    x[:, :, 2], wide[:, :, 2] = NAN, NAN
    for name in ("nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmax", "nanmin"):
        keepdims = len(name) == 6
        found = getattr(td, name)(x, axis=axis, keepdims=keepdims)
        close(found, getattr(np, name)(wide, axis=axis, keepdims=keepdims), 2e-5)
    close(td.nanvar(x, axis=axis, correction=1), np.nanvar(wide, axis=axis, ddof=1), 2e-5)
    close(td.nanmedian(x, axis=axis), np.nanmedian(wide, axis=axis))
    if not isinstance(axis, tuple):
        close(td.nancumsum(x, axis=axis), np.nancumsum(wide, axis=axis))
        close(td.nancumprod(x, axis=axis), np.nancumprod(wide, axis=axis))


def test_nan_extremes(device, rng):
    x = td.asarray([[NAN, -INF, NAN], [NAN, NAN, NAN], [2.0, NAN, 3.0], [INF, INF, NAN]])
    assert td.nanargmax(x, axis=1).tolist() == [1, -1, 2, 0]
    assert td.nanargmin(x, axis=1).tolist() == [1, -1, 0, 0]
    np.testing.assert_array_equal(td.nanmax(x, axis=1).numpy(), [-INF, NAN, 3, INF])
    assert td.nanargmax(td.asarray([1, 5, 5])).item() == 1
    assert td.nansum(td.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert math.isnan(td.nanmean(td.zeros(0)).item())
    assert td.nansum(td.asarray([1 + 1j, complex(NAN, 0)])).item() == 1 + 1j
    with pytest.raises(ShapeError, match="no elements"):
        td.nanmax(td.zeros(0))


METHODS = (
    "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
)  # fmt: skip


def test_quantile_methods(device, rng):
    q = np.array([[0.0, 0.1, 0.25, 0.5], [0.6, 0.77, 0.9, 1.0]])
    x, wide = drawn(rng, 3, 11)
    gaps, wide_gaps = drawn(rng, 3, 11, nan=0.3)
    for method in METHODS:
        close(td.quantile(x, q, axis=1, method=method),
              np.quantile(wide, q, axis=1, method=method))  # fmt: skip
        close(td.nanquantile(gaps, q, axis=1, method=method),
              np.nanquantile(wide_gaps, q, axis=1, method=method))  # fmt: skip
    integers = td.asarray([4, 1, 3])
    assert td.quantile(integers, 0.5, method="lower").dtype is integers.dtype
    with pytest.raises(ValueError, match="one of linear"):
        td.quantile(x, 0.5, method="least")


@pytest.mark.parametrize("axis", [None, 0, (1, 2), (2, 0)], ids=str)
def test_quantiles_along_axes(device, rng, axis):
    x, wide = drawn(rng, 3, 4, 5)
    x[1, 2, 3] = wide[1, 2, 3] = NAN
    for keepdims in (False, True):
        options = {"axis": axis, "keepdims": keepdims}
        close(td.quantile(x, [0.2, 0.5], **options), np.quantile(wide, [0.2, 0.5], **options))
        close(td.percentile(x, 30, **options), np.percentile(wide, 30, **options))
        close(td.nanpercentile(x, 30, **options), np.nanpercentile(wide, 30, **options))
        close(td.median(x, **options), np.median(wide, **options))


def test_quantiles_of_special_values(device):
    x = td.asarray([[INF, INF, INF], [-INF, 0.0, INF], [1.0, 2.0, INF], [-INF, -INF, 3.0]])
    np.testing.assert_array_equal(td.median(x, axis=1).numpy(), [INF, 0, 2, -INF])
    np.testing.assert_array_equal(td.quantile(x, 0.75, axis=1).numpy(), [INF, INF, INF, -INF])
    assert td.median(td.asarray(3.0)).item() == 3.0
    assert td.median(td.asarray([True, False])).item() == 0.5
    assert td.median(td.zeros((0, 3)), axis=1).shape == (0,)
    with pytest.raises(ShapeError, match="no elements"):
        td.median(td.zeros((0, 3)), axis=0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        td.quantile(x, 1.5)
    with pytest.raises(DtypeError, match="real"):
        td.median(td.asarray([1j]))


def test_kthvalue(device, rng):
    x, wide = drawn(rng, 5, 7)
    for k in (1, 4, 7):
        found = td.kthvalue(x, k, axis=1, keepdims=True)
        close(found.values, np.sort(wide, axis=1)[:, k - 1 : k], 0, 0)
        np.testing.assert_array_equal(found.indices.numpy(), np.argsort(wide, axis=1)[:, k - 1 : k])
    assert td.kthvalue(td.asarray(2.0), 1).values.item() == 2.0
    with pytest.raises(ShapeError, match="from 1 to 7"):
        td.kthvalue(x, 8)


def test_diagonals(device, rng):
    x, wide = drawn(rng, 4, 3, 5)
    for k in (-2, 0, 1, 5):
        np.testing.assert_array_equal(td.diag(x[0, 0], k).numpy(), np.diag(wide[0, 0], k))
        np.testing.assert_array_equal(td.diag(x[0], k=k).numpy(), np.diag(wide[0], k))
        close(td.trace(x, k, 1, 2), np.trace(wide, k, 1, 2))
        for function in ("tril_indices", "triu_indices"):
            for mine, theirs in zip(
                getattr(td, function)(4, k, 3), getattr(np, function)(4, k, 3), strict=True
            ):
                np.testing.assert_array_equal(mine.numpy(), theirs)
        for axes in ((0, 1), (2, 0)):
            np.testing.assert_array_equal(
                td.rot90(x, k, axes).numpy(), np.rot90(wide, k, axes).astype(np.float32)
            )
    assert td.diag(td.zeros(0), 1).tolist() == [[0.0]]
    with pytest.raises(ShapeError, match="one axis or two"):
        td.diag(x)
    with pytest.raises(ValueError, match="a plane"):
        td.rot90(x, axes=(1, -2))


def test_products(device, rng):
    (x, wide), (y, other) = drawn(rng, 2, 3, 5), drawn(rng, 4, 5)
    close(td.inner(x, y), np.inner(wide, other))
    close(td.inner(x, 2.0), wide * 2)
    (a, wide_a), (b, wide_b) = drawn(rng, 7, 3), drawn(rng, 3)
    close(td.cross(a, b), np.cross(wide_a, wide_b))
    for n, k in ((1, 1), (13, 4), (4, 13), (7, 7), (101, 5)):
        (x, wide), (y, other) = drawn(rng, n), drawn(rng, k)
        for mode in ("full", "same", "valid"):
            close(td.convolve(x, y, mode), np.convolve(wide, other, mode), 1e-5, 1e-5)
    assert td.convolve(td.asarray([1, 2]), td.asarray([3, 4])).tolist() == [3, 10, 8]
    with pytest.raises(ShapeError, match="with elements"):
        td.convolve(x, td.zeros(0))


def test_covariances(device, rng):
    (x, wide), (y, other) = drawn(rng, 3, 17), drawn(rng, 2, 17)
    counts, weights = rng.integers(1, 4, 17), rng.random(17).astype(np.float32)
    for options in (
        {}, {"bias": True}, {"ddof": 2}, {"fweights": counts}, {"aweights": weights},
        {"fweights": counts, "aweights": weights, "ddof": 0},
    ):  # fmt: skip
        close(td.cov(x, **options), np.cov(wide, **options), 2e-5, 1e-5)
    close(td.cov(x, y), np.cov(wide, other), 2e-5, 1e-5)
    close(td.cov(x.T, rowvar=False), np.cov(wide), 2e-5, 1e-5)
    close(td.corrcoef(x, y), np.corrcoef(wide, other), 2e-5, 1e-5)
    close(td.cov(x[0]), np.cov(wide[0]), 2e-5, 1e-5)
    assert td.corrcoef(x[0]).item() == 1.0
    close(td.cov(x[:, :1]), np.cov(wide[:, :1]))
    pair = wide[:2] + 1j * other
    close(td.cov(td.asarray(pair.astype(np.complex64))), np.cov(pair), 2e-5, 1e-5)
    with pytest.raises(DtypeError, match="fweights are integers"):
        td.cov(x, fweights=weights)


def test_interp(device, rng):
    knots = np.sort(rng.standard_normal(11)).astype(np.float32)
    heights = rng.standard_normal(11).astype(np.float32)
    x, wide = drawn(rng, 5, 7, nan=0.1, inf=0.1)
    x[0, :3], wide[0, :3] = td.asarray(knots[[0, 5, 10]]), knots[[0, 5, 10]]
    for options in ({}, {"left": -9.0, "right": 9.0}):
        close(td.interp(x, knots, heights, **options),
              np.interp(wide, knots, heights, **options), 1e-4, 1e-4)  # fmt: skip
    places = rng.uniform(-20, 20, 31).astype(np.float32)
    close(td.interp(td.asarray(places), knots[::-1].copy(), heights, period=3.0),
          np.interp(places, knots[::-1], heights, period=3.0), 1e-3, 1e-3)  # fmt: skip
    assert td.interp(0.5, [0.0, 1.0], [0.0, 4.0]).item() == 2.0
    assert td.interp(td.asarray([0.0, 1.0, 2.0]), [1.0], [7.0], left=0).tolist() == [0, 7, 7]
    assert td.interp(td.asarray([1.0, 1.5]), [0.0, 1.0, 1.0], [0.0, 1.0, 5.0]).tolist() == [5, 5]
    with pytest.raises(ShapeError, match="as many"):
        td.interp(x, knots, heights[:-1])


def test_gradient_and_trapezoid(device, rng):
    x, wide = drawn(rng, 5, 7)
    places = np.cumsum(rng.uniform(0.5, 2, 7)).astype(np.float32)
    for order in (1, 2):
        for mine, theirs in zip(
            td.gradient(x, 0.5, edge_order=order), np.gradient(wide, 0.5, edge_order=order),
            strict=True,
        ):  # fmt: skip
            close(mine, theirs, 1e-5, 1e-5)
        wanted = np.gradient(wide, places.astype(np.float64), axis=1, edge_order=order)
        close(td.gradient(x, places, axis=1, edge_order=order), wanted, 1e-4, 1e-5)
    close(td.gradient(x[0, :2]), np.gradient(wide[0, :2]))
    both = td.gradient(x, 2.0, places)
    close(both[1], np.gradient(wide, 2.0, places.astype(np.float64))[1], 1e-4, 1e-5)
    close(td.trapezoid(x), np.trapezoid(wide), 1e-5, 1e-5)
    close(td.trapezoid(x, places, axis=1), np.trapezoid(wide, places, axis=1), 1e-5, 1e-5)
    close(td.trapezoid(x, dx=0.5, axis=0), np.trapezoid(wide, dx=0.5, axis=0), 1e-5, 1e-5)
    assert td.trapezoid(td.zeros((3, 0))).tolist() == [0, 0, 0]
    with pytest.raises(ShapeError, match="at least 2"):
        td.gradient(x[:, :1])


def test_bins(device, rng):
    edges = np.sort(rng.standard_normal(7)).astype(np.float32)
    x, wide = drawn(rng, 5, 11, nan=0.1, inf=0.1)
    x[0, :3], wide[0, :3] = td.asarray(edges[:3]), edges[:3]
    for right in (False, True):
        for bins in (edges, edges[::-1].copy(), edges[:1], edges[:0]):
            for given in (bins, td.asarray(bins)):
                np.testing.assert_array_equal(
                    td.digitize(x, given, right).numpy(), np.digitize(wide, bins, right)
                )
        np.testing.assert_array_equal(
            td.bucketize(x, edges, right=right).numpy(), np.digitize(wide, edges, not right)
        )
    with pytest.raises(ValueError, match="ascend"):
        td.digitize(x, [0.0, 2.0, 1.0])


def test_pad(device, rng):
    x, wide = drawn(rng, 3, 4)
    for width in (0, 2, (1, 9), ((0, 1), (5, 2)), {-1: (1, 2)}):
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            if isinstance(width, dict):
                given = ((0, 0), width[-1])
            else:
                given = width
            np.testing.assert_array_equal(td.pad(x, width, mode).numpy(), np.pad(wide, given, mode))
    values = ((1, 2), (3, 4))
    np.testing.assert_array_equal(
        td.pad(x, 1, constant_values=values).numpy(), np.pad(wide, 1, constant_values=values)
    )
    assert td.pad(td.asarray([1]), 2, "reflect").tolist() == [1] * 5
    assert td.pad(td.zeros(0), 1).tolist() == [0.0, 0.0]
    with pytest.raises(ShapeError, match="no elements"):
        td.pad(td.zeros(0), 1, "edge")
    with pytest.raises(ValueError, match="0 or more"):
        td.pad(x, -1)


def test_unique(device, rng):
    x = rng.integers(0, 5, (4, 7)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = NAN
    asked = {"return_index": True, "return_inverse": True, "return_counts": True}
    for mine, theirs in zip(td.unique(td.asarray(x), **asked), np.unique(x, **asked), strict=True):
        np.testing.assert_array_equal(mine.numpy(), np.asarray(theirs).reshape(mine.shape))
    values = td.unique(td.asarray(x), equal_nan=False)
    np.testing.assert_array_equal(values.numpy(), np.unique(x, equal_nan=False))
    rows = rng.integers(0, 2, (13, 3)).astype(np.int32)
    for given, axis in ((rows, 0), (rows.T.copy(), 1), (rows[:0], 0)):
        found = td.unique(td.asarray(given), axis=axis, **asked)
        for mine, theirs in zip(found, np.unique(given, axis=axis, **asked), strict=True):
            np.testing.assert_array_equal(mine.numpy(), np.asarray(theirs).reshape(mine.shape))
    assert td.unique(td.zeros(0)).shape == (0,)


def test_windows_and_stft(device, rng):
    for name, theirs in (
        ("hann", np.hanning), ("hamming", np.hamming), ("blackman", np.blackman),
        ("bartlett", np.bartlett), ("kaiser", lambda n: np.kaiser(n, 12.0)),
    ):  # fmt: skip
        make = getattr(td, f"{name}_window")
        for n in (0, 1, 2, 7):
            close(make(n, periodic=False), theirs(n), 1e-6, 1e-7)
        close(make(8), theirs(9)[:8], 1e-6, 1e-7)
    x, wide = drawn(rng, 2, 37)
    window = td.hann_window(6)
    found = td.stft(x, 8, 3, 6, window, normalized=True)
    padded = np.pad(wide, ((0, 0), (4, 4)), "reflect")
    around = np.pad(np.hanning(7)[:6], 1)
    frames = np.stack([padded[:, i : i + 8] * around for i in range(0, 38, 3)], axis=1)
    close(found, np.fft.rfft(frames).swapaxes(1, 2) / np.sqrt(8), 1e-5, 1e-5)
    assert td.stft(x[0], 8, onesided=False, center=False).shape == (8, 15)
    with pytest.raises(ShapeError, match="no frame"):
        td.stft(x, 64, center=False)


def test_digamma(device):
    values = td.digamma(td.asarray([1.0, 0.5, 10.0, -0.5, 0.0, -1.0]))
    wanted = [-0.5772156649, -1.9635100260, 2.2517525890, 0.0364899740, -INF, NAN]
    close(values, wanted, 2e-6, 2e-6)
    assert td.digamma(td.asarray([1], dtype=td.int32)).dtype is td.float32


def test_in_compiled_functions_and_vmap(device, rng):
    x, wide = drawn(rng, 3, 5)

    def f(x):
        return td.nanmean(x) + td.quantile(x, 0.3) + td.trapezoid(x) + td.interp(x, x, x)[0]

    def g(x):
        ordered = np.sort(x)
        return np.mean(x) + np.quantile(x, 0.3) + np.trapezoid(x) + x[0] + 0 * ordered[0]

    rows, wide = td.sort(x, axis=1), np.sort(wide, axis=1)
    compiled = td.compile(f)
    for _ in range(2):
        close(compiled(rows[0]), g(wide[0]), 1e-5, 1e-5)
    close(td.vmap(f)(rows), [g(row) for row in wide], 1e-5, 1e-5)
