"""Functions of tensors for objects that are not tensors and have functions of the same names, as
sharded arrays are: a function that has refused its arguments asks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def overridden(
    error: TypeError, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Any:
    """What a function that has refused its arguments makes of them by the method
    `__treadle_function__` of one of them, which is given the name and all arguments. Raises the
    refusal if none has it."""
    for value in (*arguments, *keywords.values()):
        method = getattr(type(value), "__treadle_function__", None)
        if method is not None:
            return method(name, arguments, keywords)
    raise error
