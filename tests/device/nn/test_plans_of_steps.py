"""Steps of training are few nodes and few plans, and add no plan when numbers and sizes change."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.graph import node as nodes
from treadle.runtime import counters

F = td.nn.functional


def made(run):
    """The nodes that a call makes."""
    first = nodes.next_serial()
    run()
    return nodes.next_serial() - first - 1


def plans(run):
    """The plans that a call makes."""
    before = counters.counts()
    run()
    return (counters.counts() - before).plans


def array(rng, device, *shape):
    return td.asarray(rng.standard_normal(shape).astype(np.float32), device=device)


# A loss of an input and a target, and how many nodes it and its gradient may make.
STEPS = {
    "linear": (lambda x, t: F.mse_loss(F.linear(x, t), t), 12),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, td.argmax(t, axis=1)), 8),
    "mse_loss": (lambda x, t: F.mse_loss(x, t), 5),
    "smooth_l1_loss": (lambda x, t: F.smooth_l1_loss(x, t), 5),
    "kl_div": (lambda x, t: F.kl_div(x, F.softmax(t, axis=-1)), 6),
    "logits": (lambda x, t: F.binary_cross_entropy_with_logits(x, td.abs(t)), 6),
    "layer_norm": (lambda x, t: td.sum(F.layer_norm(x, (4,)) * t), 9),
    "batch_norm": (lambda x, t: td.sum(F.batch_norm(x, None, None, training=True) * t), 12),
    "group_norm": (lambda x, t: td.sum(F.group_norm(x, 2) * t), 14),
    "glu": (lambda x, t: td.sum(F.glu(x) * 2.0), 11),
    "gelu": (lambda x, t: td.sum(F.gelu(x) * t), 8),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_loss_and_its_gradient_are_few_nodes(rng, name):
    loss, most = STEPS[name]
    x, target = array(rng, "cpu", 4, 4).requires_grad_(), array(rng, "cpu", 4, 4).realize()

    def step():
        x.grad = None
        loss(x, target).backward()

    step()
    assert made(step) <= most
    assert made(step) <= most


def test_numbers_that_change_add_no_plans(device, rng):
    x, target = array(rng, device, 3, 4).requires_grad_(), array(rng, device, 3, 4).realize()

    def step(number):
        x.grad = None
        y = F.dropout(F.elu(x, 1.0 + number), 0.1 + 0.1 * number)
        loss = F.huber_loss(F.leaky_relu(y, 0.01 * number), target, delta=number)
        loss = loss + F.cross_entropy(y / number, td.argmax(target, axis=1))
        loss.backward()
        return float(loss), x.grad.numpy()

    for number in (1.37, 2.71, 1.51):  # numbers that are equal by chance are planned as one
        step(number)
    for number in (1.93, 3.19, 0.53):
        assert plans(lambda number=number: step(number)) == 0


def test_batches_that_change_add_no_plans(device, rng):
    model = td.nn.Sequential(
        td.nn.Linear(4, 6, device=device), td.nn.BatchNorm1d(6, device=device), td.nn.GELU(),
        td.nn.Linear(6, 3, device=device),
    )  # fmt: skip

    def step(count):
        model.zero_grad()
        x = array(rng, device, count, 4)
        classes = td.asarray((np.arange(count) % 3).astype(np.int32), device=device)
        loss = F.cross_entropy(model(x), classes)
        loss.backward()
        return float(loss), model[0].weight.grad.numpy()

    for count in (*range(5, 13), 17, 30, 24, 19):
        step(count)
    assert sum(plans(lambda count=count: step(count)) for count in (14, 23, 21, 16)) == 0


def test_running_values_are_computed_with_what_is_read_next(device, rng):
    layers = [td.nn.BatchNorm1d(3, device=device) for _ in range(3)]
    expected = [(np.zeros(3), np.ones(3)) for _ in layers]

    def step():
        x = y = array(rng, device, 8, 3)
        seen = x.numpy().astype(np.float64)
        for number, layer in enumerate(layers):
            y = layer(y)
            mean, variance = expected[number]
            expected[number] = (
                0.9 * mean + 0.1 * seen.mean(0), 0.9 * variance + 0.1 * seen.var(0, ddof=1)
            )  # fmt: skip
            seen = (seen - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-5)
        return td.sum(y * y)

    for _ in range(4):
        step().item()
    before = counters.counts()
    loss = step()
    assert all(layer.running_mean._cell.value.array is None for layer in layers)
    loss.item()
    assert all(layer.running_mean._cell.value.array is not None for layer in layers)
    assert all(layer.num_batches_tracked._cell.value.array is not None for layer in layers)
    assert (counters.counts() - before).plans == 0
    for layer, (mean, variance) in zip(layers, expected, strict=True):
        np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-4)
        assert layer.num_batches_tracked.item() == 5


def test_running_values_do_not_keep_an_input_that_no_derivative_needs(device, rng):
    layer = td.nn.BatchNorm1d(3, device=device)
    with td.no_grad():
        layer(array(rng, device, 8, 3))
    assert layer.running_mean._cell.value.array is not None


def test_views_are_read_in_place_by_products(rng):
    device = "cpu"
    x, weight = array(rng, device, 64, 32, 64).realize(), array(rng, device, 48, 64).realize()
    wide = array(rng, device, 48, 32).realize()
    for seen, factor in (
        (x.reshape(-1, 64), weight), (x[3], weight), (x[:, 1], weight), (x.swapaxes(1, 2), wide),
    ):  # fmt: skip
        y = F.linear(seen, factor)
        assert str(td.explain(y)).startswith(str(td.explain(seen @ factor.T))[:8])
        expected = seen.numpy().astype(np.float64) @ factor.numpy().T
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-4)
    for place in (1, 5, 9):
        np.testing.assert_allclose(
            F.linear(x[place], weight).numpy(), x.numpy()[place] @ weight.numpy().T, atol=1e-4
        )


def test_attention_of_one_query_and_any_length_is_one_plan(device, rng):
    query = array(rng, device, 1, 2, 1, 4).realize()

    def run(length):
        keys, values = (rng.standard_normal((1, 2, length, 4)).astype(np.float32) for _ in range(2))
        found = F.scaled_dot_product_attention(
            query * 2, td.asarray(keys, device=device), td.asarray(values, device=device)
        )
        scores = np.exp(query.numpy() @ keys.swapaxes(-1, -2))  # 2 / sqrt(4) is 1
        expected = scores / scores.sum(-1, keepdims=True) @ values
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)

    for length in (3, 5):
        run(length)
    assert sum(plans(lambda length=length: run(length)) for length in (1, 9, 14, 2, 30)) == 0
