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


def _scaled(rng: Any) -> dict[str, Any]:
    return {"loc": _any(rng, 3, 1), "scale": _positive(rng, 4)}


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
        lambda r: 3 * _any(r, 5, 4),
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
}  # fmt: skip


def _made(library: Any, name: str, parameters: dict[str, Any]) -> tuple[Any, list[Any]]:
    given = {
        key: library.tensor(value, requires_grad=True) if isinstance(value, np.ndarray) else value
        for key, value in parameters.items()
    }
    leaves = [value for value in given.values() if not isinstance(value, int)]
    return getattr(library.distributions, name)(**given, validate_args=False), leaves


def _same(found: Any, wanted: Any, what: str) -> None:
    found, wanted = found.detach().numpy(), wanted.detach().numpy()
    assert found.shape == wanted.shape, what
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-12, err_msg=what)


@pytest.mark.parametrize("case", CASES)
def test_beside_pytorch(case):
    rng = np.random.default_rng()
    name, parameters, values = CASES[case]
    drawn = parameters(rng)
    (theirs, leaves), (here, own) = _made(torch, name, drawn), _made(mine, name, drawn)
    for what in ("log_prob", "cdf", "icdf"):
        value = values(rng) if what != "icdf" else rng.random(values(rng).shape)
        try:
            wanted = getattr(theirs, what)(torch.tensor(value))
        except NotImplementedError:
            continue
        found = getattr(here, what)(mine.tensor(value))
        _same(found, wanted, what)
        if what == "log_prob" and name != "Uniform":
            for one, other in zip(
                mine.autograd.grad(found.sum(), own), torch.autograd.grad(wanted.sum(), leaves),
                strict=True,
            ):  # fmt: skip
                _same(one, other, "derivative")
    for what in ("mean", "variance", "stddev", "entropy"):
        try:
            wanted = getattr(theirs, what)
            wanted = wanted() if callable(wanted) else wanted
        except NotImplementedError:
            continue
        found = getattr(here, what)
        _same(found() if callable(found) else found, wanted, what)
    for what in ("sample", "rsample"):
        try:
            wanted = getattr(theirs, what)((5, 2))
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                getattr(here, what)()
            continue
        found = getattr(here, what)((5, 2))
        assert tuple(found.shape) == tuple(wanted.shape)
        assert found.requires_grad == wanted.requires_grad
        assert found.is_floating_point() == wanted.is_floating_point()
    mean, deviation = theirs.mean.detach().numpy(), theirs.stddev.detach().numpy()
    if np.isfinite(mean).all() and name != "LogNormal":
        average = here.sample((9000,)).numpy().mean(0)
        assert (abs(average - mean) < 6 * deviation / 9000**0.5).all()
    drawn = parameters(rng)
    if name == "Uniform":
        drawn["low"] -= 1
        drawn["high"] += 1
    (their_other, _), (other, _) = _made(torch, name, drawn), _made(mine, name, drawn)
    if name not in ("Gumbel", "Cauchy", "HalfNormal", "Binomial"):
        wanted = torch.distributions.kl_divergence(theirs, their_other)
        _same(mine.distributions.kl_divergence(here, other), wanted, "divergence")


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
    with pytest.raises(RuntimeError, match="several processes"):
        mine.nn.parallel.DistributedDataParallel(model)
    with pytest.raises(RuntimeError, match="one process"):
        mine.distributed.init_process_group("nccl")
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
