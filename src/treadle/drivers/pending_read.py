"""A copy into host memory that has begun."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

Steps = Generator[Any, Any, None]
"""The steps of a read. Each yield is what to wait for, and is sent what waiting gave."""


class PendingRead:
    """Finish it by `wait` or `wait_async`, whichever the caller can; the copy has begun before.

    `steps` are a driver's: what they yield is what its functions `wait` and `wait_async` take."""

    __slots__ = ("_next", "_steps", "_wait", "_wait_async")

    def __init__(
        self,
        steps: Steps,
        wait: Callable[[Any], Any],
        wait_async: Callable[[Any], Awaitable[Any]],
    ) -> None:
        self._steps, self._wait, self._wait_async = steps, wait, wait_async
        self._next = next(steps, None)

    def wait(self) -> None:
        """Wait until the host has all of it."""
        while self._next is not None:
            self._go_on(self._wait(self._next))

    async def wait_async(self) -> None:
        """`wait`, awaiting instead of blocking."""
        while self._next is not None:
            self._go_on(await self._wait_async(self._next))

    def _go_on(self, given: Any) -> None:
        try:
            self._next = self._steps.send(given)
        except StopIteration:
            self._next = None


def finished_read() -> PendingRead:
    """A read that has waited already."""
    return PendingRead(_no_steps(), _never, _never)


def _no_steps() -> Steps:
    yield from ()


def _never(_: object) -> Any:
    raise AssertionError("a read without steps waits for nothing")
