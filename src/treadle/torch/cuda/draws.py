"""Seeds of random draws on cards: those of all devices, which are one."""

from __future__ import annotations

from typing import Any

from treadle.torch import random
from treadle.torch.random import initial_seed, seed
from treadle.torch.tensors import Tensor

__all__ = ["initial_seed", "seed"]


def manual_seed(seed: int) -> None:
    """Seed all draws that name no generator."""
    random.manual_seed(seed)


manual_seed_all = manual_seed
seed_all = seed


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the draws, as bytes."""
    return random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The state of the draws, in a list."""
    return [random.get_rng_state()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue the draws from a state."""
    random.set_rng_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Continue the draws from a state, in a list."""
    random.set_rng_state(new_states[0])
