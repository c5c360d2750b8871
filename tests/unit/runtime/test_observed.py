"""Observers of all objects of a kind."""

from __future__ import annotations

import gc

from treadle.runtime.observed import Observed


class One:
    pass


class Watcher:
    def __init__(self):
        self.seen = []

    def opened(self, one):
        self.seen.append(one)


def test_an_observer_gets_each_object_once():
    every, watcher, other = Observed(), Watcher(), Watcher()
    first, second, third = One(), One(), One()
    every.add(first)
    assert every.observe(watcher) == [first]
    every.add(second)
    assert set(every.observe(other)) == {first, second}
    every.leave(watcher)
    every.leave(watcher)  # one that ends twice
    every.add(third)
    assert (watcher.seen, other.seen) == ([second], [third])


def test_objects_are_not_kept_alive():
    every, watcher = Observed(), Watcher()
    every.add(One())
    gc.collect()
    assert every.observe(watcher) == []
