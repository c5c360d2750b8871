"""Optimizers beside PyTorch's, with PyTorch's samples of their arguments: parameters after some
steps, for gradients that are the same."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.parity import comparing
from tests.parity.comparing import compare, torch

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"]
STEPS = 4
# How PyTorch computes a step, not which.
_WAYS = ("foreach", "fused", "capturable", "differentiable")


@cache
def _optimizers() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_optimizers import optim_db
    return {each.optim_cls.__name__: each for each in optim_db}


if torch is not None:

    @pytest.mark.parametrize("name", NAMES)
    def test_steps(name):
        comparing.seed(0)
        numbers = np.random.default_rng(2)
        shapes = [(3, 4), (5,), ()]
        for sample in _optimizers()[name].optim_inputs_func(device="cpu"):
            options = {key: each for key, each in sample.kwargs.items() if key not in _WAYS}
            starts = [numbers.standard_normal(shape) for shape in shapes]
            mine = [td.nn.Parameter(td.asarray(start)) for start in starts]
            theirs = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
            given = comparing.taken((), options, "cpu").keywords
            ours = getattr(td.optim, name)(mine, **given)
            other = getattr(torch.optim, name)(theirs, **options)
            for _ in range(STEPS):
                for one, its in zip(mine, theirs, strict=True):
                    gradient = numbers.standard_normal(one.shape)
                    one.grad, its.grad = td.asarray(gradient), torch.tensor(gradient)
                ours.step()
                other.step()
            compare(mine, theirs, f"{name}: {sample.desc}")
