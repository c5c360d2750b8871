"""The thread in which an engine generates, and the queue before it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from treadle.core.errors import QueueFull
from treadle.core.forks import lock
from treadle.models.pieces import Piece
from treadle.models.sampling import Sampling
from treadle.models.serving.protocol import Engine, Generation, Listener, Overflow

_log = logging.getLogger(__name__)


class EngineLoop:
    """Runs an engine's steps in one thread while it has work."""

    def __init__(self, engine: Engine, most_queued: int = 256) -> None:
        self._engine, self._most = engine, most_queued
        self._lock = lock()
        self._wake = threading.Event()
        self._listeners: dict[int, Listener] = {}
        self._generations: dict[int, Generation] = {}
        self._numbers = 0
        self._closed = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="treadle-engine", daemon=True)
        self._thread.start()

    def submit(
        self,
        tokens: Sequence[int],
        sampling: Sampling,
        max_tokens: int,
        stop: Sequence[str],
        listener: Listener,
        overflow: Overflow = "error",
    ) -> Generation:
        """Queue a text. The listener is called with each piece, and once with None at the end, also
        if the engine fails. QueueFull if too many are queued already, and after a failure its
        error."""
        with self._lock:
            if self.failure is not None:
                raise self.failure
            if self._closed.is_set():
                raise QueueFull("the server is stopping")
            if len(self._listeners) >= self._most:
                raise QueueFull(
                    f"{self._most} generations are running or queued already, and no more may be: "
                    "try again later"
                )
            self._numbers += 1
            number = self._numbers
            self._listeners[number] = listener
        try:
            generation = self._engine.submit(
                tokens, sampling, max_tokens, stop, lambda piece: self._heard(number, piece),
                overflow,
            )  # fmt: skip
        except BaseException:
            with self._lock:
                self._listeners.pop(number, None)
            raise
        with self._lock:
            if number in self._listeners:
                self._generations[number] = generation
        if self._closed.is_set():  # meanwhile
            generation.close()
        self._wake.set()
        return generation

    def cancel(self, generation: Generation) -> None:
        """End a generation that no client waits for."""
        generation.close()
        self._wake.set()

    def close(self) -> None:
        """End all generations, then the thread."""
        with self._lock:
            self._closed.set()
            running = list(self._generations.values())
        for generation in running:
            generation.close()
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=30)

    @property
    def active(self) -> int:
        """How many generations are running or queued."""
        return len(self._listeners)

    def _heard(self, number: int, piece: Piece | None) -> None:
        with self._lock:
            listener = self._listeners.get(number)
            if piece is None:
                self._listeners.pop(number, None)
                self._generations.pop(number, None)
        if listener is not None:
            listener(piece)

    def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                worked = self._engine.step()
            except Exception as error:  # noqa: BLE001 - whatever it is, clients must not wait forever
                _log.exception("the engine failed, and generates no more")
                self._fail(error)
                return
            if not worked:
                if self._closed.is_set():
                    return
                self._wake.wait()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self.failure = error
            listeners = list(self._listeners.values())
            self._listeners.clear()
            self._generations.clear()
        for listener in listeners:
            listener(None)
