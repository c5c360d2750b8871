"""The user's comments, found again in the source that statements point to.

They are a help to readers and nothing else: where the source is not Python, or gone, there are
none.
"""

from __future__ import annotations

import io
import linecache
import tokenize
from functools import lru_cache


class Comments:
    """The comments of one file, each given once."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._own, self._trailing = _comments(tuple(linecache.getlines(file)) if file else ())
        self._given: set[int] = set()

    def before(self, file: str, line: int) -> list[str]:
        """The comments on the lines right above a statement, and behind it."""
        if file != self._file or line in self._given:
            return []
        first = line
        while first - 1 in self._own and first - 1 not in self._given:
            first -= 1
        self._given.update(range(first, line + 1))
        found = [self._own[number] for number in range(first, line)]
        return [*found, self._trailing[line]] if line in self._trailing else found


@lru_cache(maxsize=16)
def _comments(lines: tuple[str, ...]) -> tuple[dict[int, str], dict[int, str]]:
    """The comments that have a line of their own, and those behind something, by line."""
    own: dict[int, str] = {}
    trailing: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
            if token.type == tokenize.COMMENT:
                # A backslash at its end would make a C++ comment go on.
                text = token.string.lstrip("#").strip().rstrip("\\")
                own_line = not token.line[: token.start[1]].strip()
                (own if own_line else trailing)[token.start[0]] = text
    except (tokenize.TokenError, SyntaxError):
        return {}, {}
    return own, trailing
