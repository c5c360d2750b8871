"""Draws by rejection and their kin: their laws beside exact probabilities, special parameters.

The seeds are fixed, so the laws hold or do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from treadle.runtime import settings
from treadle.tensor.dtypes import default_integer, supports

N = 20_000
erf = np.vectorize(math.erf)


def generator(seed=2026):
    return td.Generator(seed, position=(1 << 40) + 5)


def wide(device):
    return td.float64 if supports(device, td.float64) else td.float32


def log_factorial(k):
    return np.vectorize(math.lgamma)(np.asarray(k, np.float64) + 1)


def poisson_law(k, rate):
    return np.exp(k * np.log(rate) - rate - log_factorial(k))


def binomial_law(given, n, p):
    k = np.minimum(given, n)
    ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k)
    return np.where(given > n, 0.0, np.exp(ways + k * np.log(p) + (n - k) * np.log1p(-p)))


def check_counts(found, law):
    """Pearson's test, with counts of at least 10 expected in a class; 1 in a million."""
    found = np.asarray(found, np.int64)
    values = np.arange(max(found.min() - 50, 0), found.max() + 51)
    expected = law(values) * found.size
    running = np.cumsum(expected)
    classes = np.minimum((running / max(10, found.size / 60)).astype(int), 60)
    sizes = np.bincount(classes, expected, minlength=61)
    counts = np.bincount(classes[found - values[0]], minlength=61)
    used = sizes > 0
    assert abs(sizes.sum() - found.size) < 1
    assert not counts[~used].any()
    few = used & (sizes < 5)
    assert counts[few].sum() < sizes[few].sum() + 30
    used &= ~few
    statistic = ((counts - sizes)[used] ** 2 / sizes[used]).sum()
    freedom = used.sum() - 1
    assert statistic < freedom + 8 * math.sqrt(2 * freedom) + 10, (statistic, freedom)


def check_share(found, law):
    """Kolmogorov and Smirnov's test: the greatest distance of the shares below; 1 in a million."""
    x = np.sort(np.asarray(found, np.float64).reshape(-1))
    below = law(x)
    steps = np.arange(x.size + 1) / x.size
    apart = max((steps[1:] - below).max(), (below - steps[:-1]).max())
    assert apart * math.sqrt(x.size) < 2.7, apart


def test_poisson(device):
    rates = [0.1, 3.0, 9.9, 10.0, 1000.0]
    given = td.asarray(rates).reshape(5, 1)
    found = td.random.poisson((5, N), given, generator=generator())
    assert found.dtype == default_integer(device)
    for row, rate in zip(found.numpy(), rates, strict=True):
        check_counts(row, lambda k, rate=rate: poisson_law(k, rate))


def test_binomial(device):
    trials = np.array([1, 20, 1000, 1000, 50, 3000], np.int32)
    chances = np.array([0.3, 0.5, 0.005, 0.995, 0.75, 0.3])
    given = td.asarray(trials).reshape(6, 1), td.asarray(chances.astype(np.float32)).reshape(6, 1)
    found = td.random.binomial((6, N), *given, generator=generator()).numpy()
    assert (found >= 0).all()
    assert (found <= trials[:, None]).all()
    for row, n, p in zip(found, trials, chances, strict=True):
        check_counts(row, lambda k, n=n, p=p: binomial_law(k, n, p))


def test_counts_beyond_what_floats_hold(device):
    """Odd and even numbers are as likely above 2**24, where float32 has only even ones."""
    dtype = default_integer(device)
    for found, mean, deviation in (
        (td.random.poisson(N, 1e8, dtype=dtype, generator=generator()), 1e8, 1e4),
        (td.random.binomial(N, 10**9, 0.9, dtype=dtype, generator=generator()), 9e8, 9486.8),
    ):
        x = found.numpy().astype(np.float64)
        assert abs((x % 2).mean() - 0.5) < 0.02
        # float32 rounds the probability 0.9, by which the mean is off by 24
        assert abs(x.mean() - mean) < 30 + 5 * deviation / math.sqrt(N)
        assert abs(x.std() / deviation - 1) < 0.03


