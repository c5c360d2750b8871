"""Where resident kernels run: the few streams of a device on which they stay, and how long.

Cards have few queues, and work behind a kernel that stays would wait for its end. So only a few
kernels of a device stay at once; others run on one stream, handle what is there, and end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core import forks
from treadle.runtime.devices import Device, Stream

# Cycles of a device's clock, of which there are some 1.5 × 10⁹ in a second. The life of a kernel is
# how long another library's call that waits for all that runs may have to wait; and what a killed
# process leaves behind ends with it. A poll reads the host's memory: the pause between two is at
# most GAP.
LIFE = 75_000_000
SHORT_LIFE = 7_500_000  # of one without a place
GAP = 15_000
IDLE = 0.2  # seconds without a message after which the kernel is not launched again
LOOKS = 0.0005  # seconds between looks of a thread that waits
PLACES = 4  # kernels of a device that stay at once
OWN = PLACES - 1  # actors from which on others share kernels, which need a place, too


class Places:
    """A device's streams on which kernels stay."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = forks.lock()
        self._free: list[Stream] = []
        self._made = 0
        self.shared = device.stream()  # of kernels that do not stay
        self._own = 0  # actors with a kernel of their own

    @property
    def is_crowded(self) -> bool:
        """Whether there are enough actors that have a kernel of their own."""
        return self._own >= OWN

    def count_own(self, change: int) -> None:
        """An actor comes that has a kernel of its own, or leaves."""
        with self._lock:
            self._own += change

    @property
    def idle(self) -> float:
        """Seconds without a message after which a kernel is not launched again."""
        return IDLE

    @property
    def gap(self) -> int:
        """Cycles of the longest pause between two polls."""
        return GAP

    def stay(self, begin: Callable[[Stream, int, int], None], leave: Any, *, brief: bool) -> bool:
        """Have a kernel launched on a stream, with its life and how long it stays without a
        message, and wait for its end: whether it had a place to stay. With `brief` it ends when
        there are no messages."""
        stream = None if brief else self._take()
        where = self.shared if stream is None else stream
        residents = where.handle.device.residents
        if residents is not None:
            residents.enter(leave)
        try:
            begin(where, *((SHORT_LIFE, 0) if stream is None else (LIFE, LIFE)))
            where.handle.rest()
        finally:
            if residents is not None:
                residents.exit(leave)
            if stream is not None:
                with self._lock:
                    self._free.append(stream)
        return stream is not None

    def _take(self) -> Stream | None:
        with self._lock:
            if self._free:
                return self._free.pop()
            if self._made == PLACES:
                return None
            self._made += 1
        return self._device.stream()


def places_of(device: Device) -> Places:
    """The places of a device, for as long as it is the one that is open."""
    with _lock:
        found = _places.get(device)
        if found is None or found.shared.handle.device is not device.handle:
            found = _places[device] = Places(device)
        return found


_places: WeakKeyDictionary[Device, Places] = WeakKeyDictionary()
_lock = forks.lock()
