"""Gradients of Fourier transforms: those of differences, and PyTorch's."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients

try:
    import torch
except ImportError:
    torch = None

# Transforms, with arguments that cut, fill up, or leave as it is what is transformed.
CASES = [
    ("fft", "complex", (3, 4), {"n": 6, "dim": 0}),
    ("fft", "real", (2, 5), {"n": 3}),
    ("rfft", "real", (3, 5), {"n": 4, "dim": 0, "norm": "forward"}),
    ("irfft", "complex", (2, 4), {"n": 5, "norm": "ortho"}),
    ("irfft", "complex", (3,), {"n": 8}),
    ("hfft", "complex", (4,), {"n": 7}),
    ("ihfft", "real", (5,), {}),
    ("fftn", "real", (2, 3, 2), {"s": (2, 4), "dim": (0, 1)}),
    ("ifft2", "complex", (2, 3), {"norm": "forward"}),
    ("irfftn", "complex", (3, 3), {}),
    ("fftshift", "complex", (2, 3), {}),
]


def drawn(rng, kind, shape):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if kind == "complex" else x


def in_treadle(name, x, arguments):
    arguments = dict(arguments)
    if isinstance(arguments.get("dim"), tuple) or name.endswith("shift"):
        arguments = {"axes" if key == "dim" else key: value for key, value in arguments.items()}
    return getattr(td.fft, name)(x, **arguments)


if torch is not None:

    @pytest.mark.parametrize(("name", "kind", "shape", "arguments"), CASES)
    def test_parity(name, kind, shape, arguments, rng):
        x = drawn(rng, kind, shape)
        theirs = torch.tensor(x, requires_grad=True)
        result = getattr(torch.fft, name)(theirs, **arguments)
        kind = "complex" if result.is_complex() else "real"
        weights = drawn(rng, kind, tuple(result.shape))
        result.backward(torch.tensor(weights))
        mine = td.asarray(x, device="cpu").requires_grad_()
        in_treadle(name, mine, arguments).backward(td.asarray(weights, device="cpu"))
        expected = theirs.grad.resolve_conj().numpy()
        np.testing.assert_allclose(mine.grad.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_second_derivatives(rng):
    def function(x):
        y = td.fft.rfft(x, n=4)
        return td.real(y) * td.imag(y) ** 2

    check_gradients(function, rng.standard_normal((2, 3)))


def test_nothing_to_transform(device):
    x = td.zeros((0, 4), device=device).requires_grad_()
    td.real(td.fft.rfft(x, n=6)).sum().backward()
    assert x.grad.shape == (0, 4)


def test_on_every_device(device, rng):
    x = rng.standard_normal((3, 10)).astype(np.float32)
    mine = td.asarray(x, device=device).requires_grad_()
    y = td.fft.rfft(mine, n=8)
    (td.real(y) ** 2 + td.imag(y) ** 2).sum().backward()
    # Of |X|^2 the gradient is 2 X, and that of x its transform back.
    expected = np.real(np.fft.ifft(np.fft.rfft(x[:, :8]) * 2, n=8)) * 8
    np.testing.assert_allclose(mine.grad.numpy()[:, :8], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(mine.grad.numpy()[:, 8:], 0)
