"""Images of another size, beside PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

SHAPES = {1: (2, 3, 9), 2: (2, 3, 7, 10), 3: (1, 2, 4, 5, 6)}
EXACT = ("nearest", "nearest-exact", "area")
BETWEEN = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
SIZES = {1: ((23,), (4,), (9,)), 2: ((20, 10), (3, 17)), 3: ((9, 3, 6),)}
FACTORS = {1: (1.7, 0.6), 2: ((2.0, 1.05), (0.5, 3.3)), 3: ((2, 1.5, 0.5),)}


@pytest.fixture
def on_cpu():
    """For what is made of what other tests have on every device."""
    with td.use_device(td.device("cpu")):
        yield


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def same(found, wanted, tolerance=2e-5):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), tolerance, tolerance)


if torch is not None:

    def check(x, **options):
        wanted = torch.nn.functional.interpolate(torch.asarray(x), **options)
        same(F.interpolate(td.asarray(x), **options), wanted)

    @pytest.mark.parametrize("axes", SHAPES)
    @pytest.mark.parametrize("mode", EXACT)
    def test_pixels_of_the_input(on_cpu, rng, mode, axes):
        x = numbers(rng, *SHAPES[axes])
        for size in SIZES[axes]:
            check(x, size=size, mode=mode)
        for factor in FACTORS[axes]:
            check(x, scale_factor=factor, mode=mode)
            check(x, scale_factor=factor, mode=mode, recompute_scale_factor=True)

    @pytest.mark.parametrize("mode", BETWEEN)
    @pytest.mark.parametrize("aligned", [False, True])
    def test_between_pixels(on_cpu, rng, mode, aligned):
        axes = BETWEEN[mode]
        x = numbers(rng, *SHAPES[axes])
        for size in (*SIZES[axes], (1,) * axes):
            check(x, size=size, mode=mode, align_corners=aligned)
        for factor in FACTORS[axes]:
            check(x, scale_factor=factor, mode=mode, align_corners=aligned)
            check(x, scale_factor=factor, mode=mode, recompute_scale_factor=True)

    @pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
    def test_without_aliasing(on_cpu, rng, mode):
        x = numbers(rng, 2, 3, 17, 23)
        check(x, size=(6, 30), mode=mode, antialias=True)
        check(x, scale_factor=(0.3, 1.02), mode=mode, antialias=True)
        aligned = mode != "lanczos"
        check(x, size=(5, 8), mode=mode, antialias=True, align_corners=aligned)

    def test_on_every_device(device, rng):
        x = numbers(rng, 2, 3, 7, 10)
        check(x, size=(20, 10), mode="nearest")
        for mode in ("bilinear", "bicubic"):
            check(x, scale_factor=(0.7, 2.3), mode=mode)
        check(x, size=(3, 4), mode="bicubic", antialias=True)

    def test_other_dtypes(on_cpu, rng):
        x = numbers(rng, 1, 2, 5, 6) * 50
        wide = torch.nn.functional.interpolate(torch.asarray(x), (7, 9), mode="bilinear")
        for dtype, tolerance in (("float16", 0.1), ("bfloat16", 1.0), ("float64", 1e-4)):
            found = F.interpolate(td.asarray(x).to(dtype), (7, 9), mode="bilinear")
            assert found.dtype == dtype
            np.testing.assert_allclose(found.to(td.float32).numpy(), wide.numpy(), 0, tolerance)
        whole = F.interpolate(td.asarray(x).to(td.int32), 3)
        assert whole.dtype == td.int32
        same(whole, torch.nn.functional.interpolate(torch.asarray(x).int().float(), 3))
        assert F.interpolate(td.asarray(x).to(td.int8), 3, mode="bilinear").dtype == td.float32

    def test_older_names(on_cpu, rng):
        x = numbers(rng, 1, 2, 5, 6)
        there, wanted = td.asarray(x), torch.nn.functional.interpolate
        same(F.upsample(there, 9), wanted(torch.asarray(x), 9))
        same(F.upsample_nearest(there, scale_factor=2), wanted(torch.asarray(x), scale_factor=2))
        aligned = wanted(torch.asarray(x), (9, 4), mode="bilinear", align_corners=True)
        same(F.upsample_bilinear(there, (9, 4)), aligned)


def test_views_and_what_follows(device, rng):
    data = numbers(rng, 3, 2, 8, 6)
    x = td.asarray(data)
    seen = x[1:, :, ::-2].swapaxes(2, 3)
    found = F.interpolate(seen, scale_factor=2) * 2
    wanted = np.repeat(np.repeat(data[1:, :, ::-2].swapaxes(2, 3), 2, axis=2), 2, axis=3) * 2
    np.testing.assert_array_equal(found.numpy(), wanted)
    said = td.explain(F.interpolate(seen, scale_factor=1.5, mode="bilinear") * 2)
    assert said.splitlines()[0] == "1 kernel"
    said = td.explain(F.interpolate(seen, scale_factor=1.5, mode="bicubic") * 2)
    # Software drivers take seconds to compile so much at once.
    assert said.splitlines()[0] == ("4 kernels" if device.kind == "software" else "1 kernel")


def test_refusals():
    x = td.zeros((1, 2, 4, 4), device="cpu")
    cases = {
        "mode is one of nearest": {"size": 3, "mode": "cubic"},
        r"mode 'linear' takes an input of shape \(N, C, …\) with 1 axes": {
            "size": 3, "mode": "linear",
        },
        "align_corners is for linear, bilinear": {"size": 3, "align_corners": True},
        "give either size or scale_factor": {"size": 3, "scale_factor": 2},
        "antialias is for bilinear": {"size": 3, "antialias": True},
        "'lanczos' is for antialias=True": {"size": 3, "mode": "lanczos"},
        "recompute_scale_factor is for scale_factor": {"size": 3, "recompute_scale_factor": True},
        r"scale_factor=\(2, 2, 2\) has 3 numbers": {"scale_factor": (2, 2, 2)},
        r"the new size must be positive, not \(0, 0\)": {"scale_factor": 0.1},
    }  # fmt: skip
    for message, options in cases.items():
        with pytest.raises(ValueError, match=message):
            F.interpolate(x, **options)
    with pytest.raises(td.errors.DtypeError, match="takes real numbers, not complex64"):
        F.interpolate(x.to(td.complex64), 2, mode="bilinear")
