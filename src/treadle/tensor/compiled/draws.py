"""Random draws in a traced function: their seeds and numbers are data, not constants of kernels.

A draw's elements depend on the generator's seed and the draw's number (`tensor/random.py`). While a
function is traced, these four words are read from a small array of the trace, which every replay
fills from the generators' states: so it draws what the function itself would draw now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treadle.core import forks
from treadle.core.dtypes import uint32
from treadle.drivers.base import Buffer
from treadle.graph.node import Node, computed, view_of
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray, bytes_of
from treadle.tensor.generator import Generator, Recorder, recorder

if TYPE_CHECKING:
    from contextvars import Token

    from treadle.runtime.devices import Device

_IN_CHUNK = 256  # draws that share an array of words
_WORDS = 4


class _Used:
    """A generator in a trace: the draws from the state that it has at a call, and the state to set
    it to if the function does that."""

    def __init__(self, is_new: bool) -> None:
        self.live: list[int] = []  # numbers among the trace's draws
        self.first: tuple[int, int] | None = None  # seed and position before the first draw
        self.reset = is_new  # whether the function sets its state
        self.is_new = is_new


class Draws:
    """The draws of a trace."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._chunks: list[tuple[DeviceArray, Node]] = []
        self._used: dict[Generator, _Used] = {}
        self._words: list[tuple[int, int]] = []  # number and seed of each draw
        self._data = np.zeros((0, 2), np.uint64)
        self._live: list[tuple[Generator, np.ndarray, np.ndarray]] = []
        self._final: list[tuple[Generator, tuple[int, int]]] = []
        self._token: Token[Recorder | None] | None = None
        self._lock = forks.lock()
        self._finished = False

    @property
    def buffers(self) -> list[Buffer]:
        """The arrays' memory."""
        return [array.buffer for array, _ in self._chunks]

    @property
    def generators(self) -> list[Generator]:
        """The generators that are advanced, and those whose state is set."""
        found = [each for each, _, _ in self._live] + [each for each, _ in self._final]
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------ while tracing

    def begin(self) -> None:
        """Begin to record the draws of this thread."""
        self._token = recorder.set(self)

    def end(self) -> None:
        """End the recording of draws."""
        if self._token is not None:
            recorder.reset(self._token)
            self._token = None

    def reset(self, generator: Generator, is_new: bool) -> None:
        """Note that a generator is new, or was given another state."""
        if self._finished:
            return
        used = self._used.get(generator)
        if used is None:
            used = self._used[generator] = _Used(is_new)
        used.reset = True

    def words(
        self, generator: Generator, seed: int, number: int, device: Device, shape: tuple[int, ...]
    ) -> tuple[Node, ...] | None:
        """A draw's number and seed as two words each, in arrays of a shape; None if they are
        constants: on another device, and after the end of the recording."""
        if device is not self._device:
            return None
        with self._lock:
            if self._finished:
                return None
            at = self._note(generator, seed, number)
            chunk, place = divmod(at, _IN_CHUNK)
            if not place:
                with device.pool.without_reuse():
                    array = DeviceArray.allocate(device, uint32, (_IN_CHUNK * _WORDS,))
                self._chunks.append((array, computed(array)))
        node, first = self._chunks[chunk][1], place * _WORDS
        still = (0,) * len(shape)
        return tuple([view_of(node, View(shape, still, first + word)) for word in range(_WORDS)])

    def _note(self, generator: Generator, seed: int, number: int) -> int:
        """Record a draw. Returns its number among the trace's draws."""
        used = self._used.get(generator)
        if used is None:
            used = self._used[generator] = _Used(False)
        at = len(self._words)
        if not used.reset:
            used.first = used.first or (seed, number)
            used.live.append(at)
        self._words.append((number, seed))
        return at

    def finish(self) -> None:
        """Prepare the words and the final states of generators, when all draws are known."""
        with self._lock:
            self._finished = True
        self._data = np.array(self._words, np.uint64).reshape(-1, 2)
        for generator, used in self._used.items():
            if used.live and used.first is not None:
                at = np.array(used.live)
                position = used.first[1]
                with np.errstate(over="ignore"):
                    steps = self._data[at, 0] - np.uint64(position)
                self._live.append((generator, at, steps))
            if used.reset and not used.is_new:
                self._final.append((generator, generator.get_state()))

    def undo(self) -> None:
        """Set the generators back to their states before the trace."""
        self.end()
        for generator, used in self._used.items():
            if used.first is not None:
                generator.set_state(used.first)

    # ------------------------------------------------------------------ each replay

    def fill(self, first: bool) -> None:
        """Write the words for a replay into the arrays, and advance the generators; for the first
        replay they were advanced while tracing."""
        if not self._chunks:
            for generator, state in self._final:
                generator.set_state(state)
            return
        data = self._data
        if not first:
            for generator, at, steps in self._live:
                seed, position = generator.skip(len(at))
                data[at, 0] = steps + np.uint64(position)
                data[at, 1] = seed
            for generator, state in self._final:
                generator.set_state(state)
        for number, (array, _) in enumerate(self._chunks):
            part = data[number * _IN_CHUNK : (number + 1) * _IN_CHUNK]
            array.device.default_stream.handle.write(array.buffer, 0, bytes_of(part))
