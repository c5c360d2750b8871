"""Waiting for what can only be asked whether it is done: a nap between two looks, never long."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONGEST_NAP = 1e-3  # seconds
_WITHOUT_NAPS = 5e-4  # seconds at the start, in which short work ends


def nap(waited: float) -> float:
    """Seconds to sleep after waiting so long: an eighth of it, which costs little in proportion."""
    return min(waited / 8, _LONGEST_NAP)


async def until(is_done: Callable[[], bool]) -> None:
    """Await it, giving way to the event loop between looks, and at least once."""
    import asyncio  # not at the top: it brings sockets and SSL, which most programs never need

    began = time.perf_counter()
    await asyncio.sleep(0)
    while not is_done():
        waited = time.perf_counter() - began
        await asyncio.sleep(0 if waited < _WITHOUT_NAPS else nap(waited))
