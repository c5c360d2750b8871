"""Functions that are computed again for their gradients."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.autograd.checkpoint import checkpoint
from treadle.core.errors import AutogradError


def test_beside_differences(rng):
    inner = td.checkpoint(lambda x, y: (x * y, {"sum": x + y * x}))

    @td.checkpoint
    def outer(x, y):
        product, others = inner(x * x, y)
        return product * others["sum"]

    x, y = rng.standard_normal(3), rng.standard_normal(3)
    check_gradients(outer, x, y)
    check_gradients(lambda x, y: inner(x, y)[1]["sum"], x, y, second=False)


def test_that_parameters_and_plain_arguments_are_used(device):
    w = td.asarray([2.0, 3.0], device=device).requires_grad_()
    part = td.asarray([[1.0, 5.0], [2.0, 6.0]], device=device)[:, 1].requires_grad_()
    calls = []

    def function(x, scale, *, shift):
        calls.append(x.requires_grad)
        return (x * w * scale + shift) * part

    data = td.ones(2, device=device)
    y = checkpoint(function, data, 2.0, shift=1.0, use_reentrant=False)
    assert y.requires_grad
    (y.sum() + w.sum()).backward()
    assert calls == [False, False]
    assert w.grad.tolist() == [11.0, 13.0]
    assert part.grad.tolist() == [5.0, 7.0]
    assert not checkpoint(lambda x: x * 2, data).requires_grad
    with td.no_grad():
        assert not checkpoint(function, data, 2.0, shift=1.0).requires_grad


def test_that_draws_are_repeated(device):
    generator = td.Generator(5)

    def function(x):
        mask = td.random.bernoulli(x.shape, 0.5, dtype=td.float32, device=device)
        noise = td.random.uniform(x.shape, device=device, generator=generator)
        return x * mask * noise

    x = td.ones(64, device=device).requires_grad_()
    y = td.checkpoint(td.checkpoint(function))(x)
    state = generator.get_state()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    assert 0 < (y.numpy() == 0).sum() < 64
    assert generator.get_state() == state


def test_that_nothing_in_between_is_kept():
    x = td.ones(1000, device="cpu").requires_grad_()
    seen = []

    def function(x):
        y = td.exp(x)
        seen.append(y._cell.value)
        return td.exp(y)

    y = td.checkpoint(function)(x)
    assert seen[0].saved == 0
    y.sum().backward()
    assert seen[1].saved == 0  # the second pass is over
    np.testing.assert_allclose(x.grad.numpy(), np.exp(1 + np.e), rtol=1e-5)


def test_autocast_is_as_it_was():
    dtypes = []

    def function(x):
        y = x @ x
        dtypes.append(y.dtype.name)
        return y.sum()

    x = td.ones((4, 4), device="cpu").requires_grad_()
    with td.autocast(td.bfloat16):
        y = checkpoint(function, x)
    y.backward()
    assert dtypes == ["bfloat16", "bfloat16"]
    assert x.grad.tolist() == [[8.0] * 4] * 4


def test_within_a_compiled_step(device):
    w = td.ones(3, device=device)

    def step(w, x):
        def block(w):
            kept = td.random.bernoulli(3, 0.5, dtype=td.float32, device=device)
            return (w * x * kept).sum()

        return td.value_and_grad(td.checkpoint(block))(w)

    compiled = td.compile(step)
    x = td.asarray([1.0, 2.0, 4.0], device=device)
    for _ in range(4):
        value, gradient = compiled(w, x)
        assert value.item() == gradient.numpy().sum()


def test_what_computes_something_else_is_noticed():
    x = td.ones(3, device="cpu").requires_grad_()
    sizes = iter([3, 2])
    y = checkpoint(lambda x: x[: next(sizes)] * 2, x)
    with pytest.raises(AutogradError, match="must compute the same"):
        y.sum().backward()
    z = x * 2
    y = checkpoint(td.exp, z)
    z += 1
    with pytest.raises(AutogradError, match="changed in place"):
        y.sum().backward()
