"""Overloads of built-in functions, each with a recipe for its IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Vector


class Maker(Protocol):
    """What a recipe may use of the context in which a call is lowered."""

    def library(self, name: str, *operands: n.Expression) -> n.Expression:
        """A call of a function of `treadle.lang.math` ("exp"), for the operands' type."""

    def let(self, value: n.Expression) -> n.Expression:
        """The value, computed once, for several uses."""

    def refuse(self, reason: str) -> Exception:
        """The error to raise if the call is not supported."""

    @property
    def fastmath(self) -> bool:
        """Whether the kernel uses the hardware's own mathematics."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature: the types of its parameters and of its result, and how to build it.

    `build` gets operands of exactly the parameters' types. `note` is for reports: "" for an
    operation of the target, else what it is emulated by.
    """

    parameters: tuple[Scalar | Vector, ...]
    result: Scalar | Vector
    build: Callable[..., n.Expression]  # (maker, *operands) -> expression of the result's type
    note: str = ""
