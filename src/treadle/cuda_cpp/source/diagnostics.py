"""The errors and warnings of the preprocessor, and the limits of its work."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.lexer import printable
from treadle.cuda_cpp.source.tokens import Token

MOST_STEPS = 1_000_000  # tokens read, and made by macros: about 100,000 lines
MOST_ERRORS = 100  # that are reported: more do not help
_LONGEST_MESSAGE = 500  # characters, since a message may quote the file
LONGEST_TEXT = 65_536  # characters of one token that # or ## makes
_STEP_CHARACTERS = 64  # characters of such a token that count as a step


class TooMuch(Exception):
    """A limit was exceeded. The error is recorded already; preprocessing ends."""


@dataclass(slots=True)
class Diagnostics:
    """The errors and warnings so far, the texts of the files they are in, and the steps taken."""

    texts: dict[str, str] = field(default_factory=dict)
    errors: list[CompileError] = field(default_factory=list)
    warnings: list[tuple[str, Span]] = field(default_factory=list)
    steps: int = 0

    def error(self, message: str, place: Token | Span) -> None:
        """Record an error."""
        if len(self.errors) < MOST_ERRORS:
            span = place.span if isinstance(place, Token) else place
            if len(message) > _LONGEST_MESSAGE:
                message = f"{message[:_LONGEST_MESSAGE]}…"
            text = self.texts.get(span.file)
            self.errors.append(CompileError(printable(message), span, text))

    def give_up(self, message: str, place: Token | Span) -> TooMuch:
        """Record an error that ends preprocessing; the caller raises the result."""
        self.error(message, place)
        return TooMuch(message)

    def charge(self, steps: int, place: Token | Span) -> None:
        """Count work done at `place`; TooMuch past the limit."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise self.give_up(
                f"the file grows past {MOST_STEPS:,} tokens here, with its macros expanded and its "
                "headers included: look for a macro that repeats itself, or a header without a "
                "guard",
                place,
            )

    def charge_text(self, text: str, place: Token) -> None:
        """Count the work of a token that # or ## made."""
        if len(text) > LONGEST_TEXT:
            raise self.give_up(
                f"# or ## makes a token of more than {LONGEST_TEXT:,} characters", place
            )
        self.charge(1 + len(text) // _STEP_CHARACTERS, place)
