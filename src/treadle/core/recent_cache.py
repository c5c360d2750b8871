"""A dictionary that keeps recently used entries."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class RecentCache(Generic[Key, Value]):
    """The last `half` entries that were used, at least, and never more than twice as many.

    It has two generations instead of an LRU list. When the young one is full it becomes the old
    one, and the old one before it is dropped. An old entry that is used moves to the young one.
    So a hit is one lookup, while an LRU list would have to be updated. Threads may share it.

    >>> recent = RecentCache[int, str](2)
    >>> for number in range(6):
    ...     recent[number] = str(number)
    ...     _ = recent.get(0)
    >>> [recent.get(number) for number in range(6)]
    ['0', None, None, None, '4', '5']
    """

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, half: int) -> None:
        self._half = half
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """The entry, if it is there."""
        found = self._young.get(key)
        if found is None and self._old:
            found = self._old.pop(key, None)
            if found is not None:
                self[key] = found
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def __contains__(self, key: Key) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def values(self) -> list[Value]:
        """All entries, those of the old generation first."""
        return [*self._old.values(), *self._young.values()]

    def clear(self) -> None:
        """Drop everything."""
        self._young, self._old = {}, {}
