"""The words and signs of the IR's text, for `ir.parser`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from treadle.core.errors import CompileError
from treadle.core.source import Span

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<span>!(?:-(?=\s|$)|"(?:[^"\\\n]|\\.)*":\d+:\d+-\d+))
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<quoted>`[^`\n]*`(?:~\d+)?)
      | (?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*(?:~\d+)?)
      | (?P<sign>->|<<|>>|<=|>=|==|!=|&&|\|\||//|%%|[-+*/%&|^<>=!~@?:;,.(){}\[\]])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign or end of line. `kind` is the name of its group in the pattern, or "end"."""

    kind: str
    text: str
    span: Span


def tokens(text: str, file: str) -> list[Token]:
    """All tokens, without spaces and comments; line ends only where a statement may end."""
    found: list[Token] = []
    position, line, start = 0, 1, 0
    depth = 0  # inside ( and [ a line goes on
    while position < len(text):
        match = _TOKEN.match(text, position)
        column = position - start + 1
        if match is None:
            span = Span(file, line, column, column + 1)
            raise CompileError(f"{text[position]!r} has no meaning here", span)
        kind, end = str(match.lastgroup), match.end()
        word = match.group()
        if kind == "newline":
            if not depth and found and found[-1].kind != "newline":
                found.append(Token(kind, "the end of the line", Span(file, line, column, column)))
            line, start = line + 1, end
        elif kind != "space":
            if kind == "sign":
                depth += (word in "([") - (word in ")]")
            found.append(Token(kind, word, Span(file, line, column, column + len(word))))
        position = end
    found.append(Token("end", "the end of the text", Span(file, line, position - start + 1)))
    return found
