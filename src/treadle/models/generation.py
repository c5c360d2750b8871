"""A generation: text that is made while it is read."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Literal

from treadle.core.forks import lock
from treadle.models.grammars import Constraint
from treadle.models.pieces import LogProbability, Piece
from treadle.models.sampling import Sampling
from treadle.models.text.streams import StopStrings
from treadle.models.text.tokenizer import Tokenizer

FinishReason = Literal["stop", "length", "cancelled", "error"]
Overflow = Literal["error", "shift"]
Listener = Callable[[Piece | None], None]


class Running:
    """What the engine knows of one generation; the engine's thread alone changes it."""

    def __init__(
        self, prompt: list[int], sampling: Sampling, most: int, generation: Generation,
        constraint: Constraint | None, overflow: Overflow,
    ) -> None:  # fmt: skip
        self.tokens = prompt  # and then what was generated
        self.prompt = len(prompt)
        self.sampling, self.most, self.overflow = sampling, most, overflow
        self.generation, self.constraint = generation, constraint
        self.slot = -1
        self.pages: list[int] = []
        self.done = 0  # tokens whose keys and values are stored
        self.sampled = False  # whether the sampler's row is this sequence's

    @property
    def generated(self) -> int:
        """The number of tokens after the prompt."""
        return len(self.tokens) - self.prompt


class Generation:
    """An iterator of pieces of text, which end at whole characters; for `async for`, too, which
    lets other tasks run while the device computes, and works in browsers where Python cannot wait.

    `tokens` are those that were generated, without the one that ended it; `finish_reason` is None
    until the end, then "stop" (the model or a stop string ended it), "length" (as many tokens as
    were asked for, or a full context), "cancelled" or "error" (then `error` says which)."""

    def __init__(
        self, pump: Callable[[Generation], None],
        pump_async: Callable[[Generation], Awaitable[None]], prompt: int,
        tokenizer: Tokenizer | None, stop: Sequence[str], listener: Listener | None,
    ) -> None:  # fmt: skip
        self.tokens: list[int] = []
        self.logprobs: list[LogProbability] = []
        self.prompt_tokens = prompt
        self.finish_reason: FinishReason | None = None
        self.error: BaseException | None = None
        self.closed = False
        self._finished = False  # by the engine, which also ends those that were closed
        self._ending = lock()  # of `close` and `finish`, by different threads
        self._pump, self._pump_async, self._listener = pump, pump_async, listener
        self._stream = None if tokenizer is None else tokenizer.stream()
        self._stops = StopStrings(stop)
        self._pieces: deque[str] = deque()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while self.closed or not self._pieces:
            if self._is_over():
                raise StopIteration
            self._pump(self)
        return self._pieces.popleft()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while self.closed or not self._pieces:
            if self._is_over():
                raise StopAsyncIteration
            await self._pump_async(self)
        return self._pieces.popleft()

    def _is_over(self) -> bool:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return self.finish_reason is not None

    def text(self) -> str:
        """All of the text that has not been read yet, once the generation has ended."""
        return "".join(self)

    async def text_async(self) -> str:
        """`text`, awaiting instead of blocking."""
        return "".join([piece async for piece in self])

    def close(self) -> None:
        """End it: its finish reason is "cancelled", and text that was not read is dropped. Nothing
        changes if it had ended. May be called from any thread; what the sequence had is free after
        the engine's next step."""
        with self._ending:
            if self.finish_reason is None:
                self.closed, self.finish_reason = True, "cancelled"
                self._pieces.clear()

    # What the engine calls.

    def add(self, token: int, logprob: LogProbability | None) -> bool:
        """One more token. Whether a stop string has ended the text."""
        if self.closed:
            return False
        self.tokens.append(token)
        if logprob is not None:
            self.logprobs.append(logprob)
        text = "" if self._stream is None else self._stops.add(self._stream.add(token))
        self._hand_on(text, (token,), () if logprob is None else (logprob,))
        return self._stops.stopped is not None

    def finish(self, reason: FinishReason, error: BaseException | None = None) -> None:
        """The end."""
        if self._finished:
            return
        self._finished = True
        if self._stream is not None and self._stops.stopped is None and reason != "cancelled":
            text = self._stops.add(self._stream.end()) + self._stops.end()
            if text and not self.closed:
                self._hand_on(text, (), ())
        with self._ending:
            if not self.closed:
                self.error, self.finish_reason = error, reason
        if self._listener is not None:
            self._listener(None)

    def _hand_on(
        self, text: str, tokens: tuple[int, ...], logprobs: tuple[LogProbability, ...]
    ) -> None:
        if self._listener is not None:
            self._listener(Piece(text, tokens, logprobs))
        elif text:
            self._pieces.append(text)
