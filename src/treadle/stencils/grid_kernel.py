"""Kernels whose text is made around the body of a stencil."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from treadle.ir.definition import KernelOptions
from treadle.lang.captures import CaptureSet
from treadle.lang.decorators import Kernel
from treadle.lang.positions import AxisRule
from treadle.lang.source import function_from_text


def captures_of_rules(rules: Iterable[AxisRule]) -> tuple[CaptureSet, ...]:
    """What the functions at a boundary take from outside."""
    functions = dict.fromkeys(rule.function for rule in rules if rule.function is not None)
    return tuple(CaptureSet(each.definition) for each in functions)


class GridKernel(Kernel):
    """A kernel with text of its own. The text names what a body takes from outside, but not what
    the boundary's functions take: they are called where a position is read."""

    def __init__(
        self, text: str, names: dict[str, Any], options: KernelOptions, rules: Iterable[AxisRule]
    ) -> None:
        super().__init__(function_from_text(text, None, names), options, None)
        self._outside = captures_of_rules(rules)

    def captured(self) -> Hashable:
        """The current values of the constants from outside."""
        return super().captured(), *(each.key() for each in self._outside)
