"""Optimizers and schedules beside PyTorch's, with PyTorch's samples of their arguments: parameters
and states after some steps, for gradients that are the same."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import treadle.torch as ours
from tests.parity import comparing
from tests.parity.comparing import torch

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = [
    "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "LBFGS", "Muon", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD",
]  # fmt: skip
STEPS = 3  # RAdam's sixth step is the first that is adaptive
TOLERANCES = {"float32": 2e-6, "float64": 1e-6}  # some numbers of states are float32 in PyTorch


@cache
def _optimizers() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_optimizers import optim_db
    return {each.optim_cls.__name__: each for each in optim_db}


def _both(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    mine = {
        key: ours.tensor(each.item()) if isinstance(each, torch.Tensor) else each
        for key, each in options.items()
    }
    return mine, options


def _close(mine: Any, theirs: Any, dtype: str, what: str, loose: float = 1.0) -> None:
    tolerance = TOLERANCES[dtype] * loose
    np.testing.assert_allclose(
        mine.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=what
    )


def _close_states(mine: Any, theirs: Any, dtype: str, what: str) -> None:
    assert mine.keys() == theirs.keys(), what
    for key, state in theirs.items():
        assert set(mine[key]) >= {k for k, v in state.items() if v is not None}, what
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                found = mine[key][name]
                assert tuple(found.shape) == tuple(value.shape), f"{what} {name}"
                _close(found, value.double(), dtype, f"{what}: {name}")


if torch is not None:

    def _samples(name):
        given = _optimizers()[name].optim_inputs_func(device="cpu")
        if name in ("Adafactor", "Muon"):  # of many kernels
            given = given[::3]
        yield from ((each.desc, each.kwargs) for each in given)

    @pytest.mark.parametrize(
        ("name", "dtype"),
        [
            *((name, "float64") for name in NAMES if name != "LBFGS"),
            *((name, "float32") for name in ("ASGD", "NAdam", "RAdam")),
        ],
    )
    def test_steps(name, dtype):
        numbers = np.random.default_rng(comparing.seed(0) or 2)
        shapes = [(3, 4), (7, 2)] if name == "Muon" else [(3, 4), (5,), ()]
        loose = 1e4 if name == "Muon" else 1.0  # bfloat16
        for what, kwargs in _samples(name):
            given, options = _both(kwargs)
            starts = [numbers.standard_normal(shape).astype(dtype) for shape in shapes]
            mine = [ours.tensor(start).requires_grad_() for start in starts]
            theirs = [torch.tensor(start).requires_grad_() for start in starts]
            one = getattr(ours.optim, name)(mine, **given)
            other = getattr(torch.optim, name)(theirs, **options)
            schedules = [
                lib.optim.lr_scheduler.ExponentialLR(each, 0.5)
                for lib, each in ((ours, one), (torch, other))
            ]
            for number in range(2 * STEPS):
                for a, b in zip(mine, theirs, strict=True):
                    gradient = numbers.standard_normal(tuple(b.shape)).astype(dtype)
                    a.grad, b.grad = ours.tensor(gradient), torch.tensor(gradient)
                one.step()
                other.step()
                if number == STEPS - 1:
                    for each in schedules:
                        each.step()
                    saved = one.state_dict()
                    if loose == 1.0:
                        there = other.state_dict()["state"]
                        _close_states(saved["state"], there, dtype, f"{name} {what}")
                    fresh = getattr(ours.optim, name)(mine, **given)
                    fresh.load_state_dict(saved)
                    one = fresh
            for a, b in zip(mine, theirs, strict=True):
                _close(a, b, dtype, f"{name}: {what}", loose)

    def test_lbfgs():
        numbers = np.random.default_rng(3)
        for what, kwargs in _samples("LBFGS"):
            given, options = _both(kwargs)
            start, target = numbers.standard_normal((2, 5))
            found = []
            for lib, kw in ((ours, given), (torch, options)):
                p, q = lib.tensor(start).requires_grad_(), lib.tensor(target)
                optimizer = lib.optim.LBFGS([p], **kw)

                def closure(p=p, q=q, optimizer=optimizer):
                    optimizer.zero_grad()
                    loss = (((p * p) - q) * ((p * p) - q)).sum() + ((p - 1) * (p - 1)).sum()
                    loss.backward()
                    return loss

                losses = [float(optimizer.step(closure)) for _ in range(3)]
                found.append((losses, p, optimizer.state_dict()["state"][0]))
            (mine, p, state), (theirs, q, other) = found
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, err_msg=what)
            _close(p, q, "float64", what)
            assert set(state) == set(other)
            for count in ("n_iter", "func_evals"):
                assert state[count] == other[count], what
