"""Room for deeply nested code: the compiler walks expressions and branches by recursion."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.core import forks
from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span

_FRAMES = 20_000  # an expression of some thousand operations; Python's own limit is 1000

_lock = forks.lock()
_inside: dict[int, int] = {}  # blocks that each thread has entered: the limit is the process's
_limit_before = 0


@contextmanager
def deep_nesting(
    name: str = "the kernel", span: Span = NOWHERE, text: str | None = None
) -> Iterator[None]:
    """Raise Python's recursion limit inside the block; code too deep even so is a CompileError."""
    _enter()
    try:
        yield
    except RecursionError:
        raise too_deep(name, span, text) from None
    finally:
        _leave()


def too_deep(name: str, span: Span = NOWHERE, text: str | None = None) -> CompileError:
    """The error for code that even so is nested too deeply."""
    return CompileError(
        f"{name} is nested too deeply: split its longest expression, or its longest chain of elif",
        span,
        text,
    )


def _enter() -> None:
    global _limit_before
    thread = threading.get_ident()
    with _lock:
        if not _inside:
            _limit_before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit_before, _FRAMES))
        _inside[thread] = _inside.get(thread, 0) + 1


def _leave() -> None:
    thread = threading.get_ident()
    with _lock:
        _inside[thread] -= 1
        if not _inside[thread]:
            del _inside[thread]
            if not _inside:
                sys.setrecursionlimit(_limit_before)


@forks.in_child
def _forget_other_threads(half_changed: bool) -> None:
    others = [thread for thread in _inside if thread != threading.get_ident()]
    for thread in others:
        del _inside[thread]
    if others and not _inside:
        sys.setrecursionlimit(_limit_before)
