"""Generators of random numbers: a seed, and the number of draws so far."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from treadle.core import forks
from treadle.graph.node import Node
from treadle.runtime.devices import Device


class Recorder(Protocol):
    """Records the draws of a traced function (see `tensor/compiled/draws.py`)."""

    def reset(self, generator: Generator, is_new: bool) -> None:
        """Note that a generator is new, or was given another state."""

    def words(
        self, generator: Generator, seed: int, number: int, device: Device, shape: tuple[int, ...]
    ) -> tuple[Node, ...] | None:
        """A draw's number and seed as two words each, in arrays of a shape; None if they are
        constants."""


recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


class Tape:
    """The draws of a function, each as the words that identify it: with these words the same
    numbers are drawn again, without advancing a generator."""

    def __init__(self, words: Sequence[Any] | None = None) -> None:
        self._outer = tape.get()
        self._taken: list[Any] = []
        self._again = None if words is None else iter(words)

    def again(self) -> Tape:
        """A tape that repeats these draws."""
        return Tape(self._taken)

    def words(self, make: Callable[[], Any]) -> Any:
        """The words of the next draw; `make` makes those of a new one."""
        if self._again is not None:
            found = next(self._again, None)
            if found is not None:
                return found
        found = make() if self._outer is None else self._outer.words(make)
        self._taken.append(found)
        return found


# The recorder of a function's draws, and the tape that repeats them.
tape: ContextVar[Tape | None] = ContextVar("tape", default=None)


class Generator:
    """A stream of random draws: a seed, and a position that counts them.

    Draw number k of a seed is the same on every device and does not depend on earlier draws, so
    these two numbers are the whole state. Threads may share a generator. Without a seed it takes a
    random one.

    >>> import treadle as td
    >>> g = td.Generator(7)
    >>> x = td.random.integers(3, 0, 100, device="cpu", generator=g)
    >>> g
    Generator(7, position=1)
    >>> y = td.random.integers(3, 0, 100, device="cpu", generator=td.Generator(7))
    >>> x.tolist() == y.tolist()
    True
    """

    __slots__ = ("_lock", "_position", "_seed")

    def __init__(self, seed: int | None = None, *, position: int = 0) -> None:
        self._lock = forks.lock()
        self._seed = secrets.randbits(64) if seed is None else _word("a seed", seed)
        self._position = _word("a position", position)
        if (recording := recorder.get()) is not None:
            recording.reset(self, True)

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self._seed

    @property
    def position(self) -> int:
        """The number of the next draw."""
        return self._position

    def manual_seed(self, seed: int) -> Generator:
        """Restart with a seed. Returns the generator."""
        self.set_state((seed, 0))
        return self

    def get_state(self) -> tuple[int, int]:
        """The seed and the position, for `set_state` to repeat the draws that follow."""
        with self._lock:
            return self._seed, self._position

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a state of this generator or another one."""
        try:
            seed, position = state
        except (TypeError, ValueError):
            raise ValueError(
                f"a generator's state is a seed and a position, as from get_state(), not {state!r}"
            ) from None
        seed, position = _word("a seed", seed), _word("a position", position)
        with self._lock:
            self._seed, self._position = seed, position
        if (recording := recorder.get()) is not None:
            recording.reset(self, False)

    def next_draw(self) -> tuple[int, int]:
        """The seed, and the number of a new draw, which no other call gets."""
        return self.skip(1)

    def skip(self, count: int) -> tuple[int, int]:
        """The seed, and the number of the first of `count` new draws, which no other call gets."""
        with self._lock:
            seed, number = self._seed, self._position
            self._position = (number + count) % 2**64
        return seed, number

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self.get_state()

    def __repr__(self) -> str:
        seed, position = self.get_state()
        return f"Generator({seed}, position={position})"


def _word(what: str, value: Any) -> int:
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"{what} is an integer, not {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"{what} is an integer from 0 to 2**64 - 1, not {number}")
    return number


def _restored(seed: int, position: int) -> Generator:
    return Generator(seed, position=position)


_default = Generator()


def default_generator() -> Generator:
    """The generator of all draws without `generator=`, on every device."""
    return _default


def manual_seed(seed: int, /) -> Generator:
    """Seed the default generator, so that the draws from here on can be repeated. Returns the
    generator.

    >>> import treadle as td
    >>> td.manual_seed(1)
    Generator(1, position=0)
    """
    return _default.manual_seed(seed)
