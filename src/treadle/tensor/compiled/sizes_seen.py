"""The sizes that a compiled function has been called with, and which of them vary."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

MOST_SIZES = 16  # traces with symbols of arguments of one structure; for others Python runs
_MOST_EARLIER = 3  # calls whose sizes are compared


class SizesSeen:
    """The sizes of arguments of one structure, in calls for which there was no trace."""

    __slots__ = ("_all", "_varied", "earlier", "traces")

    def __init__(self, all_vary: bool) -> None:
        self._all = all_vary
        self._varied: set[int] = set()
        self.earlier: list[tuple[int, ...]] = []  # the first ones, and the last one
        self.traces = 0  # that were made since guards of sizes did not hold

    @property
    def is_over(self) -> bool:
        """Whether there are so many traces that Python runs for other sizes."""
        return self.traces > MOST_SIZES

    def add(self, sizes: tuple[int, ...]) -> None:
        """Add the sizes of a call."""
        if self.earlier and self.earlier[-1] != sizes:
            pairs = zip(sizes, self.earlier[-1], strict=True)
            self._varied.update([at for at, (one, other) in enumerate(pairs) if one != other])
        if sizes not in self.earlier:
            del self.earlier[_MOST_EARLIER:]
            self.earlier.append(sizes)

    def varying(self, sizes: tuple[int, ...]) -> list[int]:
        """The positions of sizes that get symbols."""
        return list(range(len(sizes))) if self._all else sorted(self._varied)


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of positional parameters, as far as they are known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind < each.VAR_POSITIONAL]
