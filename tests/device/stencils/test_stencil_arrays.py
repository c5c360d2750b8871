"""Stencils as array functions: outputs that they make, derivatives, `td.vmap`, `td.compile`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

VALUES = {"constant": 3.0}


def random(device: td.Device, *shape: int, seed: int = 0) -> td.Tensor:
    numbers = np.random.default_rng(seed).integers(-4, 5, shape)
    return td.asarray(numbers.astype(np.float32), device=device)


def body(u, k, out, pos):
    out[pos] = k[pos] * (pos.north(u) + 2.0 * pos.at(u, 1, -2)) + 3.0 * pos.east(u) - u[pos]


def linear(rule: str) -> Any:
    return td.stencil(boundary=rule, value=VALUES.get(rule))(body)


@pytest.mark.parametrize("rule", ["clamp", "wrap", "mirror", "zero", "constant"])
def test_outputs_and_the_transposed_stencil(device: td.Device, rule: str) -> None:
    stencil = linear(rule)
    u, k, g = (random(device, 5, 9, seed=seed) for seed in range(3))
    out = td.empty_like(u)
    stencil(u, k, out)
    made = stencil(u, k)
    np.testing.assert_array_equal(made.numpy(), out.numpy())
    assert made.dtype == td.float32
    # The output by operations of arrays is that of the kernel, and for a linear A the gradient is
    # A^T g, so g·(A u) is (A^T g)·u (a constant boundary adds what it gives for u = 0).
    value, back = td.vjp(lambda u: stencil(u, k), u)
    np.testing.assert_array_equal(value.numpy(), out.numpy())
    (transposed,) = back(g)
    at_zero = stencil(td.zeros_like(u), k)
    left = (g * (made - at_zero)).sum().item()
    assert left == (transposed * u).sum().item()
    assert left != 0


def test_a_coefficient_by_differences(device: td.Device) -> None:
    stencil = linear("mirror")
    u, k, g = (random(device, 4, 6, seed=seed) for seed in range(3))

    def loss(k: Any) -> Any:
        return (stencil(u, k) * g).sum()

    found = td.grad(loss)(k).numpy()
    for at in [(0, 0), (2, 3), (3, 5)]:
        step = np.zeros((4, 6), np.float32)
        step[at] = 1
        step = td.asarray(step, device=device)
        assert found[at] == pytest.approx((loss(k + step) - loss(k - step)).item() / 2, rel=1e-5)


@td.func
def limited(slope):
    return td.tanh(slope) * slope


@td.stencil(boundary="wrap")
def burgers(u, dt, out, rate, pos):
    total = 0.0
    for d in td.static_range(1, 3):
        total += limited(pos.at(u, d) - pos.at(u, -d))
    rate[pos] = total
    out[pos] = u[pos] - dt * u[pos] * total if dt > 0.0 else u[pos]


def test_a_nonlinear_body(device: td.Device) -> None:
    def by_arrays(u: Any) -> Any:
        slopes = [td.roll(u, -d) - td.roll(u, d) for d in (1, 2)]
        total = sum(td.tanh(slope) * slope for slope in slopes)
        return ((u - 0.1 * u * total) ** 2).sum() + total.sum()

    def by_stencil(u: Any) -> Any:
        out, rate = burgers(u, 0.1)
        return (out**2).sum() + rate.sum()

    u = random(device, 30) / 4
    np.testing.assert_allclose(by_stencil(u).item(), by_arrays(u).item(), rtol=1e-5)
    found, want = td.grad(by_stencil)(u).numpy(), td.grad(by_arrays)(u).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_steps_can_be_differentiated(device: td.Device) -> None:
    stencil = linear("zero")
    u, k = random(device, 4, 5), random(device, 4, 5, seed=1) / 8

    def loss(k: Any) -> Any:
        state = u
        for _ in range(3):
            state = 0.125 * stencil(state, k)
        return (state**2).sum()

    found = td.grad(loss)(k)
    step = np.zeros((4, 5), np.float32)
    step[1, 2] = 2**-4
    step = td.asarray(step, device=device)
    difference = (loss(k + step) - loss(k - step)).item() * 2**3
    assert found[1, 2].item() == pytest.approx(difference, rel=0.02, abs=1e-4)


def test_vmap_and_compile(device: td.Device) -> None:
    stencil = linear("clamp")
    u, k = random(device, 3, 4, 6), random(device, 4, 6, seed=1)
    each = td.vmap(stencil, in_dims=(0, None))(u, k).numpy()
    for at in range(3):
        np.testing.assert_array_equal(each[at], stencil(u[at], k).numpy())

    def loss(u: Any) -> Any:
        return (stencil(u, k) ** 2).sum()

    gradients = td.vmap(td.grad(loss))(u).numpy()
    np.testing.assert_allclose(gradients[1], td.grad(loss)(u[1]).numpy(), rtol=1e-5)

    compiled = td.compile(lambda u: stencil(2.0 * u, k) + 1.0)
    for at in range(3):
        want = stencil(2.0 * u[at], k) + 1.0
        np.testing.assert_array_equal(compiled(u[at]).numpy(), want.numpy())


@td.stencil(boundary="skip")
def narrow(u: td.Array[td.f32, 2], out: td.Array[td.i32, 2], pos: td.GridPos):
    out[pos] = td.i32(pos.north(u) + pos.east(u))


def test_made_outputs_have_zeros_where_cells_are_skipped(device: td.Device) -> None:
    u = random(device, 5, 6)
    out = narrow(u)
    assert out.dtype == td.int32
    want = np.zeros((5, 6), np.int32)
    want[1:, :-1] = u.numpy()[:-1, :-1] + u.numpy()[1:, 1:]
    np.testing.assert_array_equal(out.numpy(), want)


@td.stencil(boundary="skip")
def inner(u, out, pos):
    out[pos] = pos.west(u) * pos.east(u)


def test_the_gradient_of_skipped_cells(device: td.Device) -> None:
    u = random(device, 8)
    found = td.grad(lambda u: inner(u).sum())(u).numpy()
    x = u.numpy()
    want = np.zeros(8, np.float32)
    want[:-2] += x[2:]
    want[2:] += x[:-2]
    np.testing.assert_array_equal(found, want)


@td.stencil
def branching(u, out, pos):
    if u[pos] > 0.0:
        out[pos] = pos.west(u)
    else:
        out[pos] = 0.0


def test_what_has_no_derivative(device: td.Device) -> None:
    u = random(device, 8)
    with pytest.raises(td.errors.CompileError, match=r"decisions are written with td\.where"):
        td.grad(lambda u: branching(u).sum())(u)
    edge = td.stencil(boundary=lambda_edge())(inner.__wrapped__)
    with pytest.raises(td.errors.CompileError, match="no derivative yet"):
        td.grad(lambda u: edge(u).sum())(u)
    assert branching(u).shape == (8,)
    leaf = random(device, 8).requires_grad_()
    with pytest.raises(td.errors.AutogradError, match="call it without them"):
        inner(leaf, td.zeros_like(u))
    with td.no_grad():
        inner(leaf, td.zeros_like(u))


@td.stencil(boundary="zero")
def weighted(weights, u, out, pos):
    out[pos] = weights[0] * pos.west(u) + weights[1] * pos.east(u)


def test_coefficients_of_another_length(device: td.Device) -> None:
    weights, u = td.asarray([2.0, 3.0], device=device), random(device, 2, 7)
    column = td.stencil(boundary="zero")(weighted.__wrapped__)
    assert column(weights, u).shape == (2, 7)
    found = td.grad(lambda weights: column(weights, u).sum())(weights).numpy()
    x = u.numpy()
    np.testing.assert_array_equal(found, [x[:, :-1].sum(), x[:, 1:].sum()])


def lambda_edge() -> Any:
    def edge(u, i):
        return 1.0

    return edge


@td.stencil(boundary="constant", value=2.0, storage=td.float16)
def stored(u: td.Array[td.f32, 2], k: td.f32, out: td.Array[td.f32, 2], pos: td.GridPos):
    total = 0.0
    for d in td.static_range(-2, 3):
        total += k * pos.at(u, 0, d)
    out[pos] = total - u[pos]


def test_halves_are_computed_in_float32(device: td.Device) -> None:
    numbers = np.random.default_rng(0).random((5, 21), np.float32).astype(np.float16)
    u = td.asarray(numbers, device=device)
    out = td.empty((5, 21), dtype=td.float16, device=device)
    stored(u, 0.3, out)
    wide = np.pad(numbers.astype(np.float32), ((0, 0), (2, 2)), constant_values=2)
    total = np.zeros((5, 21), np.float32)
    for d in range(5):
        total += np.float32(0.3) * wide[:, d : d + 21]
    want = (total - numbers).astype(np.float16)
    np.testing.assert_allclose(out.numpy(), want, rtol=0, atol=2e-3)
    made = stored(u, 0.3)
    assert made.dtype == td.float16
    np.testing.assert_array_equal(made.numpy(), out.numpy())
    again = np.zeros((5, 21), np.float16)
    with td.interpret():
        stored(numbers, 0.3, again)
    np.testing.assert_allclose(again, want, rtol=0, atol=2e-3)
    with pytest.raises(td.errors.DtypeError):
        stored(td.zeros((5, 21), device=device), 0.3)
    with pytest.raises(ValueError, match="storage is"):
        td.stencil(storage=td.int32)(inner.__wrapped__)


@td.stencil
def where_free(u, solid, out, pos):
    if not solid[pos]:
        out[pos] = 2.0 * u[pos]


@td.stencil
def until_solid(u, solid, out, pos):
    if solid[pos]:
        return
    out[pos] = 2.0 * u[pos]


@td.stencil
def either(u, solid, out, pos):
    if solid[pos]:
        out[pos] = 0.0
    else:
        out[pos] = 2.0 * u[pos]


def test_made_outputs_have_zeros_where_the_body_writes_nothing(device: td.Device) -> None:
    u, solid = np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(24).reshape(4, 6) % 3 == 0
    a, mask = td.asarray(u, device=device), td.asarray(solid, device=device)
    with poisoned(device):
        for stencil in (where_free, until_solid, either):
            got = stencil(a, mask)
            np.testing.assert_array_equal(got.numpy(), np.where(solid, 0, 2 * u))
