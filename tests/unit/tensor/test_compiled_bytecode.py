"""What bytecode tells of the names that a function reads, and the guards that are made of them."""

import math

import numpy as np
import pytest

from treadle.tensor.compiled import guards
from treadle.tensor.compiled.bytecode import reads_of
from treadle.tensor.compiled.guards import PASSED, Guard, checker, same

table: dict[str, int] = {}
items: list[int] = []


def _reads_and_writes(self, x):
    items.append(x)
    table[x] = x
    self.last = x
    self.count += 1
    return self.inner.weight


def test_names_that_are_read():
    reads = reads_of(_reads_and_writes.__code__)
    assert reads.variables == {"items": False, "table": False}
    assert "last" not in reads.attributes
    assert reads.attributes["count"]
    assert {"inner", "weight"} <= reads.attributes.keys()
    assert not reads.any_name


@pytest.mark.parametrize(
    ("function", "any_name"),
    [
        (lambda self: getattr(self, "a"), False),  # noqa: B009
        (lambda self: getattr(self, "a", len(self)), False),
        (lambda self, n: getattr(self, "w" + n, None), True),
        (lambda self, n: getattr(self, f"w{n}"), True),
        (lambda self, n: getattr(self, n), True),
        (lambda self, n: getattr(self[n], "a", None) * print("b"), False),
        (lambda self, n: map(getattr, n), True),
        (lambda self: vars(self), True),
        (lambda self: self.__dict__["a"], True),
    ],
)
def test_attributes_by_names_that_are_not_known(function, any_name):
    assert reads_of(function.__code__).any_name == any_name


def test_cells_of_functions_within():
    weight, unused = 1, []

    def outer():
        def inner():
            unused.append(weight)
            return weight

        return inner

    reads = reads_of(outer.__code__)
    assert reads.cells == {"weight": True, "unused": False}


def test_plain_values_are_the_same():
    nan = float("nan")
    for one, other, expected in (
        (1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (nan, math.nan, True),
        ("a", "a", True), (None, None, True), (np.float32(1), np.float32(1), True),
        (np.float32(1), np.float64(1), False), ([], [], False),
    ):  # fmt: skip
        assert same(one, other) == expected


def test_a_check_tells_which_guard_fails(monkeypatch):
    holder = {"a": 1, "b": 2}
    made = [Guard("{0}[{1}] is {2}", (holder, key, holder[key]), key, "{0}[{1}]", holder[key])
            for key in holder]  # fmt: skip
    for limit in (2000, 1):
        monkeypatch.setattr(guards, "_IN_ONE", limit)
        holder |= {"a": 1, "b": 2}
        check = checker(made)
        assert check() == PASSED
        holder["b"] = 3
        assert check() == 1
        assert guards.now(made[1]) == 3
        del holder["a"]
        assert check() == 0
        assert guards.now(made[0]) is guards.MISSING
    assert checker([])() == PASSED
