"""Pragmas: those that concern device code become tokens, the others are ignored, with a warning
where one of these was meant."""

from __future__ import annotations

import difflib
import re

from treadle.cuda_cpp.source.lexer import lex
from treadle.cuda_cpp.source.macros import Expanding, Macro
from treadle.cuda_cpp.source.tokens import PRAGMA, STRING, Token, spelled

PRAGMA_OPERATOR = "_Pragma"

_KEPT = ("unroll", "nounroll", "pack")
_KEPT_PREFIX = "nv_"
_MEANT = (*_KEPT, "once")
_ESCAPED = re.compile(r'\\([\\"])')
_ONE_ARGUMENT = Macro(PRAGMA_OPERATOR, parameters=("text",))


def kept_pragma(tokens: list[Token], place: Token, expander: Expanding) -> list[Token]:
    """The token of a pragma that the parser may use, with its macros expanded; else none."""
    first = tokens[0].text if tokens else ""
    if first not in _KEPT and not first.startswith(_KEPT_PREFIX):
        _warn_of_misspelled(first, place, expander)
        return []
    text = spelled([tokens[0], *expander.expand(tokens[1:])])
    return [Token(PRAGMA, text, place.file, place.line, place.column, True)]


def _warn_of_misspelled(name: str, place: Token, expander: Expanding) -> None:
    meant = difflib.get_close_matches(name.strip("_"), _MEANT, 1, 0.75)
    if meant and name not in _MEANT:
        message = f"#pragma {name} is not known, and is ignored (did you mean {meant[0]}?)"
        expander.diagnostics.warnings.append((message, place.span))


def pragma_operator(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
    """`_Pragma("…")`: a #pragma that a macro can contain."""
    following = expander.following(pending)
    arguments = None
    if following is not None and following.text == "(":
        arguments = expander.arguments(_ONE_ARGUMENT, token, pending)
    words = arguments[0] if arguments else []
    if len(words) != 1 or words[0].kind != STRING or '"' not in words[0].text[:2]:
        expander.diagnostics.error('_Pragma needs ("…")', token)
        return []
    text = _ESCAPED.sub(r"\1", words[0].text.lstrip("L")[1:-1])
    lexed = lex(text, token.file)
    tokens = lexed.stretches[0].tokens if lexed.stretches else []
    return kept_pragma(tokens, token, expander)
