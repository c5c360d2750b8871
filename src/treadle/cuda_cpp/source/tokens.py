"""Tokens of C++, each with its location in the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.source import Span

IDENTIFIER = "identifier"  # keywords too: only the parser distinguishes them
NUMBER = "number"
CHARACTER = "character"
STRING = "string"
PUNCTUATOR = "punctuator"
PRAGMA = "pragma"  # a whole #pragma line that the parser may want; `text` is what follows #pragma
OTHER = "other"  # a character that no token begins with
END = "end"  # of the file


class Token(NamedTuple):
    """One token. A token of a macro's replacement has the location of the macro's use."""

    kind: str
    text: str
    file: str
    line: int
    column: int
    spaced: bool = False  # whether white space (or a line's start) came before it

    @property
    def span(self) -> Span:
        """Its location."""
        return Span(self.file, self.line, self.column, self.column + len(self.text))


def spelled(tokens: Sequence[Token]) -> str:
    """The text of tokens, on one line."""
    return "".join(
        " " + token.text if i and token.spaced else token.text for i, token in enumerate(tokens)
    )
