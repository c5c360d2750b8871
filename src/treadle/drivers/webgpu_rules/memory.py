"""Buffers, and the cached bind groups that tie them to kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from treadle.drivers.base import Buffer, Device

MOST_GROUPS = 4096  # cached bind groups of a device

Groups = dict[tuple[Buffer, ...], int]
"""A cache of bind groups for kernels that bind alike: the driver's numbers, by buffers."""


class WebgpuMemory(Buffer):
    """Device memory. `number` is the driver's name for it; windows have their buffer's."""

    __slots__ = ("freed", "groups", "holds", "number", "parent", "start", "windows")

    def __init__(
        self,
        device: Device,
        identity: int,
        size: int,
        number: int,
        start: int = 0,
        parent: Self | None = None,
    ) -> None:
        self.device = device
        self.identity = identity
        self.size = size
        self.number = number
        self.start = start  # for a window of a larger buffer: where it starts there
        self.parent = parent  # and that buffer
        self.windows: dict[tuple[int, int], Self] = {}  # that were asked for, to bind again
        self.freed = False
        self.holds = 0  # recordings that use it
        # The cached bind groups that name this buffer: key to the caches that hold it.
        self.groups: dict[tuple[Buffer, ...], list[Groups]] = {}

    def address(self) -> int:
        """TypeError: the host has no address for this memory."""
        raise TypeError("memory of a WebGPU device has no host address; read it with Stream.read")


class BindGroups:
    """All cached bind groups of a device. `release` gives one back, once no unsubmitted work names
    it."""

    def __init__(self, release: Callable[[int], None]) -> None:
        self._release = release
        self._caches: list[Groups] = []
        self.count = 0

    def new_cache(self) -> Groups:
        """A cache for the kernels of a layout, which look there before each launch."""
        made: Groups = {}
        self._caches.append(made)
        return made

    def make_room(self) -> None:
        """Forget all of them where there are many; those still needed are made again."""
        if self.count >= MOST_GROUPS:
            self.forget_all()

    def add(self, cache: Groups, key: Sequence[WebgpuMemory], number: int) -> None:
        """Keep a group that was made for buffers."""
        buffers = tuple(key)
        cache[buffers] = number
        self.count += 1
        for buffer in buffers:
            buffer.groups.setdefault(buffers, []).append(cache)

    def forget_buffer(self, buffer: WebgpuMemory) -> None:
        """Drop those that name a buffer."""
        for key, caches in buffer.groups.items():
            for cache in caches:
                self._drop(cache, key)
            for other in key:
                if other is not buffer:
                    other.groups.pop(key, None)  # type: ignore[attr-defined]
        buffer.groups.clear()

    def forget_all(self) -> None:
        """Drop all of them."""
        for cache in self._caches:
            for key in list(cache):
                self._drop(cache, key)
                for buffer in key:
                    buffer.groups.clear()  # type: ignore[attr-defined]

    def _drop(self, cache: Groups, key: tuple[Buffer, ...]) -> None:
        number = cache.pop(key, None)
        if number is not None:
            self.count -= 1
            self._release(number)
