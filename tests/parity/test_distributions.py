"""`treadle.torch.distributions` beside PyTorch: densities, derivatives, moments, entropies,
divergences, draws of the right shape and mean; and what programs import that use one device."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import treadle.torch as mine
from tests.parity.comparing import torch

if torch is None:
    pytest.skip("beside PyTorch", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")


def _any(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape)


def _positive(rng: Any, *shape: int) -> Any:
    return np.exp(rng.standard_normal(shape))


def _chance(rng: Any, *shape: int) -> Any:
    return rng.uniform(0.1, 0.9, shape)


def _matrix(rng: Any, n: int) -> Any:
    root = rng.standard_normal((n, n))
    return root @ root.T + np.eye(n)


def _correlations(rng: Any, n: int) -> Any:
    root = np.linalg.cholesky(_matrix(rng, n))
    return root / np.sqrt((root**2).sum(-1, keepdims=True))


def _scaled(rng: Any) -> dict[str, Any]:
    return {"loc": _any(rng, 3, 1), "scale": 0.5 + _positive(rng, 4)}


# Each: the class, its parameters, and values that it may have.
CASES: dict[str, tuple[str, Any, Any]] = {
    "normal": ("Normal", _scaled, lambda r: _any(r, 3, 4)),
    "log-normal": ("LogNormal", _scaled, lambda r: _positive(r, 3, 4)),
    "laplace": ("Laplace", _scaled, lambda r: _any(r, 3, 4)),
    "gumbel": ("Gumbel", _scaled, lambda r: _any(r, 3, 4)),
    "cauchy": ("Cauchy", _scaled, lambda r: _any(r, 3, 4)),
    "half-normal": ("HalfNormal", lambda r: {"scale": _positive(r, 4)}, lambda r: _positive(r, 4)),
    "exponential": ("Exponential", lambda r: {"rate": _positive(r, 4)}, lambda r: _positive(r, 4)),
    "uniform": (
        "Uniform",
        lambda r: {"low": -_chance(r, 4), "high": 2 + _chance(r, 4)},
        lambda r: 2 * _chance(r, 5, 4),
    ),
    "bernoulli": (
        "Bernoulli", lambda r: {"logits": _any(r, 5)}, lambda r: 1.0 * r.integers(0, 2, (3, 5))
    ),
    "geometric": (
        "Geometric", lambda r: {"probs": _chance(r, 5)}, lambda r: 1.0 * r.integers(0, 7, (3, 5))
    ),
    "binomial": (
        "Binomial",
        lambda r: {"total_count": 7, "probs": _chance(r, 5)},
        lambda r: 1.0 * r.integers(0, 8, (3, 5)),
    ),
    "categorical": (
        "Categorical", lambda r: {"probs": _chance(r, 2, 5)}, lambda r: r.integers(0, 5, (3, 2))
    ),
    "one-hot": (
        "OneHotCategorical",
        lambda r: {"logits": _any(r, 2, 5)},
        lambda r: np.eye(5)[r.integers(0, 5, (3, 2))],
    ),
    "joint normal": (
        "MultivariateNormal",
        lambda r: {"loc": _any(r, 2, 3), "covariance_matrix": _matrix(r, 3)},
        lambda r: _any(r, 4, 2, 3),
    ),
    "low rank": (
        "LowRankMultivariateNormal",
        lambda r: {
            "loc": _any(r, 2, 4), "cov_factor": _any(r, 4, 2), "cov_diag": _positive(r, 4)
        },
        lambda r: _any(r, 3, 2, 4),
    ),
    "half Cauchy": ("HalfCauchy", lambda r: {"scale": _positive(r, 4)}, lambda r: _positive(r, 4)),
    "gamma": (
        "Gamma",
        lambda r: {"concentration": _positive(r, 3, 1), "rate": _positive(r, 4)},
        lambda r: _positive(r, 3, 4),
    ),
    "chi2": ("Chi2", lambda r: {"df": _positive(r, 4)}, lambda r: _positive(r, 4)),
    "inverse gamma": (
        "InverseGamma",
        lambda r: {"concentration": 5 + _positive(r, 4), "rate": _positive(r, 4)},
        lambda r: _positive(r, 4),
    ),
    "beta": (
        "Beta",
        lambda r: {"concentration1": _positive(r, 4), "concentration0": _positive(r, 4)},
        lambda r: _chance(r, 4),
    ),
    "Dirichlet": (
        "Dirichlet",
        lambda r: {"concentration": 1 + _positive(r, 2, 4)},
        lambda r: r.dirichlet(np.ones(4), (3, 2)),
    ),
    "Student": (
        "StudentT",
        lambda r: {"df": 5 + _positive(r, 3, 1), "loc": _any(r, 4), "scale": _positive(r, 4)},
        lambda r: _any(r, 3, 4),
    ),
    "F": (
        "FisherSnedecor",
        lambda r: {"df1": 2 + _positive(r, 4), "df2": 9 + _positive(r, 4)},
        lambda r: _positive(r, 4),
    ),
    "Poisson": (
        "Poisson", lambda r: {"rate": _positive(r, 4)}, lambda r: 1.0 * r.integers(0, 7, (3, 4))
    ),
    "negative binomial": (
        "NegativeBinomial",
        lambda r: {"total_count": 1 + _positive(r, 4), "probs": _chance(r, 4)},
        lambda r: 1.0 * r.integers(0, 7, (3, 4)),
    ),
    "multinomial": (
        "Multinomial",
        lambda r: {"total_count": 6, "probs": _chance(r, 2, 3)},
        lambda r: 1.0 * r.multinomial(6, np.ones(3) / 3, (5, 2)),
    ),
    "Weibull": (
        "Weibull",
        lambda r: {"scale": _positive(r, 4), "concentration": 1 + _positive(r, 4)},
        lambda r: _positive(r, 4),
    ),
    "Pareto": (
        "Pareto",
        lambda r: {"scale": _chance(r, 4), "alpha": 4 + _positive(r, 4)},
        lambda r: 1 + _positive(r, 4),
    ),
    "Kumaraswamy": (
        "Kumaraswamy",
        lambda r: {"concentration1": _positive(r, 4), "concentration0": _positive(r, 4)},
        lambda r: _chance(r, 4),
    ),
    "continuous Bernoulli": (
        "ContinuousBernoulli",
        lambda r: {"probs": np.array([*_chance(r, 3), 0.4996])},
        lambda r: _chance(r, 4),
    ),
    "angles": (
        "VonMises",
        lambda r: {"loc": _any(r, 4), "concentration": _positive(r, 4)},
        lambda r: _any(r, 4),
    ),
    "relaxed": (
        "RelaxedBernoulli",
        lambda r: {"temperature": np.array(0.7), "logits": _any(r, 4)},
        lambda r: _chance(r, 4),
    ),
    "relaxed classes": (
        "RelaxedOneHotCategorical",
        lambda r: {"temperature": np.array(0.7), "logits": _any(r, 2, 4)},
        lambda r: r.dirichlet(np.ones(4), 2),
    ),
    "logistic normal": (
        "LogisticNormal",
        lambda r: {"loc": _any(r, 2, 3), "scale": _positive(r, 3)},
        lambda r: r.dirichlet(np.ones(4), 2),
    ),
    "Wishart": (
        "Wishart",
        lambda r: {"df": 5 + _positive(r, 2), "covariance_matrix": _matrix(r, 3)},
        lambda r: np.stack([_matrix(r, 3), _matrix(r, 3)]),
    ),
    "LKJ": (
        "LKJCholesky",
        lambda r: {"dim": 3, "concentration": _positive(r, 2)},
        lambda r: np.stack([_correlations(r, 3), _correlations(r, 3)]),
    ),
}  # fmt: skip


def _made(library: Any, name: str, parameters: dict[str, Any]) -> tuple[Any, list[Any]]:
    given = {
        key: library.tensor(value, requires_grad=True) if isinstance(value, np.ndarray) else value
        for key, value in parameters.items()
    }
    leaves = [value for value in given.values() if not isinstance(value, int)]
    return getattr(library.distributions, name)(**given), leaves


# What PyTorch computes in float32 (lgamma of counts, its polynomials of Bessel functions).
_ROUGH = {"angles": 1e-6, "multinomial": 1e-6}


def _same(found: Any, wanted: Any, what: str, bound: float = 1e-9) -> None:
    found, wanted = found.detach().numpy(), wanted.detach().numpy()
    assert found.shape == wanted.shape, what
    assert found.dtype == wanted.dtype, what
    np.testing.assert_allclose(found, wanted, bound, bound / 1000, err_msg=what)


def _either(call: Any, *others: Any) -> list[Any]:
    """What each returns, or the class of NotImplementedError, which all raise then."""
    made = []
    for each in (call, *others):
        try:
            made.append(each())
        except NotImplementedError:
            made.append(NotImplementedError)
    assert len({each is NotImplementedError for each in made}) == 1
    return made


# Each kernel is compiled once: these stand for the others, which run with -m slow.
_BRIEF = ("exponential", "categorical", "binomial")


@pytest.mark.parametrize(
    "case",
    [each if each in _BRIEF else pytest.param(each, marks=pytest.mark.slow) for each in CASES],
)
def test_beside_pytorch(case):
    rng = np.random.default_rng()
    name, parameters, values = CASES[case]
    bound = _ROUGH.get(case, 1e-8)
    drawn = parameters(rng)
    (theirs, leaves), (here, own) = _made(torch, name, drawn), _made(mine, name, drawn)
    for what in ("log_prob", "cdf", "icdf"):
        value = values(rng) if what != "icdf" else rng.random(here.batch_shape)
        wanted, found = _either(
            lambda what=what, value=value: getattr(theirs, what)(torch.tensor(value)),
            lambda what=what, value=value: getattr(here, what)(mine.tensor(value)),
        )
        if wanted is NotImplementedError:
            continue
        _same(found, wanted, what, bound)
        if what == "log_prob" and name != "Uniform":
            for one, other in zip(
                mine.autograd.grad(found.sum(), own), torch.autograd.grad(wanted.sum(), leaves),
                strict=True,
            ):  # fmt: skip
                _same(one, other, "derivative", max(bound, 1e-7))
    for what in ("mean", "variance", "mode", "entropy", "enumerate_support"):
        if case == "Kumaraswamy" and what == "mode":
            continue  # PyTorch's is NaN where the shape is above 1
        wanted, found = _either(
            *(
                lambda of=of, what=what: (lambda x: x() if callable(x) else x)(getattr(of, what))
                for of in (theirs, here)
            )
        )
        if wanted is not NotImplementedError:
            _same(found, wanted, what, bound)
    assert [here.has_rsample, here.has_enumerate_support, here.support.event_dim] == [
        theirs.has_rsample, theirs.has_enumerate_support, theirs.support.event_dim
    ]  # fmt: skip
    assert list(here.arg_constraints) == list(theirs.arg_constraints)
    for what in ("sample", "rsample"):
        wanted, found = _either(
            *(lambda of=of, what=what: getattr(of, what)((5, 2)) for of in (theirs, here))
        )
        if wanted is not NotImplementedError:
            assert tuple(found.shape) == tuple(wanted.shape)
            assert found.requires_grad == wanted.requires_grad
            assert found.is_floating_point() == wanted.is_floating_point()
            here.log_prob(found.detach())  # draws are within the support
    wider, wanted = here.expand((2, *here.batch_shape)), theirs.expand((2, *theirs.batch_shape))
    assert tuple(wider.sample().shape) == tuple(wanted.sample().shape)
    mean, deviation = _either(
        lambda: theirs.mean.detach().numpy(), lambda: theirs.stddev.detach().numpy()
    ) if case != "LKJ" else (NotImplementedError, None)  # fmt: skip
    if mean is not NotImplementedError and np.isfinite(mean).all() and name != "LogNormal":
        average = here.sample((9000,)).numpy().mean(0)
        if name != "VonMises":
            assert (abs(average - mean) < 6 * deviation / 9000**0.5 + 1e-12).all()
    drawn = parameters(rng)
    if name == "Uniform":
        drawn["low"] -= 1
        drawn["high"] += 1
    (their_other, _), (other, _) = _made(torch, name, drawn), _made(mine, name, drawn)
    wanted, found = _either(
        lambda: torch.distributions.kl_divergence(theirs, their_other),
        lambda: mine.distributions.kl_divergence(here, other),
    )
    # PyTorch adds up the batch's derivatives in a Wishart variable's: each is compared alone there.
    if wanted is not NotImplementedError and name != "Wishart":
        _same(found, wanted, "divergence", bound)


@pytest.mark.slow
def test_divergences_of_wisharts():
    rng = np.random.default_rng()
    given = [(5 + _positive(rng, 1)[0], _matrix(rng, 3)) for _ in range(2)]
    wanted, found = (
        m.distributions.kl_divergence(
            *(m.distributions.Wishart(m.tensor(df), m.tensor(matrix)) for df, matrix in given)
        )
        for m in (torch, mine)
    )
    _same(found, wanted, "Wishart", 1e-8)
    # A batch has what each of it has.
    (df, matrix), (other, another) = given
    wide = mine.distributions.Wishart(mine.tensor([df, df + 1]), mine.tensor(matrix))
    one = mine.distributions.Wishart(mine.tensor(other), mine.tensor(another))
    assert mine.distributions.kl_divergence(wide, one)[0].item() == pytest.approx(found.item())


@pytest.mark.slow
def test_divergences_of_two_classes():
    rng = np.random.default_rng()
    kinds = [
        "Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Laplace", "Normal",
        "Pareto", "Uniform",
    ]  # fmt: skip
    chosen = {name: case for case, (name, *_) in CASES.items()}
    for name in kinds:
        for other in kinds:
            if name == other:
                continue
            both = [
                {k: v.ravel()[:3] for k, v in CASES[chosen[each]][1](rng).items()}
                for each in (name, other)
            ]
            if name == "Uniform":
                both[0] = {"low": 0.1 + 0.1 * _chance(rng, 3), "high": 0.5 + 0.4 * _chance(rng, 3)}
            if name == "ContinuousBernoulli":
                both[0]["probs"] = _chance(rng, 3)
            wanted, found = _either(
                *(
                    lambda library=library, both=both, name=name, other=other: (
                        library.distributions.kl_divergence(
                            _made(library, name, both[0])[0], _made(library, other, both[1])[0]
                        )
                    )
                    for library in (torch, mine)
                )
            )
            if wanted is not NotImplementedError:
                _same(found, wanted, f"{name} {other}")


def test_derivatives_of_gamma_draws_keep_quantiles():
    rng = np.random.default_rng()
    a = np.array([0.02, 0.3, 1.0, 4.0, 19.0, 21.0, 300.0, 1e5])[:, None]
    chance = rng.uniform(0.001, 0.999, (8, 9))
    special = pytest.importorskip("scipy.special")
    x = special.gammaincinv(a, chance)
    step = 1e-4 * np.sqrt(a) * np.minimum(a, 1)
    near = [special.gammaincinv(a + k * step, chance) for k in (-2, -1, 1, 2)]
    wanted = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)
    gammas = importlib.import_module("treadle.torch.distributions.gammas")
    for dtype, bound in (("float64", 1e-7),):
        given = [mine.tensor(np.broadcast_to(each, x.shape).astype(dtype)) for each in (a, x)]
        found = gammas.gamma_slope(*given).numpy()
        there = x > 1e-30
        np.testing.assert_allclose(found[there], wanted[there], bound)


@pytest.mark.slow
def test_derivatives_of_means():
    special = pytest.importorskip("scipy.special")
    # E[x] of shape a is a: its derivative is 1, and that of a Dirichlet variable's mean is known.
    shape = mine.tensor([0.4, 3.0], dtype=mine.float64, requires_grad=True)
    mine.distributions.Gamma(shape, 1.0).rsample((40000,)).mean(0).sum().backward()
    np.testing.assert_allclose(shape.grad.numpy(), 1, atol=0.1)
    shape = mine.tensor([0.5, 1.0, 2.0], dtype=mine.float64, requires_grad=True)
    mine.distributions.Dirichlet(shape).rsample((40000,)).mean(0)[0].backward()
    np.testing.assert_allclose(shape.grad.numpy(), [3 / 12.25, -0.5 / 12.25, -0.5 / 12.25], 0, 0.02)
    # And that of the distribution function.
    shape = mine.tensor([0.4, 3.0], dtype=mine.float64, requires_grad=True)
    at = mine.tensor([0.5, 2.0], dtype=mine.float64)
    mine.distributions.Gamma(shape, 1.0).cdf(at).sum().backward()
    moved = [special.gammainc(np.array([0.4, 3.0]) + d, at.numpy()) for d in (-1e-5, 1e-5)]
    np.testing.assert_allclose(shape.grad.numpy(), (moved[1] - moved[0]) / 2e-5, 1e-6)


# Draws against the distribution function, by Kolmogorov's distance, of laws without a PyTorch mean.
@pytest.mark.slow
@pytest.mark.parametrize("concentration", [1e-6, 0.3, 4.0, 300.0])
def test_angles_are_drawn_by_their_density(concentration):
    stats = pytest.importorskip("scipy.stats")
    drawn = mine.distributions.VonMises(0.0, concentration).sample((20000,)).double().numpy()
    law = stats.vonmises(concentration)
    assert stats.kstest(drawn, law.cdf).statistic < 2.3 / 20000**0.5


_REFUSED = [
    lambda d, m: d.Normal(0.0, -1.0),
    lambda d, m: d.Normal(0.0, float("nan")),
    lambda d, m: d.Categorical(m.tensor([-1.0, 2.0])),
    lambda d, m: d.Uniform(1.0, 0.0),
    lambda d, m: d.Geometric(0.0),
    lambda d, m: d.Bernoulli(m.tensor(0.5)).log_prob(m.tensor(2.0)),
    lambda d, m: d.Normal(m.zeros(2), 1.0).log_prob(m.zeros(3)),
    lambda d, m: d.Normal(0.0, 1.0).log_prob(1.0),
    lambda d, m: d.Categorical(m.ones(3)).log_prob(m.tensor(3)),
    lambda d, m: d.Exponential(1.0).log_prob(m.tensor(-1.0)),
    lambda d, m: d.Dirichlet(m.ones(3)).log_prob(m.tensor([0.5, 0.2, 0.2])),
    lambda d, m: d.MultivariateNormal(m.zeros(2), -m.eye(2)),
    lambda d, m: d.Poisson(1.0).log_prob(m.tensor(1.5)),
    lambda d, m: d.Wishart(1.0, m.eye(3)),
    lambda d, m: d.Normal("a", 1.0),
    lambda d, m: d.Categorical(),
]


def test_arguments_are_looked_at_as_pytorch_does():
    for refused in _REFUSED:
        for library in (mine, torch):
            with pytest.raises(ValueError):  # noqa: PT011
                refused(library.distributions, library)
    d = mine.distributions
    assert d.Normal(0.0, -1.0, validate_args=False).scale == -1
    assert d.Bernoulli(0.5, validate_args=False).log_prob(mine.tensor(2.0)) < 0
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Uniform(1.0, 0.0).low == 1
    finally:
        d.Distribution.set_default_validate_args(True)
    for text in ("Normal(0.0, 1.0)", "Normal(m.zeros(2), 1.0)", "Categorical(m.ones(3))"):
        shown = [repr(eval(f"m.distributions.{text}", {"m": m})) for m in (mine, torch)]
        assert shown[0] == shown[1]
    found = mine.func.vmap(lambda x: d.Normal(x, 1.0).log_prob(mine.tensor(1.0)))(mine.ones(3))
    assert found.shape == (3,)


_TRANSFORMS = [
    lambda d, m: d.ExpTransform(),
    lambda d, m: d.SigmoidTransform(),
    lambda d, m: d.SoftplusTransform(),
    lambda d, m: d.TanhTransform(),
    lambda d, m: d.AffineTransform(1.5, -2.0, event_dim=1),
    lambda d, m: d.AffineTransform(m.zeros(4).double(), m.arange(1, 5).double()),
    lambda d, m: d.StickBreakingTransform(),
    lambda d, m: d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()]),
    lambda d, m: d.IndependentTransform(d.ExpTransform(), 1),
    lambda d, m: d.ReshapeTransform((4,), (2, 2)),
    lambda d, m: d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [1, 3]),
    lambda d, m: d.StackTransform([d.ExpTransform(), d.TanhTransform()] * 2, -1),
    lambda d, m: d.CorrCholeskyTransform(),
]


@pytest.mark.slow
def test_transforms():
    rng = np.random.default_rng()
    for make in _TRANSFORMS:
        made = []
        for library in (torch, mine):
            transform = make(library.distributions, library)
            corr = type(transform).__name__ == "CorrCholeskyTransform"
            x = made[0][1] if made else rng.standard_normal((3, 6 if corr else 4))
            y = transform(library.tensor(x))
            back = transform.inv(y)
            slope = transform.log_abs_det_jacobian(library.tensor(x), y)
            shape = tuple(transform.forward_shape(x.shape))
            kinds = (transform.domain.event_dim, transform.codomain.event_dim, transform.bijective)
            made.append((transform, x, y, back, slope, (shape, *kinds)))
        assert made[0][5] == made[1][5]
        for one, other in zip(made[1][2:5], made[0][2:5], strict=True):
            _same(one, other, str(made[0][0]), 1e-8)
        cached = made[1][0].with_cache(1)
        given = mine.tensor(made[0][1])
        if type(cached).__name__ != "ComposeTransform":
            assert cached.inv(cached(given)) is given
    for name in ("positive", "unit_interval", "simplex", "corr_cholesky", "real_vector"):
        x = rng.standard_normal((2, 6))
        for to in ("transform_to", "biject_to"):
            wanted, found = (
                getattr(m.distributions, to)(getattr(m.distributions.constraints, name))(
                    m.tensor(x)
                )
                for m in (torch, mine)
            )
            _same(found, wanted, name)


@pytest.mark.slow
def test_transformed_and_mixed():
    rng = np.random.default_rng()
    x, middle = rng.uniform(0.1, 0.9, (3, 2)), rng.standard_normal((2, 3))

    def made(m):
        d = m.distributions
        normal = d.Normal(m.zeros(2).double(), m.ones(2).double())
        falls = d.TransformedDistribution(
            normal, [d.AffineTransform(1.0, -2.0), d.SigmoidTransform()]
        )
        weights = d.Categorical(m.tensor([[0.2, 0.3, 0.5]] * 2).double())
        mixture = d.MixtureSameFamily(weights, d.Normal(m.tensor(middle), 1.0))
        joint = d.Independent(d.Normal(m.tensor(middle.T.copy()), m.ones(2).double()), 1)
        joint = d.MixtureSameFamily(d.Categorical(weights.probs[0]), joint)
        value = m.tensor(x)
        return [
            falls.log_prob(value), falls.cdf(value), falls.icdf(value),
            falls.expand((3, 2)).log_prob(value), mixture.log_prob(value), mixture.cdf(value),
            mixture.mean, mixture.variance, joint.log_prob(value), joint.mean, joint.variance,
            falls.sample((5,)) * 0, mixture.sample((5, 4)) * 0, joint.sample((5, 4)) * 0,
        ]  # fmt: skip

    for number, (found, wanted) in enumerate(zip(made(mine), made(torch), strict=True)):
        _same(found, wanted, str(number))


def test_independent_and_refusals():
    x = np.random.default_rng().standard_normal((3, 4))
    found, wanted = (
        m.distributions.Independent(m.distributions.Normal(m.zeros(3, 4).double(), 2.0), 1)
        for m in (mine, torch)
    )
    assert tuple(found.batch_shape) == (3,)
    assert tuple(found.event_shape) == (4,)
    _same(found.log_prob(mine.tensor(x)), wanted.log_prob(torch.tensor(x)), "log_prob")
    _same(found.entropy(), wanted.entropy(), "entropy")
    with pytest.raises(ValueError, match="but not both"):
        mine.distributions.Categorical()
    with pytest.raises(NotImplementedError, match="Gumbel"):
        mine.distributions.kl_divergence(mine.distributions.Gumbel(0.0, 1.0), found)
    assert tuple(found.expand((5, 3)).batch_shape) == (5, 3)
    assert repr(found) == repr(wanted)
    assert found.mode.shape == (3, 4)


@pytest.mark.parametrize(
    "path",
    [
        "distributions.normal.Normal", "distributions.kl.kl_divergence", "onnx.export",
        "nn.parallel.DataParallel", "utils.data.dataloader.DataLoader", "optim.adam.Adam",
        "utils.data.sampler.Sampler", "utils.data.dataset.Dataset", "autograd.variable.Variable",
        "distributed.init_process_group",
    ],
)  # fmt: skip
def test_files_of_pytorch(path):
    module, _, name = path.rpartition(".")
    theirs = getattr(importlib.import_module(f"torch.{module}"), name)
    assert getattr(importlib.import_module(f"treadle.torch.{module}"), name).__name__ in (
        theirs.__name__, "Variable",
    )  # fmt: skip


def test_one_device():
    model = mine.nn.Linear(3, 2)
    x = mine.randn(4, 3)
    assert mine.equal(mine.nn.DataParallel(model)(x), model(x))
    with pytest.raises(RuntimeError, match="one device"):
        mine.nn.DataParallel(model, [0, 1])
    with pytest.raises(ValueError, match="init_process_group"):
        mine.nn.parallel.DistributedDataParallel(model)
    with pytest.raises(RuntimeError, match="state_dict"):
        mine.onnx.export(model, (x,), "model.onnx")
    assert not mine.distributed.is_initialized()
    where = mine.accelerator.current_accelerator()
    assert (where is not None) == mine.accelerator.is_available()
    # A channel of an input without more axes is an element.
    dropped = mine.nn.functional.dropout2d(mine.ones(64, 64), 0.5)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}


def test_draws_leave_the_history_of_what_they_use():
    def gradients(library):
        found = []
        make = library.distributions
        for name in ("Categorical", "OneHotCategorical", "Bernoulli", "Geometric"):
            logits = library.tensor([0.2, -0.3, 0.5], requires_grad=True)
            distribution = getattr(make, name)(logits=logits)
            distribution.sample()
            distribution.entropy().sum().backward()
            found.append(logits.grad.tolist())
        probs = library.tensor([0.2, 0.3, 0.5], requires_grad=True)
        distribution = make.Categorical(probs)
        distribution.sample()
        distribution.log_prob(library.tensor(1)).backward()
        return [*found, probs.grad.tolist()]

    for ours, theirs in zip(gradients(mine), gradients(torch), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
