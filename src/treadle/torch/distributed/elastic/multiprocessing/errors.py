"""`record`, around the main function of scripts for torchrun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def record(fn: Function, error_handler: Any = None) -> Function:
    """The function itself: the launcher and the other ranks hear of its errors in any case.

    >>> from treadle.torch.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """
    return fn
