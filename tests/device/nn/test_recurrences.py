"""Recurrent networks over whole sequences: as one operation the same as step by step."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.autograd import grad
from treadle.runtime import counters
from treadle.tensor.functional.recurrences import is_one_operation, recurrent, step_by_step

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
CASES = [("lstm", False), ("lstm", True), ("gru", True), ("tanh", False), ("relu", True)]


def operands(rng, device, kind, length, batch, width, dtype=np.float32, has_bias=True):
    """Products with the inputs, weight, bias and states, with gradients."""

    def drawn(*shape):
        numbers = (rng.standard_normal(shape) * 0.5).astype(dtype)
        return td.asarray(numbers, device=device).requires_grad_()

    wide = GATES[kind] * width
    states = tuple(drawn(batch, width) for _ in range(1 + (kind == "lstm")))
    bias = drawn(wide) if has_bias else None
    return drawn(length, batch, wide), states, drawn(wide, width), bias


def both(kind, reverse, inputs, states, weight, bias):
    """What both ways give: lists of tensors."""
    assert is_one_operation(kind, inputs, states, (weight, bias))
    one = recurrent(inputs, states, weight, bias, kind, reverse)
    other = step_by_step(inputs, states, weight, bias, None, kind, reverse)
    return [[out, *ends] for out, ends in (one, other)]


def of_numbers(results, rng_seed=3):
    """A number of results, to which each of them matters differently."""
    rng = np.random.default_rng(rng_seed)
    found = 0
    for each in results:
        factors = rng.standard_normal(each.shape).astype(np.float32)
        found = found + td.sum(each * td.asarray(factors, device=each.device))
    return found


@pytest.mark.parametrize(
    ("sizes", "kind", "reverse"),
    [*(((3, 4, 18), *case) for case in CASES), *(((1, 1, 1), *case) for case in CASES[::2])],
)
def test_results_and_gradients(device, rng, kind, reverse, sizes):
    inputs, states, weight, bias = operands(rng, device, kind, *sizes, has_bias=sizes[0] > 1)
    one, other = both(kind, reverse, inputs, states, weight, bias)
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(
            found.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=1e-5
        )
    with td.no_grad():
        out, ends = recurrent(inputs, states, weight, bias, kind, reverse)
    for found, expected in zip([out, *ends], other, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=2e-5, atol=1e-5)
    wanted = [each for each in (inputs, weight, bias, *states) if each is not None]
    pairs = zip(*(grad(of_numbers(each), wanted) for each in (one, other)), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("kind", "reverse"), [("lstm", False), ("gru", True)])
def test_gradients_of_gradients_and_of_the_last_states_alone(device, rng, kind, reverse):
    inputs, states, weight, bias = operands(rng, device, kind, 2, 1, 3)
    wanted = [inputs, weight, bias, *states]
    found = []
    for results in both(kind, reverse, inputs, states, weight, bias):
        first = grad(of_numbers(results[1:]), wanted, create_graph=True)
        found.append(grad(of_numbers(first, 5), wanted, allow_unused=True))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-3, atol=2e-4)


def test_each_example_and_lower_dtypes_go_step_by_step(device, rng):
    layer = td.nn.LSTM(3, 4, device=device)
    x = td.asarray(rng.standard_normal((2, 5, 1, 3)).astype(np.float32), device=device)
    rows = td.vmap(lambda each: layer(each)[0])(x)
    for row, each in zip(rows.numpy(), x, strict=True):
        np.testing.assert_allclose(row, layer(each)[0].detach().numpy(), rtol=2e-5, atol=1e-5)
    inputs, states, weight, bias = operands(rng, device, "gru", 2, 1, 3)
    assert is_one_operation("gru", inputs, states, (weight, bias))
    assert not is_one_operation("gru", inputs, states, (weight.to(td.float16), bias))
    with td.autocast(td.float16):
        assert not is_one_operation("gru", inputs, states, (weight, bias))


def test_lengths_that_change_add_no_plans(device, rng):
    layer = td.nn.LSTM(3, 8, device=device)

    def run(length):
        x = td.asarray(rng.standard_normal((length, 2, 3)).astype(np.float32), device=device)
        with td.no_grad():
            return layer(x)[0][-1].numpy()

    for length in (2, 5, 12, 9, 4):
        run(length)
    before = counters.counts()
    for length in (10, 11, 6, 13, 7):  # none is another size of the layer
        assert run(length).shape == (2, 8)
    assert (counters.counts() - before).plans == 0


def test_a_sequence_is_one_kernel_of_its_own(device):
    layer = td.nn.GRU(3, 8, device=device)
    with td.no_grad():
        out, _ = layer(td.ones((50, 2, 3), device=device))
    assert str(td.explain(out)).count(". recur:") == 1
