"""`td.nn.functional`: PyTorch's functions, against their formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


CASES = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "steep": (lambda x: F.leaky_relu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * x)),
    "elu": (lambda x: F.elu(x, 1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "gelu": (F.gelu, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2)))),
    "gelu-tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "sigmoid": (F.sigmoid, sigmoid),
    "tanh": (F.tanh, np.tanh),
    "softplus": (F.softplus, lambda x: np.log1p(np.exp(x))),
    "softplus-2": (lambda x: F.softplus(x, beta=2.0), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "softmax": (lambda x: F.softmax(x, dim=1), lambda x: softmax(x, 1)),
    "softmax-0": (lambda x: F.softmax(x, axis=0), lambda x: softmax(x, 0)),
    "log_softmax": (F.log_softmax, lambda x: np.log(softmax(x, -1))),
}
TOLERANCES = {"float32": 2e-6, "float16": 1e-3}


@pytest.mark.parametrize("case", CASES)
def test_values(device, rng, case):
    function, formula = CASES[case]
    for dtype, tolerance in TOLERANCES.items():
        x = (rng.standard_normal((5, 13)) * 3).astype(dtype)
        found = function(td.asarray(x))
        assert found.dtype == dtype
        wanted = formula(x.astype(np.float64))
        np.testing.assert_allclose(found.numpy(), wanted, tolerance, tolerance)


def test_gelu_keeps_its_precision(device, rng):
    """Far below 0, where values are small, and their gradients too."""
    x = np.concatenate([rng.uniform(-12.5, 6, 500), [-3.9, -0.7, 0.0, 0.7]]).astype(np.float32)
    wide = x.astype(np.float64)
    share = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in wide])
    density = np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    t = td.asarray(x)
    t.requires_grad = True
    found = F.gelu(t)
    found.sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), wide * share, 1e-6)
    slope = share + wide * density
    level = (np.abs(wide + 0.75) < 0.5) * 1e-6  # the gradient crosses 0 there
    assert (np.abs(t.grad.numpy() - slope) <= level + 2e-6 * np.abs(slope)).all()
    y = wide + 0.044715 * wide**3
    near = wide > -8  # below, the rounding of y costs more
    expected = wide / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * y))
    np.testing.assert_allclose(F.gelu(t, "tanh").detach().numpy()[near], expected[near], 1e-5)


def test_layer_norm(device, rng):
    x = rng.standard_normal((3, 4, 5)).astype(np.float32) * 2 + 7
    weight, bias = rng.standard_normal((2, 4, 5)).astype(np.float32)
    wide = x.astype(np.float64)
    for shape, axes, extra in ((5, (2,), ()), ((4, 5), (1, 2), (weight, bias))):
        found = F.layer_norm(td.asarray(x), shape, *map(td.asarray, extra))
        spread = wide.var(axis=axes, keepdims=True) + 1e-5
        wanted = (wide - wide.mean(axis=axes, keepdims=True)) / np.sqrt(spread)
        if extra:
            wanted = wanted * weight + bias
        np.testing.assert_allclose(found.numpy(), wanted, 1e-4, 1e-5)
    with pytest.raises(td.errors.ShapeError, match=r"normalized_shape is \(4,\)"):
        F.layer_norm(td.asarray(x), 4)
    with pytest.raises(td.errors.ShapeError, match=r"weight has shape \(4, 5\), not \(5,\)"):
        F.layer_norm(td.asarray(x), 5, td.asarray(weight))


def test_ends_of_the_range(device):
    x = td.asarray([-math.inf, -1e4, -0.0, 50.0, 1e4, math.inf])
    assert F.softplus(x).tolist() == [0.0, 0.0, pytest.approx(math.log(2)), 50.0, 1e4, math.inf]
    assert F.relu(x).tolist() == [0.0, 0.0, 0.0, 50.0, 1e4, math.inf]
    assert F.elu(x).tolist() == [-1.0, -1.0, 0.0, 50.0, 1e4, math.inf]
    assert F.softmax(td.asarray([1e30, 0.0, -1e30])).tolist() == [1.0, 0.0, 0.0]
    assert F.log_softmax(td.asarray([0.0, 200.0])).tolist() == [-200.0, 0.0]
    assert F.relu(td.asarray([-3, 4])).tolist() == [0, 4]
    assert F.silu(td.asarray([0, 1], dtype=td.int32)).dtype == td.float32
    with pytest.raises(ValueError, match='approximate is "none" or "tanh"'):
        F.gelu(x, approximate="erf")


def test_methods(device, rng):
    x = td.asarray(rng.standard_normal((3, 5)).astype(np.float32))
    np.testing.assert_array_equal(x.relu().numpy(), F.relu(x).numpy())
    np.testing.assert_array_equal(x.softmax(0).numpy(), F.softmax(x, dim=0).numpy())
    np.testing.assert_array_equal(x.softmax(dim=0).numpy(), F.softmax(x, dim=0).numpy())
    np.testing.assert_array_equal(x.gelu("tanh").numpy(), F.gelu(x, "tanh").numpy())
    np.testing.assert_array_equal(x.where(x > 0, 0).numpy(), F.relu(x).numpy())
    np.testing.assert_array_equal(x.sigmoid().exp().numpy(), td.exp(F.sigmoid(x)).numpy())


def test_a_row_function_is_one_kernel():
    x = td.zeros((6, 9), device="cpu")
    assert td.explain(F.softmax(F.gelu(x), axis=1)).splitlines()[0].startswith("1 kernel")
    assert F.swish is F.silu
    assert td.nn.functional.relu is F.relu
