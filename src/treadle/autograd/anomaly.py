"""Anomaly detection: the operation whose gradient is the first NaN, and the line of its call."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any

from treadle.autograd.partial_gradients import Placed
from treadle.core import version
from treadle.core.errors import AutogradError
from treadle.graph.history import History, placing, recorded
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.reductions import any as any_of

is_checked: ContextVar[bool] = ContextVar("is_checked", default=False)
_HERE = str(Path(version.__file__).parents[1])


class set_detect_anomaly:
    """Look for NaN in gradients, or don't, from now on; as a context manager within it.

    Operations then remember their lines, and a backward pass reads what each gives: AutogradError
    for the first NaN, which names operation and line. It is slow, and there to find faults. With
    `check_nan=False` only lines are remembered, for the other errors of a backward pass.

    >>> import treadle as td
    >>> x = td.asarray([0.0], device="cpu").requires_grad_()
    >>> with td.autograd.detect_anomaly():
    ...     y = td.sqrt(x) * 0
    ...     y.sum().backward()
    Traceback (most recent call last):
    treadle.core.errors.AutogradError: the gradient of sqrt has NaN in it...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (is_checked.get(), placing.get())
        is_checked.set(bool(mode) and check_nan)
        placing.set(_line if mode else None)

    def __enter__(self) -> None:
        """It is on already."""

    def __exit__(self, *exception: Any) -> None:
        is_checked.set(self._before[0])
        placing.set(self._before[1])


class detect_anomaly:
    """Look for NaN in gradients within a with statement: `set_detect_anomaly(True)`."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check = check_nan
        self._tokens: list[tuple[Token[bool], Token[Any]]] = []

    def __enter__(self) -> None:
        self._tokens.append((is_checked.set(self._check), placing.set(_line)))

    def __exit__(self, *exception: Any) -> None:
        checks, places = self._tokens.pop()
        is_checked.reset(checks)
        placing.reset(places)


def is_anomaly_enabled() -> bool:
    """Whether backward passes look for NaN."""
    return is_checked.get()


def checked(
    made: History, gradients: Iterable[Any], flow: Iterable[tuple[History | None, Any]]
) -> Iterator[tuple[History | None, Any]]:
    """The gradients that a derivative gives. AutogradError for the first with NaN."""
    for edge, gradient in flow:
        if edge is not None and gradient is not None and _has_nan(gradient):
            came = any(each is not None and _has_nan(each) for each in gradients)
            if came:  # this operation did not cause it: the pass began with NaN
                why = "which came with the gradient that the backward pass began with"
            else:
                why = "while the gradients that it was computed from have none"
            raise AutogradError(
                f"the gradient of {made.derivative.name} has NaN in it, {why}. "
                f"{_where_computed(made)}"
            )
        yield edge, gradient


def _has_nan(gradient: Any) -> bool:
    tensor = gradient.gradient if isinstance(gradient, Placed) else gradient
    with recorded(False):
        return bool(any_of(FUNCTIONS["isnan"](tensor)).item())


def _where_computed(made: History) -> str:
    if made.place is None:
        return "Run what is differentiated within detect_anomaly(), too, to see its line"
    return f"It was computed in {made.place}"


def _line() -> str:
    """The innermost line outside of the library."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    code, number = frame.f_code, frame.f_lineno
    linecache.checkcache(code.co_filename)
    text = linecache.getline(code.co_filename, number).strip()
    return f"{code.co_filename}, line {number}, in {code.co_name}:\n    {text}"
