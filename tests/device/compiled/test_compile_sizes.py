"""Compiled functions whose shapes and integers change."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle as td
from treadle.runtime.counters import counts


def prefix(x, n):
    return td.sum(x[:n] * 2, axis=0) + n


@pytest.fixture(autouse=True)
def used(device):
    with td.use_device(device):
        yield


def check(f, rows, n):
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    found = f(td.asarray(x), n)
    np.testing.assert_array_equal(found.numpy(), (x[:n] * 2).sum(0) + n)


def test_sizes_run_in_python_from_the_second_on_if_dynamic():
    f = td.compile(prefix, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(f, 9, 4)
        check(f, 9, 4)
        assert f.traces == 1
        for rows, n in ((9, 5), (8, 4), (3, 3), (1, 1), (5, 0), (9, 4)):
            check(f, rows, n)
    assert f.traces == 1
    before = counts().plans
    for n in range(2, 30):
        check(f, 40, n)
    assert counts().plans - before <= 6


def test_sizes_have_traces_if_not_dynamic():
    f = td.compile(prefix, dynamic=False)
    for n in range(1, 8):
        check(f, 9, n)
        check(f, 9, n)
    assert f.traces == 7
    with pytest.warns(UserWarning, match="8 values of its argument 2, the last one 8"):
        check(f, 9, 8)
    check(f, 9, 9)
    assert f.traces == 9


def test_many_values_of_an_integer_run_in_python_by_default():
    f = td.compile(prefix)
    for n in range(1, 9):
        check(f, 20, n)
    assert f.traces == 8
    with pytest.warns(
        UserWarning, match=r"traced for 8 values of its argument 2: for others, such"
    ):
        check(f, 20, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (10, 3, 11, 9, 1):  # those with a trace are replayed
            check(f, 20, n)
    assert f.traces == 8
    f.clear()
    check(f, 20, 12)
    assert f.traces == 1


def test_many_shapes_run_in_python_by_default():
    f = td.compile(lambda x, y: {"sum": x + y["part"]})
    for n in range(1, 9):
        f(td.ones(n), {"part": td.ones(n)})
    with pytest.warns(UserWarning, match=r"8 shapes of its argument 1: for others, such as \(9,\)"):
        assert f(td.ones(9), {"part": td.ones(9)})["sum"].tolist() == [2.0] * 9
    assert f.traces == 8


def test_objects_and_floats_are_not_sizes():
    f = td.compile(lambda x, flag, rate: x * rate if flag else x, dynamic=True)
    for flag in (True, False):
        for rate in (0.5, 2.0):
            assert f(td.ones(2), flag, rate).tolist() == [rate if flag else 1.0] * 2
    assert f.traces == 4


def test_strict_functions_are_traced_for_all_sizes():
    f = td.compile(prefix, strict=True)
    for n in range(1, 8):
        check(f, 9, n)
    assert f.traces == 7
    with pytest.raises(td.errors.LaunchError, match="8 values of its argument 2"):
        check(f, 9, 8)


def test_what_dynamic_is():
    with pytest.raises(TypeError, match="dynamic is True, False or None, not 3"):
        td.compile(prefix, dynamic=3)
