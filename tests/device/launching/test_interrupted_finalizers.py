"""Ctrl-C while an array is freed is neither lost nor loses the memory."""

from __future__ import annotations

import _thread
import gc
import operator
from collections import deque

import pytest

import treadle as td


def _dropped_with_an_interrupt(objects):
    """Drop objects with a pending Ctrl-C. All of it is C, so that Python sees the interrupt first
    where a finalizer runs Python."""
    deque(map(operator.call, [_thread.interrupt_main, objects.clear]), maxlen=0)


def _with_history():
    weight = td.ones(3).requires_grad_()
    return (weight * 2).exp().sum().realize()


def _written_in_place():
    x = td.ones(3).realize()
    x += 1
    return x


MADE = {
    "computed": lambda: (td.ones(3) + 1).realize(),
    "pending": lambda: td.ones(3) + 1,
    "view": lambda: td.ones((3, 3)).realize()[0],
    "history": _with_history,
    "written in place": _written_in_place,
    "result of a layer": lambda: td.nn.Linear(3, 3)(td.ones(3)).realize(),
}


@pytest.mark.parametrize("name", MADE)
def test_an_interrupt_while_an_array_is_freed(device, name):
    MADE[name]()
    gc.collect()
    before = td.memory_stats(device)["used"]
    objects = [MADE[name]()]
    with pytest.raises(KeyboardInterrupt):
        _dropped_with_an_interrupt(objects)
    gc.collect()
    assert td.memory_stats(device)["used"] == before