def test_geometric(device):
    found = td.random.geometric(N, 0.3, generator=generator()).numpy()
    check_counts(found, lambda k: np.where(k > 0, 0.3 * 0.7 ** (k - 1.0), 0.0))
    assert td.random.geometric(3, 1.0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("in_float64", [False, True])
def test_gamma(device, in_float64):
    dtype = wide(device) if in_float64 else td.float32
    alphas = td.asarray([[1.0], [0.5], [3.0], [1e6]], dtype=dtype)
    one, half, three, many = td.random.gamma((4, N), alphas, 2.0, generator=generator()).numpy()
    check_share(one, lambda x: -np.expm1(-x / 2))
    check_share(half, lambda x: erf(np.sqrt(x / 2)))
    check_share(three, lambda x: 1 - np.exp(-x / 2) * (1 + x / 2 + x * x / 8))
    z = (many.astype(np.float64) / 2 - 1e6) / 1e3
    assert abs(z.mean()) < 0.04
    assert abs(z.std() - 1) < 0.03
    small = td.random.gamma(N, 0.001, dtype=dtype, generator=generator()).numpy()
    # its share below x is x**0.001 / gamma(1.001), for small x
    for x in (1e-30, 1e-3):
        assert abs((small < x).mean() - x**0.001 / math.gamma(1.001)) < 0.02


def test_what_follows_from_gamma(device):
    g = generator()
    a, b = td.asarray([[2.0], [0.01]]), td.asarray([[3.0], [0.01]])
    shares, small = td.random.beta((2, N), a, b, generator=g).numpy()
    check_share(shares, lambda x: x * x * (6 - 8 * x + 3 * x * x))
    assert abs((small < 0.5).mean() - 0.5) < 0.02
    assert not np.isnan(small).any()
    degrees = td.asarray([[2.0], [np.inf]])
    two, endless = td.random.student_t((2, N), degrees, generator=g).numpy()
    check_share(two, lambda x: 0.5 + x / (2 * np.sqrt(2 + x * x)))
    check_share(endless, lambda x: (1 + erf(x / math.sqrt(2))) / 2)
    shares = td.random.dirichlet((N // 2, 2), [[1.0, 1.0, 2.0], [0.01, 0.01, 0.01]], generator=g)
    found = shares.numpy()
    assert found.shape == (N // 2, 2, 3)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
    check_share(found[:, 0, 0], lambda x: 1 - (1 - x) ** 3)
    np.testing.assert_allclose(found[:, 1].mean(0), 1 / 3, atol=0.03)


def test_symmetric_ones(device):
    g = generator()
    check_share(td.random.laplace(N, 1.0, 2.0, generator=g).numpy(),
                lambda x: np.where(x < 1, np.exp((np.minimum(x, 1) - 1) / 2) / 2,
                                   1 - np.exp(-(np.maximum(x, 1) - 1) / 2) / 2))  # fmt: skip
    check_share(td.random.cauchy(N, 1.0, 2.0, generator=g).numpy(),
                lambda x: 0.5 + np.arctan((x - 1) / 2) / np.pi)  # fmt: skip
    check_share(np.log(td.random.log_normal(N, 1.0, 2.0, generator=g).numpy()),
                lambda x: (1 + erf((x - 1) / math.sqrt(8))) / 2)  # fmt: skip


def test_tensors_as_parameters(device):
    """They are not read: what is no parameter gives NaN, and -1 in integers."""
    odd = td.asarray([0.0, np.nan, -1.0, np.inf, 4.0])
    floats = {"dtype": td.float32, "generator": generator()}
    found = td.random.poisson((3, 5), odd, **floats).numpy()
    np.testing.assert_array_equal(found[:, :4], [[0, np.nan, np.nan, np.inf]] * 3)
    assert ((found[:, 4] >= 0) & (found[:, 4] < 30)).all()
    top = np.iinfo(np.int32).max
    found = td.random.poisson((3, 5), odd, dtype=td.int32).numpy()
    np.testing.assert_array_equal(found[:, :4], [[0, -1, -1, top]] * 3)
    assert td.random.poisson(9, 1000 * td.ones(9), dtype=td.int8).tolist() == [127] * 9
    n = td.asarray([3.0, 0.0, -1.0, 7.0, 7.0, 1.5])
    p = td.asarray([1.0, 0.5, 0.5, np.nan, 0.0, 0.5])
    found = td.random.binomial((2, 6), n, p, **floats).numpy()
    np.testing.assert_array_equal(found, [[3, 0, np.nan, np.nan, 0, np.nan]] * 2)
    found = td.random.binomial((2, 5), n[:5].to(td.int32), p[:5], dtype=td.int32).numpy()
    np.testing.assert_array_equal(found, [[3, 0, -1, -1, 0]] * 2)
    found = td.random.geometric((2, 4), td.asarray([1.0, 0.0, 2.0, np.nan])).numpy()
    np.testing.assert_array_equal(found, [[1, -1, -1, -1]] * 2)
    found = td.random.gamma((2, 5), odd, generator=generator()).numpy()
    np.testing.assert_array_equal(found[:, :4], [[0, np.nan, np.nan, np.inf]] * 2)
    found = td.random.chisquare(3, td.asarray([0.0, -1.0, np.nan])).numpy()
    assert np.isnan(found).all()


def test_shapes_and_dtypes(device):
    for name, parameters in (
        ("gamma", (2.0,)), ("beta", (1.0, 2.0)), ("chisquare", (3,)), ("student_t", (3,)),
        ("laplace", ()), ("cauchy", ()), ("log_normal", ()), ("poisson", (2.0,)),
        ("binomial", (5, 0.5)), ("geometric", (0.5,)), ("dirichlet", ([1.0, 2.0],)),
    ):  # fmt: skip
        draw = getattr(td.random, name)
        counts = name in ("poisson", "binomial", "geometric")
        more = (2,) if name == "dirichlet" else ()
        for shape in ((), (3, 0, 2), 7):
            found = draw(shape, *parameters, generator=generator())
            assert found.shape == (*((shape,) if shape == 7 else shape), *more)
        assert found.dtype == (default_integer(device) if counts else td.float32)
        assert found.device is device
        assert not np.isnan(found.numpy()).any()
        again = draw(7, *parameters, generator=generator())
        assert again.tolist() == found.tolist()
        short = draw(7, *parameters, dtype=td.float16, generator=generator())
        assert short.dtype == td.float16
    np.testing.assert_allclose(short.numpy(), found.numpy(), rtol=1e-3)


def test_compiled_and_mapped(device):
    """A replay and each example have their own numbers."""
    g = generator()
    draw = td.compile(lambda x: td.random.gamma(50, x, generator=g) + td.random.poisson(50, x))
    x = 4 * td.ones(50)
    assert draw(x).tolist() != draw(x).tolist()
    rows = td.vmap(lambda a: td.random.gamma(50, a), randomness="different")(4 * td.ones(3)).numpy()
    assert (rows[0] != rows[1]).any()
    assert (rows > 0).all()


@pytest.mark.parametrize(
    ("draw", "error", "says"),
    [
        (lambda r: r.poisson(3, -1.0), ValueError, "rate must be 0 or more, not -1.0"),
        (lambda r: r.poisson(3, math.nan), ValueError, "not nan"),
        (lambda r: r.poisson(3, [1.0, -2.0, 3.0]), ValueError, r"not -2\.0"),
        (lambda r: r.poisson(3, math.inf), ValueError, "does not hold inf"),
        (lambda r: r.poisson(3, 1e10, dtype=td.int32), ValueError, "int32 does not hold"),
        (lambda r: r.poisson(3, 1.0, dtype=td.bool), td.errors.DtypeError, "integer or floating"),
        (lambda r: r.binomial(3, -1), ValueError, "n must be an integer of 0 or more, not -1"),
        (lambda r: r.binomial(3, 2.5), ValueError, "integer"),
        (lambda r: r.binomial(3, 300, dtype=td.uint8), OverflowError, "300"),
        (lambda r: r.binomial(3, 5, 1.5), ValueError, "p must be from 0 to 1, not 1.5"),
        (lambda r: r.geometric(3, 0.0), ValueError, "above 0 and up to 1"),
        (lambda r: r.gamma(3, -1.0), ValueError, "alpha must be 0 or more"),
        (lambda r: r.gamma(3, 1.0, -1.0), ValueError, "scale must be 0 or more"),
        (lambda r: r.gamma(3, 1j), td.errors.DtypeError, "complex"),
        (lambda r: r.gamma(3, 1.0, dtype=td.int32), td.errors.DtypeError, "floating"),
        (lambda r: r.gamma(2.0, 1.0, (3,)), td.errors.ShapeError, "a shape is"),
        (lambda r: r.gamma(3, td.ones(2)), td.errors.ShapeError, "gamma"),
        (lambda r: r.beta(3, 0.0, 1.0), ValueError, "a must be above 0"),
        (lambda r: r.chisquare(3, 0), ValueError, "df must be above 0"),
        (lambda r: r.student_t(3, -1), ValueError, "df must be above 0"),
        (lambda r: r.laplace(3, 0.0, -1.0), ValueError, "scale"),
        (lambda r: r.cauchy(3, 0.0, -1.0), ValueError, "scale"),
        (lambda r: r.log_normal(3, 0.0, -1.0), ValueError, "std"),
        (lambda r: r.dirichlet(3, 1.0), td.errors.ShapeError, "axis"),
        (lambda r: r.dirichlet(3, [1.0, 0.0]), ValueError, "alpha must be above 0"),
    ],
)
def test_refusals(draw, error, says):
    with td.use_device("cpu"), pytest.raises(error, match=says):
        draw(td.random)


def test_tensors_are_read_under_check(device, monkeypatch):
    monkeypatch.setattr(settings, "check", True)
    with pytest.raises(ValueError, match=r"rate must be 0 or more, not -1\.0"):
        td.random.poisson(2, td.asarray([1.0, -1.0]))
