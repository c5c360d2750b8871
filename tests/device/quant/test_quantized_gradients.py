"""Gradients through quantized products, to the activations."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.quant import gradients

ROWS, COLUMNS = 40, 64


@pytest.fixture
def made(device):
    """Weights in blocks, their elements as float64, and activations."""
    rng = np.random.default_rng(0)
    w = td.quant.quantize(rng.normal(size=(ROWS, COLUMNS)).astype(np.float32), "q5_0")
    x = rng.normal(size=(3, 2, COLUMNS)).astype(np.float32)
    return w, w.numpy().astype(np.float64), x


def _near(found: td.Tensor, expected: np.ndarray) -> None:
    assert found.dtype == td.float32
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("together", [1 << 22, 7 * COLUMNS])
def test_gradients_reach_the_activations(device, made, monkeypatch, together):
    monkeypatch.setattr(gradients, "_TOGETHER", {True: together, False: together})
    w, exact, x = made
    given = td.asarray(x).requires_grad_()
    y = td.sin(given * 2) @ w.T
    _near(y.detach(), np.sin(2 * x.astype(np.float64)) @ exact.T)
    (y**2).sum().backward()
    # d/dx of the sum of (sin(2 x) w')² is 2 y w · 2 cos(2 x)
    wide = x.astype(np.float64)
    _near(given.grad, (2 * (np.sin(2 * wide) @ exact.T) @ exact) * 2 * np.cos(2 * wide))


def test_the_other_side_has_gradients_too(device, made):
    w, exact, _ = made
    x = np.random.default_rng(1).normal(size=(5, ROWS)).astype(np.float32)
    given = td.asarray(x).requires_grad_()
    y = given @ w
    _near(y.detach(), x @ exact)
    (y**3).sum().backward()
    _near(given.grad, (3 * (x.astype(np.float64) @ exact) ** 2) @ exact.T)
    assert (x @ w).shape == (5, COLUMNS)
    with pytest.raises(td.errors.ShapeError, match="rows of 40 elements here"):
        td.ones((1, COLUMNS)) @ w


def test_gradients_of_gradients(device, made):
    w, exact, x = made

    def f(z):
        return ((z @ w.T) ** 3).sum()

    row = x[0, 0]
    found = td.grad(lambda z: (td.grad(f)(z) ** 2).sum())(td.asarray(row))
    y = exact @ row
    first = exact.T @ (3 * y**2)
    second = exact.T @ np.diag(6 * y) @ exact
    np.testing.assert_allclose(found.numpy(), 2 * second @ first, rtol=2e-3)


def test_gradients_have_the_dtype_of_the_activations(device, made):
    w, exact, x = made
    given = td.asarray(x).astype(td.float16).requires_grad_()
    (given @ w.T).sum().backward()
    assert given.grad.dtype == td.float16
    np.testing.assert_allclose(given.grad.numpy()[0, 0], exact.sum(0), rtol=2e-3, atol=0.02)


def test_an_adapter_learns_over_quantized_weights(device, made):
    """LoRA's step: the quantized product and two small matrices, which alone have gradients."""
    w, exact, x = made
    rng = np.random.default_rng(2)
    target = td.asarray((x @ (exact + rng.normal(size=exact.shape)).T).astype(np.float32))
    down = td.asarray(rng.normal(size=(COLUMNS, 4)).astype(np.float32) / 8).requires_grad_()
    up = td.zeros((4, ROWS)).requires_grad_()
    optimizer = td.optim.Adam([down, up], lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        given = td.asarray(x)
        hidden = given + (given @ down) @ td.ones((4, COLUMNS)) * 0.01
        loss = ((hidden @ w.T + (given @ down) @ up - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_without_recording_there_is_no_history(device, made):
    w, _, x = made
    given = td.asarray(x).requires_grad_()
    with td.no_grad():
        assert not (given @ w.T).requires_grad
    assert not (td.asarray(x) @ w.T).requires_grad


def test_it_is_compiled(device, made):
    w, exact, x = made

    @td.compile
    def step(z):
        z = z.detach().requires_grad_()
        ((z @ w.T) ** 2).sum().backward()
        return z.grad

    for _ in range(3):
        _near(step(td.asarray(x)), (2 * (x.astype(np.float64) @ exact.T)) @ exact)
