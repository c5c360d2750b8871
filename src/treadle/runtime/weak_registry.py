"""A registry of live objects that notifies subscribers of new ones."""

from __future__ import annotations

import weakref
from typing import Generic, Protocol, TypeVar

from treadle.core import forks

T = TypeVar("T")
S = TypeVar("S", contravariant=True)


class Subscriber(Protocol[S]):
    """Receives the objects that are added."""

    def added(self, one: S) -> None:
        """Called with each new object."""


class WeakRegistry(Generic[T]):
    """The live objects, weakly referenced. Hold `lock` to change all of them."""

    def __init__(self) -> None:
        self.lock = forks.lock()
        self._all: weakref.WeakSet[T] = weakref.WeakSet()
        self._subscribers: list[Subscriber[T]] = []

    def add(self, one: T) -> None:
        """Add an object. Each subscriber gets it once, from here or from `subscribe`."""
        with self.lock:
            self._all.add(one)
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            subscriber.added(one)

    def all(self) -> list[T]:
        """The live objects."""
        with self.lock:
            return list(self._all)

    def subscribe(self, subscriber: Subscriber[T]) -> list[T]:
        """The live objects. The subscriber is called with those that are added later."""
        with self.lock:
            self._subscribers.append(subscriber)
            return list(self._all)

    def unsubscribe(self, subscriber: Subscriber[T]) -> None:
        """Stop calling the subscriber."""
        with self.lock:
            self._subscribers = [each for each in self._subscribers if each is not subscriber]
