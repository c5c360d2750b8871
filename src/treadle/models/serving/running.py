"""The generations of one request, whose pieces arrive in the server's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from treadle.models.pieces import LogProbability, Piece
from treadle.models.sampling import Sampling
from treadle.models.serving.engine_loop import EngineLoop
from treadle.models.serving.errors import ApiError, as_api_error
from treadle.models.serving.protocol import Generation


@dataclass
class Collected:
    """What a generation has given until now."""

    text: str = ""
    tokens: int = 0
    logprobs: list[LogProbability] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, piece: Piece) -> None:
        """Append a piece."""
        self.text += piece.text
        self.tokens += len(piece.tokens)
        self.logprobs += piece.logprobs


class Running:
    """Several generations of one request, numbered from 0."""

    def __init__(self, engine: EngineLoop) -> None:
        self._engine = engine
        self._events = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[int, Piece | None]] = asyncio.Queue()
        self._generations: list[Generation] = []
        self._closed = False
        self.collected: list[Collected] = []

    def submit(
        self,
        prompts: Sequence[Sequence[int]],
        choices: int,
        sampling: Sampling,
        limits: Sequence[int],
        stop: Sequence[str],
    ) -> None:
        """Queue as many choices of each prompt. It may take long, so another thread calls it."""
        for prompt, limit in zip(prompts, limits, strict=True):
            for choice in range(choices):
                own = sampling
                if sampling.seed is not None and choice:  # or all choices were the same
                    own = replace(sampling, seed=sampling.seed % 2**63 + choice)
                number = len(self.collected)
                self.collected.append(Collected())
                try:
                    generation = self._engine.submit(
                        prompt, own, limit, stop, partial(self._hear, number)
                    )
                except BaseException:
                    self.close()
                    raise
                self._generations.append(generation)
        if self._closed:  # by a client that has gone meanwhile
            self.close()

    def _hear(self, number: int, piece: Piece | None) -> None:
        try:
            self._events.call_soon_threadsafe(self._queue.put_nowait, (number, piece))
        except RuntimeError:  # the server's loop has ended
            return

    async def events(self) -> AsyncIterator[tuple[int, Piece | None]]:
        """Each piece with its generation's number, and None for one that has ended."""
        remaining = len(self._generations)
        while remaining:
            number, piece = await self._queue.get()
            if piece is None:
                remaining -= 1
                self.collected[number].finish_reason = self._reason(number)
            else:
                self.collected[number].add(piece)
            yield number, piece

    def _reason(self, number: int) -> str:
        generation = self._generations[number]
        if generation.error is not None:
            raise as_api_error(generation.error)
        if self._engine.failure is not None:
            raise as_api_error(self._engine.failure)
        reason = generation.finish_reason
        if reason == "cancelled" and not self._closed:
            raise ApiError(503, "the server is stopping", code="stopping")
        return reason or "stop"

    def close(self) -> None:
        """End what still runs."""
        self._closed = True
        for generation in list(self._generations):
            if generation.finish_reason is None:
                self._engine.cancel(generation)

    @property
    def completion_tokens(self) -> int:
        """How many tokens were generated."""
        return sum(each.tokens for each in self.collected)
