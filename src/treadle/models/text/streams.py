"""Text as it is generated: whole characters only, and no further than a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

from treadle.models.arguments import strings


class TextStream:
    """Tokens in, text out: `add` returns what has become whole characters.

    A token may end within a character of several bytes; these are held back until the character is
    whole. `end` returns what never became whole, each broken part as U+FFFD.
    """

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The text that this token completes."""
        return self._decoder.decode(self._bytes_of(token))

    def end(self) -> str:
        """What is left at the end; the stream can then be used anew."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text


class StopStrings:
    """Text up to the first of some strings, which is held back while it may be beginning.

    `add` returns the text that is certain to stand before any stop string. `stopped` then tells
    whether one was found; the text after it is dropped.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = strings("stop", stops)
        self._held = ""
        self.stopped: str | None = None

    def add(self, text: str) -> str:
        """The part of all text so far that has become certain."""
        if self.stopped is not None:
            return ""
        self._held += text
        places = [(self._held.find(stop), -len(stop), stop) for stop in self._stops]
        found = [place for place in places if place[0] >= 0]
        if found:
            at, _, self.stopped = min(found)
            text, self._held = self._held[:at], ""
            return text
        keep = max((self._beginning(stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        text, self._held = self._held[:cut], self._held[cut:]
        return text

    def end(self) -> str:
        """What was held back and turned out to be plain text."""
        text, self._held = self._held, ""
        return text

    def _beginning(self, stop: str) -> int:
        """How many characters at the end may be the beginning of `stop`."""
        for length in range(min(len(stop) - 1, len(self._held)), 0, -1):
            if self._held.endswith(stop[:length]):
                return length
        return 0
