"""Convolutions of 16-bit floats and of TF32 by fragments: on the PTX evaluator, whose sm_90 has the
instructions, beside PyTorch in float64."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
import torch

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import convolve, convolve_fragments
from treadle.kernels.convolve_fragments import (
    TILES,
    WEIGHT_TILES,
    by_fragments,
    tile_for,
    weight_tile_for,
    weights_by_fragments,
)
from treadle.kernels.convolve_plans import Channels, along_of, three_axes
from treadle.kernels.device_code.fragment_convolution import part_adder
from treadle.runtime import settings


@pytest.fixture
def card() -> Iterator[td.Device]:
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def used() -> Iterator[None]:
    """Each test's convolutions are by fragments."""
    with (
        mock.patch.object(convolve, "by_fragments", wraps=by_fragments) as forward,
        mock.patch.object(convolve, "weights_by_fragments", wraps=weights_by_fragments) as weights,
    ):
        used.calls = forward, weights
        yield


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def _check(found: td.Tensor, wanted: torch.Tensor, bound: float = 1e-3) -> None:
    values = found.astype(td.float32).numpy()
    assert values.shape == wanted.shape
    right = wanted.detach().numpy()
    assert np.all(np.abs(values - right) <= bound * max(np.abs(right).max(initial=0), 1))


# Input, weights, options; of the last two also the transposed one's.
CASES = [
    ((2, 16, 9, 8), (24, 16, 3, 3), {"padding": 1}),
    ((1, 9, 7, 13), (10, 9, 3, 2), {"padding": (1, 0), "stride": (2, 3), "dilation": (1, 2)}),
    ((2, 6, 11), (16, 3, 5), {"padding": 4, "groups": 2, "dilation": 2}),
    ((1, 9, 3, 4, 5), (8, 9, 2, 3, 1), {"padding": (1, 0, 2), "stride": (1, 2, 2)}),
    ((3, 17, 1, 1), (8, 17, 1, 1), {}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_forward_and_gradients(card, rng, case):
    (shape, weights, options), dtype = CASES[case], ("float16", "bfloat16")[case % 2]
    x, w, b = _drawn(rng, *shape), _drawn(rng, *weights), _drawn(rng, weights[0])
    ours = [td.asarray(each).astype(dtype) for each in (x, w, b)]
    for each in ours:
        each.requires_grad_()
    arrays = [each.detach().astype(td.float32).numpy().astype("f8") for each in ours]
    theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
    name = f"conv{len(shape) - 2}d"
    bound = 1e-3 if dtype == "float16" else 8e-3
    made = getattr(F, name)(*ours, **options)
    wanted = getattr(torch.nn.functional, name)(*theirs, **options)
    _check(made.detach(), wanted, bound)
    upstream = td.asarray(_drawn(rng, *wanted.shape)).astype(dtype)
    made.backward(upstream)
    wanted.backward(torch.tensor(upstream.astype(td.float32).numpy().astype("f8")))
    for mine, right in zip(ours, theirs, strict=True):
        _check(mine.grad, right.grad, bound)
    assert all(each.called for each in used.calls)


def test_transposed(card, rng):
    options = {"stride": 3, "padding": 1, "dilation": 2, "output_padding": 1, "groups": 2}
    x, w, b = _drawn(rng, 2, 6, 5, 4), _drawn(rng, 6, 9, 2, 3), _drawn(rng, 18)
    wanted = torch.conv_transpose2d(
        *[torch.tensor(each.astype("f8")) for each in (x, w, b)], **options
    )
    _check(F.conv_transpose2d(*map(td.asarray, (x, w, b)), **options), wanted)
    assert used.calls[0].call_count


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: "x".join(map(str, tile[:6])))
def test_tiles(card, rng, tile):
    """Not all of a block, more steps than stages, four positions at once or single ones."""
    ins, outs = (tile.stages + 1) * tile.depth // 3, tile.rows // 2 + 3
    places = tile.columns // 2 + 8 + TILES.index(tile) % 2
    x, w = _drawn(rng, 1, ins, places), _drawn(rng, outs, ins, 3)
    out = td.empty((1, outs, places), dtype=td.float16).realize()._array
    axes = three_axes((along_of(places, 3, 1, 1, 1, places),))
    channels = Channels(1, ins, outs, 3, ins * 3, outs * ins * 3)
    a, b = td.asarray(x)._array, td.asarray(w)._array
    by_fragments(a, b, None, out, [axes], channels, tile)
    wanted = torch.conv1d(*[torch.tensor(each.astype("f8")) for each in (x, w)], padding=1)
    np.testing.assert_allclose(out.to_host(), wanted.numpy(), rtol=2e-3, atol=5e-2)


@pytest.mark.parametrize("tile", WEIGHT_TILES, ids=lambda tile: "x".join(map(str, tile[:6])))
def test_tiles_of_weights(card, rng, tile):
    ins, outs, places = tile.columns // 4 + 3, tile.rows // 2 + 3, 5 * tile.depth + 5
    x, g = _drawn(rng, 2, ins, places), _drawn(rng, 2, outs, places)
    out = td.empty((outs, ins, 3), dtype=td.float16).realize()._array
    axes = three_axes((along_of(places, 3, 1, 1, 1, places),))
    with mock.patch.object(convolve_fragments, "_FEWEST_STEPS", 5):  # several splits
        weights_by_fragments(td.asarray(x)._array, td.asarray(g)._array, out, axes, 1, tile)
    wanted = torch.nn.grad.conv1d_weight(
        torch.tensor(x.astype("f8")), out.shape, torch.tensor(g.astype("f8")), padding=1
    )
    np.testing.assert_allclose(out.to_host(), wanted.numpy(), rtol=2e-3, atol=5e-2)


def test_special_values(card, rng):
    """Neither the padding of channels nor the end of the taps makes numbers of infinities; places
    outside of the image are zeros, which a weight multiplies."""
    x, w = _drawn(rng, 1, 9, 6, 6), _drawn(rng, 8, 9, 3, 3)
    x[0, 8, 2, 3], x[0, 0, 5, 5], w[7, 8, 1, 1] = np.inf, np.nan, -np.inf
    a, b = (torch.tensor(each.astype("f8"), requires_grad=True) for each in (x, w))
    wanted = torch.conv2d(a, b)
    p, q = td.asarray(x), td.asarray(w)
    q.requires_grad_()
    found = F.conv2d(p, q)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach(), rtol=3e-3, atol=3e-2)
    wanted.backward(torch.ones_like(wanted))
    found.backward(td.ones_like(found))
    np.testing.assert_allclose(q.grad.numpy(), b.grad, rtol=3e-3, atol=6e-2)


