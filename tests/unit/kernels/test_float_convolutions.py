"""Convolutions of float32 by products of matrices: of Winograd's factors, and of padded images for
the gradient of weights. On the PTX evaluator, beside PyTorch in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import convolve, convolve_products, winograd
from treadle.kernels.convolve_plans import Channels, along_of, three_axes


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[td.Device]:
    """Where all sizes are worth it."""
    for room in (winograd, convolve_products):
        monkeypatch.setattr(room, "_FEWEST_CHANNELS", 1)
        monkeypatch.setattr(room, "_LEAST_WORK", 0)
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def noted(room: object, name: str) -> None:
        real = getattr(room, name)
        monkeypatch.setattr(room, name, lambda *given: names.append(name) or real(*given))

    noted(winograd, "by_winograd")
    noted(convolve_products, "weights_by_products")
    return names


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _near(found: td.Tensor, wanted: torch.Tensor) -> None:
    right = wanted.detach().numpy()
    assert found.shape == right.shape
    assert np.abs(found.numpy() - right).max() <= 3e-6 * np.abs(right).max()


# Input, weights, options, which of the two are used.
WINOGRAD, PRODUCTS = "by_winograd", "weights_by_products"
CASES = [
    ((3, 4, 5, 3), (8, 4, 3, 3), {"padding": 1}, {WINOGRAD, PRODUCTS}),
    ((1, 4, 3, 6), (8, 4, 3, 3), {"padding": (0, 2)}, {WINOGRAD, PRODUCTS}),
    ((2, 8, 9, 7), (4, 8, 1, 1), {"stride": 2}, {PRODUCTS}),
    ((2, 4, 5, 6, 7), (8, 4, 2, 3, 3), {"padding": (1, 0, 2), "dilation": (2, 1, 1)}, {PRODUCTS}),
    ((2, 4, 17), (8, 4, 5), {"padding": 2, "stride": 3, "dilation": 3}, {PRODUCTS}),
    ((1, 4, 9, 9), (8, 4, 3, 3), {"stride": 2}, set()),
    ((1, 8, 5, 6), (8, 4, 3, 3), {"groups": 2}, set()),
    ((1, 6, 5, 6), (8, 6, 3, 3), {}, set()),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_forward_and_gradients(card, rng, used, case, monkeypatch):
    shape, weights, options, expected = CASES[case]
    monkeypatch.setattr(winograd, "_MOST_BYTES", 1 << 15)  # some images at a time
    arrays = _drawn(rng, *shape), _drawn(rng, *weights), _drawn(rng, weights[0])
    ours = [td.asarray(each).requires_grad_() for each in arrays]
    theirs = [torch.tensor(each.astype("f8"), requires_grad=True) for each in arrays]
    name = f"conv{len(shape) - 2}d"
    made = getattr(F, name)(*ours, **options)
    wanted = getattr(torch.nn.functional, name)(*theirs, **options)
    _near(made.detach(), wanted)
    upstream = _drawn(rng, *wanted.shape)
    made.backward(td.asarray(upstream))
    wanted.backward(torch.tensor(upstream.astype("f8")))
    for mine, right in zip(ours, theirs, strict=True):
        _near(mine.grad, right.grad)
    assert set(used) == expected


def test_special_values(card, rng, used):
    """What is not finite stays where it belongs: sums of neighbours would carry it further."""
    x, w, g = _drawn(rng, 1, 4, 8, 10), _drawn(rng, 4, 4, 3, 3) / 4, _drawn(rng, 1, 4, 8, 10)
    x[0, 1, 2, 3], x[0, 0, 0, 0], x[0, 2, 7, 9], x[0, 3, 5, 5] = np.inf, np.nan, -np.inf, 2e38
    w[1, 1, 1, 1], w[2, 3] = -np.inf, 1e-3
    a, b = (torch.tensor(each.astype("f8"), requires_grad=True) for each in (x, w))
    p, q = (td.asarray(each).requires_grad_() for each in (x, w))
    made, wanted = F.conv2d(p, q, padding=1), torch.conv2d(a, b, padding=1)
    far = np.ones(wanted.shape, bool)
    far[0, :, 3:7, 3:7] = False  # of the largest number: sums beside it are rounded as it is
    right = wanted.detach().numpy()
    found = made.detach().numpy()
    np.testing.assert_allclose(found[far], right[far], rtol=1e-4, atol=1e-4)
    assert np.array_equal(np.isnan(found), np.isnan(right))
    made.backward(td.asarray(g))
    wanted.backward(torch.tensor(g.astype("f8")))
    grad = b.grad.numpy()
    np.testing.assert_allclose(q.grad.numpy()[:, :3], grad[:, :3], rtol=1e-4, atol=1e-4)
    assert set(used) == {WINOGRAD, PRODUCTS}


def test_which_convolutions():
    """3 x 3 taps of many channels, on cards."""
    axes = three_axes((along_of(56, 3, 1, 1, 1, 56),) * 2)
    channels = Channels(1, 64, 64, 9, 576, 64 * 576)
    with ptx_device("sm_90") as device:
        assert winograd.suits(device, td.float32, [axes], channels, 32)
        assert not winograd.suits(device, td.float32, [axes], channels._replace(ins=16), 32)
        assert not winograd.suits(device, td.float16, [axes], channels, 32)
        strided = three_axes((along_of(56, 3, 2, 1, 1, 28),) * 2)
        assert not winograd.suits(device, td.float32, [strided], channels, 32)
        assert convolve_products.suits(device, td.float32, axes, channels, 32)
        assert not convolve_products.suits(device, td.float32, strided, channels, 32)
        assert not convolve_products.suits(device, td.float32, axes, channels, 1)
    host = td.device("cpu")
    assert not winograd.suits(host, td.float32, [axes], channels, 32)
    assert not convolve_products.suits(host, td.float32, axes, channels, 32)
    assert convolve.winograd is winograd
