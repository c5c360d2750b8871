"""Convolutions of 16-bit floats by groups of 128 threads, of padded images: on the PTX evaluator,
which has their instructions, and on the CPU, which does at once what they do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import convolve, convolve_groups
from treadle.kernels.convolve_groups import TILES, Chosen, by_groups, choice, splits_for
from treadle.kernels.convolve_plans import (
    Axis,
    Channels,
    along_of,
    padded_axis,
    paddings_of,
    phases_of,
    three_axes,
)
from treadle.kernels.device_code.group_convolution import ConvolutionTile
from treadle.kernels.machine import Machine

SMALL = ConvolutionTile(64, 64, 1, 2)
WIDE = ConvolutionTile(64, 128, 2, 2)
NAMES = frozenset({"f16", "bf16"})
CARD = Machine(
    1024, 227 << 10, 32, matrix_products=NAMES, group_products=NAMES, multiprocessors=132
)


@pytest.fixture
def card() -> Iterator[td.Device]:
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Convolutions are by groups, with small tiles: how often."""
    counts = {"forward": 0, "weights": 0}

    def some(kind: str, real: object) -> object:
        def run(*given: object, **more: object) -> None:
            counts[kind] += 1
            real(*given, **more)  # type: ignore[operator]

        return run

    monkeypatch.setattr(
        convolve, "chosen", lambda device, dtype, phases, *_: Chosen(paddings_of(phases), SMALL)
    )
    monkeypatch.setattr(
        convolve,
        "weights_chosen",
        lambda device, dtype, axes, *_: Chosen(paddings_of([axes]), WIDE),
    )
    monkeypatch.setattr(convolve, "by_groups", some("forward", convolve.by_groups))
    monkeypatch.setattr(convolve, "weights_by_groups", some("weights", convolve.weights_by_groups))
    return counts


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def _check(found: td.Tensor, wanted: torch.Tensor, bound: float = 1e-3) -> None:
    values = found.astype(td.float32).numpy()
    assert values.shape == wanted.shape
    right = wanted.detach().numpy()
    assert np.all(np.abs(values - right) <= bound * max(np.abs(right).max(initial=0), 1))


