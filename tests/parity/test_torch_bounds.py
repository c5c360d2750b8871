"""What PyTorch refuses on the CPU for its values, `treadle.torch` refuses with the same class of
error there, and computes where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.torch as ours
from tests.parity.comparing import torch

# PyTorch's class has a method in the form of NumPy 1.
pytestmark = pytest.mark.filterwarnings("ignore:__array_wrap__")

# The letter is `torch`.
CASES: dict[str, Callable[[Any], Any]] = {
    "gather": lambda t: t.ones(2, 3).gather(1, t.tensor([[5], [0]])),
    "gather, from the end": lambda t: t.ones(2, 3).gather(1, t.tensor([[-1], [0]])),
    "index_select": lambda t: t.ones(2, 3).index_select(0, t.tensor([2])),
    "scatter": lambda t: t.ones(2, 3).scatter(1, t.tensor([[3]]), 1.0),
    "scatter_add": lambda t: t.ones(2, 3).scatter_add(1, t.tensor([[3]]), t.ones(1, 1)),
    "index": lambda t: t.ones(3)[t.tensor([3])],
    "index, from the end": lambda t: t.ones(3)[t.tensor([-3])],
    "index before the end": lambda t: t.ones(3)[t.tensor([-4])],
    "index of the second axis": lambda t: t.ones(3, 3)[:, t.tensor([0, 4])],
    "assignment": lambda t: t.ones(3).__setitem__(t.tensor([3]), 1.0),
    "put_": lambda t: t.ones(3).put_(t.tensor([4]), t.tensor([1.0])),
    "take": lambda t: t.ones(3).take(t.tensor([-4])),
    "index_add": lambda t: t.ones(3).index_add(0, t.tensor([3]), t.tensor([1.0])),
    "index_fill": lambda t: t.ones(3).index_fill(0, t.tensor([3]), 1.0),
    "index_copy": lambda t: t.ones(3).index_copy(0, t.tensor([3]), t.tensor([1.0])),
    "Embedding": lambda t: t.nn.Embedding(3, 2)(t.tensor([3])).shape,
    "cross_entropy": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 3])),
    "cross_entropy, ignored": lambda t: t.nn.functional.cross_entropy(
        t.ones(2, 3), t.tensor([0, -100])
    ),
    "CrossEntropyLoss": lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.tensor([0, 3])),
    "NLLLoss": lambda t: t.nn.NLLLoss()(t.ones(2, 3), t.tensor([0, -1])),
    "multinomial": lambda t: t.multinomial(t.tensor([0.0, 0.0]), 1),
    "bernoulli": lambda t: t.bernoulli(t.tensor([1.5])),
    "// 0": lambda t: t.tensor([1, 2]) // 0,
    "// with a 0": lambda t: t.tensor([1, 2]) // t.tensor([0, 1]),
    "// 0.0": lambda t: t.tensor([1.0, -2.0]) // 0,
    "% 0": lambda t: t.tensor([1, 2]) % 0,
    "div, cut": lambda t: t.div(t.tensor([1, 2]), t.tensor([0, 1]), rounding_mode="trunc"),
    "fmod": lambda t: t.fmod(t.tensor([1, 2]), 0),
    "2 ** 63": lambda t: t.tensor(2**63),
    "300 in 8 bits": lambda t: t.tensor([300], dtype=t.uint8),
    "-1 in 8 bits": lambda t: t.tensor([-1], dtype=t.uint8),
    "2 ** 31 in 32 bits": lambda t: t.tensor([2**31], dtype=t.int32),
    "2 ** 64 - 1": lambda t: t.tensor([2**64 - 1], dtype=t.uint64),
    "BCELoss": lambda t: t.nn.BCELoss()(t.tensor([1.5]), t.tensor([1.0])),
    "binary_cross_entropy": lambda t: t.nn.functional.binary_cross_entropy(
        t.tensor([float("nan")]), t.tensor([1.0])
    ),
    "NumPy's array, equal": lambda t: t.ones(2) == np.ones(2),
    "NumPy's array on the right": lambda t: (t.ones(2) + np.ones(2)).element_size(),
    "NumPy's matrix": lambda t: t.ones(3) @ np.ones(3, np.float32),
    "NumPy's function": lambda t: isinstance(np.exp(t.zeros(2)), t.Tensor),
    "a gradient of another shape": lambda t: setattr(
        t.ones(3, requires_grad=True), "grad", t.ones(2)
    ),
    "bits": lambda t: t.tensor([1.0, -2.5, 0.0]).view(t.int32),
    "bits of wider elements": lambda t: t.tensor([[1, 2], [3, -4]], dtype=t.int32).view(t.int64),
    "bits of halves": lambda t: t.tensor([1.0, -2.5], dtype=t.float16).view(t.int16),
    "bits that do not fit": lambda t: t.ones(3).view(t.float64),
    "a part of a shape": lambda t: repr(t.zeros(2, 3, 4).shape[1:] + (5,)),  # noqa: RUF005
}  # fmt: skip


def _outcome(case: Callable[[Any], Any], space: Any) -> Any:
    try:
        found = case(space)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        kinds = (IndexError, ValueError, TypeError, RuntimeError)
        return [kind.__name__ for kind in kinds if isinstance(error, kind)]
    return found.tolist() if hasattr(found, "tolist") else found


if torch is not None:

    @pytest.mark.parametrize("name", CASES)
    def test_refused_as_by_pytorch(name):
        with ours.device("cpu"):
            mine = _outcome(CASES[name], ours)
        theirs = _outcome(CASES[name], torch)
        if isinstance(theirs, list) and theirs and isinstance(theirs[0], str):
            assert set(theirs) <= set(mine), mine
        else:
            assert mine == theirs

    @pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "hardtanh", "hardshrink"])
    def test_second_derivatives_of_straight_pieces_are_zeros(name):
        gradients = []
        for space in (torch, ours):
            w = space.tensor([1.0, 2.0, 0.0], requires_grad=True)
            b = space.tensor([0.5, -0.5, float("inf")])
            y = getattr(space.nn.functional, name)(w * b)
            (first,) = space.autograd.grad(y.sum(), w, create_graph=True)
            first[:2].sum().backward()
            gradients.append((first[:2].tolist(), w.grad[:2].tolist()))
        assert gradients[0] == gradients[1]


def test_compiled_functions_look_too():
    with ours.device("cpu"):
        part = ours.compile(lambda x, i: x[i].sum() + x.gather(0, i).sum())
        x = ours.arange(10.0)
        for first in range(3):
            assert part(x, ours.tensor([first, 9 - first])).item() == 18
        with pytest.raises(IndexError):
            part(x, ours.tensor([3, 12]))


def test_nothing_is_read_by_default():
    x = td.arange(3, device="cpu")
    assert x[td.asarray([5], device="cpu")].tolist() == [0]
