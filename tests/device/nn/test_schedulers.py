"""Schedules of learning rates: those of PyTorch, also in a compiled step."""

import warnings

import numpy as np
import pytest

import treadle as td

try:
    import torch
except ImportError:
    torch = None


def _half(epoch):
    return 0.5 if epoch % 7 == 0 else 1.0


# What makes a schedule, from the module of schedules and an optimizer.
_SCHEDULES = {
    "step": lambda s, o: s.StepLR(o, 7, 0.7),
    "milestones": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 60], 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 20),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.97),
    "polynomial": lambda s, o: s.PolynomialLR(o, 50, 2.0),
    "function": lambda s, o: s.LambdaLR(o, [lambda k: 0.9**k, lambda k: 1 / (k + 1)]),
    "factors": lambda s, o: s.MultiplicativeLR(o, _half),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 15, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "even restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 9),
    "triangles": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.3, 6, 11),
    "halved triangles": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, mode="triangular2"),
    "falling triangles": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, mode="exp_range", gamma=0.98),
    "own triangles": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, scale_fn=_half),
    "one cycle": lambda s, o: s.OneCycleLR(o, [0.3, 0.5], 100),
    "one cycle in lines": lambda s, o: s.OneCycleLR(
        o, 0.3, epochs=10, steps_per_epoch=11, anneal_strategy="linear", three_phase=True
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.LinearLR(o), s.StepLR(o, 9, 0.5)]),
    "in turn": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)],
        [5, 30],
    ),
    "nested": lambda s, o: s.SequentialLR(
        o,
        [
            s.SequentialLR(o, [s.ConstantLR(o, 0.5), s.StepLR(o, 3)], [4]),
            s.PolynomialLR(o, 20),
            s.MultiStepLR(o, [2, 3]),
        ],
        [10, 40],
    ),
}


def _optimizer(module, tensors, name="Adam"):
    options = {"momentum": 0.9} if name == "SGD" else {}
    groups = [{"params": tensors[:1]}, {"params": tensors[1:], "lr": 0.2}]
    return getattr(module, name)(groups, lr=0.1, **options)


def _own(name="Adam"):
    return _optimizer(td.optim, [td.ones(2).requires_grad_() for _ in range(2)], name)


def _seen(optimizer):
    """What a schedule changes."""
    return [(g["lr"], g.get("betas", [g.get("momentum")])[0]) for g in optimizer.param_groups]


if torch is not None:

    @pytest.mark.parametrize("name", _SCHEDULES)
    def test_that_rates_are_those_of_pytorch(name):
        with td.use_device("cpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, of its own calls
            for kind in ("Adam", "SGD"):
                theirs = _optimizer(torch.optim, [torch.ones(2) for _ in range(2)], kind)
                mine = _own(kind)
                own = _SCHEDULES[name](td.optim.lr_scheduler, mine)
                other = _SCHEDULES[name](torch.optim.lr_scheduler, theirs)
                for k in range(100):
                    np.testing.assert_allclose(_seen(mine), _seen(theirs), 1e-12)
                    assert own.get_last_lr() == [group["lr"] for group in mine.param_groups]
                    if k == 37:  # states move both ways
                        own_state, other_state = own.state_dict(), other.state_dict()
                        own.load_state_dict(other_state)
                        other.load_state_dict(own_state)
                    mine.step()
                    theirs.step()
                    own.step()
                    other.step()

    def test_that_plateaus_are_those_of_pytorch(rng):
        for options in ({}, {"mode": "max", "threshold_mode": "abs"}, {"min_lr": [0.02, 0.04]}):
            theirs, mine = _optimizer(torch.optim, [torch.ones(2) for _ in range(2)]), _own()
            given = {"patience": 2, "factor": 0.6, "cooldown": 1, **options}
            own = td.optim.lr_scheduler.ReduceLROnPlateau(mine, **given)
            other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **given)
            for value in rng.standard_normal(50):
                own.step(value)
                other.step(value)
                np.testing.assert_allclose(_seen(mine), _seen(theirs), 1e-12)
                assert own.num_bad_epochs == other.num_bad_epochs


@pytest.mark.parametrize("name", _SCHEDULES)
def test_that_schedules_are_resumed(name):
    with td.use_device("cpu"):
        optimizer, other = _own(), _own()
        schedule = _SCHEDULES[name](td.optim.lr_scheduler, optimizer)
        for _ in range(12):
            optimizer.step()
            schedule.step()
        resumed = _SCHEDULES[name](td.optim.lr_scheduler, other)
        resumed.load_state_dict(schedule.state_dict())
        other.load_state_dict(optimizer.state_dict())
        for _ in range(20):
            for each, its in ((optimizer, schedule), (other, resumed)):
                each.step()
                its.step()
            assert _seen(optimizer) == _seen(other)


def test_that_compiled_steps_have_the_rates(device):
    x = td.ones(3).requires_grad_()
    optimizer = td.optim.SGD([x], lr=1.0)
    schedule = td.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @td.compile
    def step(factor):
        optimizer.zero_grad()
        (x * factor).sum().backward()
        optimizer.step()

    for _ in range(4):
        step(td.ones(()))
        schedule.step()
    assert x.tolist() == [1 - 1 - 0.5 - 0.25 - 0.125] * 3


def test_that_the_order_of_steps_matters():
    with td.use_device("cpu"):
        schedule = td.optim.lr_scheduler.StepLR(_own(), 3)
        with pytest.warns(UserWarning, match=r"before optimizer\.step"):
            schedule.step()


_REFUSED = {
    "no optimizer": (TypeError, "not an Optimizer", lambda s, o: s.StepLR(3, 1)),
    "an unknown mode": (ValueError, "mode must", lambda s, o: s.CyclicLR(o, 1, 2, mode="x")),
    "no steps": (ValueError, "total_steps", lambda s, o: s.OneCycleLR(o, 1.0)),
    "a factor": (ValueError, "from 0 to 1", lambda s, o: s.ConstantLR(o, 1.5)),
    "lengths": (ValueError, "3 values for 2", lambda s, o: s.LambdaLR(o, [_half] * 3)),
    "no function": (TypeError, "a function", lambda s, o: s.MultiplicativeLR(o, 0.5)),
    "a plateau": (
        ValueError, "metric", lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)])
    ),
    "another optimizer": (
        ValueError, "another", lambda s, o: s.SequentialLR(o, [s.StepLR(_own(), 1)], [])
    ),
    "milestones": (
        ValueError, "0 milestones", lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1])
    ),
    "no rates to go on from": (KeyError, "initial_lr", lambda s, o: s.StepLR(o, 1, last_epoch=5)),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFUSED)
def test_that_bad_arguments_are_refused(name):
    error, text, make = _REFUSED[name]
    with td.use_device("cpu"), pytest.raises(error, match=text):
        make(td.optim.lr_scheduler, _own())
