"""`with td.interpret():` runs kernels as plain Python."""

from __future__ import annotations

from typing import Any


def is_active() -> bool:
    """Whether launches on this Python thread are interpreted."""
    return False


def current_run() -> Any:
    """The launch that this Python thread is interpreting, or None."""
    return None


def run(kernel: Any, grid: Any, block: Any, shared_bytes: int, arguments: tuple[Any, ...]) -> None:
    """Interpret a launch by blocks."""


def run_threads(kernel: Any, threads: Any, arguments: tuple[Any, ...]) -> None:
    """Interpret a launch by threads."""
