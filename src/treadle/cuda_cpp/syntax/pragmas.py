"""Pragmas as the parser needs them: which loop to unroll, how tightly structs are packed."""

from __future__ import annotations

import re

from treadle.cuda_cpp.source.lexer import lex
from treadle.cuda_cpp.source.tokens import Token
from treadle.cuda_cpp.syntax import expressions, tree
from treadle.cuda_cpp.syntax.cursor import Cursor, SyntaxProblem

_UNROLL = re.compile(r"(unroll|nounroll)\b\s*(.*)", re.DOTALL)


def unroll(c: Cursor, index: int) -> tree.Expression | int | None:
    """What a `#pragma unroll` before the loop at `index` asks for."""
    token = c.pragmas.get(index)
    match = _UNROLL.match(token.text.strip()) if token is not None else None
    if token is None or match is None:
        return None
    if match[1] == "nounroll":
        return 1
    if not match[2].strip():
        return 0
    value = _expression(c, match[2], token)
    return value.value if isinstance(value, tree.IntegerLiteral) else value


def _expression(c: Cursor, text: str, pragma: Token) -> tree.Expression:
    """The expression behind a pragma's name; all of it stands where the pragma does."""
    place = (pragma.file, pragma.line, pragma.column)
    words = [word for stretch in lex(text, pragma.file).stretches for word in stretch.tokens]
    inner = Cursor(
        [Token(word.kind, word.text, *place, word.spaced) for word in words], {}, c.grammar
    )
    inner.names, inner.levels = c.names, c.levels
    value = expressions.conditional(inner)
    if inner.index < inner.end:
        raise SyntaxProblem("expected one number of rounds to unroll", pragma.span)
    return value
