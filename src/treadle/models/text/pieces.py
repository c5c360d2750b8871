"""The bytes that each token stands for, by the kind of the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from treadle.models.arguments import shown
from treadle.models.text.score_merges import SPACE
from treadle.models.text.vocabulary import BYTE, UNUSED, USER_DEFINED, Vocabulary


def pieces(vocabulary: Vocabulary) -> Callable[[int], bytes]:
    """A function from a token to its bytes."""
    tokens, types = vocabulary.tokens, vocabulary.types
    plain = _PLAIN[vocabulary.model]

    @cache
    def piece(token: int) -> bytes:
        text, kind = tokens[token], types[token]
        if kind == UNUSED:
            return b""
        if kind == BYTE:
            return byte_token(text) or text.encode()
        if kind == USER_DEFINED:
            return text.encode()
        return plain(text)

    return piece


def bytes_of_characters() -> dict[str, int]:
    """The characters by which byte-level vocabularies write bytes: printable ones stand for
    themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + index): byte for index, byte in enumerate(others)
    }


_BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")
_BYTES = bytes_of_characters()


def byte_token(text: str) -> bytes | None:
    """The byte that a token such as `<0x0A>` stands for; None for other tokens."""
    match = _BYTE_TOKEN.fullmatch(text)
    return None if match is None else bytes([int(match[1], 16)])


def _spaces(text: str) -> bytes:
    return text.replace(SPACE, " ").encode()


def byte_level(text: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for."""
    try:
        return bytes([_BYTES[character] for character in text])
    except KeyError:  # a token that was added as text
        return text.encode()


_PLAIN: dict[str, Callable[[str], bytes]] = {
    "llama": _spaces,
    "gpt2": byte_level,
    "bert": _spaces,
    "t5": _spaces,
}


def check_text(text: str) -> None:
    """TypeError for what is not a text, ValueError for what no encoding of Unicode expresses."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a string, not {shown(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has half of a surrogate pair at character {error.start} "
            f"({text[error.start]!r}), which no encoding of Unicode can express: decode the text "
            "with errors='replace', or remove it"
        ) from None
