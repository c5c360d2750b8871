"""Characters to tokens: the whole file by one regular expression.

The file comes out in stretches: directives, each a line that begins with `#`, and the text between
them. What is wrong inside a token (a string without an end) stays an OTHER token, since the
preprocessor may be about to skip it.
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
    """A file's tokens, `size` of them; `unterminated` is the place of a comment without an end."""

    stretches: list[Stretch]
    size: int
    unterminated: Span | None = None


EMPTY = "empty"  # a character literal without a character; never leaves the preprocessor

_PREFIX = "(?:u8|[uUL])?"
_RAW = _PREFIX + r'R"(?P<delimiter>[^ ()\\\t\v\f\n]{0,16})\('

# Each group's kind. A quantifier such as *+ never gives back what it took, so that matching takes
# time in proportion to the text, whatever the text is.
_GROUPS = (
    (IDENTIFIER, r"[A-Za-z_$][\w$]*+(?![\"'])"),
    (PUNCTUATOR, r"[(),;{}\[\]]"),  # the commonest ones first
    ("newline", r"\n"),
    (NUMBER, r"\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*+"),
    ("comment", r"/\*[\s\S]*"),  # one with an end was taken as white space
    (PUNCTUATOR, r"\.\.\.|->\*?|\.\*|::|##|&&|\|\||\+\+|--|(?:<<|>>|[-+*/%&|^=!<>])=?|[:.?~#]"),
    (STRING, _RAW + r'[\s\S]*?\)(?P=delimiter)"'),
    (STRING, _PREFIX + r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'),
    (CHARACTER, _PREFIX + r"'(?:[^'\\\n]|\\.)++'"),
    (EMPTY, _PREFIX + "''"),
    (OTHER, _RAW.replace("?P<delimiter>", "?:") + r"[\s\S]*"),  # literals without an end
    (OTHER, _PREFIX + r"[\"'][^\n]*+"),
    (IDENTIFIER, r"[^\W\d][\w$]*+"),  # one in other letters, or with a literal right behind it
    (OTHER, r"[^\n]"),
)
_SPACE = r"(?:[^\S\n]+|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
_TOKEN = re.compile(_SPACE + "(?:" + "|".join(f"({pattern})" for _, pattern in _GROUPS) + ")")


def _kinds() -> tuple[str, ...]:
    """The kind for each number of a group: some patterns hold a group of their own."""
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
    """The text with its lines ended by a line feed, without a byte order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff")


def printable(text: str) -> str:
    """The text as error messages show it, column by column.

    What Python alone takes for a line's end is a space, and bytes that are not UTF-8 are U+FFFD.
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
    """The kind of the one token that `text` is, or None if it is not one."""
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
    """A raw string as it was written: in one, a backslash at a line's end is only that."""
    lines = text.split("\n")[line - 1 :]
    written = "\n".join(lines)[column - 1 :]
    opening = word[: word.index("(")]
    closing = ")" + opening[opening.index('"') + 1 :] + '"'
    end = written.find(closing)
    return written[: end + len(closing)] if end >= 0 else word