# Input, weights, options.
CASES = [
    ((1, 66, 4, 3), (10, 66, 3, 2), {"padding": 1}),
    ((1, 9, 7, 10), (10, 9, 3, 2), {"padding": (1, 0), "stride": (2, 3), "dilation": (1, 2)}),
    ((2, 18, 11), (16, 9, 5), {"padding": 4, "groups": 2, "dilation": 2}),
    ((1, 9, 3, 4, 5), (8, 9, 2, 3, 1), {"padding": (1, 0, 2), "stride": (1, 2, 2)}),
    ((3, 17, 6, 6), (8, 17, 1, 1), {"stride": 2}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_forward_and_gradients(card, rng, used, case):
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
    assert all(used.values())


def test_transposed(card, rng, used):
    options = {"stride": 3, "padding": 1, "dilation": 2, "output_padding": 1, "groups": 2}
    x, w, b = _drawn(rng, 2, 6, 5, 4), _drawn(rng, 6, 9, 2, 3), _drawn(rng, 18)
    wanted = torch.conv_transpose2d(
        *[torch.tensor(each.astype("f8")) for each in (x, w, b)], **options
    )
    _check(F.conv_transpose2d(*map(td.asarray, (x, w, b)), **options), wanted)
    assert used["forward"]


def test_special_values(card, rng, used):
    """Neither the padding of channels nor places without a window make numbers of infinities; zeros
    outside of the image are multiplied by weights, as everywhere."""
    x, w, g = _drawn(rng, 1, 9, 6, 6), _drawn(rng, 8, 9, 3, 3), _drawn(rng, 1, 8, 6, 6)
    x[0, 8, 2, 3], x[0, 0, 5, 5], x[0, 1, 0, 0] = np.inf, np.nan, -np.inf
    w[7, 8, 1, 1], g[0, 2, 3, 3] = -np.inf, 6e-8
    a, b = (torch.tensor(each.astype("f8"), requires_grad=True) for each in (x, w))
    p, q = (td.asarray(each).requires_grad_() for each in (x, w))
    wanted, found = torch.conv2d(a, b, padding=1), F.conv2d(p, q, padding=1)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach(), rtol=3e-3, atol=3e-2)
    wanted.backward(torch.tensor(g.astype("f8")))
    found.backward(td.asarray(g))
    for mine, right in ((p, a), (q, b)):
        np.testing.assert_allclose(mine.grad.numpy(), right.grad, rtol=3e-3, atol=6e-2)


def _given(
    rng: np.random.Generator, device: td.Device, ins: int, outs: int, places: int
) -> tuple[list[object], Channels, torch.Tensor]:
    x, w, b = _drawn(rng, 2, ins, places), _drawn(rng, outs, ins, 3), _drawn(rng, outs)
    arrays = [td.asarray(each, device=device)._array for each in (x, w, b)]
    poison = np.full((2, outs, places), np.nan, np.float16)
    arrays.append(td.asarray(poison, device=device)._array)
    wanted = torch.conv1d(*[torch.tensor(each.astype("f8")) for each in (x, w, b)], padding=1)
    return arrays, Channels(1, ins, outs, 3, ins * 3, outs * ins * 3), wanted


@pytest.mark.parametrize("tile", [next(iter(TILES)), ConvolutionTile(64, 384, 2, 3)])
def test_tiles_of_the_table(card, rng, tile):
    (x, w, b, out), channels, wanted = _given(rng, card, 72, 66, tile.columns // 2 + 31)
    axes = three_axes((along_of(wanted.shape[2], 3, 1, 1, 1, wanted.shape[2]),))
    by_groups(x, w, b, out, [axes], channels, Chosen(paddings_of([axes]), tile))
    np.testing.assert_allclose(out.to_host(), wanted, rtol=2e-3, atol=5e-2)


@pytest.mark.parametrize("parts", [1, 3])
def test_parts_and_the_cpu(rng, monkeypatch, parts):
    monkeypatch.setattr(convolve_groups, "parts_for", lambda *_: parts)
    device = td.device("cpu")
    (x, w, b, out), channels, wanted = _given(rng, device, 9, 10, 41)
    axes = three_axes((along_of(41, 3, 1, 1, 1, 41),))
    by_groups(x, w, b, out, [axes], channels, Chosen(paddings_of([axes]), SMALL))
    np.testing.assert_allclose(out.to_host(), wanted, rtol=2e-3, atol=5e-2)


def _as_tf32(values: np.ndarray) -> torch.Tensor:
    return torch.tensor(((values.view("u4") + 0x1000) & 0xFFFFE000).view("f4").astype("f8"))


@pytest.mark.parametrize("case", [0, 2, 4])
def test_tf32(card, rng, used, monkeypatch, case):
    """float32 numbers, rounded to the nearest with 10 bits of fraction. Gradients of weights are by
    fragments."""
    monkeypatch.setattr(convolve, "suits", lambda *given: given[-1])
    monkeypatch.setattr(convolve, "weights_chosen", convolve_groups.weights_chosen)
    shape, weights, options = CASES[case]
    rank, groups = len(shape) - 2, options.get("groups", 1)
    order = [
        (options.get(name, default),) * rank
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    ]
    x, w = (rng.standard_normal(each).astype("f4") for each in (shape, weights))
    x[0, 0, -1], w[0, 0] = np.float32(1 + 2**-11 + 2**-20), np.float32(-1 - 2**-12)
    a, b = (_as_tf32(each).requires_grad_() for each in (x, w))
    wanted = getattr(torch, f"conv{rank}d")(a, b, None, *order, groups)
    g = rng.standard_normal(wanted.shape).astype("f4")
    wanted.backward(_as_tf32(g))
    p, q, r = (td.asarray(each)._array for each in (x, w, g))
    for found, right in (
        (convolve.convolve(p, q, *order, groups, wanted.shape[2:], True), wanted.detach()),
        (convolve.convolve_transposed(r, q, *order, groups, shape[2:], True), a.grad),
        (convolve.weight_gradient(p, r, *order, groups, weights[2:], True), b.grad),
    ):
        error = np.abs(found.to_host() - right.numpy()).max()
        assert error <= 1e-6 * right.abs().max().item()
    assert (used["forward"], used["weights"]) == (2, 0)


def test_a_padded_axis_has_what_windows_read(rng):
    """Of two lines behind each other, each tap of each window finds its element, or a zero."""
    for _ in range(300):
        size, kernel, stride, dilation = (int(n) for n in rng.integers(1, (9, 5, 4, 4)))
        padding = int(rng.integers(0, 6))
        reach = dilation * (kernel - 1) + 1
        outputs = (size + 2 * padding - reach) // stride + 1
        if outputs < 1:
            continue
        kinds: list[list[Axis]] = [[along_of(size, kernel, stride, padding, dilation, outputs)]]
        kinds.append([
            axis
            for axis in phases_of(outputs, kernel, stride, padding, dilation, size)
            if axis.taps
        ])  # fmt: skip
        for axes, even in itertools.product(kinds, (False, True)):
            if not axes:
                continue
            made = padded_axis(axes, even)
            assert made.length % 2 == 0 or not even
            lines = np.zeros((made.remainders, 3, made.length), int)  # the third one is behind
            for i in range(axes[0].size):
                quotient, remainder = divmod(i, made.stride)
                one = made.remainders == 1
                if (
                    not one or remainder == made.remainder
                ) and quotient + made.before < made.length:
                    for line in (0, 1):
                        at = 0 if one else remainder
                        lines[at, line, quotient + made.before] = i + 1 + 100 * line
            for axis, line in itertools.product(axes, (0, 1)):
                for o, j in itertools.product(range(axis.outputs), range(axis.taps)):
                    i = o * axis.stride + axis.start + j * axis.dilation
                    start = axis.start + j * axis.dilation
                    at = 0 if made.remainders == 1 else start % made.stride
                    place = o + start // made.stride + made.before
                    found = lines[at].reshape(-1)[line * made.length + place]
                    assert found == (i + 1 + 100 * line if 0 <= i < axis.size else 0)


def _layer(
    batch: int, ins: int, outs: int, size: int, kernel: int = 3, stride: int = 1
) -> tuple[list[tuple[Axis, ...]], Channels, int]:
    extent = (size - 1) // stride + 1
    axes = three_axes((along_of(size, kernel, stride, kernel // 2, 1, extent),) * 2)
    taps = kernel * kernel
    return [axes], Channels(1, ins, outs, taps, ins * taps, outs * ins * taps), batch


def test_which_convolutions_and_tiles():
    """Many channels; few ones would be mostly padding. Enough tiles for all of a card."""
    found = choice(CARD, td.float16, *_layer(64, 256, 256, 56))
    assert found is not None
    assert found.tile == next(iter(TILES))
    few = choice(CARD, td.bfloat16, *_layer(64, 64, 64, 56))
    assert few is not None
    assert few.tile.rows == 64
    assert choice(CARD, td.float16, *_layer(64, 3, 64, 224, 7, 2)) is None
    assert choice(CARD, td.float16, *_layer(64, 64, 16, 56)) is None
    assert choice(CARD, td.float16, *_layer(2, 64, 64, 3)) is None  # more padding than image
    small = CARD.__class__(1024, 99 << 10, 32, group_products=NAMES, multiprocessors=132)
    little = choice(small, td.float16, *_layer(64, 256, 256, 56))
    assert little is None or little.tile.shared_bytes <= 99 << 10


def test_splits_keep_a_card_busy():
    assert splits_for(18, 3000, 132) == 7
    assert splits_for(132, 3000, 132) == 1
    assert splits_for(1, 20, 132) == 2  # not less than some steps
    for blocks in range(1, 200):
        splits = splits_for(blocks, 3000, 132)
        assert 1 <= splits <= 24
        assert blocks * splits / (math.ceil(blocks * splits / 132) * 132) > 0.15 or blocks < 6
