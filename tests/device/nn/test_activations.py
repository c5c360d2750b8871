"""Activations, gates, dropout and distances of `td.nn.functional`, beside PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

ENDS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, -0.5, 100.0, -100.0, 3.0, -3.0, 6.0]
# A function of td.nn.functional, and what it takes behind the input.
OF_ELEMENTS = [
    ("relu",), ("relu6",), ("hardtanh",), ("hardtanh", -0.25, 1.5), ("leaky_relu", 0.2),
    ("rrelu",), ("rrelu", 0.1, 0.2), ("threshold", 0.5, 20.0), ("elu", 1.5), ("celu", 1.5),
    ("selu",), ("gelu",), ("silu",), ("mish",), ("softplus", 2.0, 5.0), ("logsigmoid",),
    ("softsign",), ("hardsigmoid",), ("hardswish",), ("hardshrink",), ("hardshrink", 0.2),
    ("softshrink",), ("softshrink", 0.2), ("tanhshrink",),
]  # fmt: skip
OF_ROWS = [
    ("glu",), ("glu", 0), ("softmin", 1), ("normalize",), ("normalize", 1.0, 0),
    ("normalize", 3.0), ("normalize", math.inf), ("normalize", 0.0),
]  # fmt: skip
OF_PAIRS = [
    ("cosine_similarity",), ("cosine_similarity", 0), ("pairwise_distance",),
    ("pairwise_distance", 1.0), ("pairwise_distance", 3.0, 0.1, True),
    ("pairwise_distance", math.inf),
]  # fmt: skip
IN_PLACE = [
    ("relu_",), ("elu_", 0.5), ("celu_", 0.5), ("selu_",), ("hardtanh_",), ("leaky_relu_", 0.1),
    ("rrelu_",), ("threshold_", 0.1, 3.0),
]  # fmt: skip


@pytest.fixture
def on_cpu():
    """For compositions of what other tests compute on every device."""
    with td.use_device(td.device("cpu")):
        yield


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32) * 2


def same(found, wanted, tolerance=4e-6):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(
        found.numpy().astype(np.float64), wanted.numpy(), tolerance, tolerance
    )


if torch is not None:

    @pytest.mark.parametrize("case", OF_ELEMENTS, ids=str)
    def test_elements(on_cpu, rng, case):
        name, *options = case
        x = np.concatenate([numbers(rng, 39).ravel(), np.asarray(ENDS, np.float32)])
        wanted = getattr(torch.nn.functional, name)(torch.asarray(x).double(), *options)
        same(getattr(F, name)(td.asarray(x), *options), wanted)

    @pytest.mark.parametrize("case", OF_ROWS, ids=str)
    def test_rows(on_cpu, rng, case):
        name, *options = case
        x = numbers(rng, 6, 4, 10)
        wanted = getattr(torch.nn.functional, name)(torch.asarray(x).double(), *options)
        same(getattr(F, name)(td.asarray(x), *options), wanted)

    @pytest.mark.parametrize("case", OF_PAIRS, ids=str)
    def test_pairs(on_cpu, rng, case):
        name, *options = case
        a, b = numbers(rng, 5, 1, 7), numbers(rng, 3, 7)
        a[0] = 0
        one, other = (torch.asarray(x).double() for x in (a, b))
        wanted = getattr(torch.nn.functional, name)(one, other, *options)
        same(getattr(F, name)(td.asarray(a), td.asarray(b), *options), wanted)

    def test_all_in_one_kernel(device, rng):
        x = numbers(rng, 7, 30)
        there, wide = td.asarray(x), torch.asarray(x).double()
        found = sum(getattr(F, name)(there, *options) for name, *options in OF_ELEMENTS)
        wanted = sum(getattr(torch.nn.functional, n)(wide, *options) for n, *options in OF_ELEMENTS)
        same(found, wanted, 2e-5)

    def test_in_place(device, rng):
        data = numbers(rng, 5, 8)
        x, wanted = td.asarray(data), torch.asarray(data.copy())
        part = x[:, 1::3]
        for name, *options in IN_PLACE:
            assert getattr(F, name)(part, *options) is part
            getattr(torch.nn.functional, name)(wanted[:, 1::3], *options)
        same(x, wanted)

    def test_prelu_and_pdist(on_cpu, rng):
        x, weight = numbers(rng, 3, 5, 2), numbers(rng, 5)
        for slopes in (weight, weight[:1]):
            wanted = torch.nn.functional.prelu(torch.asarray(x), torch.asarray(slopes))
            same(F.prelu(td.asarray(x), td.asarray(slopes)), wanted)
        rows = torch.asarray(x[:, :, 0])
        for p in (2.0, 1.0, math.inf, 0.0):
            same(F.pdist(td.asarray(x)[:, :, 0], p), torch.nn.functional.pdist(rows, p))

    def test_narrow_floats(on_cpu, rng):
        for dtype in ("float16", "bfloat16"):
            x = torch.asarray(numbers(rng, 33)).to(getattr(torch, dtype))
            for name in ("mish", "softshrink"):
                found = getattr(F, name)(td.asarray(x.float().numpy()).to(dtype))
                assert found.dtype == dtype
                wanted = getattr(torch.nn.functional, name)(x.double())
                same(found.to(td.float32), wanted, 2 ** (-7 if dtype == "bfloat16" else -10))


def test_gates(on_cpu, rng):
    x = td.asarray(numbers(rng, 3, 8))
    a, b = x[:, :4], x[:, 4:]
    for found, wanted in (
        (F.swiglu(x), F.silu(a) * b),
        (F.geglu(x, dim=1), F.gelu(a) * b),
        (F.geglu(x, approximate="tanh"), F.gelu(a, "tanh") * b),
        (F.reglu(x), F.relu(a) * b),
    ):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-5, 1e-6)


def test_integers(on_cpu):
    x = td.asarray([-3, 4, 9], dtype=td.int32)
    assert F.relu6(x).tolist() == [0, 4, 6]
    assert F.hardtanh(x, -2, 5).tolist() == [-2, 4, 5]
    assert F.hardtanh(x).tolist() == [-1, 1, 1]
    assert F.threshold(x, 4, 0).tolist() == [0, 0, 9]
    assert F.mish(x).dtype == td.float32
    assert F.relu(x, inplace=True) is x
    assert x.tolist() == [0, 4, 9]


# --- dropout -------------------------------------------------------------------------------------

KINDS = {
    "dropout": ((9, 8, 7), (9, 8, 7)),
    "dropout1d": ((40, 30, 3), (40, 30, 1)),
    "dropout2d": ((40, 30, 3, 2), (40, 30, 1, 1)),
    "dropout3d": ((200, 2, 3, 2), (200, 1, 1, 1)),
    "alpha_dropout": ((9, 8, 7), (9, 8, 7)),
    "feature_alpha_dropout": ((40, 30, 3), (40, 30, 1)),
}


@pytest.mark.parametrize("name", KINDS)
def test_dropout(on_cpu, name):
    check_dropout(name)


def test_dropout_of_channels(device):
    check_dropout("feature_alpha_dropout")


def check_dropout(name):
    shape, masks = KINDS[name]
    function, p, seed = getattr(F, name), 0.3, 5
    x = td.ones(shape) * 2
    found = function(x, p, True, generator=td.Generator(seed)).numpy()
    kept = td.random.bernoulli(masks, 1 - p, generator=td.Generator(seed)).numpy()
    assert 0.6 < kept.mean() < 0.8, "as likely as it should be"
    if "alpha" in name:
        least = -1.7580993408473766
        a = 1 / math.sqrt((p * least**2 + 1) * (1 - p))
        wanted = a * np.where(kept, 2.0, least) - a * least * p
    else:
        wanted = np.where(kept, 2 / (1 - p), 0.0)
    np.testing.assert_allclose(found, np.broadcast_to(wanted, shape), 1e-5, 1e-5)
    assert function(x, p, False) is x
    assert not function(x, 1.0, True).numpy().any()
    assert function(x, p, True, True) is x
    assert set(np.unique(x.numpy())) == set(np.unique(found))


def test_random_choices(on_cpu):
    logits = td.asarray([0.0, 1.0, 2.0]) + td.zeros((4000, 1))
    hard = F.gumbel_softmax(logits, hard=True, generator=td.Generator(3)).numpy()
    shares = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    np.testing.assert_allclose(hard.mean(axis=0), shares, atol=0.03)
    np.testing.assert_array_equal(hard.sum(axis=1), 1)
    soft = F.gumbel_softmax(logits, 0.5, generator=td.Generator(3)).numpy()
    np.testing.assert_array_equal(soft.argmax(axis=1), hard.argmax(axis=1))
    np.testing.assert_allclose(soft.sum(axis=1), 1, rtol=1e-5)
    slopes = F.rrelu(td.full(1000, -1.0), 0.1, 0.4, True, generator=td.Generator(1)).numpy()
    assert -0.4 < slopes.min() < -0.39
    assert -0.11 < slopes.max() <= -0.1


def test_refusals():
    x = td.zeros((3, 5), device="cpu")
    cases = {
        r"axis 1 of shape \(3, 5\) has an odd extent": lambda: F.glu(x),
        r"weight of shape \(3,\) does not fit an input of shape \(3, 5\)": lambda: F.prelu(
            x, td.ones(3, device="cpu")
        ),
        "p is a probability, from 0 to 1, not 1.5": lambda: F.dropout(x, 1.5),
        r"one of shape \(5,\) has 1": lambda: F.dropout2d(x[0]),
        "lambd must not be negative": lambda: F.softshrink(x, -1.0),
        "min_val=2.0 is greater than max_val=1.0": lambda: F.hardtanh(x, 2.0, 1.0),
        r"the rows of a matrix, not a tensor of shape \(5,\)": lambda: F.pdist(x[0]),
        r"shapes \(3, 5\) and \(3, 4\) do not broadcast": lambda: F.cosine_similarity(x, x[:, 1:]),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(td.errors.DtypeError, match=r"the result is float32.*int32: leave inplace"):
        F.silu(td.ones(3, dtype=td.int32, device="cpu"), inplace=True)
    with pytest.raises(TypeError, match="inplace=True writes a tensor, not list"):
        F.relu([1.0], inplace=True)
