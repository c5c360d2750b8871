"""Specifiers of CUDA with a wrong letter: `__globl__ void k()` would be a function for the host."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token
from treadle.cuda_cpp.syntax.keywords import DECLARATION_WORDS, FUNDAMENTAL_WORDS, KEYWORDS

_MEANT = (
    "__global__", "__device__", "__host__", "__shared__", "__constant__", "__managed__",
    "__forceinline__", "__noinline__", "__restrict__", "__launch_bounds__",
)  # fmt: skip
_TYPES = DECLARATION_WORDS | FUNDAMENTAL_WORDS
_STARTS = frozenset((";", "{", "}", ">", ")", ""))


def misspelled(tokens: Sequence[Token], file: str) -> list[CompileError]:
    """An error for each in the user's files: an unknown word before a type or another specifier,
    that is nearly one of CUDA's."""
    found: dict[str, list[int]] = {}
    for at, token in enumerate(tokens):
        text = token.text
        if token.kind == IDENTIFIER and text[:1] == "_" and text not in KEYWORDS:
            if text not in found and not difflib.get_close_matches(text, _MEANT, 1, 0.85):
                continue
            found.setdefault(text, []).append(at)
    errors = []
    for text, places in found.items():
        if not all(_specifies(tokens, at) for at in places):
            continue  # it is a name of the file
        meant = difflib.get_close_matches(text, _MEANT, 1, 0.85)[0]
        for at in places:
            one = tokens[at]
            if one.file == file or not one.file.startswith("<"):
                span = Span(one.file, one.line, one.column, one.column + len(text))
                errors.append(
                    CompileError(f"{text} is not a specifier (did you mean {meant}?)", span)
                )
    return errors


def _specifies(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word begins a declaration or follows another specifier, and a type or specifier
    comes after it."""
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1] if at + 1 < len(tokens) else tokens[at]
    follows = before in _STARTS or before in _TYPES or before[:2] == "__"
    return follows and (after.kind == IDENTIFIER or after.text in _TYPES)
