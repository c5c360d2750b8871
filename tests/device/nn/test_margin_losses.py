"""Losses beside PyTorch's: of elements, of margins, of triplets; their reductions and refusals."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

SHAPE = (6, 5)
# What operands are made of, and the options of each run.
CASES = {
    "mse_loss": ("xx", [{}]),
    "l1_loss": ("xx", [{}]),
    "smooth_l1_loss": ("xx", [{}, {"beta": 0.3}, {"beta": 0.0}]),
    "huber_loss": ("xx", [{}, {"delta": 0.4}]),
    "binary_cross_entropy": ("pq", [{}, {"weight": "q"}]),
    "binary_cross_entropy_with_logits": ("xq", [{}, {"weight": "q", "pos_weight": "p"}]),
    "kl_div": ("xq", [{}, {"log_target": True}]),
    "poisson_nll_loss": ("xc", [{}, {"full": True}]),
    "gaussian_nll_loss": ("xxp", [{}, {"full": True, "eps": 0.5}]),
    "hinge_embedding_loss": ("xs", [{}, {"margin": 0.3}]),
    "margin_ranking_loss": ("xxs", [{}, {"margin": 0.3}]),
    "soft_margin_loss": ("xs", [{}]),
    "multilabel_soft_margin_loss": ("xb", [{}, {"weight": "p"}]),
    "multi_margin_loss": ("xk", [{}, {"p": 2, "margin": 0.4, "weight": "w"}]),
    "multilabel_margin_loss": ("xm", [{}]),
    "cosine_embedding_loss": ("xxr", [{}, {"margin": 0.2}]),
    "triplet_margin_loss": ("xxx", [{}, {"margin": 0.5, "p": 1.0, "swap": True}]),
    "triplet_margin_with_distance_loss": ("xxx", [{}, {"margin": 0.5, "swap": True}]),
}
ON_EVERY_DEVICE = ("multi_margin_loss", "multilabel_margin_loss", "binary_cross_entropy")


def operand(rng, kind):
    """x: any numbers; p: probabilities; q: and their ends; c: counts; b: 0 and 1; s and r: 1 and
    -1, for each element and row; k: a class for each row, m: several; w: a weight for each class.
    """
    if kind in "ksrmcb":
        made = {
            "k": lambda: rng.integers(0, SHAPE[1], SHAPE[0]),
            "m": lambda: rng.integers(-1, SHAPE[1], SHAPE),
            "s": lambda: rng.integers(0, 2, SHAPE) * 2 - 1,
            "r": lambda: rng.integers(0, 2, SHAPE[0]) * 2 - 1,
            "c": lambda: rng.poisson(2.0, SHAPE),
            "b": lambda: rng.integers(0, 2, SHAPE),
        }[kind]()
        return made.astype(np.int64 if kind in "km" else np.float32)
    if kind == "x":
        return rng.standard_normal(SHAPE).astype(np.float32)
    if kind == "w":
        return rng.random(SHAPE[1]).astype(np.float32)
    made = rng.random(SHAPE).astype(np.float32) * 0.98 + 0.01
    if kind == "q":
        made[0, :2] = 0, 1
    return made


def same(found, wanted):
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 2e-5, 2e-6)


def mine(array):
    """Classes have the device's integers: PyTorch wants 64 bits, and some devices have 32."""
    return td.asarray(array.astype(np.int32) if array.dtype == np.int64 else array)


if torch is not None:

    def check(rng, name, reductions):
        """One reduction for each run of a loss."""
        kinds, runs = CASES[name]
        for options, reduction in zip(runs, itertools.cycle(reductions)):
            given = [operand(rng, kind) for kind in kinds]
            extra = {
                key: operand(rng, value) for key, value in options.items() if type(value) is str
            }
            options = options | extra
            ours = {key: mine(options[key]) for key in extra}
            theirs = {key: torch.asarray(options[key]) for key in extra}
            found = getattr(F, name)(*map(mine, given), **options | ours, reduction=reduction)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = getattr(torch.nn.functional, name)(
                    *map(torch.asarray, given), **options | theirs, reduction=reduction
                )
            same(found, wanted)

    @pytest.mark.parametrize("name", CASES)
    def test_values(rng, name):
        with td.use_device(td.device("cpu")):
            check(rng, name, ("none", "mean"))

    def test_on_every_device(device, rng):
        for name in ON_EVERY_DEVICE:
            check(rng, name, ("sum",))

    def test_weights_of_elements(rng):
        with td.use_device(td.device("cpu")):
            x, y, w = (operand(rng, kind) for kind in "xxp")
            for name in ("mse_loss", "l1_loss", "huber_loss"):
                for reduction in ("mean", "none"):
                    options = {"reduction": reduction}
                    found = getattr(F, name)(
                        *map(td.asarray, (x, y)), weight=td.asarray(w), **options
                    )
                    function = getattr(torch.nn.functional, name)
                    there = torch.asarray(w)
                    same(found, function(*map(torch.asarray, (x, y)), weight=there, **options))

    def test_variances(rng):
        with td.use_device(td.device("cpu")):
            x, t, var = (operand(rng, kind) for kind in "xxp")
            wanted = torch.nn.functional.gaussian_nll_loss
            for spread in (var[:, :1], var[:, 0]):
                right = wanted(*map(torch.asarray, (x, t, spread)))
                same(F.gaussian_nll_loss(*map(td.asarray, (x, t, spread))), right)
            right = wanted(torch.asarray(x), torch.asarray(t), 0.3)
            same(F.gaussian_nll_loss(td.asarray(x), td.asarray(t), 0.3), right)


