"""`torch.compiler`: what programs say of their functions to `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.tensor.compiled.tracing import is_tracing
from treadle.torch.compilation import compile as compile


def is_compiling() -> bool:
    """Whether the function is being traced."""
    return is_tracing.get()


is_dynamo_compiling = is_compiling


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """The function as it is: whatever a trace cannot record makes it run as Python."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is."""
    return fn


def reset() -> None:
    """Nothing: recorded functions are forgotten with their functions."""


def cudagraph_mark_step_begin() -> None:
    """Nothing: results of replays have memory of their own."""
