"""What tensors are made of among Python's objects, what is said of the others, and what operators
make of them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import treadle as td

BIG = 2**70


class Thing:
    pass


def _generator():
    yield 1


REFUSED = [
    (None, "None"),
    ([1, None], r"None, which is at \[1\]"),
    ([[1, 2], [3.5, None]], r"None, which is at \[1\]\[1\]"),
    ("ab", "the text 'ab'"),
    (["3", 1], r"the text '3', which is at \[0\]"),
    ([1, "3"], r"the text '3', which is at \[1\]"),
    (b"ab", "the bytes b'ab'"),
    ({1, 2}, r"a set: write list\(x\)"),
    ({1: 2}, r"a dict: write list\(x\.values\(\)\)"),
    ([{1: 2}], r"a dict, which is at \[0\]"),
    (map(int, [1]), r"a map: write list\(x\)"),
    (_generator(), r"a generator: write list\(x\)"),
    (Thing(), "a Thing"),
    (int, "the type int"),
    (..., "Ellipsis"),
    (np.array(["a"]), r"text \(NumPy's dtype <U1\)"),
    (np.array([None]), r"None, which is at \[0\]"),
    (np.array([1], "datetime64[s]"), r"dates .*x\.astype\(np\.int64\)"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_named(device, given, said):
    message = f"^a tensor is made of numbers, nested lists of them, and arrays, not of {said}"
    for made in (
        lambda: td.asarray(given, device=device),
        lambda: td.asarray(given, dtype=td.float32, device=device),
        lambda: td.full((), given, device=device),
        lambda: td.zeros(2, device=device).__setitem__(0, given),
    ):
        with pytest.raises(td.errors.DtypeError, match=message) as caught:
            made()
        assert "\n" not in str(caught.value)


def test_integers_that_do_not_fit_are_named(device):
    for given in (BIG, [BIG], [[1, -BIG]], [1, BIG]):
        sign = "-" if given == [[1, -BIG]] else ""
        with pytest.raises(OverflowError, match=f"^{sign}{BIG} does not fit into int"):
            td.asarray(given, device=device)
    with pytest.raises(OverflowError, match=r"^-1 does not fit into uint8, which holds 0 to 255"):
        td.asarray([1, -1], dtype=td.uint8, device=device)
    for given in (10**5000, [10**5000]):  # Python itself refuses to print these
        with pytest.raises(OverflowError, match=r"^an integer of 16610 bits does not fit into int"):
            td.asarray(given, device=device)
    n = td.ones(2, dtype=td.int32, device=device)
    with pytest.raises(OverflowError, match=f"^{BIG} does not fit into int32"):
        n + BIG


def test_numbers_of_several_kinds_are_of_the_highest(device):
    made = td.asarray([1, 2.5, BIG], device=device)
    assert made.dtype is td.float32
    assert made.tolist() == [1.0, 2.5, float(BIG)]
    assert td.asarray([1j, BIG], device=device).tolist() == [1j, float(BIG)]
    assert td.asarray([BIG, -(10**400)], dtype=td.float32, device=device).tolist() == [
        float(BIG),
        -np.inf,
    ]
    assert td.asarray(np.array([1, 2.5], object), device=device).tolist() == [1.0, 2.5]


def test_decimals_and_fractions_take_a_dtype(device):
    given = [Decimal("1.5"), Fraction(1, 4), 2]
    assert td.asarray(given, dtype=td.float32, device=device).tolist() == [1.5, 0.25, 2.0]
    assert td.asarray(given, dtype=td.int32, device=device).tolist() == [1, 0, 2]
    with pytest.raises(td.errors.DtypeError, match="a Decimal has no dtype: name one"):
        td.asarray(given, device=device)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize(
    "number", [BIG, -BIG, 10**5000, 300, -1], ids=["big", "-big", "huge", "300", "-1"]
)
def test_comparisons_with_integers_beyond_the_dtype(device, dtype, number):
    data = np.array([0, 1, 1], dtype)
    x, exact = td.asarray(data, device=device), data.astype(object) * 1
    for made, expected in (
        (x == number, exact == number), (x != number, exact != number),
        (x < number, exact < number), (x <= number, exact <= number),
        (x > number, exact > number), (x >= number, exact >= number),
        (number > x, exact < number), (number <= x, exact >= number),
    ):  # fmt: skip
        assert made.dtype is td.bool
        assert made.tolist() == expected.astype(bool).tolist()
        assert made.device is x.device


def test_operators_with_what_is_no_operand(device):
    x = td.asarray([1.0, 2.0], device=device)
    for other in (None, "a", b"a", {1}, Thing(), _generator(), {}):
        assert (x == other) is False
        assert (x != other) is True
        for operation in (
            lambda other=other: x + other,
            lambda other=other: x * other,
            lambda other=other: x < other,
            lambda other=other: x @ other,
        ):
            with pytest.raises(TypeError, match=f"'Tensor' and '{type(other).__name__}'"):
                operation()
    assert (x + BIG).tolist() == [float(BIG)] * 2
    assert (x + 10**400).tolist() == [np.inf] * 2


def test_integers_are_asked_for_by_name(device):
    x = td.ones((2, 2), device=device)
    for said, call in {
        "linspace: num is an integer, not str": lambda: td.linspace(0, 1, "a"),
        "eye: n_rows is an integer, not float": lambda: td.eye(2.0),
        "eye: n_cols is an integer, not str": lambda: td.eye(2, "a"),
        "k is an integer, not float": lambda: td.tril(x, k=1.5),
        "roll: a shift is an integer, not float": lambda: td.roll(x, 1.5),
        "tile: a number of repetitions is an integer, not str": lambda: td.tile(x, "a"),
        "a shape is an integer or a tuple of integers": lambda: x.reshape("a"),
        "a shape is an integer or a tuple of integers, not .4": lambda: td.zeros({4}),
        "matrix_power: n is an integer, not float": lambda: td.linalg.matrix_power(x, 0.5),
    }.items():
        with pytest.raises(TypeError if "shape" not in said else td.errors.ShapeError, match=said):
            call()


def test_an_optimizer_says_what_it_takes(device):
    with td.use_device(device):
        model = td.nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"not a Linear: pass model\.parameters\(\)$"):
        td.optim.Adam(model)
    with pytest.raises(TypeError, match=r"iterable of tensors or dicts, not a int$"):
        td.optim.SGD(3, lr=0.1)