def test_what_stays_with_other_kernels(card, rng):
    """By channel, of no channels or images, and of more taps than a word has bits."""
    for shape, weights, groups in (
        ((1, 12, 5, 5), (12, 1, 3, 3), 12),
        ((1, 0, 5, 5), (9, 0, 3, 3), 1),
        ((0, 3, 5, 5), (9, 3, 3, 3), 1),
        ((1, 2, 40), (8, 2, 33), 1),
    ):
        x, w = _drawn(rng, *shape), _drawn(rng, *weights)
        name = f"conv{len(shape) - 2}d"
        found = getattr(F, name)(td.asarray(x), td.asarray(w), groups=groups)
        if x.size:
            _check(found, getattr(torch, name)(
                *[torch.tensor(each.astype("f8")) for each in (x, w)], groups=groups
            ))  # fmt: skip
        else:
            assert not found.numpy().any()
    assert not used.calls[0].called


def test_repeated_runs_are_identical(card, rng):
    x, w = td.asarray(_drawn(rng, 2, 8, 20, 20)), td.asarray(_drawn(rng, 8, 8, 3, 3))
    runs = []
    for _ in range(2):
        v = (w + 0).realize().requires_grad_()
        F.conv2d(x, v, padding=1).sum().backward()
        runs.append(v.grad.numpy())
    assert np.array_equal(*runs)


def test_which_tile(card):
    """Few outputs have low tiles, few positions small ones."""
    assert tile_for(card, 256, 200_000, 2304) == TILES[0]
    assert tile_for(card, 64, 200_000, 576).rows == 64
    assert tile_for(card, 8, 200_000, 72).rows == 16
    assert tile_for(card, 256, 2000, 256).columns == 64
    assert tile_for(card, 512, 1500, 4608) == TILES[0]  # in parts
    assert weight_tile_for(card, td.float16, 256, 2304, 200_000) == WEIGHT_TILES[0]
    assert weight_tile_for(card, td.float16, 8, 16, 200).rows == 16


