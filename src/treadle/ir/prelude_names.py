"""Names of the functions that passes add to a kernel: readable, and never those of a user."""

from __future__ import annotations

from treadle.ir.types import Type

PREFIX = "prelude."


def prelude_name(operation: str, *types: Type) -> str:
    """The name of the function for an operation on these types."""
    spelled = (str(type).replace("<", "_").replace(">", "") for type in types)
    return PREFIX + "_".join((operation, *spelled))


def is_prelude(name: str) -> bool:
    """Whether a function's name is one of these."""
    return name.startswith(PREFIX)
