"""A small tokenizer for tests: a token for each byte, some words, and two control tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.models.text.token_bounds import TooManyTokens

WORDS = ['{"', '":', '","', '"}', "true", "false", "null", "name", "city", " the", " of"]


class TextStream:
    """Text of tokens, by whole characters."""

    def __init__(self, tokenizer: ByteTokenizer) -> None:
        self._tokenizer, self._pending = tokenizer, b""

    def add(self, token: int) -> str:
        self._pending += self._tokenizer.bytes_of(token)
        for end in range(len(self._pending), max(-1, len(self._pending) - 4), -1):
            try:
                text = self._pending[:end].decode()
            except UnicodeDecodeError:
                continue
            self._pending = self._pending[end:]
            return text
        return ""

    def end(self) -> str:
        text, self._pending = self._pending.decode("utf-8", "replace"), b""
        return text


class ByteTokenizer:
    """Tokens 0 to 255 are bytes."""

    def __init__(self, words: Sequence[str] = WORDS, unused: int = 0) -> None:
        self.words = {256 + at: word.encode() for at, word in enumerate(words)}
        self.bos = 256 + len(words)
        self.eos = self.bos + 1
        self.ends = frozenset({self.eos})
        self.add_bos = False
        self.vocabulary_size = self.eos + 1 + unused

    def bytes_of(self, token: int, special: bool = False) -> bytes:
        if not 0 <= token < self.vocabulary_size:
            raise ValueError(f"token {token} is outside of the vocabulary")
        return bytes([token]) if token < 256 else self.words.get(token, b"")

    def encode(
        self, text: str, special: bool = False, add_bos: bool | None = None,
        add_eos: bool | None = None, most: int | None = None,
    ) -> list[int]:  # fmt: skip
        tokens = list(text.encode())
        if most is not None and len(tokens) > most:
            raise TooManyTokens(len(tokens), most)
        return tokens

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", "replace")

    def stream(self) -> TextStream:
        return TextStream(self)
