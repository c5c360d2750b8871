"""Initial values: how they are distributed, and what is refused."""

import math

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import ShapeError
from treadle.nn import init


@pytest.fixture(autouse=True)
def seeded():
    td.manual_seed(5)


def weight(*shape):
    return td.nn.Parameter(td.empty(shape, device="cpu"))


STDS = [
    (init.xavier_uniform_, {"gain": 2.0}, 2 * math.sqrt(2 / (90 * 9 + 60 * 9))),
    (init.xavier_normal_, {}, math.sqrt(2 / (90 * 9 + 60 * 9))),
    (init.kaiming_uniform_, {"nonlinearity": "relu"}, math.sqrt(2 / (60 * 9))),
    (init.kaiming_normal_, {"mode": "fan_out", "a": 1.0}, math.sqrt(1 / (90 * 9))),
    (init.normal_, {"std": 3.0}, 3.0),
    (init.trunc_normal_, {"std": 2.0, "a": -100, "b": 100}, 2.0),
    (init.trunc_normal_, {"a": -1.0, "b": 1.0}, 0.5396),
    (init.uniform_, {"a": -3.0, "b": 3.0}, math.sqrt(3)),
]


@pytest.mark.parametrize(("function", "options", "std"), STDS)
def test_how_values_are_spread(function, options, std):
    x = weight(90, 60, 3, 3)
    assert function(x, **options) is x
    assert x.requires_grad
    values = x.numpy()
    assert abs(values.mean()) < 5 * std / math.sqrt(values.size)
    assert abs(values.std() - std) < 0.02 * std
    if "a" in options and "b" in options:
        assert options["a"] <= values.min() < values.max() <= options["b"]


def test_truncated_values_at_an_end():
    values = init.trunc_normal_(weight(4000), mean=1.0, std=0.5, a=2.0, b=2.5).numpy()
    assert values.min() >= 2.0
    assert values.max() <= 2.5
    assert abs(values.mean() - 2.1654) < 0.01  # 1 + 0.5 (f(2) - f(3)) / (F(3) - F(2))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2), (0, 3)])
def test_orthogonal_rows_or_columns(shape):
    matrix = init.orthogonal_(weight(*shape), gain=2.0).numpy()
    matrix = matrix.reshape(shape[0], math.prod(shape[1:]))
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_matrices():
    assert init.eye_(weight(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.ones_(weight(2)).tolist() == [1, 1]
    assert init.zeros_(init.constant_(weight(2), 3.5)).tolist() == [0, 0]
    zeros = (init.sparse_(weight(10, 4), 0.25).numpy() == 0).sum(axis=0)
    assert zeros.tolist() == [3, 3, 3, 3]
    kernel = init.dirac_(weight(4, 2, 3), groups=2)
    x = td.random.normal((1, 4, 6), device="cpu")
    assert td.nn.functional.conv1d(x, kernel, padding=1, groups=2).tolist() == x.tolist()


def test_values_come_from_a_generator(device):
    x, y = (
        init.normal_(td.empty(8, device=device), generator=td.Generator(3)).tolist()
        for _ in range(2)
    )
    assert x == y
    td.manual_seed(4)
    first = td.nn.Linear(3, 2, device=device).weight.tolist()
    td.manual_seed(4)
    assert td.nn.Linear(3, 2, device=device).weight.tolist() == first


def test_gains():
    assert init.calculate_gain("leaky_relu", 1.0) == 1.0
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match="one of linear"):
        init.calculate_gain("gelu")


def test_what_is_refused():
    for function in (init.xavier_normal_, init.kaiming_normal_, init.orthogonal_, init.eye_):
        with pytest.raises(ShapeError, match=r"\(3,\)"):
            function(weight(3))
    with pytest.raises(ShapeError, match="convolution"):
        init.dirac_(weight(3, 3))
    with pytest.raises(ValueError, match="fan_in"):
        init.kaiming_normal_(weight(3, 3), mode="fan")
