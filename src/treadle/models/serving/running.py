"""The generations of one request, whose pieces arrive in the server's event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from treadle.models.pieces import LogProbability, Piece
from treadle.models.sampling import Sampling
from treadle.models.serving.engine_loop import EngineLoop
from treadle.models.serving.errors import ApiError, as_api_error, error_for_client
from treadle.models.serving.protocol import Generation

Event = tuple[int, Piece | None]


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
        self._arrived: deque[Event] = deque()
        self._something = asyncio.Event()
        self._woken = False
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
                except BaseException as error:
                    self.close()
                    if error is self._engine.failure:  # which is in the log
                        raise error_for_client(error) from None
                    raise
                self._generations.append(generation)
        if self._closed:  # by a client that has gone meanwhile
            self.close()

    def _hear(self, number: int, piece: Piece | None) -> None:
        """Called in the engine's thread: it wakes the event loop once for all that is there then,
        so that a client that is slower than the engine gets more at a time."""
        self._arrived.append((number, piece))
        if self._woken:
            return
        self._woken = True
        try:
            self._events.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the server's loop has ended
            return

    def _wake(self) -> None:
        self._woken = False  # first: what arrives from now on wakes it again
        self._something.set()

    async def events(self) -> AsyncIterator[list[Event]]:
        """All that has arrived: pieces with their generation's number, those of one generation in a
        row joined, and None for one that has ended."""
        remaining = len(self._generations)
        while remaining:
            await self._something.wait()
            self._something.clear()
            found: list[Event] = []
            while self._arrived:
                number, piece = self._arrived.popleft()
                if piece is None:
                    remaining -= 1
                    self.collected[number].finish_reason = self._reason(number)
                else:
                    self.collected[number].add(piece)
                    if found and found[-1][0] == number and found[-1][1] is not None:
                        piece = _joined(found.pop()[1], piece)
                found.append((number, piece))
            yield found

    def _reason(self, number: int) -> str:
        generation = self._generations[number]
        if generation.error is not None:
            raise as_api_error(generation.error)
        if self._engine.failure is not None:
            raise error_for_client(self._engine.failure)
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


def _joined(first: Piece | None, second: Piece) -> Piece:
    assert first is not None
    return Piece(
        first.text + second.text, first.tokens + second.tokens, first.logprobs + second.logprobs
    )
