"""Pooling beside PyTorch: values, places, what padding counts, and the way back."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned

try:
    import torch
except ImportError:
    torch = None

SHAPES = {1: (2, 3, 37), 2: (2, 3, 11, 14), 3: (2, 3, 7, 9, 8)}
# kernel_size, stride, padding, dilation, ceil_mode
GREATEST = {
    1: [(3, 2, 1, 1, False), (9, 4, 0, 2, True), (40, None, 0, 1, True)],
    2: [((3, 2), (2, 3), (1, 0), 1, True), (3, 1, 1, (2, 1), False), ((2, 11), 1, 0, 1)],
    3: [((2, 3, 2), (1, 2, 3), (0, 1, 1), 1, True)],
}
# kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
MEANS = {
    1: [(10, 9, 5, True, True)],
    2: [
        ((3, 2), (2, 3), (1, 0), True, True),
        (3, 2, 1, True, False),
        (3, 2, 1, False, True, 5),
        (2, None, 0, False, True, -3),
    ],
    3: [((2, 3, 2), (1, 2, 3), (0, 1, 1), True, True), (2, 3, 1, True, False, None)],
}
ADAPTIVE = {1: [5], 2: [(4, None), 1], 3: [(3, 4, 1)]}


@pytest.fixture(autouse=True)
def poison(device):
    with poisoned(device):
        yield


def numbers(rng, axes):
    return rng.standard_normal(SHAPES[axes]).astype(np.float32)


def same(found, wanted, tolerance=0.0):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), tolerance, tolerance)


if torch is not None:

    @pytest.mark.parametrize("axes", SHAPES)
    def test_greatest(device, rng, axes):
        x = numbers(rng, axes)
        for case in GREATEST[axes]:
            wanted = getattr(torch.nn.functional, f"max_pool{axes}d")
            wanted = wanted(torch.asarray(x), *case, return_indices=True)
            function = getattr(F, f"max_pool{axes}d")
            values, places = function(td.asarray(x), *case, return_indices=True)
            same(values, wanted[0])
            same(places, wanted[1])
            same(function(td.asarray(x)[0], *case), wanted[0][0])

    @pytest.mark.parametrize("axes", SHAPES)
    def test_means(device, rng, axes):
        x = numbers(rng, axes)
        for case in MEANS[axes]:
            wanted = getattr(torch.nn.functional, f"avg_pool{axes}d")(torch.asarray(x), *case)
            same(getattr(F, f"avg_pool{axes}d")(td.asarray(x), *case), wanted, 1e-6)

    @pytest.mark.parametrize("axes", SHAPES)
    def test_windows_that_share_an_image(device, rng, axes):
        x = numbers(rng, axes)
        for size in ADAPTIVE[axes]:
            wanted = getattr(torch.nn.functional, f"adaptive_avg_pool{axes}d")
            same(getattr(F, f"adaptive_avg_pool{axes}d")(td.asarray(x), size),
                 wanted(torch.asarray(x), size), 1e-6)  # fmt: skip
            wanted = getattr(torch.nn.functional, f"adaptive_max_pool{axes}d")
            wanted = wanted(torch.asarray(x), size, return_indices=True)
            function = getattr(F, f"adaptive_max_pool{axes}d")
            for found, right in zip(function(td.asarray(x), size, True), wanted, strict=True):
                same(found, right)
            same(function(td.asarray(x), size), wanted[0])

    def test_norms(device, rng):
        x = np.abs(numbers(rng, 2))
        for case in ((2, 3), (3, (2, 3), 2, True)):
            wanted = torch.nn.functional.lp_pool2d(torch.asarray(x), *case)
            same(F.lp_pool2d(td.asarray(x), *case), wanted, 1e-5)
        same(F.lp_pool1d(td.asarray(x)[0], 2, 4), torch.nn.functional.lp_pool1d(
            torch.asarray(x)[0], 2, 4), 1e-5)  # fmt: skip

    @pytest.mark.parametrize("axes", SHAPES)
    def test_the_way_back(device, rng, axes):
        odd = numbers(rng, axes)
        even = odd[..., :36] if axes == 1 else odd[..., :6, :8]
        for case, size in (((2, 2), None), ((2, 2), odd.shape)):
            x = odd if size else even[..., :6, :, :] if axes == 3 else even
            pooled = getattr(F, f"max_pool{axes}d")(td.asarray(x), *case, return_indices=True)
            theirs = [torch.asarray(each.numpy()).to(kind) for each, kind in
                      zip(pooled, (torch.float32, torch.int64), strict=True)]  # fmt: skip
            wanted = getattr(torch.nn.functional, f"max_unpool{axes}d")
            found = getattr(F, f"max_unpool{axes}d")(*pooled, *case, output_size=size)
            same(found, wanted(*theirs, *case, output_size=size))


def test_special_values(device):
    nan, inf = math.nan, math.inf
    x = td.asarray([[-inf, -inf, 1.0, nan, 2.0, nan, -0.0, inf]])
    values, places = F.max_pool1d(x, 2, return_indices=True)
    np.testing.assert_array_equal(values.numpy(), [[-inf, nan, nan, inf]])
    assert places.tolist() == [[0, 3, 5, 7]]
    values, places = F.max_pool1d(x, 4, 4, return_indices=True)
    assert places.tolist() == [[3, 5]]
    values, places = F.max_pool1d(x[:, :2], 2, 1, 1, return_indices=True)
    assert places.tolist() == [[0, 0, 1]]
    values, places = F.max_pool1d(x[:, :1], 2, 1, 1, 2, return_indices=True)
    assert (values.tolist(), places.tolist()) == ([[-inf]], [[-1]])
    np.testing.assert_array_equal(F.avg_pool1d(x, 2).numpy(), [[-inf, nan, nan, inf]])


def test_dtypes_and_layouts(device, rng):
    data = rng.integers(0, 100, (4, 6, 8)).astype(np.float32)
    for dtype in ("uint8", "bfloat16"):
        x = td.asarray(data).to(dtype)
        found = F.max_pool2d(x.flip(axis=1)[1:, ::2].swapaxes(1, 2), (4, 3))
        assert found.dtype == dtype
        wanted = data[1:, ::-2].swapaxes(1, 2).reshape(3, 2, 4, 3).max(axis=2)
        np.testing.assert_array_equal(found.to(td.float32).numpy()[..., 0], wanted.max(axis=2))
        means = F.avg_pool2d(x, 2)
        assert means.dtype == (dtype if dtype == "bfloat16" else "float32")
        wanted = data.reshape(4, 3, 2, 4, 2).mean(axis=(2, 4))
        error = 0.5 if dtype == "bfloat16" else 1e-2
        np.testing.assert_allclose(means.to(td.float32).numpy(), wanted, atol=error)
    assert F.max_pool2d(td.zeros((0, 4, 4)), 2).shape == (0, 2, 2)
    assert F.avg_pool2d(td.zeros((2, 0, 4, 4)), 2).shape == (2, 0, 2, 2)


def test_places_outside_are_dropped(device):
    values, places = td.ones((2, 3)), td.asarray([[0, -1, 6], [5, 5, 0]])
    found = F.max_unpool1d(values, places, 2)
    assert found.tolist() == [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1]]


def test_refusals(device):
    x = td.zeros((1, 6, 4, 4), device="cpu")
    cases = {
        r"kernel_size=\(5, 5\).*larger than an image of \(4, 4\)": (F.max_pool2d, x, 5),
        "padding=.* from 0 to half of a window, which is 3 long": (F.max_pool2d, x, 3, 1, 2),
        "padding=.* from 0 to half": (F.avg_pool2d, x, 3, 1, -1),
        "stride must be positive": (F.max_pool2d, x, 2, 0),
        r"shape \(N, C, L\) or \(C, L\), not \(1, 6, 4, 4\)": (F.max_pool1d, x, 2),
        "have no elements": (F.max_pool2d, x[..., :0], 2),
        "divisor_override must not be 0": (F.avg_pool2d, x, 2, 2, 0, False, True, 0),
        "output_size must be positive": (F.adaptive_avg_pool2d, x, (2, 0)),
        "norm_type must be finite and not 0": (F.lp_pool2d, x, math.inf, 2),
        r"a stride of \(2, 2\) or more away from \(8, 8\)": (
            F.max_unpool2d, x, x.to(td.int32), 2, 2, 0, (10, 8),
        ),
        r"indices are integers of the input's shape": (F.max_unpool2d, x, x, 2),
    }  # fmt: skip
    for message, (function, *arguments) in cases.items():
        with pytest.raises(ValueError, match=message):
            function(*arguments)
    with pytest.raises(td.errors.DtypeError, match="takes real numbers, not complex64"):
        F.max_pool2d(x.to(td.complex64), 2)


def test_messages_name_the_function(device):
    given = td.zeros((1,) * 6, device="cpu")
    for axes in (1, 2, 3):
        for name, *options in (
            ("max_pool", 2), ("avg_pool", 2), ("lp_pool", 2, 2), ("max_unpool", given, 2),
            ("adaptive_max_pool", 2), ("adaptive_avg_pool", 2),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=rf"^{name}{axes}d takes an input of shape"):
                getattr(F, f"{name}{axes}d")(given, *options)
