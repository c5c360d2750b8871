"""Observers of all objects of a kind."""

from __future__ import annotations

import gc

from treadle.runtime.weak_registry import WeakRegistry


class One:
    pass


class Watcher:
    def __init__(self):
        self.seen = []

    def added(self, one):
        self.seen.append(one)


def test_a_subscriber_gets_each_object_once():
    every, watcher, other = WeakRegistry(), Watcher(), Watcher()
    first, second, third = One(), One(), One()
    every.add(first)
    assert every.subscribe(watcher) == [first]
    every.add(second)
    assert set(every.subscribe(other)) == {first, second}
    every.unsubscribe(watcher)
    every.unsubscribe(watcher)  # one that ends twice
    every.add(third)
    assert (watcher.seen, other.seen) == ([second], [third])


def test_objects_are_not_kept_alive():
    every, watcher = WeakRegistry(), Watcher()
    every.add(One())
    gc.collect()
    assert every.subscribe(watcher) == []
