"""Gradients of the array library: against PyTorch's, with its choices at corners, and against
central differences."""

import math

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.runtime import settings

try:
    import torch
except ImportError:  # there are machines that it has no wheel for
    torch = None

inf, nan = math.inf, math.nan


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch):
    """A kernel for each operation: all tests together need fewer than if each fused its own."""
    monkeypatch.setattr(settings, "eager", True)


if torch is not None:
    ANYWHERE = ["atan", "cos", "erf", "expm1", "sigmoid", "square", "tanh"]
    POSITIVE = ["lgamma", "log2", "reciprocal", "rsqrt", "sqrt"]
    INSIDE = ["acos", "atanh"]
    COMPLEX = ["abs", "angle", "exp", "log", "sqrt", "square"]

    def both(function, *arrays, order=1, device="cpu"):
        """A function of a namespace and arrays: the gradients here, and PyTorch's; with `order=2`
        those of gradients are added."""
        arrays, found = [np.asarray(x) for x in arrays], []
        for space in (td, torch):
            made = [
                td.asarray(x, device=device) if space is td else torch.as_tensor(x) for x in arrays
            ]
            given = [x.requires_grad_() if x.dtype in _FLOATING else x for x in made]
            wanted = [x for x in given if x.dtype in _FLOATING]
            slopes = space.autograd.grad(
                _total(space, function(space, *given)), wanted, create_graph=order > 1
            )
            if order > 1:
                total = sum((_total(space, slope) for slope in slopes), 0.0)
                more = space.autograd.grad(total, wanted)
                slopes = [slope.detach() + other for slope, other in zip(slopes, more, strict=True)]
            found.append([slope.detach().numpy() for slope in slopes])
        return found

    _FLOATING = {
        td.float32, td.float64, td.complex64, td.complex128,
        torch.float32, torch.float64, torch.complex64, torch.complex128,
    }  # fmt: skip

    def _total(space, values):
        """A real number that all elements of values have different parts in."""
        values = values if isinstance(values, (list, tuple)) else [values]
        total = 0.0
        for number, value in enumerate(values):
            size = math.prod(value.shape)
            weight = np.cos(np.arange(size) + number + 1).reshape(tuple(value.shape))
            if value.dtype in (td.complex128, torch.complex128):
                value = space.real(value * (0.5 - 1j))
            if value.dtype in (td.float32, torch.float32):
                weight = weight.astype(np.float32)
            by = torch.as_tensor(weight)
            total = total + (value * (by if space is torch else td.asarray(by))).sum()
        return total

    def assert_alike(function, *arrays, order=1, rtol=1e-9, device="cpu"):
        mine, theirs = both(function, *arrays, order=order, device=device)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)

    def test_that_functions_of_one_number_have_pytorchs_second_gradients(rng):
        x = rng.standard_normal((5, 3)) * 0.7
        assert_alike(lambda space, x: [getattr(space, name)(x) for name in ANYWHERE], x, order=2)
        assert_alike(lambda space, x: [getattr(space, name)(x) for name in POSITIVE],
                     abs(x) + 0.1, order=2, rtol=1e-8)  # fmt: skip
        assert_alike(lambda space, x: [getattr(space, name)(x) for name in INSIDE],
                     np.clip(x, -0.9, 0.9), order=2)  # fmt: skip

    def test_that_functions_of_complex_numbers_have_pytorchs_gradients(rng):
        x = rng.standard_normal((5, 3)) + 1j * rng.standard_normal((5, 3))
        x[0, 0] = 2
        assert_alike(lambda space, x: [getattr(space, name)(x) for name in COMPLEX], x)
        x[0, 0] = 0
        assert_alike(lambda space, x: [abs(x), space.angle(x), space.sgn(x) if space is torch
                                       else td.sign(x)], x)  # fmt: skip
        y = x[::-1] + 1
        assert_alike(lambda space, x, y: [x * y, x / y, x**2, space.imag(x)], x, y, order=2)

    def test_that_functions_of_two_numbers_have_pytorchs_gradients(rng):
        x, y = rng.uniform(0.3, 3, (4, 3)), rng.uniform(0.3, 3, 3)

        def function(space, x, y):
            return [
                x + y, x - y, x * y, x / y, x**y, x**3, 2**x, x**-1.5, space.maximum(x, y),
                space.minimum(x, y), space.hypot(x, y), space.logaddexp(x, y),
                space.remainder(x, y), space.copysign(x, -y), space.where(x > y, x, y),
                space.atan2(x, y), space.clip(x, 0.5, 2.5),
            ]  # fmt: skip

        assert_alike(function, x, y, order=2)

    def test_that_corners_are_pytorchs():
        assert_alike(
            lambda space, x, y: [space.maximum(x, y), space.minimum(x, y), space.logaddexp(x, y)],
            [1.0, 2.0, 0.0, nan, 1.0], [1.0, 0.0, 2.0, 1.0, nan],
        )  # fmt: skip
        zeros = [0.0, -0.0, 0.0, 2.0]
        assert_alike(
            lambda space, x, y: [space.atan2(x, y), space.hypot(x, y), space.copysign(x, y)],
            zeros, [0.0, 0.0, 1.0, -1.0],
        )  # fmt: skip
        assert_alike(lambda space, x, y: x**y, [0.0, 0.0, 0.0, -1.0, 2.0, 0.0],
                     [0.0, 1.0, 2.0, 2.0, 0.0, -1.0])  # fmt: skip
        assert_alike(lambda space, x: [x**0, x**1, x**0.5, abs(x), space.sqrt(x)], zeros[::2])
        assert_alike(lambda space, x: space.lgamma(x), [0.0, -1.0, -2.5, 1e8, 1e-8])
        assert_alike(lambda space, x: [space.clip(x, min=1.0), space.clip(x, max=1.0)],
                     [0.0, 1.0, 2.0, nan])  # fmt: skip
        bounds = [0.0, 2.0, 2.0, 0.0], [1.0, 1.0, 3.0, 1.0]
        assert_alike(lambda space, *x: space.clip(*x), [0.0, 1.0, 2.0, nan], *bounds)

    def test_that_corners_of_reductions_are_pytorchs():
        def function(space, x):
            std = space.std(x, 0) if space is torch else td.std(x, correction=1)
            return [std, (space.amax if space is torch else td.max)(x), space.logsumexp(x, 0)]

        assert_alike(function, [2.0, 2.0, 2.0])
        assert_alike(lambda space, x: space.logsumexp(x, 0), [-inf, -inf])
        assert_alike(lambda space, x: space.logsumexp(x, 0), [-inf, 1.0])
        for x in ([0.0, 2.0, 3.0], [0.0, 2.0, 0.0], [4.0, 2.0, 3.0], []):
            assert_alike(lambda space, x: space.prod(x) * 1.0, x)
            assert_alike(lambda space, x: [x.cumsum(0), x.cumprod(0)], x)