def test_parts_of_the_inner_axis(card, rng):
    """Of few positions, each block sums some of the taps and channels; the bias is added last."""
    x, w, b = _drawn(rng, 1, 200, 5, 7), _drawn(rng, 20, 200, 3, 3), _drawn(rng, 20)
    with mock.patch.object(convolve_fragments, "part_adder", wraps=part_adder) as added:
        found = F.conv2d(*map(td.asarray, (x, w, b)), padding=1).realize()
    assert added.called
    _check(found, torch.conv2d(*[torch.tensor(e.astype("f8")) for e in (x, w, b)], padding=1))


def test_compiled_and_autocast(card, rng):
    x, w = rng.standard_normal((2, 8, 6, 5)), rng.standard_normal((9, 8, 3, 3))
    wanted = torch.relu(torch.conv2d(torch.tensor(x), torch.tensor(w), padding=1))
    a, b = (td.asarray(each.astype("f4")) for each in (x, w))

    @td.compile
    def layer(image, weights):
        with td.autocast(dtype=td.float16):
            return F.relu(F.conv2d(image, weights, padding=1))

    for _ in range(3):
        found = layer(a, b)
        assert found.dtype == td.float16
        _check(found, wanted, 3e-3)
    assert used.calls[0].called


@pytest.mark.parametrize("case", [0, 1, 3])
def test_tf32(card, rng, case, monkeypatch):
    """float32 numbers rounded to the nearest with 10 bits of fraction, where that is asked for."""
    shape, weights, options = CASES[case]
    monkeypatch.setattr(convolve_fragments, "usable_products", lambda device: {"tf32"})
    rank = len(shape) - 2
    order = [options.get(name, default) for name, default in
             (("stride", 1), ("padding", 0), ("dilation", 1))]  # fmt: skip
    order = [each if isinstance(each, tuple) else (each,) * rank for each in order]
    x, w = (rng.standard_normal(each).astype("f4") for each in (shape, weights))
    x[0, 0, -1], w[0, 0] = np.float32(1 + 2**-11 + 2**-20), np.float32(-1 - 2**-12)
    a, b = (torch.tensor(_as_tf32(each), requires_grad=True) for each in (x, w))
    conv = getattr(torch, f"conv{rank}d")
    wanted = conv(a, b, None, *order)
    g = rng.standard_normal(wanted.shape).astype("f4")
    conv(a, b, None, *order).backward(torch.tensor(_as_tf32(g)))
    p, q, r = (td.asarray(each)._array for each in (x, w, g))
    rows = [
        (convolve.convolve(p, q, *order, 1, wanted.shape[2:], True), wanted),
        (convolve.convolve_transposed(r, q, *order, 1, shape[2:], True), a.grad),
        (convolve.weight_gradient(p, r, *order, 1, weights[2:], True), b.grad),
    ]
    for found, right in rows:
        _near(found, right, 1e-6)
    assert all(each.called for each in used.calls)
    exact = conv(torch.tensor(x.astype("f8")), torch.tensor(w.astype("f8")), None, *order)
    _near(convolve.convolve(p, q, *order, 1, wanted.shape[2:]), exact, 1e-6)


def _near(found, wanted: torch.Tensor, bound: float) -> None:
    right = wanted.detach().numpy()
    assert np.abs(found.to_host() - right).max() <= bound * np.abs(right).max()


def _as_tf32(values: np.ndarray) -> np.ndarray:
    return ((values.view("u4") + 0x1000) & 0xFFFFE000).view("f4").astype("f8")


def test_tf32_is_asked_for(card, rng, monkeypatch):
    """By the precision of products when a function is called; the gradients have that of their
    convolution."""
    monkeypatch.setattr(settings, "float32_products", "highest")
    x, w = (rng.standard_normal(each).astype("f4") for each in ((2, 9, 6, 5), (8, 9, 3, 3)))
    for precision, rounded in (("highest", False), ("high", True)):
        td.set_float32_matmul_precision(precision)
        a, b = (_as_tf32(e) if rounded else e.astype("f8") for e in (x, w))
        a, b = (torch.tensor(e, requires_grad=True) for e in (a, b))
        p, q = (td.asarray(e).requires_grad_() for e in (x, w))
        made, wanted = F.conv2d(p, q, padding=1), torch.conv2d(a, b, padding=1)
        td.set_float32_matmul_precision("highest")
        _check(made.detach(), wanted, 1e-5)
        made.sum().backward()
        wanted.sum().backward()
        _check(p.grad, a.grad, 1e-5)
        _check(q.grad, b.grad, 1e-5)
        assert all(each.called == rounded for each in used.calls)
