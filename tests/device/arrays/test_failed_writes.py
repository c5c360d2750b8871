"""Writes in place that turn out to be impossible: an error, and the elements stay."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import OutOfMemory, UnsupportedOnTarget
from treadle.graph import realize, recipes

HUGE = 1 << 50  # elements


@pytest.fixture(autouse=True)
def _tasks(monkeypatch):
    """Plans go through their tasks, whose launches the tests replace."""
    monkeypatch.setattr(realize, "function_for", lambda *arguments: None)
    monkeypatch.setattr(recipes.Single, "function", lambda single: None)


@pytest.fixture
def x(device):
    return td.asarray(np.arange(6, dtype=np.float32), device=device)


def impossible(device):
    """A number that no device has the memory to compute."""
    return td.sort(td.zeros(HUGE, device=device))[:6]


def check(x, expected):
    np.testing.assert_array_equal(x.numpy(), np.asarray(expected, np.float32))


def test_all_of_a_tensor(device, x):
    x += impossible(device)
    with pytest.raises(OutOfMemory) as caught:
        x.numpy()
    assert "the elements that it had before" in caught.value.__notes__[0]
    check(x, range(6))
    x += 1
    check(x, range(1, 7))


def test_a_part(device, x):
    y = x[2:4]
    with pytest.raises(OutOfMemory):  # a few elements are written at once
        y[...] = impossible(device)[:2]
    check(x, range(6))
    check(y, [2, 3])


def test_new_elements_for_old_ones(device, x):
    x[...] = impossible(device)
    with pytest.raises(OutOfMemory):
        x.numpy()
    check(x, range(6))


def test_what_was_written_before_stays(device, x):
    x *= 2
    x[1] = 50.0
    x[:3] += impossible(device)[:3]
    x += 1  # on top of what fails, and dropped with it
    with pytest.raises(OutOfMemory):
        x.numpy()
    check(x, [0, 50, 4, 6, 8, 10])


def test_another_tensor_that_is_read(device, x):
    other = td.asarray([1.0, 2.0], device=device)
    other += 1
    x += impossible(device)
    with pytest.raises(OutOfMemory):
        (td.asarray([5.0], device=device) + 1).numpy()  # states are computed with what is read
    check(x, range(6))
    check(other, [2, 3])
    check(td.asarray([5.0], device=device) + 1, [6])


def test_gradients_go_through_what_stayed(device):
    w = td.asarray([0.0, 1.0], device=device).requires_grad_()
    y = td.exp(w)
    y *= impossible(device)[:2]
    with pytest.raises(OutOfMemory):
        y.numpy()
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.exp([0, 1]), rtol=1e-6)


def test_an_unwritten_tensor_fails_each_time(device):
    y = impossible(device) + 1
    for _ in range(2):
        with pytest.raises(OutOfMemory):
            y.numpy()


MANY = 10_000  # elements; a write of so many waits until it is needed


def test_a_write_that_fails_when_it_runs(device, x, monkeypatch):
    launch, failing = realize._launch, []

    def refuse(task, arrays):
        if failing:
            raise UnsupportedOnTarget("too large for a kernel of this device")
        launch(task, arrays)

    monkeypatch.setattr(realize, "_launch", refuse)
    long = td.arange(MANY, dtype=td.float32, device=device).realize()
    long[1:] = long[1:] * 2 + 1
    derived = long * 2
    failing.append(True)
    with pytest.raises(UnsupportedOnTarget, match="too large"):
        long.numpy()
    with pytest.raises(UnsupportedOnTarget):
        x[1:3] = td.asarray([7.0, 8.0], device=device)
    failing.clear()
    check(long, range(MANY))
    check(x, range(6))
    with pytest.raises(td.errors.TreadleError, match="could not be computed: too large"):
        derived.numpy()
    x[1:3] = td.asarray([7.0, 8.0], device=device)
    check(x, [0, 7, 8, 3, 4, 5])


def test_an_interrupt_while_it_runs(device, monkeypatch):
    def interrupt(task, arrays):
        raise KeyboardInterrupt

    x = td.arange(MANY, dtype=td.float32, device=device).realize()
    x[1:] = x[1:] * 2 + 1
    with monkeypatch.context() as patch:
        patch.setattr(realize, "_launch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            x.numpy()
    check(x, range(MANY))


def test_earlier_elements_take_no_memory_while_new_ones_are_made(device, monkeypatch):
    x = td.asarray([1.0, 2.0], device=device)
    x *= 3
    assert x._cell.before is not None
    launch, held = realize._launch, []

    def noted(task, arrays):
        held.append(x._cell.before)
        launch(task, arrays)

    monkeypatch.setattr(realize, "_launch", noted)
    check(x, [3, 6])
    assert held == [None]
    assert not x._cell.versions
