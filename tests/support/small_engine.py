"""A deterministic engine for tests of the server: it writes what a script says, token by token."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.support.byte_tokenizer import ByteTokenizer
from treadle.models.grammars import constraint_of
from treadle.models.pieces import LogProbability, Piece
from treadle.models.sampling import Sampling

Script = Callable[[str], str]


class Generation:
    """A text that the engine writes."""

    def __init__(self, engine: SmallEngine, prompt: Sequence[int], sampling: Sampling,
                 max_tokens: int, stop: Sequence[str], listener: Any) -> None:  # fmt: skip
        tokenizer = engine.tokenizer
        self.tokens: list[int] = []
        self.prompt_tokens = len(prompt)
        self.finish_reason: str | None = None
        self.error: BaseException | None = None
        self.closed = False
        self.sampling, self._max, self._stop = sampling, max_tokens, stop
        self._tokenizer, self._listener = tokenizer, listener
        self._constraint = constraint_of(sampling, tokenizer)
        script = engine.script(tokenizer.decode(prompt))
        if sampling.temperature:  # other seeds write other texts
            script += f" {sampling.seed}"
        self._script = list(script.encode())
        self._draw = random.Random(0)
        self._stream = tokenizer.stream()
        self._text = self._sent = ""
        self._queue: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[str]:
        while (piece := self._queue.get()) is not None:
            yield piece.text

    def close(self) -> None:
        self.closed = True

    def step(self) -> None:
        if self.closed:
            self._end("cancelled")
            return
        try:
            token = self._next()
        except Exception as error:
            self.error = error
            self._end("error")
            return
        if token in self._tokenizer.ends:
            self._end("stop")
            return
        self.tokens.append(token)
        self._text += self._stream.add(token)
        found = [at for each in self._stop if (at := self._text.find(each)) >= 0]
        if found:
            self._text = self._text[: min(found)]
            self._put((token,), held=0)
            self._end("stop")
            return
        held = max((n for each in self._stop for n in range(1, len(each))
                    if self._text.endswith(each[:n])), default=0)  # fmt: skip
        self._put((token,), held)
        if self._constraint is not None and self._constraint.is_complete:
            self._end("stop")
        elif len(self.tokens) >= self._max:
            self._end("length")

    def _next(self) -> int:
        if self._constraint is None:
            at = len(self.tokens)
            return self._script[at] if at < len(self._script) else self._tokenizer.eos
        words = self._constraint.words()
        tokens = range(self._tokenizer.vocabulary_size)
        allowed = [t for t in tokens if int(words[t // 32]) >> (t % 32) & 1]
        plain = [t for t in allowed if 47 < t < 58 or 96 < t < 123] or allowed
        token = allowed[0] if len(allowed) == 1 else self._draw.choice(
            plain if self._draw.random() < 0.7 else allowed)  # fmt: skip
        self._constraint.accept(token)
        return token

    def _put(self, tokens: tuple[int, ...], held: int) -> None:
        ready = self._text[: len(self._text) - held]
        text, self._sent = ready[len(self._sent) :], ready
        logprobs = ()
        if self.sampling.logprobs is not None:
            top = tuple((t, -0.5 - t / 10) for t in range(self.sampling.logprobs))
            logprobs = tuple(LogProbability(token, -0.25, top) for token in tokens)
        self._hear(Piece(text, tokens, logprobs))

    def _end(self, reason: str) -> None:
        self._text += self._stream.end()
        if len(self._text) > len(self._sent):
            self._put((), 0)
        self.finish_reason = reason
        self._hear(None)

    def _hear(self, piece: Piece | None) -> None:
        self._queue.put(piece)
        if self._listener is not None:
            self._listener(piece)


class SmallEngine:
    """Writes up to `slots` texts at once; a step takes `delay` seconds longer."""

    def __init__(self, script: Script, slots: int = 16, delay: float = 0.0) -> None:
        self.tokenizer = ByteTokenizer()
        self.script, self.slots, self.delay = script, slots, delay
        self.waiting: list[Generation] = []
        self.running: list[Generation] = []
        self.ended: list[Generation] = []
        self.most_at_once = 0
        self.overflows: list[str] = []
        self.broken: Exception | None = None
        self._lock = threading.Lock()

    def submit(self, tokens: Sequence[int], sampling: Sampling, max_tokens: int,
               stop: Sequence[str] = (), listener: Any = None,
               overflow: str = "error") -> Generation:  # fmt: skip
        self.overflows.append(overflow)
        made = Generation(self, tokens, sampling, max_tokens, stop, listener)
        with self._lock:
            self.waiting.append(made)
        return made

    def step(self) -> bool:
        if self.broken is not None:
            raise self.broken
        with self._lock:
            while self.waiting and len(self.running) < self.slots:
                self.running.append(self.waiting.pop(0))
        if not self.running:
            return False
        self.most_at_once = max(self.most_at_once, len(self.running))
        if self.delay:
            time.sleep(self.delay)
        for each in list(self.running):
            each.step()
            if each.finish_reason is not None:
                self.running.remove(each)
                self.ended.append(each)
        return True


class SmallModel:
    """A model around that engine."""

    def __init__(
        self, name: str, engine: SmallEngine, template: str | None = "{{ tools }}"
    ) -> None:
        self.name, self.context = name, 2000
        self.tokenizer = engine.tokenizer
        self.chat_template = template
        self.metadata = {"tokenizer.chat_template": template}
        self._engine = engine

    def engine(self, sequences: int) -> SmallEngine:
        return self._engine

    def encode(self, prompt: str) -> list[int]:
        return self.tokenizer.encode(prompt)

    def chat_tokens(self, messages: Sequence[Any], tools: Sequence[Any] | None = None,
                    most: int | None = None) -> list[int]:  # fmt: skip
        if any(message["content"] == "refuse me" for message in messages):
            raise ValueError("the template refuses: roles must alternate")
        lines = [f"[{t['function']['name']}]" for t in tools or ()]
        lines += [f"{message['role']}: {message['content']}" for message in messages]
        return self.tokenizer.encode("\n".join(lines), most=most)


class SmallEncoder:
    """Embeds a text as the counts of its letters."""

    def __init__(self, name: str) -> None:
        self.name = name

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        rows = [np.bincount([ord(c) % 8 for c in text], minlength=8) for text in texts]
        return np.array(rows, np.float32)
