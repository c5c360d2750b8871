"""`torch.distributed`: one process has one device here, so there are no groups of processes.

Programs import these names and ask `is_available()` or `is_initialized()` before they use them;
what would need other processes raises a RuntimeError.
"""

from __future__ import annotations

from typing import Any, NoReturn


def is_available() -> bool:
    """Whether processes can train together: no."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes is there: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started this process and others: no."""
    return False


def init_process_group(*arguments: Any, **options: Any) -> NoReturn:
    """RuntimeError: there are no groups of processes."""
    raise RuntimeError(
        "training in several processes is not there: run the program in one process, without "
        "torchrun (RANK and WORLD_SIZE not set)"
    )


def destroy_process_group(group: Any = None) -> None:
    """Nothing: there is no group."""


def get_rank(group: Any = None) -> int:
    """The number of this process among those of a group. RuntimeError: there is no group."""
    raise RuntimeError(
        "there is no group of processes: torch.distributed.is_initialized() is False"
    )


def get_world_size(group: Any = None) -> int:
    """The number of processes of a group. RuntimeError: there is no group."""
    return get_rank(group)
