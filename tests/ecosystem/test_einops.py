"""einops, whose functions for arrays of the standard are in `einops.array_api`."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

einops = pytest.importorskip("einops.array_api")
numpy_einops = pytest.importorskip("einops")


@pytest.fixture
def images(device):
    return td.asarray(np.arange(2 * 4 * 6 * 3, dtype=np.float32).reshape(2, 4, 6, 3)) * 1


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        ("b h w c -> b c h w", {}),
        ("b h w c -> (b h) w c", {}),
        ("b (h p) (w q) c -> b (h w) (p q c)", {"p": 2, "q": 3}),
        ("b h w c -> b () h (w c)", {}),
    ],
)
def test_rearrange(images, pattern, sizes):
    result = einops.rearrange(images, pattern, **sizes)
    assert isinstance(result, td.Tensor)
    expected = numpy_einops.rearrange(images.numpy(), pattern, **sizes)
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("reduction", ["sum", "max", "min", "mean"])
def test_reduce(images, reduction):
    pattern = "b (h p) w c -> b c h"
    result = einops.reduce(images, pattern, reduction, p=2)
    expected = numpy_einops.reduce(images.numpy(), pattern, reduction, p=2)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_repeat(images):
    result = einops.repeat(images, "b h w c -> b (h r) w c s", r=2, s=3)
    expected = numpy_einops.repeat(images.numpy(), "b h w c -> b (h r) w c s", r=2, s=3)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_pack_and_unpack(images):
    flat = images[:, 0, 0, :]
    packed, shapes = einops.pack([images, flat], "b * c")
    assert packed.shape == (2, 25, 3)
    whole, part = einops.unpack(packed, shapes, "b * c")
    np.testing.assert_array_equal(whole.numpy(), images.numpy())
    np.testing.assert_array_equal(part.numpy(), flat.numpy())


def test_several_tensors_and_numpys_array(images):
    stacked = einops.rearrange([images[0], images[1]], "b h w c -> h (b w) c")
    assert stacked.shape == (4, 12, 3)
    if images.device.backend == "cpu":
        assert einops.asnumpy(images).shape == images.shape


def test_tensors_of_pytorchs_interface_and_layers():
    mine = pytest.importorskip("treadle.torch.einops")
    import treadle.torch as torch

    r = np.random.default_rng()
    host = r.normal(size=(2, 5, 6, 3)).astype("f")
    x = torch.tensor(host, requires_grad=True)
    for call in (
        lambda e, a: e.rearrange(a, "b h (w p) c -> b (h w) (p c)", p=2),
        lambda e, a: e.repeat(a, "b h w c -> b h (w r) c s", r=2, s=3),
        lambda e, a: e.einsum(a, a, "b h w c, b h v c -> b w v"),
        lambda e, a: e.pack([a, a[:, :, 0]], "b h *")[0],
        *(
            lambda e, a, how=how: e.reduce(a, "b (h q) w c -> b w h", how, q=5)
            for how in ("mean", "sum", "max", "min", "prod")
        ),
    ):
        found = call(mine, x)
        np.testing.assert_allclose(found.detach().numpy(), call(numpy_einops, host), rtol=1e-4)
        assert call(numpy_einops, x).shape == found.shape  # einops' own function
    model = torch.nn.Sequential(
        mine.Rearrange("b h w c -> b c h w"), mine.Reduce("b c (h p) w -> b c w", "max", p=5)
    )
    found = model(x)
    np.testing.assert_allclose(found.detach().numpy(), host.max(1).transpose(0, 2, 1))
    found.sum().backward()
    assert x.grad.sum().item() == found.numel()
