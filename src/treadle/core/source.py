"""Positions in the user's source, carried by IR nodes so that an error can point at its line."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file. Lines and columns count from 1; line 0 means "nowhere in particular"."""

    file: str = ""
    line: int = 0
    column: int = 0
    end_column: int = 0
    within: str = ""  # what is called there, if the place is that of a call to one of our headers

    @property
    def is_of_header(self) -> bool:
        """Whether the place is in one of our own headers, which users do not see."""
        return self.file.endswith(".cuh>") and self.file.startswith("<")

    def as_called(self, name: str, header: str) -> Span:
        """The place of a call, for what is done in a function of one of our headers."""
        return replace(self, within=f"{name} of {header.strip('<>')}")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else "<unknown>"


NOWHERE = Span()


_WIDEST = 160  # characters of a line that are shown


def excerpt(span: Span, text: str | None) -> str:
    """The source line of `span` with a caret under the place, or "" if the line is not known.

    `text` is the whole file (or notebook cell) that the span counts lines in. Of a long line there
    is only the part around the place.
    """
    if not span.line or text is None:
        return ""
    lines = text.splitlines()
    if span.line > len(lines):
        return ""
    line = lines[span.line - 1].expandtabs(1)
    start = max(span.column - 1, 0)
    width = max(min(span.end_column, len(line) + 1) - span.column, 1)
    if len(line) > _WIDEST:
        line, start = _around(line, start)
        width = max(min(width, len(line) - start), 1)
    margin = f"{span.line:>5} | "
    return f"{margin}{line}\n{' ' * (len(margin) - 2)}| {' ' * start}{'^' * width}"


def _around(line: str, place: int) -> tuple[str, int]:
    """The part of a long line with a place in its middle, and where in it the place is."""
    first = min(max(place - _WIDEST // 2, 0), len(line) - _WIDEST)
    before = "…" if first else ""
    after = "…" if first + _WIDEST < len(line) else ""
    return f"{before}{line[first : first + _WIDEST]}{after}", place - first + len(before)
