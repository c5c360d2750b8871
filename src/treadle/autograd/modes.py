"""Whether operations are recorded: context managers that are decorators, too."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import Token
from typing import Any

from treadle.graph.history import recording


class set_grad_enabled(ContextDecorator):
    """Record operations, or don't, from now on; as a context manager or decorator within it.

    >>> import treadle as td
    >>> x = td.ones(2, device="cpu").requires_grad_()
    >>> with td.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._tokens: list[Token[bool]] = [recording.set(bool(mode))]

    def __enter__(self) -> None:
        if len(self._tokens) == 1 and self._fresh:
            self._fresh = False
            return
        self._tokens.append(recording.set(self._mode))

    def __exit__(self, *exception: Any) -> None:
        recording.reset(self._tokens.pop())

    _fresh = True


class _Mode(ContextDecorator):
    """Within it operations are recorded, or not."""

    _mode: bool

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(recording.set(self._mode))

    def __exit__(self, *exception: Any) -> None:
        recording.reset(self._tokens.pop())


class no_grad(_Mode):
    """Within it nothing is recorded, so that what is computed requires no gradients; a decorator
    for functions, too.

    >>> import treadle as td
    >>> x = td.ones(2, device="cpu").requires_grad_()
    >>> with td.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _mode = False


class enable_grad(_Mode):
    """Within it operations are recorded, also inside of `no_grad`."""

    _mode = True


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are recorded."""
    return recording.get()
