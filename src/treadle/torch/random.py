"""`torch.random` and `torch.Generator`: seeds and states of random draws.

Draw number k of a seed is the same on every device, so there is one generator for all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import treadle as td
from treadle.tensor.generator import default_generator as theirs
from treadle.torch.devices import device as Device
from treadle.torch.tensors import Tensor, wrap

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "seed", "set_rng_state",
]  # fmt: skip


class Generator:
    """A stream of random draws.

    >>> import treadle.torch as torch
    >>> g = torch.Generator().manual_seed(3)
    >>> x = torch.rand(2, generator=g)
    >>> torch.equal(x, torch.rand(2, generator=g.manual_seed(3)))
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device, self._inner = Device(device), td.Generator(0)

    @property
    def td(self) -> td.Generator:
        """The generator of treadle."""
        return self._inner

    @property
    def device(self) -> Device:
        """The device that it was made for. It serves all."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Restart with a seed. Returns the generator. ValueError for seeds of more than 64 bits."""
        if not -(2**63) <= int(seed) < 2**64:
            raise ValueError(f"Overflow: a seed has 64 bits, and {seed} has not")
        self._inner.manual_seed(int(seed) % 2**64)
        return self

    def seed(self) -> int:
        """Restart with a random seed, which is returned."""
        drawn = secrets.randbits(53)
        self.manual_seed(drawn)
        return drawn

    def initial_seed(self) -> int:
        """The seed that it began with."""
        return self._inner.seed

    def get_state(self) -> Tensor:
        """The seed and the position as bytes, for `set_state`."""
        words = np.array(self._inner.get_state(), np.uint64)
        return wrap(td.asarray(words.view(np.uint8), device="cpu"))

    def set_state(self, new_state: Tensor) -> None:
        """Continue from a state. RuntimeError for what is none."""
        raw = np.ascontiguousarray(new_state._inner.numpy())
        if raw.dtype != np.uint8 or raw.size != 16:
            raise RuntimeError("RNG state must be a torch.ByteTensor, as get_state() makes")
        seed, position = raw.view(np.uint64).tolist()
        self._inner.set_state((seed, position))

    def clone_state(self) -> Generator:
        """Another generator that continues from the same state."""
        made = Generator(self._device)
        made._inner.set_state(self._inner.get_state())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self._device), self._inner.get_state())


def _restored(device: str, state: tuple[int, int]) -> Generator:
    made = Generator(device)
    made._inner.set_state(state)
    return made


default_generator = Generator()
default_generator._inner = theirs()


def manual_seed(seed: int) -> Generator:
    """Seed all draws that name no generator.

    >>> import treadle.torch as torch
    >>> _ = torch.manual_seed(1)
    >>> torch.initial_seed()
    1
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the draws with a random number, which is returned."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the draws."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the draws, as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the draws from a state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, device_type: str = "cuda", **options: Any
) -> Iterator[None]:
    """Within it draws change nothing for those after it.

    >>> import treadle.torch as torch
    >>> state = torch.get_rng_state()
    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(3)
    >>> torch.equal(state, torch.get_rng_state())
    True
    """
    if not enabled:
        yield
        return
    state = default_generator._inner.get_state()
    try:
        yield
    finally:
        default_generator._inner.set_state(state)
