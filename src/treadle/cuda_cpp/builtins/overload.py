"""How a function that CUDA declares becomes IR: overloads in a table, each with its recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Vector


class Maker(Protocol):
    """What a recipe may ask of the function that is being lowered."""

    def library(self, name: str, *operands: n.Expression) -> n.Expression:
        """A call of a function of `treadle.lang.math` ("exp"), in its version for the operands."""

    def let(self, value: n.Expression) -> n.Expression:
        """The value, computed once: a variable, where it is used more than once."""

    def refuse(self, reason: str) -> Exception:
        """The error to raise where the call cannot be expressed."""

    @property
    def fastmath(self) -> bool:
        """Whether the kernel takes the hardware's own mathematics."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature: the types of its parameters and of its result, and how to build it.

    `build` gets operands of exactly the parameters' types. `note` is for reports: "" where the
    target's own operation is used, else what it is emulated by.
    """

    parameters: tuple[Scalar | Vector, ...]
    result: Scalar | Vector
    build: Callable[..., n.Expression]  # (maker, *operands) -> expression of the result's type
    note: str = ""
