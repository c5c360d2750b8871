"""What the device does for a chunk of a prompt, and for one more token of several sequences.

Both are compiled: their shapes are of a few classes, and everything else (positions, pages, tokens,
how each sequence samples) is read from memory. A step of decoding leaves on the device what the
next one reads, so the host only reads the chosen tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.core.dtypes import float32, int32
from treadle.models.attention import Batch
from treadle.models.cache import Cache
from treadle.models.decoder import Decoder
from treadle.models.sampler import LogProbabilities, Sampler, Stages, log_probabilities, sample
from treadle.runtime.devices import Device
from treadle.tensor.compiled.decorator import recorded
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor, from_numpy

CHUNKS = (8, 16, 32, 64, 128, 256, 512)  # tokens of a prompt that go through the model together
Chosen = tuple[Tensor, LogProbabilities | None]


@dataclass(frozen=True)
class Found:
    """What a step has chosen, on the host: a token of each sequence, and the log-probabilities of
    it and of others, if they were asked for."""

    tokens: list[int]
    chosen: list[float] | None = None
    others: list[list[int]] | None = None
    values: list[list[float]] | None = None


class PendingFound:
    """What a step has chosen, on its way to the host. A step that is launched before it is waited
    for goes on."""

    def __init__(self, chosen: Chosen) -> None:
        self._reads = [tensor._array.begin_host() for tensor in (chosen[0], *(chosen[1] or ()))]

    def wait(self) -> Found:
        """Wait for it."""
        return Found(*(read.wait().tolist() for read in self._reads))

    async def wait_async(self) -> Found:
        """`wait`, awaiting instead of blocking."""
        return Found(*[(await read.wait_async()).tolist() for read in self._reads])


class _TwoSteps:
    """The model's scores and what is chosen by them, as two recordings with the scores between them
    in memory. What is chosen by has many kinds, each of which is recorded when it first comes up:
    with the model in the same recording each took seconds."""

    def __init__(
        self,
        scored: Callable[..., Tensor],
        choose: Callable[[Tensor, Stages, int | None], Chosen],
        shape: tuple[int, int],
        device: Device,
    ) -> None:
        self._scores: Tensor | None = None

        def write(*given: Tensor) -> None:
            assert self._scores is not None
            self._scores[...] = scored(*given)

        def read(stages: Stages, logprobs: int | None) -> Chosen:
            assert self._scores is not None
            return choose(self._scores, stages, logprobs)

        self._shape, self._device = shape, device
        self._write, self._read = recorded(write, device), recorded(read, device)

    def __call__(self, given: tuple[Tensor, ...], stages: Stages, logprobs: int | None) -> Chosen:
        """What is chosen."""
        if self._scores is None:
            self._scores = zeros(self._shape, dtype=float32, device=self._device)
        self._write(*given)
        return self._read(stages, logprobs)


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

        def scored() -> Tensor:
            found: Tensor = decoder(Batch(tokens, places, pages), cache)
            return found

        def choose(scores: Tensor, stages: Stages, logprobs: int | None) -> Chosen:
            chosen = sample(scores, sampler, stages, places[size : 2 * size], counted=False)
            more = None if logprobs is None else log_probabilities(scores, chosen, logprobs)
            sampler.advance(tokens, places, chosen)
            return chosen, more

        self._greedy: Callable[[], Chosen] = recorded(
            lambda: choose(scored(), Stages(), None), device
        )
        self._two = _TwoSteps(scored, choose, (size, sampler.vocabulary), device)

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
            if stages == Stages() and logprobs is None:
                return self._greedy()
            return self._two((), stages, logprobs)


class PromptStep:
    """A chunk of one sequence's prompt, of `size` tokens at most."""

    def __init__(
        self, decoder: Decoder, cache: Cache, sampler: Sampler, size: int, pages: int
    ) -> None:
        self.size, self.pages, self.device = size, pages, cache.device

        def fill(tokens: Tensor, places: Tensor) -> Tensor:
            return decoder.hidden(Batch(tokens, places, pages, together=True), cache)[:1, :1]

        self._slot = zeros(1, dtype=int32, device=self.device)
        slot = self._slot

        def scored(tokens: Tensor, places: Tensor, last: Tensor) -> Tensor:
            rows = decoder.hidden(Batch(tokens, places, pages, together=True), cache)
            slot[...] = last[1:]
            return decoder.scores(rows[last[:1]])

        def choose(scores: Tensor, stages: Stages, logprobs: int | None) -> Chosen:
            chosen = sample(scores, sampler, stages, slot)
            more = None if logprobs is None else log_probabilities(scores, chosen, logprobs)
            return chosen, more

        self._fill = recorded(fill, self.device)
        self._two = _TwoSteps(scored, choose, (1, sampler.vocabulary), self.device)

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
            return self._two((*self._given(tokens, start, row), last), stages, logprobs)


def chunk_for(remaining: int, most: int) -> int:
    """The class of the next chunk of a prompt: one that is filled, unless little is wasted."""
    classes = [size for size in CHUNKS if size <= most]
    for size in classes:
        if remaining <= size <= remaining * 1.34 + 4:
            return size
    return max([size for size in classes if size <= remaining], default=classes[0])
