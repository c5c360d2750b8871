"""What `treadle generate` and `treadle chat` share: a text that is written while it is made.

The engine steps in a thread of its own, so that Ctrl-C reaches the main thread alone, which then
ends the generation: a step is never interrupted halfway.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TextIO

from treadle.core.background import without_notice
from treadle.core.errors import TreadleError
from treadle.models.model import Model
from treadle.models.pieces import Piece
from treadle.models.sampling import Sampling
from treadle.models.serving.engine_loop import EngineLoop
from treadle.models.serving.protocol import Overflow
from treadle.runtime.counters import counts

_FEWEST_TIMED = 10  # tokens; the time of fewer says little about the speed
_LONGEST_WAIT = 0.25  # seconds; on Windows Ctrl-C does not end a wait for another thread


class PromptTooLong(TreadleError, ValueError):
    """A text that the context has no room for."""


def check_room(tokens: int, context: int, otherwise: str, what: str = "the text") -> None:
    """PromptTooLong if a context has no room for a text of so many tokens and an answer.
    `otherwise` says what else there is than a longer context."""
    if tokens >= context:
        raise PromptTooLong(
            f"{what} has {tokens} tokens, and the context is {context}: --context makes it longer, "
            f"{otherwise}"
        )


@dataclass(frozen=True)
class Written:
    """What a generation wrote, and how long it took."""

    text: str
    prompt_tokens: int
    tokens: int
    finish_reason: str
    prompt_seconds: float  # until the first token
    prepared: bool  # whether kernels were prepared in that time
    timed: int  # tokens after those whose step was prepared too
    seconds: float  # that these took

    def speeds(self) -> str:
        """One line for people. Of a prompt it has the time: kernels that were prepared meanwhile,
        or a beginning that was in the cache already, would make a speed of it misleading."""
        found = f"prompt: {self.prompt_tokens} tokens in {self.prompt_seconds:.2f} s"
        if self.prepared:
            found += " with kernels prepared"
        found += f"; answer: {self.tokens} tokens"
        if self.timed >= _FEWEST_TIMED:
            rate = self.timed / max(self.seconds, 1e-9)
            found += f", {rate:.0f} tokens/s" if rate >= 100 else f", {rate:.1f} tokens/s"
        return found


class Writer:
    """Generates texts with a model, one after the other, and writes them to a stream."""

    def __init__(self, model: Model, output: TextIO | None = None) -> None:
        self._model = model
        self._loop = EngineLoop(model.engine(1))
        self._output = sys.stdout if output is None else output

    def write(
        self, tokens: Sequence[int], sampling: Sampling, max_tokens: int, stop: Sequence[str] = (),
        overflow: Overflow = "error",
    ) -> Written:  # fmt: skip
        """Write what follows some tokens. Ctrl-C ends it, with the finish reason "cancelled"."""
        pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        if overflow == "error":
            max_tokens = min(max_tokens, max(1, self._model.context - len(tokens)))
        before = counts().traces
        times = [time.perf_counter()]
        generation = self._loop.submit(tokens, sampling, max_tokens, stop, pieces.put, overflow)
        text, count, untimed, prepared = "", 0, 0, False
        with ExitStack() as line:
            while True:
                try:
                    piece = pieces.get(timeout=_LONGEST_WAIT)
                    if piece is None:
                        break
                    count += len(piece.tokens)
                    if len(times) < 3:
                        times.append(time.perf_counter())
                        untimed = count
                        prepared = prepared or (len(times) == 2 and counts().traces > before)
                    if piece.text and not text:
                        line.enter_context(without_notice())
                    text += piece.text
                    self._output.write(piece.text)
                    self._output.flush()
                except queue.Empty:
                    if generation.finish_reason is not None or self.has_failed:
                        break  # Ctrl-C came between the end's arrival and the test for it
                except KeyboardInterrupt:
                    self._loop.cancel(generation)
                except OSError:  # the reader of the output has gone
                    self._loop.cancel(generation)
                    raise
        end = time.perf_counter()
        if generation.error is not None:
            raise generation.error
        if self._loop.failure is not None:
            raise self._loop.failure
        reason = generation.finish_reason or "stop"
        # The step that decodes is prepared with the second token: it is not counted.
        first, second = (times[at] if at < len(times) else end for at in (1, 2))
        return Written(
            text, len(tokens), count, reason, first - times[0], prepared, count - untimed,
            end - second,
        )  # fmt: skip

    @property
    def has_failed(self) -> bool:
        """Whether the engine has failed, and generates no more."""
        return self._loop.failure is not None

    def close(self) -> None:
        """End the thread."""
        self._loop.close()
