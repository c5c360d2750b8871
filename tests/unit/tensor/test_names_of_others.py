"""What is said of names and arguments that people know from NumPy and PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle as td


@pytest.fixture(autouse=True)
def _x():
    """`X`, made anew for each test: others close the device."""
    global X
    X = td.asarray([[3.0, 1.0], [2.0, 4.0]], device="cpu")


@td.kernel
def filled(a: td.Array[td.f32], count: td.i32, other):
    a[0] = td.f32(count + other)


MESSAGES = {
    "td.tensor": (lambda: td.tensor([1]), TypeError, r"td\.asarray\(…\) makes a tensor"),
    "td.array": (lambda: td.array([1]), AttributeError, r"'array': td\.asarray\(…\) makes"),
    "td.cat": (lambda: td.cat([X]), AttributeError, r"write td\.concat"),
    "td.vstack": (lambda: td.vstack([X]), AttributeError, r"write td\.concat"),
    "td.hanning": (lambda: td.hanning(4), AttributeError, r"write td\.hann_window\(n, periodic"),
    "td.cumsum": (lambda: td.cumsum(X), AttributeError, r"write td\.cumulative_sum\(x, axis=…\)"),
    "x.cuda": (lambda: X.cuda(), AttributeError, r"'cuda': x\.to\('cuda'\) moves it"),
    "x.cpu": (lambda: X.cpu(), AttributeError, r"x\.to\('cpu'\) moves it"),
    "x.float": (lambda: X.float(), AttributeError, r"x\.to\(td\.float32\)"),
    "reshape": (lambda: X.reshape(-1, -1), td.errors.ShapeError, r"only one extent .* can be -1"),
    "lr": (lambda: td.optim.SGD([td.ones(1).requires_grad_()], lr="a"), TypeError,
           "lr must be a number, not 'a'"),
    "typed number": (lambda: filled.launch(1, X.reshape(-1), 2**31, 1), td.errors.LaunchError,
                     "2147483648 does not fit the parameter count of filled, which is i32, from "
                     "-2147483648 to 2147483647"),
    "number": (lambda: filled.launch(1, X.reshape(-1), 1, 2**40), td.errors.LaunchError,
               r"parameter other of filled, which has no type.* as in `other: td\.i64`"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_the_error_says_what_to_write(name):
    call, kind, words = MESSAGES[name]
    with pytest.raises(kind, match=words):
        call()


def test_names_of_others_are_not_there():
    assert not hasattr(X, "cuda")
    assert not hasattr(td, "array")
    assert "array" not in dir(td)


def test_what_is_advised_exists():
    for name, advice in td._ELSEWHERE.items():
        assert name not in td.__all__
        assert not hasattr(td, name)
        for path in re.findall(r"td\.((?:\w+\.)*\w+)", advice):
            found = td
            for part in path.split("."):
                found = getattr(found, part)


@pytest.mark.parametrize("name", ["sort", "argsort", "flip", "tril", "triu", "diagonal"])
@pytest.mark.parametrize("second", [0, 1])
def test_a_second_argument_by_position(name, second):
    expected = getattr(np, name)(X.numpy(), second).tolist()
    assert getattr(td, name)(X, second).tolist() == expected
    assert getattr(X, name)(second).tolist() == expected


def test_an_axis_by_position():
    x = X.numpy()
    assert td.concat([X, X], 1).tolist() == np.concatenate([x, x], 1).tolist()
    assert td.stack([X, X], 1).tolist() == np.stack([x, x], 1).tolist()
    assert td.roll(X, 1, 0).tolist() == np.roll(x, 1, 0).tolist()


def test_a_union_is_described_by_what_it_takes():
    source = (
        "struct P { int a; union { int i; float f; } u; }; __global__ void k(P *p) { p->a = 1; }"
    )
    given = np.zeros(2, [("a", "i4"), ("u", "f4")])
    with pytest.raises(td.errors.DtypeError, match=r"u \(a union, given as u32\) at 4"):
        td.cuda_module(source).k[1, 1](given)
