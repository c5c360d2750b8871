"""Whether operations are recorded: context managers that are decorators, too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from treadle.graph.history import recording


class _Mode(ContextDecorator):
    """Within it operations are recorded, or not."""

    _mode: bool
    _before: bool

    def __new__(cls, *arguments: Any) -> Any:
        if arguments and callable(arguments[0]):  # @td.no_grad, without brackets
            return cls()(arguments[0])
        return super().__new__(cls)

    def __enter__(self) -> None:
        self._before = recording.get()
        recording.set(self._mode)

    def __exit__(self, *exception: Any) -> None:
        recording.set(self._before)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The function, within this mode; a generator function while its generators run."""
        if inspect.isgeneratorfunction(function):
            return self._generating(function)

        @functools.wraps(function)
        def within(*args: Any, **keywords: Any) -> Any:
            before = recording.get()
            recording.set(self._mode)
            try:
                return function(*args, **keywords)
            finally:
                recording.set(before)

        return within

    def _generating(self, function: Callable[..., Any]) -> Any:
        """A generator function whose generators are in this mode, and the caller is not."""

        @functools.wraps(function)
        def within(*args: Any, **keywords: Any) -> Any:
            generator = function(*args, **keywords)
            ask: Callable[[], Any] = functools.partial(next, generator)
            while True:
                before = recording.get()
                recording.set(self._mode)
                try:
                    given = ask()
                except StopIteration as end:
                    return end.value
                finally:
                    recording.set(before)
                try:
                    ask = functools.partial(generator.send, (yield given))
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  the generator decides
                    ask = functools.partial(generator.throw, error)

        return within


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


class inference_mode(_Mode):
    """`no_grad`, by the name that it has in PyTorch where results are never differentiated."""

    def __init__(self, mode: bool = True) -> None:
        self._mode = not mode


class set_grad_enabled(_Mode):
    """Record operations, or don't, from now on; as a context manager or decorator within it.

    >>> import treadle as td
    >>> x = td.ones(2, device="cpu").requires_grad_()
    >>> with td.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self._mode = bool(mode)
        self._before = recording.get()
        recording.set(self._mode)

    def __enter__(self) -> None:
        recording.set(self._mode)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The function, within this mode; nothing else is."""
        recording.set(self._before)
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are recorded."""
    return recording.get()
