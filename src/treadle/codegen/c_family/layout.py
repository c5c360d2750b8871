"""Long lines, cut where a reader would."""

from __future__ import annotations

import re
from itertools import pairwise

WIDTH = 100  # characters
_INDENT = "    "
_LEVELS = 4  # of lines inside lines
# What a line is cut at, loosest first: before operators, behind commas.
_SEPARATORS = (r" \? | : ", r" \|\| ", " && ", r" \+ | - ", ", ")


def fitted(line: str) -> list[str]:
    """The line, or the lines that it is cut into. Comments, loops' heads and preprocessor lines
    stay whole."""
    body = line.lstrip()
    if len(line) <= WIDTH or body.startswith(("//", "for (", "#", "asm")):
        return [line]
    pad = line[: len(line) - len(body)]
    return _cut(pad, body, _LEVELS)


def _cut(pad: str, body: str, levels: int) -> list[str]:
    """A text cut at the loosest separators that lie least deep in parentheses."""
    if len(pad) + len(body) <= WIDTH or not levels:
        return [pad + body]
    start = body.find(" = ") + 1  # the assigned place stays on one line
    depths = _depths(body)
    for depth in sorted(set(depths)):
        for separator in _SEPARATORS:
            places = [
                found.start() + (2 if separator == ", " else 1)
                for found in re.finditer(separator, body[start:])
                if depths[found.start() + start] == depth
            ]
            places = [place + start for place in places if place + start > 2]
            if places:
                return _split(pad, body, places, levels - 1)
    return [pad + body]


def _split(pad: str, body: str, places: list[int], levels: int) -> list[str]:
    ends = [*places, len(body)]
    lines = _cut(pad, body[: places[0]].rstrip(), levels)
    for first, last in pairwise(ends):
        lines += _cut(pad + _INDENT, body[first:last].strip(), levels)
    return lines


def _depths(body: str) -> list[int]:
    """How many parentheses are open at each character."""
    depths: list[int] = []
    depth = 0
    for sign in body:
        if sign in ")]}":
            depth -= 1
        depths.append(depth)
        if sign in "([{":
            depth += 1
    return depths
