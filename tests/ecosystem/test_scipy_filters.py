"""Stencils beside SciPy's filters of images, with each of their modes at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

ndimage = pytest.importorskip("scipy.ndimage")
VALUE = 2.5


def reflected(u, i):
    """SciPy's "reflect", which repeats the edge."""
    return u[_inside(i, u.shape[0])]


def reflected_2d(u, i, j):
    return u[_inside(i, u.shape[0]), _inside(j, u.shape[1])]


def reflected_3d(u, k, i, j):
    return u[_inside(k, u.shape[0]), _inside(i, u.shape[1]), _inside(j, u.shape[2])]


@td.func
def _inside(index, extent):
    index = td.where(index < 0, -1 - index, index)
    return min(index, 2 * extent - 1 - index)


REFLECTED = (reflected, reflected_2d, reflected_3d)
MODES = ("reflect", "mirror", "nearest", "grid-wrap", "constant")


def rules(mode: str, ndim: int) -> dict[str, Any]:
    """A mode of SciPy's as a stencil's boundary."""
    if mode == "reflect":
        return {"boundary": REFLECTED[ndim - 1]}
    if mode == "constant":
        return {"boundary": "constant", "value": VALUE}
    return {"boundary": {"mirror": "mirror", "nearest": "clamp", "grid-wrap": "wrap"}[mode]}


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def filtered(stencil: Any, u: np.ndarray, *numbers: Any) -> np.ndarray:
    """What a stencil makes of an image, in memory that was filled with NaN."""
    out = td.full(u.shape, float("nan"), dtype=td.float32)
    stencil(td.asarray(u), *numbers, out)
    return out.numpy()


def correlation(shape: tuple[int, ...], **options: Any) -> Any:
    """A stencil that sums the neighbours in a box with weights."""
    reach = tuple(extent // 2 for extent in shape)
    counts = shape

    def one(u, weights, out, pos):
        total = 0.0
        for a in td.static_range(counts[0]):
            total += weights[a] * pos.at(u, a - reach[0])
        out[pos] = total

    def two(u, weights, out, pos):
        total = 0.0
        for a in td.static_range(counts[0]):
            for b in td.static_range(counts[1]):
                total += weights[a, b] * pos.at(u, a - reach[0], b - reach[1])
        out[pos] = total

    def three(u, weights, out, pos):
        total = 0.0
        for a in td.static_range(counts[0]):
            for b in td.static_range(counts[1]):
                for c in td.static_range(counts[2]):
                    near = pos.at(u, a - reach[0], b - reach[1], c - reach[2])
                    total += weights[a, b, c] * near
        out[pos] = total

    return td.stencil(**options)((one, two, three)[len(shape) - 1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [(3, 5), (3, 1, 3)], ids=str)
def test_correlate_and_convolve(device: td.Device, window: tuple[int, ...], mode: str) -> None:
    weights = np.random.default_rng(1).standard_normal(window).astype(np.float32)
    stencil = correlation(window, **rules(mode, len(window)))
    for shape in ((40, 6, 7)[: len(window)], (4, 3, 5)[: len(window)], (9, 21, 18)[-len(window) :]):
        u = image(*shape)
        options = {"mode": mode, "cval": VALUE}
        got = filtered(stencil, u, td.asarray(weights))
        want = ndimage.correlate(u, weights, **options)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=str(shape))
        turned = np.ascontiguousarray(np.flip(weights))
        got = filtered(stencil, u, td.asarray(turned))
        want = ndimage.convolve(u, weights, **options)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=str(shape))


def median_filter(**options: Any) -> Any:
    @td.stencil(**options)
    def median(u, out, pos):
        found = td.local(9, td.f32)
        for a in td.static_range(3):
            for b in td.static_range(3):
                found[3 * a + b] = pos.at(u, a - 1, b - 1)
        for last in range(8, 3, -1):  # the greatest ones go to the end
            for at in range(last):
                low, high = min(found[at], found[at + 1]), max(found[at], found[at + 1])
                found[at] = low
                found[at + 1] = high
        out[pos] = found[4]

    return median


@pytest.mark.parametrize("mode", MODES)
def test_median(device: td.Device, mode: str) -> None:
    stencil = median_filter(**rules(mode, 2))
    for shape in ((12, 19), (2, 3)):
        u = image(*shape)
        want = ndimage.median_filter(u, 3, mode=mode, cval=VALUE)
        np.testing.assert_array_equal(filtered(stencil, u), want)


@pytest.mark.parametrize("mode", MODES)
def test_gaussian(device: td.Device, mode: str) -> None:
    """One axis after the other; for the first one the image is transposed."""
    sigma, radius = 1.3, 5
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights = td.asarray((weights / weights.sum()).astype(np.float32))
    stencil = correlation((1, 2 * radius + 1), **rules(mode, 2))
    row = weights.reshape(1, -1)
    u = image(17, 22)
    turned, out = td.zeros((22, 17)), td.zeros((17, 22))
    stencil(td.asarray(u).T, row, turned)
    stencil(turned.T, row, out)
    want = ndimage.gaussian_filter(u, sigma, mode=mode, cval=VALUE, radius=radius)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_laplace_and_maximum(device: td.Device, mode: str) -> None:
    @td.stencil(**rules(mode, 3))
    def laplace(u, out, pos):
        around = pos.north(u) + pos.south(u) + pos.east(u) + pos.west(u) + pos.up(u) + pos.down(u)
        out[pos] = around - 6.0 * u[pos]

    @td.stencil(**rules(mode, 3))
    def greatest(u, out, pos):
        found = u[pos]
        for d in td.static_range(-2, 3):
            found = max(found, pos.at(u, 0, d, 0))
        out[pos] = found

    u = image(5, 6, 18)
    options = {"mode": mode, "cval": VALUE}
    np.testing.assert_allclose(
        filtered(laplace, u), ndimage.laplace(u, **options), rtol=1e-4, atol=1e-5
    )
    want = ndimage.maximum_filter(u, (1, 5, 1), **options)
    np.testing.assert_array_equal(filtered(greatest, u), want)