@pytest.mark.parametrize("name", ["prod", "std"])
def test_that_reductions_have_gradients(rng, name):
    x = rng.standard_normal((2, 4, 2))
    if name == "prod":
        x[0, 0, 0] = x[1, :2, 1] = x[1, :3, 0] = 0  # one zero, two, three
    reduce = getattr(td, name)
    check_gradients(lambda x: [reduce(x, axis=1), reduce(x, axis=(0, 2), keepdims=True)], x)


def test_that_running_sums_and_products_have_gradients(rng):
    x = rng.standard_normal((3, 4))
    x[0, 1] = x[1, 0] = x[1, 2] = 0

    def function(x):
        return [
            td.cumulative_sum(x, axis=0, include_initial=True),
            td.cumulative_prod(x, axis=1),
            td.cumulative_prod(x, axis=0, include_initial=True),
        ]

    check_gradients(function, x)


def test_that_halves_are_rounded_once():
    x = td.asarray([0.99, 0.5], dtype="bfloat16", device="cpu").requires_grad_()
    td.tanh(x).sum().backward()
    wide = x.detach().to(td.float32)
    slope = 1 - td.tanh(wide).to("bfloat16").to(td.float32) ** 2
    np.testing.assert_array_equal(
        x.grad.to(td.float32).numpy(), slope.to("bfloat16").to(td.float32).numpy()
    )


def test_extremes_of_nan(device):
    for extreme, row in ((td.max, [1.0, 0.0]), (td.min, [0.0, 1.0])):
        x = td.asarray([[nan, 1.0], [2.0, 2.0], [inf, 1.0]], device=device).requires_grad_()
        extreme(x, axis=1).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [[nan, nan], [0.5, 0.5], row])  # as amax's
