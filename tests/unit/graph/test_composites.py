"""Functions that are one node until they are planned."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.recent_cache import RecentCache
from treadle.graph import composites
from treadle.graph.node import COMPOSITE
from treadle.runtime import counters
from treadle.tensor.composites import as_one_node

F = td.nn.functional


@as_one_node
def scaled(x, factor=2.0):
    return x * factor + td.sum(x, axis=-1, keepdims=True)


@pytest.fixture
def expanded(monkeypatch):
    """The names of the composite nodes that were expanded."""
    names = []
    real = composites.expand

    def expand(node):
        names.append(node.detail.name)
        real(node)

    from treadle.graph import schedule

    monkeypatch.setattr(schedule, "expand", expand)
    return names


def test_a_call_is_one_node_and_expanded_once(expanded):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for turn in range(5):
        y = scaled(td.asarray(x + turn, device="cpu"))
        assert y._node.op == COMPOSITE
        assert len(y._node.sources) == 1
        expected = (x + turn) * 2 + (x + turn).sum(1, keepdims=True)
        np.testing.assert_array_equal(y.numpy(), expected)
    assert expanded == ["add"]


def test_other_numbers_shapes_and_dtypes_are_other_composites():
    for shape in ((2, 3), (1, 1), (4, 0), (5,)):
        for dtype in (np.float32, np.float64, np.int32):
            for factor in (2, 3, True, -0.0, 0.0, 0.5):
                x = np.ones(shape, dtype) * 3
                found = scaled(td.asarray(x, device="cpu"), factor).numpy()
                expected = x * factor + x.sum(-1, keepdims=True)
                np.testing.assert_array_equal(found, expected)
    negative = F.softplus(td.zeros(2, device="cpu") - 3, beta=2.0).numpy()
    np.testing.assert_allclose(negative, np.log1p(np.exp(-6)) / 2, rtol=1e-6)


def test_results_are_materialized_inside_and_outside():
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
    w = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)
    expected = None
    for _ in range(3):  # planned, then from the recipe
        a, b = td.asarray(x, device="cpu"), td.asarray(w, device="cpu")
        h = F.layer_norm(a, (6,))
        y = F.softmax(F.linear(h, b), axis=-1)
        found = td.sum(y * y, axis=0).numpy(), h.numpy(), y.numpy()
        n = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        e = np.exp(n @ w.T)
        s = e / e.sum(1, keepdims=True)
        expected = (s * s).sum(0), n, s
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_views_writes_and_gradients_of_what_is_composite():
    x = td.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), device="cpu")
    for _ in range(2):
        y = F.gelu(x)
        part = y[1:, ::2]
        y[0] = 7
        assert y.numpy()[0].tolist() == [7] * 4
        np.testing.assert_array_equal(part.numpy(), F.gelu(x).numpy()[1:, ::2])
    pending = F.silu(x)
    x += 1  # the composite reads what was there before
    np.testing.assert_allclose(pending.numpy(), F.silu(x - 1).numpy(), rtol=1e-5, atol=1e-6)

    def loss(v):
        return td.sum(F.layer_norm(F.gelu(v), (4,)) ** 3)

    value = td.asarray(np.linspace(-1, 1, 4, dtype=np.float64), device="cpu")
    assert td.autograd.gradcheck(loss, value.requires_grad_())


def test_without_gradients_and_within_vmap():
    x = td.ones((2, 3), device="cpu").requires_grad_()
    with td.no_grad():
        y = scaled(x)
    assert y._node.op == COMPOSITE
    assert y.numpy().tolist() == [[5.0] * 3] * 2
    assert not y.requires_grad
    assert scaled(x).requires_grad
    rows = td.vmap(scaled)(td.ones((2, 3), device="cpu"))
    assert rows.numpy().tolist() == [[5.0] * 3] * 2


def test_what_is_not_known_is_called():
    x = td.ones(3, device="cpu")
    assert scaled(x, td.asarray(2.0, device="cpu")).tolist() == [5.0] * 3
    assert scaled(x, np.float32(2)).tolist() == [5.0] * 3
    assert scaled(np.ones(3, np.float32)).tolist() == [5.0] * 3
    with pytest.raises(TypeError):
        scaled(x, other=1)


def test_explanations_show_what_is_inside():
    text = str(td.explain(F.softmax(td.ones((3, 4), device="cpu"))))
    assert "exp" in text
    assert "1 kernel" in text


def test_sizes_that_change_inside():
    rng = np.random.default_rng(0)
    for n in (3, 5, 8, 2, 1, 0, 31, 64, 7):
        x = rng.standard_normal((n, 6)).astype(np.float32)
        found = F.softmax(td.asarray(x, device="cpu") * 2, axis=0).numpy()
        e = np.exp(x * 2)
        np.testing.assert_allclose(found, e / e.sum(0), rtol=1e-5)


def plans_of(run, *calls):
    """The plans that each call of a function adds."""
    found = []
    for call in calls:
        before = counters.counts()
        run(call)
        found.append((counters.counts() - before).plans)
    return found


def test_numbers_inside_are_no_part_of_a_plan():
    x = np.linspace(-2, 2, 5, dtype=np.float32)

    def run(alpha):
        found = F.elu(td.asarray(x, device="cpu") * 3, alpha).numpy()
        np.testing.assert_allclose(
            found, np.where(x > 0, x * 3, np.expm1(x * 3) * alpha), rtol=1e-5
        )

    assert plans_of(run, 0.25, 0.5, -0.75, 1e-3, 0.25) == [1, 0, 0, 0, 0]


def test_numbers_inside_that_equal_others_are_told_apart():
    x = np.asarray([-1.0, 2.0], np.float32)
    expected = np.where(x > 0, x, np.expm1(x) * 0.5)

    def run(factor):
        found = (F.elu(td.asarray(x, device="cpu"), 0.5) * factor).numpy()
        np.testing.assert_allclose(found, expected * factor, rtol=1e-6)

    assert plans_of(run, 0.5, 3.0, 0.5, 1.25) == [1, 1, 0, 0]

    def both(pair):
        one, other = (F.elu(td.asarray(x, device="cpu"), alpha) for alpha in pair)
        found = (one * other).numpy()
        expected = [np.where(x > 0, x, np.expm1(x) * alpha) for alpha in pair]
        np.testing.assert_allclose(found, expected[0] * expected[1], rtol=1e-5)

    assert plans_of(both, (2.0, 2.0), (2.0, 3.0), (4.0, 4.0), (5.0, 2.0)) == [1, 1, 0, 0]


def test_numbers_and_sizes_that_change_together():
    rng = np.random.default_rng(1)

    def run(n):
        x = rng.standard_normal((n, 6)).astype(np.float32)
        y = scaled(td.asarray(x, device="cpu"), 1.0 + n)
        np.testing.assert_allclose(
            y.numpy(), x * (1.0 + n) + x.sum(1, keepdims=True), rtol=1e-5, atol=1e-5
        )

    assert plans_of(run, 5, 6, 7, 19, 12, 5)[2:] == [0, 0, 0, 0]


def test_other_structures_are_let_go_of(monkeypatch):
    monkeypatch.setattr(composites, "_keys", RecentCache(2))
    x = np.asarray([[1.0, -2.0]], np.float32)
    for _ in range(2):
        for axes in range(1, 6):
            shape = (1,) * axes + (2,)
            found = scaled(td.asarray(x.reshape(shape), device="cpu")).numpy()
            np.testing.assert_allclose(found, x.reshape(shape) * 2 - 1, rtol=1e-6)
    assert len(composites._keys) <= 4
