"""The words of a C++ text, each with its place in the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.source import Span

IDENTIFIER = "identifier"  # keywords too: the parser knows them
NUMBER = "number"
CHARACTER = "character"
STRING = "string"
PUNCTUATOR = "punctuator"
PRAGMA = "pragma"  # a whole #pragma line that the parser may want; `text` is what follows #pragma
OTHER = "other"  # a character that begins no token
END = "end"  # of the file


class Token(NamedTuple):
    """One word. What a macro expanded to stands where the macro was used."""

    kind: str
    text: str
    file: str
    line: int
    column: int
    spaced: bool = False  # whether white space (or a line's start) came before it

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.file, self.line, self.column, self.column + len(self.text))


def spelled(tokens: Sequence[Token]) -> str:
    """Tokens as a text on one line."""
    return "".join(
        " " + token.text if i and token.spaced else token.text for i, token in enumerate(tokens)
    )