def test_reductions_and_dtypes():
    with td.use_device(td.device("cpu")):
        x, t = td.asarray([1.0, 5.0], dtype=td.float16), td.asarray([1, 2])
        assert F.mse_loss(x, t).dtype == td.float16
        assert F.mse_loss(x, t, reduction="sum").item() == 9.0
        assert F.mse_loss(x, t, size_average=False).item() == 9.0
        assert F.mse_loss(x, t, reduce=False).tolist() == [0.0, 9.0]
        assert F.kl_div(td.zeros((2, 3)), td.ones((2, 3)), reduction="batchmean").item() == 0.0
        assert math.isnan(F.mse_loss(td.zeros(0), td.zeros(0)).item())
        with pytest.warns(UserWarning, match=r"target has shape \(2,\) and the input \(2, 1\)"):
            assert F.l1_loss(td.zeros((2, 1)), td.zeros(2)).item() == 0.0


def test_what_cannot_be():
    with td.use_device(td.device("cpu")):
        x = td.asarray([[0.5, 1.5]])
        found = F.binary_cross_entropy(x, td.ones((1, 2)), reduction="none")
        np.testing.assert_allclose(found.numpy(), [[math.log(2), math.nan]], 1e-6)
        assert F.multi_margin_loss(x, td.asarray([2])).isnan().item()
        one = F.multi_margin_loss(x[0], td.asarray([1]), reduction="none")
        assert one.tolist() == F.multi_margin_loss(x, td.asarray([1]), reduction="none").tolist()
        found = F.gaussian_nll_loss(x, x, td.asarray([[-1.0, 1.0]]), reduction="none")
        np.testing.assert_array_equal(found.isnan().numpy(), [[True, False]])
        assert F.soft_margin_loss(td.asarray([200.0]), td.asarray([-1.0])).item() == 200.0
        cases = {
            r'reduction is one of "mean", "sum", "none", not "all"'.replace('"all"', "'all'"): (
                lambda: F.mse_loss(x, x, reduction="all")
            ),
            r"input \(1, 2\) and target \(2,\)": lambda: F.binary_cross_entropy(x, x[0]),
            r"weight \(2,\) and input \(1, 2\)": lambda: F.mse_loss(x, x, weight=x[0]),
            "delta must be positive": lambda: F.huber_loss(x, x, delta=0.0),
            "beta must not be negative": lambda: F.smooth_l1_loss(x, x, beta=-1.0),
            r"variance of shape \(3,\) does not fit": lambda: F.gaussian_nll_loss(x, x, td.ones(3)),
            "a variance must not be negative": lambda: F.gaussian_nll_loss(x, x, -1.0),
            "margin must be positive": lambda: F.triplet_margin_loss(x, x, x, margin=0.0),
            "p is 1 or 2, not 3": lambda: F.multi_margin_loss(x, td.asarray([0]), p=3),
            r"classes of \(N,\)": lambda: F.multi_margin_loss(x, td.asarray([0, 1])),
            r"targets of that shape": lambda: F.multilabel_margin_loss(x, td.asarray([0, 1])),
            r"shape \(N, D\) and targets": lambda: F.cosine_embedding_loss(x, x, x),
        }
        for message, call in cases.items():
            with pytest.raises(ValueError, match=message):
                call()
        with pytest.raises(td.errors.DtypeError, match="takes real numbers, not complex64"):
            F.mse_loss(x.to(td.complex64), x)
        with pytest.raises(td.errors.DtypeError, match="targets are signed integers"):
            F.multi_margin_loss(x, td.asarray([0.0]))
