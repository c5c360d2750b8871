"""CUDA's names with a wrong letter: `__globl__ void k()` would be a function for the host, and
`__syncthread()` an error of the kernel that has it, as it might come from a header of CUDA's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token
from treadle.cuda_cpp.syntax.keywords import DECLARATION_WORDS, FUNDAMENTAL_WORDS, KEYWORDS
from treadle.cuda_cpp.syntax.likely_causes import BARE_SPECIFIERS

_MEANT = (
    "__global__", "__device__", "__host__", "__shared__", "__constant__", "__managed__",
    "__forceinline__", "__noinline__", "__restrict__", "__launch_bounds__",
)  # fmt: skip
_TYPES = DECLARATION_WORDS | FUNDAMENTAL_WORDS
_ACCESS = frozenset(("public", "protected", "private"))
_BEFORE_ACCESS = frozenset((";", "{", "}"))
_STARTS = frozenset((";", "{", "}", ">", ")", ""))


def misspelled(tokens: Sequence[Token], file: str) -> list[CompileError]:
    """An error for each in the user's files: an unknown word before a type or another specifier,
    that is nearly one of CUDA's."""
    found: dict[str, list[int]] = {}
    bare: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind != IDENTIFIER:
            continue
        text = token.text
        if text in BARE_SPECIFIERS:
            bare.append(at)
        elif text[:1] == "_" and text not in KEYWORDS:
            if text not in found and not difflib.get_close_matches(text, _MEANT, 1, 0.85):
                continue
            found.setdefault(text, []).append(at)
    errors = [*_without_underscores(tokens, bare, file), *_access_without_colon(tokens, file)]
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


def _without_underscores(
    tokens: Sequence[Token], places: Sequence[int], file: str
) -> Iterator[CompileError]:
    """`global void k()` and `shared float s[32]`: no name stands before a fundamental type."""
    for at in places:
        token = tokens[at]
        is_users = token.file == file or not token.file.startswith("<")
        if is_users and _specifies(tokens, at) and tokens[at + 1].text in FUNDAMENTAL_WORDS:
            meant = BARE_SPECIFIERS[token.text]
            yield CompileError(f"{token.text} is not a specifier: write {meant}", token.span)


def _access_without_colon(tokens: Sequence[Token], file: str) -> Iterator[CompileError]:
    """`private int a;` in a class, which may be skipped as one of the host. A word between may be a
    macro of the host's library (`public slots:`)."""
    for at in range(1, len(tokens) - 2):
        token = tokens[at]
        if token.text not in _ACCESS or tokens[at - 1].text not in _BEFORE_ACCESS:
            continue
        if token.file != file and token.file.startswith("<"):
            continue
        after = tokens[at + 1]
        if after.text not in (":", "::") and tokens[at + 2].text != ":":
            yield CompileError(f"expected ':' after '{token.text}'", after.span)


def _specifies(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word begins a declaration or follows another specifier, and a type or specifier
    comes after it."""
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1] if at + 1 < len(tokens) else tokens[at]
    follows = before in _STARTS or before in _TYPES or before[:2] == "__"
    return follows and (after.kind == IDENTIFIER or after.text in _TYPES)


_LONG = 12  # letters, from which on names of CUDA's differ by more than one of them


@lru_cache(2048)  # overloads that fail in silence ask for the same names again and again
def nearest(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    """The name that may have been meant: at least `cutoff` of its letters and of the name's are the
    same, in the same order."""
    # That takes similar lengths, which cost less to compare.
    least, most = len(name) * cutoff / (2 - cutoff), len(name) * (2 - cutoff) / cutoff
    close = [one for one in known if least <= len(one) <= most]
    found = difflib.get_close_matches(name, close, 1, cutoff)
    return found[0] if found else None


def is_nearly_one(name: str, known: Iterable[str]) -> bool:
    """Whether a name is that of a function of CUDA's but for one letter, or for upper case, and
    surely not that of another one: those differ by digits, and in the letter at the end."""
    folded = name.lower()
    return any(
        folded == one.lower() or (len(one) >= _LONG and _differs_by_one(name, one)) for one in known
    )


def _differs_by_one(name: str, other: str) -> bool:
    if abs(len(name) - len(other)) > 1:
        return False
    at = 0
    while at < min(len(name), len(other)) and name[at] == other[at]:
        at += 1
    rest, wanted = name[at:], other[at:]
    if len(rest) == len(wanted):
        swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
        replaced = rest[1:] == wanted[1:] and len(rest) > 1
        return (swapped or replaced) and not (rest[:1] + wanted[:1]).isdigit()
    longer, shorter = (rest, wanted) if len(rest) > len(wanted) else (wanted, rest)
    ends = longer is rest and not shorter  # with a letter more
    return longer[1:] == shorter and not ends and not longer[:1].isdigit()
