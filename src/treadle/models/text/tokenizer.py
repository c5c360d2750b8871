"""Text to tokens and back, as a model's file describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from treadle.models.arguments import token_ids
from treadle.models.text.encoders import encoder
from treadle.models.text.pieces import check_text, pieces
from treadle.models.text.special_tokens import SpecialTokens
from treadle.models.text.streams import TextStream
from treadle.models.text.token_bounds import TooManyTokens, least_tokens
from treadle.models.text.vocabulary import (
    CONTROL,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    vocabulary_of_gguf,
)


class Tokenizer:
    """Text to tokens and back.

    `bos` and `eos` are the tokens that begin and end a text, or None; `ends` are all that end a
    generation. `add_bos` and `add_eos` are what the file says about adding them.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.vocabulary_size = len(vocabulary.tokens)
        self.bos, self.eos, self.ends = vocabulary.bos, vocabulary.eos, vocabulary.ends
        self.add_bos, self.add_eos = vocabulary.add_bos, vocabulary.add_eos
        # The unigram encoder puts it before the text itself, after its normalization.
        self._space_prefix = vocabulary.space_prefix and vocabulary.model == "llama"
        self._encode = encoder(vocabulary)
        self._pieces = pieces(vocabulary)
        self._hidden = frozenset(vocabulary.of_type(UNKNOWN, CONTROL))
        self._user_defined = self._special_tokens(USER_DEFINED)

    def encode(
        self,
        text: str,
        special: bool = False,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        most: int | None = None,
    ) -> list[int]:
        """The tokens of a text.

        With `special`, control tokens in the text (`<|im_start|>`) become these tokens; otherwise
        they are characters like any other. `add_bos` and `add_eos` tell whether the tokens for
        the beginning and the end are added; None leaves it to the file. TooManyTokens if the
        text's length alone says that it has more than `most`.
        """
        check_text(text)
        self._check_length(text, most)
        tokens = self._encode_pieces(self._splitter(special).split(text))
        if (self.add_bos if add_bos is None else add_bos) and self.bos is not None:
            tokens.insert(0, self.bos)
        if (self.add_eos if add_eos is None else add_eos) and self.eos is not None:
            tokens.append(self.eos)
        return tokens

    def encode_prompt(self, text: str, mark: str = "", most: int | None = None) -> list[int]:
        """The tokens of a prompt that a chat template has written, with its control tokens.

        The token for the beginning is added if the file says so and the template has not. `mark`
        is a character that keeps text from being taken for a control token, and is left out.
        TooManyTokens as from `encode`.
        """
        self._check_length(text.replace(mark, "") if mark else text, most)
        check_text(text)
        pieces = self._splitter(True).split(text)
        if mark:
            pieces = [p if isinstance(p, int) else p.replace(mark, "") for p in pieces]
        tokens = self._encode_pieces(pieces)
        if self.add_bos and self.bos is not None and tokens[:1] != [self.bos]:
            tokens.insert(0, self.bos)
        return tokens

    def _check_length(self, text: str, most: int | None) -> None:
        if most is not None and (least := self._least_tokens(text)) > most:
            raise TooManyTokens(least, most)

    @cached_property
    def _least_tokens(self) -> Callable[[str], int]:
        return least_tokens(self.vocabulary)

    def _encode_pieces(self, pieces: Iterable[str | int]) -> list[int]:
        tokens: list[int] = []
        prefix = self._space_prefix
        for piece in pieces:
            if isinstance(piece, int):
                tokens.append(piece)
                prefix = self._space_prefix
            else:
                tokens += self._encode(" " + piece if prefix else piece)
                prefix = False
        return tokens

    @cached_property
    def control_tokens(self) -> SpecialTokens:
        """The control tokens, as what finds them in text."""
        return self._special_tokens(UNKNOWN, CONTROL)

    def bytes_of(self, token: int, special: bool = False) -> bytes:
        """The bytes that a token stands for: none for control tokens, unless `special`."""
        if not 0 <= token < self.vocabulary_size:
            raise ValueError(
                f"token {token} is outside of the vocabulary of {self.vocabulary_size} tokens"
            )
        if token in self._hidden:
            return self.vocabulary.tokens[token].encode() if special else b""
        return self._pieces(token)

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """The text of tokens; what is not UTF-8 becomes U+FFFD.

        Control tokens are left out, unless `special`.
        """
        text = b"".join(
            [self.bytes_of(token, special) for token in token_ids(tokens, self.vocabulary_size)]
        )
        if self.vocabulary.space_prefix:  # which encoding has put before it
            text = text.removeprefix(b" ")
        return text.decode("utf-8", "replace")

    def stream(self) -> TextStream:
        """A stream that turns tokens into text one by one, by whole characters."""
        return TextStream(self.bytes_of)

    def _splitter(self, special: bool) -> SpecialTokens:
        return self._all_special if special else self._user_defined

    @cached_property
    def _all_special(self) -> SpecialTokens:
        return self._special_tokens(UNKNOWN, CONTROL, USER_DEFINED)

    def _special_tokens(self, *types: int) -> SpecialTokens:
        tokens = self.vocabulary.tokens
        return SpecialTokens(
            {tokens[token]: token for token in self.vocabulary.of_type(*types)},
            self.vocabulary.strip_after,
        )


def tokenizer_of_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that the metadata of a GGUF file describes."""
    return Tokenizer(vocabulary_of_gguf(metadata))
