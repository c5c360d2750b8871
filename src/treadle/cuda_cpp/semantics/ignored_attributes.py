"""Attributes that no compiler knows, which C++ has compilers ignore: most are misspelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.semantics.misspelled import nearest
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token

_STANDARD = (
    "assume", "carries_dependency", "deprecated", "fallthrough", "indeterminate", "likely",
    "maybe_unused", "nodiscard", "noreturn", "no_unique_address", "unlikely",
)  # fmt: skip
# Of g++'s and CUDA's those that kernels have.
_OF_COMPILERS = (
    "aligned", "align", "always_inline", "cold", "const", "constant", "constructor", "deprecated",
    "destructor", "device", "fallthrough", "flatten", "format", "global", "grid_constant", "hot",
    "host", "launch_bounds", "malloc", "managed", "may_alias", "mode", "noinline", "nonnull",
    "noreturn", "nothrow", "optimize", "packed", "pure", "shared", "target", "transparent_union",
    "unused", "used", "vector_size", "visibility", "warn_unused_result", "weak",
)  # fmt: skip
_MISSPELLED = 0.8
_BEGINNINGS = frozenset(("[", "__attribute__", "__attribute"))


def ignored_attributes(tokens: Sequence[Token], file: str) -> Iterator[tuple[str, Span]]:
    """A warning for each attribute in the user's files that is none: of those of compilers, of
    which there are many, only where one with nearly this name is there."""
    for at, token in enumerate(tokens):
        if token.text not in _BEGINNINGS or (token.file != file and token.file.startswith("<")):
            continue
        if token.text == "[" and _text(tokens, at + 1) == "[":
            yield from _in_brackets(tokens, at + 2)
        elif token.text != "[" and _text(tokens, at + 2) == "(":
            yield from _of_compilers(tokens, at + 3)


def _in_brackets(tokens: Sequence[Token], at: int) -> Iterator[tuple[str, Span]]:
    for place, is_scoped in _names(tokens, at, "]"):
        name = tokens[place].text
        if not is_scoped and name.strip("_") not in _STANDARD:
            yield _warning(tokens[place], nearest(name, _STANDARD, 0.7))


def _of_compilers(tokens: Sequence[Token], at: int) -> Iterator[tuple[str, Span]]:
    for place, _ in _names(tokens, at, ")"):
        name = tokens[place].text.strip("_")
        meant = nearest(name, _OF_COMPILERS, _MISSPELLED)
        if meant is not None and meant != name:
            yield _warning(tokens[place], meant)


def _names(tokens: Sequence[Token], at: int, close: str) -> Iterator[tuple[int, bool]]:
    """The places of the attributes from a place to the closing bracket, without their arguments,
    and whether they are of a namespace."""
    if _text(tokens, at) == "using":  # [[using gnu: …]]
        return
    depth = 0
    while at < len(tokens) and not (tokens[at].text == close and depth == 0):
        text = tokens[at].text
        depth += (text in "([{") - (text in ")]}") if text else 0
        if depth == 0 and tokens[at].kind == IDENTIFIER and _text(tokens, at - 1) != "::":
            yield at, _text(tokens, at + 1) == "::"
        at += 1


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _warning(token: Token, meant: str | None) -> tuple[str, Span]:
    hint = f" (did you mean {meant}?)" if meant else ""
    return f"{token.text} is not an attribute, and is ignored{hint}", token.span
