"""Promises, and whether Python can wait for them.

Where the browser has stack switching (JavaScript Promise Integration) and JavaScript called Python
in the way that allows it, Python's stack is set aside until a promise is settled, and the page goes
on meanwhile. Elsewhere nothing can wait, and only `await` works.
"""

from __future__ import annotations

from typing import Any

from treadle.core.errors import WouldBlock


def can_wait() -> bool:
    """Whether `wait` works here."""
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())


def check_can_wait(what: str, instead: str) -> None:
    """WouldBlock if Python cannot wait here: `what` needs it, and `instead` does not."""
    if not can_wait():
        raise WouldBlock(
            f"{what} waits for the GPU, and Python cannot wait here: this browser has no stack "
            f"switching, or the code was called in a way without it. Write {instead}"
        )


def wait(promise: Any) -> Any:
    """What a promise gives, waited for."""
    from pyodide.ffi import run_sync

    return run_sync(promise)
