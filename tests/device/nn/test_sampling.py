"""Images at places of a grid, and the grids of affine maps, beside PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

MODES = ("bilinear", "nearest", "bicubic")
PADDING = ("zeros", "border", "reflection")


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def same(found, wanted):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 2e-5, 2e-5)


if torch is not None:

    def check(rng, axes, mode, padding, aligned):
        x = numbers(rng, 2, 3, *(4, 6, 5)[:axes])
        grid = numbers(rng, 2, *(5, 3, 4)[:axes], axes) * 1.3
        wanted = torch.nn.functional.grid_sample(
            *map(torch.asarray, (x, grid)), mode, padding, aligned
        )
        same(F.grid_sample(*map(td.asarray, (x, grid)), mode, padding, aligned), wanted)

    @pytest.mark.parametrize("mode", MODES)
    def test_modes(rng, mode):
        with td.use_device(td.device("cpu")):
            for padding, aligned in zip(PADDING, (False, True, False), strict=True):
                check(rng, 2, mode, padding, aligned)
            if mode != "bicubic":
                check(rng, 3, mode, "reflection", True)

    def test_on_every_device(device, rng):
        check(rng, 2, "bilinear", "reflection", False)
        check(rng, 3, "nearest", "zeros", True)

    @pytest.mark.filterwarnings("ignore:.*unit-size grids:UserWarning")
    def test_affine_grids(rng):
        with td.use_device(td.device("cpu")):
            for axes, aligned in itertools.product((2, 3), (False, True)):
                theta, size = numbers(rng, 2, axes, axes + 1), (2, 3, *(4, 1, 5)[:axes])
                wanted = torch.nn.functional.affine_grid(torch.asarray(theta), size, aligned)
                same(F.affine_grid(td.asarray(theta), size, aligned), wanted)


def test_an_image_that_stays(device, rng):
    x = td.asarray(numbers(rng, 1, 2, 5, 7)).to(td.float16)
    theta = td.asarray([[[1.0, 0, 0], [0, 1, 0]]])
    grid = F.affine_grid(theta, x.shape)
    found = F.grid_sample(x, grid)
    assert found.dtype == td.float16
    np.testing.assert_allclose(found.numpy(), x.numpy(), 1e-2, 1e-2)
    assert td.explain(F.grid_sample(x, grid) * 2).splitlines()[0] == "1 kernel"


def test_refusals():
    x, grid = td.zeros((1, 2, 4, 4), device="cpu"), td.zeros((1, 3, 3, 2), device="cpu")
    theta = td.zeros((1, 2, 3), device="cpu")
    cases = {
        r"a grid of shape \(1, 3, 3, 1\) does not fit": lambda: F.grid_sample(x, grid[..., :1]),
        "mode is .*not 'area'": lambda: F.grid_sample(x, grid, "area"),
        "padding_mode is one of zeros, border, reflection": lambda: F.grid_sample(
            x, grid, padding_mode="circular"
        ),
        "has no pixels": lambda: F.grid_sample(x[..., :0], grid),
        r"maps of shape \(1, 2, 3\) do not fit": lambda: F.affine_grid(theta, (2, 1, 4, 4)),
        "size must be positive": lambda: F.affine_grid(theta, (1, 1, 0, 4)),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(td.errors.DtypeError, match="takes floats, not int32"):
        F.grid_sample(x.to(td.int32), grid)
