"""Objects of a kind, for those who want to see all that there are and will be."""

from __future__ import annotations

import weakref
from typing import Generic, Protocol, TypeVar

from treadle.core import forks

T = TypeVar("T")
S = TypeVar("S", contravariant=True)


class Observer(Protocol[S]):
    """One who wants to see."""

    def opened(self, one: S) -> None:
        """There is one more."""


class Observed(Generic[T]):
    """The objects that live. `lock` is to be held by who changes all of them."""

    def __init__(self) -> None:
        self.lock = forks.lock()
        self._all: weakref.WeakSet[T] = weakref.WeakSet()
        self._observers: list[Observer[T]] = []

    def add(self, one: T) -> None:
        """There is one more: each observer either hears of it, or is given it by `observe`."""
        with self.lock:
            self._all.add(one)
            observers = tuple(self._observers)
        for observer in observers:
            observer.opened(one)

    def observe(self, observer: Observer[T]) -> list[T]:
        """All that there are. The observer hears of those that come."""
        with self.lock:
            self._observers.append(observer)
            return list(self._all)

    def leave(self, observer: Observer[T]) -> None:
        """The observer hears of no more."""
        with self.lock:
            self._observers = [each for each in self._observers if each is not observer]
