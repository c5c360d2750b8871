"""What reading a file finds wrong, and how much it may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.lexer import printable
from treadle.cuda_cpp.source.tokens import Token

MOST_STEPS = 1_000_000  # tokens read and made by macros: some 100,000 lines
MOST_ERRORS = 100  # that are told; after so many, more do not help
_LONGEST_MESSAGE = 500  # characters, since a message may quote the file
LONGEST_TEXT = 65_536  # characters of one token that # or ## makes
_STEP_CHARACTERS = 64  # characters of such a token that count as one more step


class TooMuch(Exception):
    """What is read grew past a limit. The error is noted already; reading ends here."""


@dataclass(slots=True)
class Diagnostics:
    """The errors found so far, the texts they point into, and the steps taken."""

    texts: dict[str, str] = field(default_factory=dict)
    errors: list[CompileError] = field(default_factory=list)
    steps: int = 0

    def error(self, message: str, place: Token | Span) -> None:
        """Note an error."""
        if len(self.errors) < MOST_ERRORS:
            span = place.span if isinstance(place, Token) else place
            if len(message) > _LONGEST_MESSAGE:
                message = f"{message[:_LONGEST_MESSAGE]}…"
            text = self.texts.get(span.file)
            self.errors.append(CompileError(printable(message), span, text))

    def give_up(self, message: str, place: Token | Span) -> TooMuch:
        """Note an error that ends reading; the caller raises what this returns."""
        self.error(message, place)
        return TooMuch(message)

    def charge(self, steps: int, place: Token | Span) -> None:
        """Count work done at `place`; too much of it ends reading."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise self.give_up(
                f"the file grows past {MOST_STEPS:,} tokens once its macros are expanded and its "
                "headers included; this is where it did: look for a macro that repeats itself, "
                "or a header without a guard",
                place,
            )

    def charge_text(self, text: str, place: Token) -> None:
        """Count a token that # or ## made."""
        if len(text) > LONGEST_TEXT:
            raise self.give_up(
                f"# or ## makes a token of more than {LONGEST_TEXT:,} characters", place
            )
        self.charge(1 + len(text) // _STEP_CHARACTERS, place)
