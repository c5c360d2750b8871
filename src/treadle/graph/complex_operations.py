"""The elementwise operations on complex numbers: functions of the kernel language over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType

from treadle.core.errors import DtypeError
from treadle.ir.types import Type


def complex_definition(op: str, types: Sequence[Type]) -> FunctionType:
    """The function that computes an operation on pairs."""
    raise DtypeError(f"{op} does not take complex numbers")
