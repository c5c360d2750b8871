"""Optimizers: the numbers of PyTorch's, and parameters that lie together."""

import numpy as np
import pytest

import treadle as td

try:
    import torch
except ImportError:
    torch = None

_SHAPES = [(3, 4), (5,), (), (7, 2), (1,)]
_OPTIONS = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"betas": (0.8, 0.95), "eps": 1e-6}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
]


def _named(options):
    name, given = options
    return "-".join([name, *given])


def _parameters(rng, device, dtype=np.float32):
    return [
        td.asarray(rng.standard_normal(shape).astype(dtype), device=device).requires_grad_()
        for shape in _SHAPES
    ]


def _steps(rng, optimizer, parameters, other, others, count):
    """Take steps with the same gradients."""
    for _ in range(count):
        for mine, theirs in zip(parameters, others, strict=True):
            gradient = rng.standard_normal(mine.shape).astype(np.float32)
            mine.grad = None
            (mine * td.asarray(gradient)).sum().backward()
            theirs.grad = torch.tensor(gradient, dtype=theirs.dtype)
        optimizer.step()
        other.step()


if torch is not None:

    @pytest.mark.parametrize("options", _OPTIONS, ids=_named)
    def test_that_steps_are_those_of_pytorch(rng, options):
        name, given = options
        with td.use_device("cpu"):
            parameters = _parameters(rng, "cpu")
            others = [torch.tensor(each.numpy()).requires_grad_() for each in parameters]
            optimizer = getattr(td.optim, name)(parameters, **given)
            other = getattr(torch.optim, name)(others, **given)
            _steps(rng, optimizer, parameters, other, others, 100)
            for mine, theirs in zip(parameters, others, strict=True):
                np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), 1e-5, 1e-5)

    @pytest.mark.parametrize("name", ["SGD", "AdamW"])
    def test_that_a_device_takes_the_same_steps(device, rng, name):
        parameters = _parameters(rng, device)
        others = [torch.tensor(each.numpy()).requires_grad_() for each in parameters]
        optimizer = getattr(td.optim, name)(parameters, lr=0.01)
        other = getattr(torch.optim, name)(others, lr=0.01)
        _steps(rng, optimizer, parameters, other, others, 3)
        for mine, theirs in zip(parameters, others, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), 1e-5, 1e-6)
