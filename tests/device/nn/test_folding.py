"""Windows as columns and back, pixels as channels and back, beside PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

# kernel_size, dilation, padding, stride
WINDOWS = [
    (2, 1, 0, 1), ((3, 2), (1, 2), (1, 0), (2, 1)), ((2, 3), 2, 2, 3), (3, 1, (0, 1), 2),
    (1, 1, 0, 4),
]  # fmt: skip


@pytest.fixture
def on_cpu():
    """For what is made of what other tests have on every device."""
    with td.use_device(td.device("cpu")):
        yield


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


if torch is not None:

    @pytest.mark.parametrize("case", WINDOWS, ids=str)
    def test_windows(on_cpu, rng, case):
        x = numbers(rng, 2, 3, 5, 7)
        columns, wanted = F.unfold(td.asarray(x), *case), torch.nn.functional.unfold
        wanted = wanted(torch.asarray(x), *case)
        np.testing.assert_array_equal(columns.numpy(), wanted.numpy())
        back = F.fold(columns * 2, (5, 7), *case)
        wanted = torch.nn.functional.fold(wanted * 2, (5, 7), *case)
        np.testing.assert_allclose(back.numpy(), wanted.numpy(), 1e-6, 1e-6)

    def test_without_a_batch(device, rng):
        x = numbers(rng, 3, 5, 4)
        columns = F.unfold(td.asarray(x).swapaxes(1, 2), (2, 3), padding=1)
        turned = torch.asarray(x).swapaxes(1, 2)
        wanted = torch.nn.functional.unfold(turned, (2, 3), padding=1)
        np.testing.assert_array_equal(columns.numpy(), wanted.numpy())
        back = F.fold(columns, (4, 5), (2, 3), padding=1)
        wanted = torch.nn.functional.fold(wanted, (4, 5), (2, 3), padding=1)
        np.testing.assert_allclose(back.numpy(), wanted.numpy(), 1e-6, 1e-6)

    @pytest.mark.parametrize(
        "case", [("pixel_shuffle", 2), ("pixel_unshuffle", 3), ("channel_shuffle", 4)], ids=str
    )
    def test_moves(device, rng, case):
        name, factor = case
        x = numbers(rng, 2, 8, 6, 9)
        wanted = getattr(torch.nn.functional, name)(torch.asarray(x), factor).numpy()
        np.testing.assert_array_equal(getattr(F, name)(td.asarray(x), factor).numpy(), wanted)


def test_inverses(device, rng):
    x = td.asarray(numbers(rng, 2, 1, 4, 6, 6))
    there = F.pixel_unshuffle(x, 3)
    assert there.shape == (2, 1, 36, 2, 2)
    np.testing.assert_array_equal(F.pixel_shuffle(there, 3).numpy(), x.numpy())
    apart = F.unfold(x[:, 0], 2, stride=2)
    np.testing.assert_array_equal(F.fold(apart, 6, 2, stride=2).numpy(), x[:, 0].numpy())


def test_without_elements(device):
    for shape in ((1, 0, 1, 1), (0, 4, 2, 2), (2, 0, 4, 2, 2)):
        x = td.zeros(shape)
        assert F.pixel_shuffle(x, 1).shape == F.pixel_unshuffle(x, 1).shape == shape
    assert F.pixel_shuffle(td.zeros((0, 4, 2, 3)), 2).shape == (0, 1, 4, 6)
    assert F.pixel_unshuffle(td.zeros((0, 1, 4, 6)), 2).shape == (0, 4, 2, 3)
    assert td.linalg.matrix_norm(td.zeros((0, 2, 3))).shape == (0,)
    assert td.linalg.vector_norm(td.zeros((2, 0)), axis=1).tolist() == [0.0, 0.0]


def test_refusals():
    x = td.zeros((1, 6, 4, 4), device="cpu")
    cases = {
        r"a window of \(5, 5\) elements.*larger than an image of \(4, 4\)": (F.unfold, x, 3, 2),
        r"takes an input of shape \(N, C, H, W\)": (F.unfold, x[0, 0], 2),
        "stride must be positive, not": (F.unfold, x, 2, 1, 0, 0),
        "padding must not be negative": (F.unfold, x, 2, 1, -1),
        r"kernel_size=\(2, 2, 2\) has 3 numbers, not 2": (F.unfold, x, (2, 2, 2)),
        r"an input of shape \(1, 6, 16\) is not 9 columns": (F.fold, x.reshape(1, 6, 16), 4, 2),
        "6 channels of shape .* are not divided by upscale_factor": (F.pixel_shuffle, x, 2),
        "not divided by downscale_factor=3": (F.pixel_unshuffle, x, 3),
        "6 channels of shape .* do not divide into 4 groups": (F.channel_shuffle, x, 4),
        "groups must be positive, not 0": (F.channel_shuffle, x, 0),
    }
    for message, (function, *arguments) in cases.items():
        with pytest.raises(ValueError, match=message):
            function(*arguments)
