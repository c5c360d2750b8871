"""Tokenizers of Hugging Face folders, which the `tokenizers` library reads as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from treadle.core import forks
from treadle.core.errors import FormatError
from treadle.models.arguments import token_ids
from treadle.models.text.encoders import library
from treadle.models.text.pieces import byte_level, byte_token, check_text
from treadle.models.text.score_merges import SPACE
from treadle.models.text.streams import TextStream

_MOST_TOKENS = 2**32  # as the library counts them


class FolderTokenizer:
    """Text to tokens and back, by a folder's tokenizer.json or vocab.txt.

    `inner` is the library's tokenizer, `bos` and `eos` what the folder adds to a text, if it does.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.vocabulary_size: int = inner.get_vocab_size()
        self._hidden = {
            token for token, added in inner.get_added_tokens_decoder().items() if added.special
        }
        added = inner.encode("").ids
        self.bos: int | None = added[0] if added else None
        self.eos: int | None = added[-1] if len(added) > 1 else None
        self.ends = frozenset() if self.eos is None else frozenset({self.eos})
        self._piece = _PIECES.get(type(inner.decoder).__name__, _spaces)
        self._lock = forks.lock()

    def encode(self, text: str, special: bool = False, add_bos: bool | None = None) -> list[int]:
        """The tokens of a text, between those that the folder adds unless `add_bos` is False.

        With `special`, control tokens in the text become these tokens.
        """
        check_text(text)
        with self._lock:  # the library has this as a state
            self.inner.encode_special_tokens = not special
            try:
                # As a batch, for which the library releases the interpreter.
                ids: list[int] = self.inner.encode_batch_fast(
                    [text], add_special_tokens=add_bos is not False
                )[0].ids
            finally:
                self.inner.encode_special_tokens = False
        return ids

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """The tokens of several texts, in which control tokens are recognized."""
        with self._lock:
            return [each.ids for each in self.inner.encode_batch_fast(texts)]

    def bytes_of(self, token: int, special: bool = False) -> bytes:
        """The bytes that a token stands for: none for control tokens, unless `special`."""
        text = self._text_of(token)
        if token in self._hidden:
            return bytes(text.encode()) if special else b""
        return self._piece(text)

    def _text_of(self, token: int) -> str:
        text: str | None = self.inner.id_to_token(token) if 0 <= token < _MOST_TOKENS else None
        if text is None:
            raise ValueError(
                f"token {token} is outside of the vocabulary of {self.vocabulary_size} tokens"
            )
        return text

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """The text of tokens, as the folder's decoder joins them."""
        ids = token_ids(tokens, _MOST_TOKENS)
        for token in set(ids):
            self._text_of(token)  # ValueError for those that there are not
        text: str = self.inner.decode(ids, skip_special_tokens=not special)
        return text

    def stream(self) -> TextStream:
        """A stream that turns tokens into text one by one, by whole characters."""
        return TextStream(self.bytes_of)


def tokenizer_of_folder(path: Path, config: Mapping[str, Any] | None = None) -> FolderTokenizer:
    """The tokenizer in a folder: tokenizer.json, or vocab.txt with what `config` says
    (tokenizer_config.json)."""
    lib = library()
    whole, words = path / "tokenizer.json", path / "vocab.txt"
    try:
        if whole.is_file():
            inner = lib.Tokenizer.from_file(str(whole))
        elif words.is_file():
            inner = _word_pieces(lib, words, config or {})
        else:
            raise FormatError(f"{path} has no tokenizer: tokenizer.json, or vocab.txt")
        inner.no_padding()
        inner.no_truncation()
        return FolderTokenizer(inner)
    except FormatError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise FormatError(f"the tokenizer in {path} cannot be read: {error}") from error


def _word_pieces(lib: Any, path: Path, config: Mapping[str, Any]) -> Any:
    """BERT's tokenizer from a list of words, as folders have it from before tokenizer.json."""
    tokens = path.read_text("utf-8").splitlines()
    ids = {token: number for number, token in enumerate(tokens)}
    cls, sep = config.get("cls_token", "[CLS]"), config.get("sep_token", "[SEP]")
    unknown = config.get("unk_token", "[UNK]")
    tokenizer = lib.Tokenizer(lib.models.WordPiece(ids, unk_token=unknown))
    tokenizer.normalizer = lib.normalizers.BertNormalizer(
        lowercase=config.get("do_lower_case", True), strip_accents=config.get("strip_accents")
    )
    tokenizer.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = lib.decoders.WordPiece()
    special = (cls, sep, unknown, "[PAD]", "[MASK]")
    tokenizer.add_special_tokens([text for text in special if text in ids])
    tokenizer.post_processor = lib.processors.BertProcessing((sep, ids[sep]), (cls, ids[cls]))
    return tokenizer


def _spaces(text: str) -> bytes:
    return byte_token(text) or text.replace(SPACE, " ").encode()


def _beginnings_of_words(text: str) -> bytes:
    return (text[2:] if text.startswith("##") else " " + text).encode()


_PIECES: dict[str, Callable[[str], bytes]] = {
    "ByteLevel": byte_level,
    "WordPiece": _beginnings_of_words,
}
