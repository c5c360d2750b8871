"""The lexer: characters to tokens, by one regular expression for the whole file.

Its result is a list of stretches: directives, each a line that begins with `#`, and the text
between them. An ill-formed token, such as an unterminated string, becomes an OTHER token: it is an
error only if no #if skips it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import (
    CHARACTER,
    IDENTIFIER,
    NUMBER,
    OTHER,
    PUNCTUATOR,
    STRING,
    Token,
)


class Stretch(NamedTuple):
    """A directive (without its `#`), or the tokens up to the next one."""

    tokens: list[Token]
    hash: Token | None = None  # a directive's `#`


class Lexed(NamedTuple):
    """A file's tokens, `size` of them; `unterminated` is the place of an unterminated comment."""

    stretches: list[Stretch]
    size: int
    unterminated: Span | None = None


EMPTY = "empty"  # an empty character literal; the preprocessor refuses it

_PREFIX = "(?:u8|[uUL])?"
_RAW = _PREFIX + r'R"(?P<delimiter>[^ ()\\\t\v\f\n]{0,16})\('

# Kinds of tokens and their patterns. Possessive quantifiers (*+) do not backtrack, so that lexing
# takes linear time for any text.
_GROUPS = (
    (IDENTIFIER, r"[A-Za-z_$][\w$]*+(?![\"'])"),
    (PUNCTUATOR, r"[(),;{}\[\]]"),  # the most frequent first
    ("newline", r"\n"),
    (NUMBER, r"\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*+"),
    ("comment", r"/\*[\s\S]*"),  # terminated comments are white space
    (PUNCTUATOR, r"\.\.\.|->\*?|\.\*|::|##|&&|\|\||\+\+|--|<=>|(?:<<|>>|[-+*/%&|^=!<>])=?|[:.?~#]"),
    (STRING, _RAW + r'[\s\S]*?\)(?P=delimiter)"'),
    (STRING, _PREFIX + r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'),
    (CHARACTER, _PREFIX + r"'(?:[^'\\\n]|\\.)++'"),
    (EMPTY, _PREFIX + "''"),
    (OTHER, _RAW.replace("?P<delimiter>", "?:") + r"[\s\S]*"),  # unterminated literals
    (OTHER, _PREFIX + r"[\"'][^\n]*+"),
    (IDENTIFIER, r"[^\W\d][\w$]*+"),  # in other letters, or directly before a literal
    (OTHER, r"[^\n]"),
)
_SPACE = r"(?:[^\S\n]+|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
_TOKEN = re.compile(_SPACE + "(?:" + "|".join(f"({pattern})" for _, pattern in _GROUPS) + ")")


def _kinds() -> tuple[str, ...]:
    """The kind of each group by its number: some patterns contain a group themselves."""
    kinds = [""]
    for kind, pattern in _GROUPS:
        kinds += [kind] * (1 + re.compile(pattern.replace("(?P=delimiter)", "")).groups)
    return tuple(kinds)


_KINDS = _kinds()
_NEVER = 1 << 62
_SPLICE = re.compile(r"\\[^\S\n]*$")
_BREAKS = re.compile("[\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_UNDECODED = re.compile("[\ud800-\udfff]")


def normalized(text: str) -> str:
    """The text with line feeds as line ends, without a byte order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff")


def printable(text: str) -> str:
    """The text for error messages, with the same columns.

    Characters that only Python takes for line ends become spaces, bytes that are not UTF-8 U+FFFD.
    """
    return _UNDECODED.sub("\ufffd", _BREAKS.sub(" ", text))


def lex(text: str, file: str, most: int = _NEVER) -> Lexed:
    """The tokens of a normalized text, up to `most` of them."""
    clean, starts = _spliced(text)
    stretches: list[Stretch] = []
    tokens: list[Token] = []
    size = line = line_start = next_start = 0
    at_line_start = True
    unterminated: Span | None = None
    for match in _TOKEN.finditer(clean):
        index = match.lastindex or 0
        kind = _KINDS[index]
        if kind == "newline":
            at_line_start = True
            if stretches and stretches[-1].hash and stretches[-1].tokens is tokens:
                tokens = []  # the directive ends here
            continue
        start = match.start(index)
        while start >= next_start:
            line_start = next_start
            line += 1
            next_start = starts[line]
        column = start - line_start + 1
        if kind == "comment":
            unterminated = Span(file, line, column, column + 2)
            break
        size += 1
        if size > most:
            break
        word = match[index]
        if kind == STRING and match.end() > next_start and 'R"' in word[:4]:
            word = _unspliced(text, line, column, word)
        if not at_line_start:
            tokens.append(Token(kind, word, file, line, column, start != match.start()))
            continue
        at_line_start = False
        token = Token(kind, word, file, line, column, True)
        if word == "#":
            tokens = []
            stretches.append(Stretch(tokens, token))
            continue
        if not tokens:
            stretches.append(Stretch(tokens))
        tokens.append(token)
    return Lexed(stretches, size, unterminated)


def single(text: str) -> str | None:
    """The kind of `text` as one token; None if it is not exactly one."""
    match = _TOKEN.fullmatch(text)
    if match is None or match.lastindex is None or match.start(match.lastindex):
        return None
    kind = _KINDS[match.lastindex]
    return kind if kind not in ("newline", "comment", OTHER) else None


def _spliced(text: str) -> tuple[str, list[int]]:
    """The text with lines that end in a backslash joined to the next; where each line begins."""
    lines = text.split("\n")
    starts = []
    offset = 0
    joins = "\\" in text
    for number, line in enumerate(lines):
        starts.append(offset)
        splice = _SPLICE.search(line) if joins else None
        if splice and number + 1 < len(lines):
            lines[number] = line[: splice.start()]
            offset += splice.start()
        else:
            lines[number] = line + "\n"
            offset += len(line) + 1
    starts.append(_NEVER)
    return "".join(lines), starts


def _unspliced(text: str, line: int, column: int, word: str) -> str:
    """A raw string as written: lines are not spliced in it."""
    lines = text.split("\n")[line - 1 :]
    written = "\n".join(lines)[column - 1 :]
    opening = word[: word.index("(")]
    closing = ")" + opening[opening.index('"') + 1 :] + '"'
    end = written.find(closing)
    return written[: end + len(closing)] if end >= 0 else word
