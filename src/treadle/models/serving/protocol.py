"""What the server asks of a model and its engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from treadle.models.pieces import Piece
from treadle.models.sampling import Sampling

Listener = Callable[[Piece | None], None]
Overflow = Literal["error", "shift"]


class Generation(Protocol):
    """A text that is being generated."""

    @property
    def finish_reason(self) -> str | None:
        """One of stop, length, cancelled and error; None while it goes on."""

    @property
    def error(self) -> BaseException | None:
        """Why it ended with an error."""

    def close(self) -> None:
        """End it. Any thread may."""


class Engine(Protocol):
    """Generates several texts at once."""

    def submit(
        self,
        tokens: Sequence[int],
        sampling: Sampling,
        max_tokens: int,
        stop: Sequence[str] = (),
        listener: Listener | None = None,
        overflow: Overflow = "error",
    ) -> Generation:
        """Queue a text. Any thread may. The listener is called by `step` with each new piece, and
        once with None when the generation has ended. Where the context is full the text ends, or,
        with "shift", goes on without its older half."""

    def step(self) -> bool:
        """Go on with all texts; False if there was nothing to do. One thread calls it."""


class Tokenizer(Protocol):
    """Text to tokens and back."""

    vocabulary_size: int

    def encode(
        self,
        text: str,
        special: bool = ...,
        add_bos: bool | None = ...,
        *,
        most: int | None = ...,
    ) -> list[int]:
        """The tokens of a text. TooManyTokens, before it makes any, if the text is so long that it
        has more than `most`."""

    def decode(self, tokens: Iterable[int], special: bool = ...) -> str:
        """The text of tokens."""

    def bytes_of(self, token: int, special: bool = ...) -> bytes:
        """The bytes of a token."""


class TextModel(Protocol):
    """A model that generates text."""

    name: str
    context: int

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""

    @property
    def chat_template(self) -> str | None:
        """The text of its chat template, if its file has one."""

    def chat_tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] | None = None,
        most: int | None = None,
    ) -> list[int]:
        """The tokens of a conversation, by the chat template, up to where the answer begins.
        TooManyTokens as from `encode`."""


class EmbeddingModel(Protocol):
    """A model that embeds texts."""

    name: str

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """How many tokens of each text it reads."""

    def embed(self, texts: Sequence[str]) -> Any:
        """A row of numbers for each text, as an array or a tensor of float32."""
