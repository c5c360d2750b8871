"""`x[index]` of treadle.torch, reading and writing, views that write through, and other forms of
calls that PyTorch's samples do not have: beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.torch as mine
from tests.parity.comparing import one_by_one
from tests.parity.comparing import torch as theirs

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = (IndexError, RuntimeError, TypeError, ValueError)
ALL = slice(None)
SHAPE = (2, 3, 4)

# Of the namespace: `m.tensor` makes a tensor of PyTorch's or of treadle's.
INDICES: dict[str, Callable[[Any], Any]] = {
    "an integer before a list": lambda m: (0, ALL, [1, 2]),
    "an integer beside a list": lambda m: (ALL, 0, [1, 2]),
    "lists apart": lambda m: ([0, 1], ALL, [1, 2]),
    "a negative list": lambda m: (-1, [-1, -2]),
    "a nested list": lambda m: [[0, 1]],
    "a tensor": lambda m: m.tensor([[0, 1], [1, 0]]),
    "a tensor behind dots": lambda m: (..., m.tensor([3, 0])),
    "tensors that broadcast": lambda m: (m.tensor([[0], [1]]), m.tensor([0, 2])),
    "tensors that do not": lambda m: (m.tensor([0, 1]), m.tensor([0, 1, 2])),
    "a tensor without axes": lambda m: m.tensor(1),
    "one with another": lambda m: (m.tensor(1), m.tensor([0, 2])),
    "tensors in a list": lambda m: [m.tensor(0), m.tensor(1)],
    "a new axis": lambda m: (None, 1),
    "a new axis before a tensor": lambda m: (1, None, m.tensor([0, 2])),
    "true": lambda m: True,
    "false": lambda m: False,
    "true behind": lambda m: (ALL, None, True),
    "a mask": lambda m: m.tensor([[True, False, True], [False, False, True]]),
    "a mask and an integer": lambda m: (
        m.tensor([[True, False, True], [False, False, True]]), 1,
    ),
    "a mask of another shape": lambda m: m.tensor([True, False, True]),
    "a step": lambda m: (ALL, slice(None, None, 2)),
    "a negative step": lambda m: (slice(None, None, -1),),
    "outside": lambda m: 5,
    "too many": lambda m: (0, 0, 0, 0),
    "a float": lambda m: 1.5,
    "floats": lambda m: m.tensor([0.0, 1.0]),
    "an array": lambda m: np.array([1, 0]),
    "a range": lambda m: range(2),
    "an empty list": lambda m: [],
    "nothing": lambda m: (),
}  # fmt: skip
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "mT": lambda m, x: x.mT,
    "view": lambda m, x: x.view(4, 6),
    "reshape": lambda m, x: x.reshape(-1),
    "narrow": lambda m, x: x.narrow(1, 1, 2),
    "select": lambda m, x: x.select(2, 1),
    "diagonal": lambda m, x: x.diagonal(0, 1, 2),
    "unfold": lambda m, x: x.unfold(2, 2, 2),
    "chunk": lambda m, x: x.chunk(2, 2)[1],
    "unbind": lambda m, x: x.unbind(1)[2],
    "squeeze": lambda m, x: x[:1].squeeze(0),
    "flatten": lambda m, x: x.flatten(1),
    "movedim": lambda m, x: x.movedim(0, -1),
    "split": lambda m, x: x.split([1, 2], 1)[0],
    "unflatten": lambda m, x: x.unflatten(2, (2, 2)),
    "tensor_split": lambda m, x: m.tensor_split(x, 3, 2)[0],
    "as_strided": lambda m, x: x.as_strided((2, 2), (4, 1), 1),
    "slices": lambda m, x: x[:, 1:, ::2],
    "detach": lambda m, x: x.detach(),
}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "axis=": lambda m, x: m.sum(x, axis=1, keepdims=True),
    "max of two": lambda m, x: m.max(x, x * 2),
    "max along": lambda m, x: m.max(x, 1, True)[1],
    "mean of integers": lambda m, x: x.long().mean(),
    "std(False)": lambda m, x: x.std(unbiased=False),
    "norm(2, -1, True)": lambda m, x: x.norm(2, -1, True),
    "view of a permutation": lambda m, x: x.permute(2, 0, 1).view(-1),
    "no such axis": lambda m, x: x.sum(5),
    "cat of other axes": lambda m, x: m.cat((x, x[0])),
    "expand(-1)": lambda m, x: x.expand(5, -1, -1, -1),
    "expand to less": lambda m, x: x.expand(3, 3, 4),
    "gather by floats": lambda m, x: x.gather(2, m.tensor([[[0.0]]])),
    "scatter_(reduce=)": lambda m, x: x.scatter_(1, m.tensor([[[0, 1]]]), 2.0, reduce="multiply"),
    "where alone": lambda m, x: m.where(x > 20),
    "einsum of lists": lambda m, x: m.einsum(x, [0, 1, 2], [2, 0]),
    "mm of stacks": lambda m, x: m.mm(x, x),
    "quantile at a tensor": lambda m, x: m.quantile(x, m.tensor([0.1, 0.5])),
    "searchsorted of a number": lambda m, x: m.searchsorted(m.tensor([1.0, 2.0, 3.0]), 2.0),
    "inv of no matrix": lambda m, x: m.linalg.inv(x),
    "inv of a singular one": lambda m, x: m.linalg.inv(m.zeros(2, 2)),
    "cholesky of a negative one": lambda m, x: m.linalg.cholesky(-m.eye(2)),
    "max of nothing": lambda m, x: m.max(x[:0]),
    "fill_diagonal_": lambda m, x: m.zeros(7, 3).fill_diagonal_(5, True),
    "squeeze_": lambda m, x: x[:1].squeeze_(0).t_(),
    "kaiser_window": lambda m, x: m.kaiser_window(5, True, 8.0),
}


def outcome(m: Any, call: Callable[[Any, Any], Any]) -> Any:
    """What a call returns, as shapes, dtypes and numbers; or the class of its error."""
    x = m.arange(24.0).reshape(SHAPE)
    try:
        found = call(m, x)
    except KINDS as error:
        return next(kind for kind in KINDS if isinstance(error, kind) and _is_usual(error, kind))
    found = found if isinstance(found, (list, tuple)) else [found]
    return [(tuple(each.shape), str(each.dtype).split(".")[-1], each.tolist()) for each in found]


def _is_usual(error: Exception, kind: type[Exception]) -> bool:
    """treadle's shape errors are ValueErrors, too, and RuntimeErrors as PyTorch's."""
    return not (kind is TypeError and isinstance(error, RuntimeError))


def check(call: Callable[[Any, Any], Any]) -> None:
    with one_by_one():
        wanted, found = outcome(theirs, call), outcome(mine, call)
    if isinstance(wanted, list) and isinstance(found, list):
        assert [each[:2] for each in found] == [each[:2] for each in wanted]
        for (*_, one), (*_, other) in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, 1e-5)
    else:
        assert found is wanted


@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str) -> None:
    index = INDICES[name]

    def write(m: Any, x: Any) -> Any:
        part = x[index(m)]
        x[index(m)] = m.arange(part.numel()).reshape(part.shape) * 1.5
        return x

    def write_one(m: Any, x: Any) -> Any:
        x[index(m)] = 7
        return x

    check(lambda m, x: x[index(m)])
    check(write)
    check(write_one)


@pytest.mark.parametrize("name", VIEWS)
def test_views_write_through(name: str) -> None:
    def write(m: Any, x: Any) -> Any:
        view = VIEWS[name](m, x)
        view.mul_(0).add_(9)
        return [x, view]

    check(write)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    check(CALLS[name])


@pytest.mark.skipif(not td.is_available("webgpu"), reason="needs a WebGPU device")
def test_indices_on_the_cpu_index_tensors_of_other_devices():
    host = mine.arange(12).reshape(3, 4).to(mine.int32)
    x = host.to("webgpu")
    rows, columns, mask = (
        mine.tensor([2, 0]),
        mine.tensor([1, -1]),
        mine.tensor([True, False, True]),
    )
    for index in (rows, mask, (slice(1, None), columns), (rows, columns)):
        assert x[index].tolist() == host[index].tolist()
        changed, wanted = x.clone(), host.clone()
        changed[index] = 7
        wanted[index] = 7
        assert changed.tolist() == wanted.tolist()
    with pytest.raises(RuntimeError, match="webgpu"):
        host[mine.tensor([1], device="webgpu")]
