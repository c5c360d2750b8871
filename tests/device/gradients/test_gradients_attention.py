"""Gradients of attention: by slices of scores, and composed of operations."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.kernels import attend_products, blas
from treadle.kernels.launching import new

attention = td.nn.functional.scaled_dot_product_attention

try:
    import torch
except ImportError:  # pragma: no cover
    torch = None


def test_that_gradients_are_those_of_differences(rng):
    q, k, v = rng.standard_normal((3, 3, 2))
    mask = np.where(rng.random((3, 3)) < 0.3, -np.inf, 0.5)
    mask[:, 0] = 0.1

    def function(q, k, v):
        return attention(q, k, v, td.asarray(mask, device="cpu"))

    check_gradients(function, q, k, v)


def test_that_dropout_leaves_out_the_same_weights(rng):
    q, k, v = rng.standard_normal((3, 2, 3, 2))

    def function(q, k, v):
        return attention(
            q, k, v, dropout_p=0.4, is_causal=True, window=2, generator=td.Generator(1)
        )

    check_gradients(function, q, k, v, second=False)


def _gradients(arrays, weights, make, function):
    leaves = [make(each).requires_grad_() for each in arrays]
    y = function(*leaves)
    (y * make(weights)).sum().backward()
    return [y.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_that_slices_of_scores_add_up(device, dtype, rng, monkeypatch):
    """Few heads, and few queries of one, at a time."""
    q, k, v = rng.standard_normal((2, 4, 40, 4)), *rng.standard_normal((2, 2, 2, 40, 4))
    weights = rng.standard_normal(q.shape)
    options = {"enable_gqa": True, "is_causal": True}

    def function(q, k, v):
        return attention(q, k, v, window=20, **options)

    exact = _gradients((q, k, v), weights, lambda x: td.asarray(x, device="cpu"), function)
    for most in (1 << 12, 1 << 15)[: 1 if dtype == "float16" else 2]:
        monkeypatch.setattr(attend_products, "_CACHED", most)
        monkeypatch.setattr(attend_products, "_MOST_BYTES", most)
        found = _gradients(
            (q, k, v), weights,
            lambda x: td.asarray(td.asarray(x, device="cpu").to(dtype), device=device), function,
        )  # fmt: skip
        for mine, theirs in zip(found, exact, strict=True):
            close = 1e-5 if dtype == "float32" else 2e-2
            assert np.abs(mine.numpy() - theirs.numpy()).max() < close * 10


def test_that_scores_in_memory_give_the_same_result(device, rng, monkeypatch):
    """The forward pass by products, as on cards where these are much faster."""
    q, k, v = (
        td.asarray(x.astype(np.float32), device=device).requires_grad_()
        for x in rng.standard_normal((3, 2, 3, 19, 5))
    )
    mask = td.asarray(np.arange(19) > 4, device=device)
    for options in ({"is_causal": True}, {"attn_mask": mask, "dropout_p": 0.3}):
        expected = attention(q, k, v, generator=td.Generator(2), **options).numpy()
        monkeypatch.setattr("treadle.tensor.functional.attention.pays", lambda *_: True)
        found = attention(q, k, v, generator=td.Generator(2), **options)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
        monkeypatch.undo()


def test_that_halves_are_multiplied_as_halves(rng, monkeypatch):
    """As on cards whose library multiplies them in float32, which NumPy stands for."""

    def filling(device, dtype, product, result):
        ours = attend_products.Product(*product)
        multiply = blas.filling(td.float32, ours)

        def fill(x, y, out):
            wider = []
            for each in (x, y):
                copy = new(each, td.float32, each.size)
                _values(copy)[:] = _values(each)
                wider.append(copy)
            into = new(out, td.float32, out.size)
            multiply(*wider, into)
            _values(out)[:] = _values(into)

        return fill

    monkeypatch.setattr(attend_products, "filling", filling)
    monkeypatch.setattr("treadle.autograd.rules.attention.scored_in", lambda _, dtype: dtype)
    monkeypatch.setattr("treadle.tensor.functional.attention.pays", lambda *_: True)
    arrays = rng.standard_normal((3, 2, 3, 20, 4))
    weights = rng.standard_normal((2, 3, 20, 4))
    found = [
        _gradients(
            arrays, weights, lambda x, dtype=dtype: td.asarray(x, device="cpu").to(dtype),
            lambda q, k, v: attention(q, k, v, is_causal=True),
        )
        for dtype in (td.float16, td.float64)
    ]  # fmt: skip
    for mine, theirs in zip(*found, strict=True):
        assert np.abs(mine.numpy() - theirs.numpy()).max() < 3e-2


def _values(array):
    array.device.synchronize()
    item = np.dtype(array.dtype.numpy)
    memory = array.buffer.host_bytes()
    return np.frombuffer(memory, item, array.size, array.offset * item.itemsize)


if torch is not None:
    _SHAPES = [
        ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), {}),
        ((2, 3, 5, 4), (1, 3, 7, 4), (7, 4), {}),
        ((2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6), {"is_causal": True}),
        ((2, 6, 5, 4), (2, 2, 5, 4), (2, 2, 5, 6), {"is_causal": True, "enable_gqa": True}),
        ((2, 3, 5, 4), (2, 3, 0, 4), (2, 3, 0, 6), {}),
    ]

    @pytest.mark.parametrize(("query", "key", "value", "options"), _SHAPES)
    def test_that_gradients_are_those_of_pytorch(query, key, value, options, rng):
        _compare([rng.standard_normal(shape) for shape in (query, key, value)], (), options)

    def test_that_strides_of_heads_are_followed(rng):
        q, k, v = rng.standard_normal((3, 2, 5, 3, 4))
        _compare((q, k, v), (), {"is_causal": True}, lambda x: x.swapaxes(1, 2))

    def test_that_masks_have_the_gradients_of_pytorch(rng):
        q, k, v = rng.standard_normal((3, 2, 3, 5, 4))
        seen = rng.random((5, 5)) < 0.5
        seen[2] = False  # a query that sees nothing
        _compare((q, k, v), (), {"attn_mask": seen})
        _compare((q, k, v), (rng.standard_normal((2, 1, 5, 5)),), {})

    def _compare(arrays, masks, options, turned=lambda x: x):
        found = []
        for make, function in (
            (lambda x: td.asarray(x, device="cpu"), attention),
            (torch.tensor, torch.nn.functional.scaled_dot_product_attention),
        ):
            given = {
                key: make(value) if isinstance(value, np.ndarray) else value
                for key, value in options.items()
            }

            def attended(q, k, v, *mask, function=function, given=given):
                return function(*map(turned, (q, k, v)), *mask, **given)

            shape = (*turned(arrays[0]).shape[:-1], arrays[2].shape[-1])
            weights = np.random.default_rng(5).standard_normal(shape)
            found.append(_gradients((*arrays, *masks), weights, make, attended))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_no_keys(device, masked):
    """Results are zeros, and nothing depends on anything."""
    shapes = [(1, 2, 4, 8), (1, 2, 0, 8), (1, 2, 0, 5), *([(4, 1)] if masked else [])]
    operands = [td.ones(shape, device=device).requires_grad_() for shape in shapes]
    out = td.nn.functional.scaled_dot_product_attention(*operands)
    assert out.shape == (1, 2, 4, 5)
    out.sum().backward()
    for each in operands:
        np.testing.assert_array_equal(each.grad.numpy(), np.zeros(each.shape, np.float32))
