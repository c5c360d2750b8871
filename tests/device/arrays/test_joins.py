"""Rolls, joined and stacked arrays are read where they lie, by the kernel that uses them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.graph.realize import watchers


@pytest.fixture
def kernels():
    """The kernels that are planned while a test runs."""
    found = []
    watchers.append(lambda group: found.extend(group.parts or (group,)))
    yield found
    watchers.pop()


def laplacian(lib, u):
    around = lib.roll(u, 1, axis=0) + lib.roll(u, -1, axis=0)
    return around + lib.roll(u, 1, axis=1) + lib.roll(u, -1, axis=1) - 4 * u


def corners(lib, u):
    total = 0
    for rows in (1, -1):
        row = lib.roll(u, rows, axis=0)
        total = total + lib.roll(row, 1, axis=1) + lib.roll(row, -1, axis=1)
    return total


def test_gray_scott_is_two_kernels_a_step(device, kernels, rng):
    a, b = rng.random((2, 12, 20)).astype(np.float32)
    u, v = td.asarray(a), td.asarray(b)

    def step(lib, u, v):
        change = u * v * v
        return (
            u + 0.16 * laplacian(lib, u) - change + 0.04 * (1 - u),
            v + 0.08 * laplacian(lib, v) + change - 0.1 * v,
        )

    for _ in range(3):
        u, v = step(td, u, v)
        u.realize(), v.realize()
        a, b = step(np, a, b)
    np.testing.assert_allclose(u.numpy(), a, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(v.numpy(), b, rtol=1e-5, atol=1e-6)
    assert len(kernels) == 6


def test_steps_that_wait_keep_what_neighbours_read(device, kernels, rng):
    data = rng.random((9, 8)).astype(np.float32)
    u, a = td.asarray(data), data
    for _ in range(4):
        u, a = u + 0.1 * laplacian(td, u), a + np.float32(0.1) * laplacian(np, a)
    np.testing.assert_allclose(u.numpy(), a, rtol=1e-4, atol=1e-6)
    assert len(kernels) == 4


def test_rolls_of_rolls_and_views_of_them(device, rng):
    data = rng.random((7, 5, 6)).astype(np.float32)
    x = td.asarray(data)
    np.testing.assert_allclose(corners(td, x).numpy(), corners(np, data), rtol=1e-6)
    rolled, right = td.roll(x, (2, -3), axis=(0, 2)), np.roll(data, (2, -3), (0, 2))
    for found, expected in [
        (rolled[::2, 1:, ::-1] * 2, right[::2, 1:, ::-1] * 2),
        (td.permute_dims(rolled, (2, 0, 1)) + 1, right.transpose(2, 0, 1) + 1),
        (rolled[3] * x[2], right[3] * data[2]),
        (rolled[:, 2, 4] + 1, right[:, 2, 4] + 1),
        (td.reshape(rolled, (35, 6)) - 1, right.reshape(35, 6) - 1),
        (td.roll(x, 4) * 3, np.roll(data, 4) * 3),
        (td.broadcast_to(rolled[0], (4, 5, 6)) + x[:4], right[0] + data[:4]),
        (rolled[6, 4, 5] + 1, right[6, 4, 5] + 1),
        (td.linalg.diagonal(rolled[:, 0, :]) * 2, np.diagonal(right[:, 0, :]) * 2),
    ]:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_joins_are_read_by_reductions_and_rows(device, kernels, rng):
    a, b = rng.random((6, 5)).astype(np.float32), rng.random((6, 11)).astype(np.float32)
    x, y = td.asarray(a), td.asarray(b)
    both, right = td.concat([x, y * 2], axis=1), np.concatenate([a, b * 2], axis=1)
    np.testing.assert_allclose(td.sum(both, axis=1).numpy(), right.sum(1), rtol=1e-5)
    np.testing.assert_allclose(td.max(both, axis=0).numpy(), right.max(0), rtol=1e-6)
    assert td.sum(both).item() == pytest.approx(right.sum(dtype=np.float64), rel=1e-5)
    assert td.argmax(both).item() == right.argmax()
    assert len(kernels) == 4
    powers = np.exp(right - right.max(1, keepdims=True))
    kernels.clear()
    found = td.nn.functional.softmax(both, axis=1)
    np.testing.assert_allclose(found.numpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    assert len(kernels) == 1
    centred = (both - td.mean(both, axis=0, keepdims=True)) ** 2
    np.testing.assert_allclose(centred.numpy(), (right - right.mean(0)) ** 2, rtol=1e-4, atol=1e-6)


def test_joins_of_what_takes_memory(device, rng):
    a, b = rng.random((4, 4)).astype(np.float32), rng.random((3, 4)).astype(np.float32)
    x, y = td.asarray(a), td.asarray(b)
    product, sums = x @ td.permute_dims(y, (1, 0)), td.sum(x, axis=1, keepdims=True)
    right = np.concatenate([a @ b.T, a.sum(1, keepdims=True), a], axis=1)
    joined = td.concat([product, sums, x], axis=1)
    np.testing.assert_allclose((joined * 2).numpy(), right * 2, rtol=1e-5)
    np.testing.assert_allclose(joined.numpy(), right, rtol=1e-5)
    np.testing.assert_allclose((joined @ joined.T).numpy(), right @ right.T, rtol=1e-5)
    picked = td.concat([x, y])[np.array([6, 0, 4])] + 1
    np.testing.assert_allclose(picked.numpy(), np.concatenate([a, b])[[6, 0, 4]] + 1)
    index = td.asarray(np.array([2, 0, 1], np.int32))
    gathered = td.concat([y[index], x]) * 2
    np.testing.assert_allclose(gathered.numpy(), np.concatenate([b[[2, 0, 1]], a]) * 2)


def test_many_parts_are_written_one_by_one(device, kernels):
    parts = [td.asarray(np.full(3, i, np.int32)) for i in range(30)]
    doubled = td.concat(parts) * 2
    np.testing.assert_array_equal(doubled.numpy(), np.repeat(np.arange(30, dtype=np.int32) * 2, 3))
    assert len(kernels) == 31
    sums = sum(td.stack(parts[i : i + 4])[:, 0] for i in range(0, 28, 4))
    np.testing.assert_array_equal(sums.numpy(), [84, 91, 98, 105])  # more than a kernel binds


def test_stacks_of_channels_and_dtypes(device, kernels, rng):
    data = rng.integers(0, 99, (3, 8, 9)).astype(np.int32)
    red, green, blue = (td.asarray(each) for each in data)
    image = td.stack([red, green * 2.0, blue > 50], axis=-1)
    right = np.stack([data[0], data[1] * 2.0, data[2] > 50], axis=-1).astype(np.float32)
    np.testing.assert_array_equal((image + 1).numpy(), right + 1)
    assert len(kernels) == 1
    pair = td.concat([red > 3, green > 4]) & td.concat([blue > 5, red > 6])
    a, b, c = data
    expected = np.concatenate([a > 3, b > 4]) & np.concatenate([c > 5, a > 6])
    np.testing.assert_array_equal(pair.numpy(), expected)
    turned = td.concat([red * 1j, green + 2j]) * 2
    np.testing.assert_array_equal(
        turned.numpy(), (np.concatenate([a * 1j, b + 2j]) * 2).astype(np.complex64)
    )


def test_what_was_joined_before_a_write_has_the_old_values(device):
    x, y = td.arange(4, dtype=td.float32), td.ones(3)
    x.realize()
    joined, rolled = td.concat([x, y]), td.roll(x, 1) + x
    x[1:3] = 9
    y *= 5
    assert joined.tolist() == [0, 1, 2, 3, 1, 1, 1]
    assert rolled.tolist() == [3, 1, 3, 5]
    x[...] = td.roll(x, 1)
    assert x.tolist() == [3, 0, 9, 9]
    x[1:] = td.concat([x[:2], y[:1]]) + x[1:]
    assert x.tolist() == [3, 3, 9, 14]


def test_gradients_of_joins(device, rng):
    data = rng.random((5, 6)).astype(np.float32)
    weights = rng.random((5, 6)).astype(np.float32)
    x, w = td.asarray(data).requires_grad_(), td.asarray(weights)
    td.sum(laplacian(td, x) ** 2 * w).backward()
    # The operator is symmetric: the gradient is it, of what comes from above.
    expected = laplacian(np, 2 * laplacian(np, data) * weights)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4, atol=1e-5)
    x.grad = None
    td.sum(td.concat([x * 2, x[1:3] ** 2], axis=0) * td.concat([w, w[:2]], axis=0)).backward()
    expected = 2 * weights
    expected[1:3] += 2 * data[1:3] * weights[:2]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)
    x.grad = None
    td.sum(td.roll(td.stack([x, x * x], axis=1), 1, axis=0)[0] * w[:2]).backward()
    expected = np.zeros_like(data)
    expected[4] = weights[0] + 2 * data[4] * weights[1]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


def test_joins_for_many_examples_and_compiled(device, rng):
    data = rng.random((3, 4, 5)).astype(np.float32)

    def function(x):
        return td.concat([laplacian(td, x), td.roll(x, 2) * 2], axis=0)

    def right(x):
        return np.concatenate([laplacian(np, x), np.roll(x, 2) * 2], axis=0)

    expected = np.stack([right(each) for each in data])
    found = td.vmap(function)(td.asarray(data))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-6)
    compiled = td.compile(function)
    for each, wanted in zip(data, expected, strict=True):
        result = compiled(td.asarray(each))
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4, atol=1e-6)


def test_the_explanation_shows_joins(device):
    x, y = td.asarray([1.0, 2.0]), td.asarray([3.0])
    text = str(td.explain(td.concat([x, y]) * 2))
    assert text.startswith("1 kernel")
    assert "join(x1, x2)" in text
    text = str(td.explain(td.concat([x * 2, y])))
    assert text.startswith("2 kernels")
    assert "2 parts, each written by a kernel into its place" in text
    assert "part 1 = x1 * 2.0" in text


def test_what_is_expensive_is_computed_once(device, kernels, rng):
    data = rng.random((6, 7)).astype(np.float32)
    x = td.asarray(data)
    padded = td.nn.functional.pad(td.tan(td.sin(x)), (1, 1, 1, 1), mode="reflect")
    found = padded[:-2, 1:-1] + padded[2:, 1:-1] - padded[1:-1, :-2] * padded[1:-1, 2:]
    right = np.pad(np.tan(np.sin(data)), 1, mode="reflect")
    expected = right[:-2, 1:-1] + right[2:, 1:-1] - right[1:-1, :-2] * right[1:-1, 2:]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    sines = [step.op for each in kernels for step in each.program.steps if step.op == "sin"]
    assert len(sines) == 1
    assert len(kernels) == 2
    kernels.clear()
    both = td.concat([td.sin(x), td.cos(x)]) * 2  # of which each element has one
    expected = np.concatenate([np.sin(data), np.cos(data)]) * 2
    np.testing.assert_allclose(both.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert len(kernels) == 1


def test_rolls_of_many_rolls_are_cut(device, kernels, rng):
    data = rng.random((6, 5)).astype(np.float32)
    x, right = td.asarray(data), data
    for turn in range(30):
        x, right = td.roll(x, 1, axis=turn % 2), np.roll(right, 1, turn % 2)
        x, right = x + turn, right + np.float32(turn)
    np.testing.assert_array_equal(x.numpy(), right)
    assert len(kernels) < 20
