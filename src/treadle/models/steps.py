"""What the device does for a chunk of a prompt, and for one more token of several sequences.

Both are compiled: their shapes are of a few classes, and everything else (positions, pages, tokens,
how each sequence samples) is read from memory. A step of decoding leaves on the device what the
next one reads, so the host only reads the chosen tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.core.dtypes import int32
from treadle.kernels.device_code.decode_state import advance
from treadle.models.attention import Batch
from treadle.models.cache import Cache
from treadle.models.decoder import Decoder
from treadle.models.sampler import LogProbabilities, Sampler, Stages, log_probabilities, sample
from treadle.tensor.compiled.decorator import recorded
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor, from_numpy

CHUNKS = (8, 16, 32, 64, 128, 256, 512)  # tokens of a prompt that go through the model together
Chosen = tuple[Tensor, LogProbabilities | None]


class DecodeStep:
    """One more token of up to `size` sequences."""

    def __init__(
        self, decoder: Decoder, cache: Cache, sampler: Sampler, size: int, table: tuple[int, int]
    ) -> None:
        device, (slots, pages) = cache.device, table
        self.size = size
        self.tokens = zeros(size, dtype=int32, device=device)
        self.places = zeros(2 * size + slots * pages, dtype=int32, device=device)
        tokens, places = self.tokens, self.places

        def step(stages: Stages, logprobs: int | None) -> Chosen:
            logits = decoder(Batch(tokens, places, pages), cache)
            chosen = sample(logits, sampler, stages, places[size : 2 * size])
            more = None if logprobs is None else log_probabilities(logits, chosen, logprobs)
            advance.launch(size, tokens, places, chosen, size)
            return chosen, more

        self._step: Callable[[Stages, int | None], Chosen] = recorded(step, device)

    def set(
        self, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int],
        table: np.ndarray[Any, np.dtype[np.int32]],
    ) -> None:  # fmt: skip
        """Say which sequences are decoded, and where they are. Others of the class are padding,
        which has the last slot."""
        count, size = len(tokens), self.size
        given = np.zeros(size, np.int32)
        given[:count] = tokens
        places = np.empty(2 * size + table.size, np.int32)
        places[:size], places[size : 2 * size] = -1, len(table) - 1
        places[:count], places[size : size + count] = positions, slots
        places[2 * size :] = table.reshape(-1)
        self.tokens[...] = from_numpy(given, self.tokens.device)
        self.places[...] = from_numpy(places, self.places.device)

    def __call__(self, stages: Stages, logprobs: int | None = None) -> Chosen:
        """The next token of each sequence."""
        with no_grad():
            return self._step(stages, logprobs)


class PromptStep:
    """A chunk of one sequence's prompt, of `size` tokens at most."""

    def __init__(
        self, decoder: Decoder, cache: Cache, sampler: Sampler, size: int, pages: int
    ) -> None:
        self.size, self.pages, self.device = size, pages, cache.device

        def fill(tokens: Tensor, places: Tensor) -> Tensor:
            return decoder.hidden(Batch(tokens, places, pages, together=True), cache)[:1, :1]

        def finish(
            tokens: Tensor, places: Tensor, last: Tensor, stages: Stages, logprobs: int | None
        ) -> Chosen:
            rows = decoder.hidden(Batch(tokens, places, pages, together=True), cache)
            logits = decoder.scores(rows[last[:1]])
            chosen = sample(logits, sampler, stages, last[1:])
            more = None if logprobs is None else log_probabilities(logits, chosen, logprobs)
            return chosen, more

        self._fill = recorded(fill, self.device)
        self._finish = recorded(finish, self.device)

    def _given(
        self, tokens: Sequence[int], start: int, row: np.ndarray[Any, np.dtype[np.int32]]
    ) -> tuple[Tensor, Tensor]:
        count, size = len(tokens), self.size
        given = np.zeros(size, np.int32)
        given[:count] = tokens
        places = np.zeros(2 * size + self.pages, np.int32)
        places[:count] = np.arange(start, start + count)
        places[count:size] = -1
        places[2 * size :] = row
        return from_numpy(given, self.device), from_numpy(places, self.device)

    def fill(
        self, tokens: Sequence[int], start: int, row: np.ndarray[Any, np.dtype[np.int32]]
    ) -> None:
        """Store keys and values of tokens, of which the first is at position `start`; `row` has the
        sequence's pages."""
        with no_grad():
            self._fill(*self._given(tokens, start, row)).realize()

    def finish(
        self, tokens: Sequence[int], start: int, row: np.ndarray[Any, np.dtype[np.int32]],
        slot: int, stages: Stages, logprobs: int | None = None,
    ) -> Chosen:  # fmt: skip
        """The same, and the first token after the prompt."""
        last = from_numpy(np.array([len(tokens) - 1, slot], np.int32), self.device)
        with no_grad():
            return self._finish(*self._given(tokens, start, row), last, stages, logprobs)


def chunk_for(remaining: int, most: int) -> int:
    """The class of the next chunk of a prompt: one that is filled, unless little is wasted."""
    classes = [size for size in CHUNKS if size <= most]
    for size in classes:
        if remaining <= size <= remaining * 1.34 + 4:
            return size
    return max([size for size in classes if size <= remaining], default=classes[0])
