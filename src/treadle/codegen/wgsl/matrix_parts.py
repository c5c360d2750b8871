"""The subgroup matrices that an opaque matrix is made of in WGSL.

The sizes that a device multiplies are its own. A matrix of 16 x 16 is one of them, or an array of
several, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from treadle.ir.opaque import ELEMENTS, OPAQUE_FIRST, OPAQUE_SECOND, SIDE, Unit
from treadle.ir.types import Struct

_FORMS = ("subgroup_matrix_left", "subgroup_matrix_right", "subgroup_matrix_result")


@dataclass(frozen=True, slots=True)
class Parts:
    """The subgroup matrices that an opaque matrix is made of."""

    type: str
    rows: int
    columns: int

    @property
    def across(self) -> int:
        """How many are beside each other."""
        return SIDE // self.columns

    @property
    def count(self) -> int:
        """How many there are."""
        return SIDE // self.rows * self.across

    def name(self, value: str, row: int, column: int) -> str:
        """The text of one of them, in a value."""
        return value if self.count == 1 else f"{value}[{row * self.across + column}]"

    def each(self) -> Iterator[tuple[int, int]]:
        """Their rows and columns, of parts."""
        return ((i, j) for i in range(SIDE // self.rows) for j in range(self.across))


def parts_of(type: Struct, unit: Unit) -> Parts:
    """The subgroup matrices of an opaque matrix, for products of a size."""
    m, columns, k = unit
    element = ELEMENTS[type].name
    if type == OPAQUE_FIRST:
        return Parts(f"{_FORMS[0]}<{element}, {k}, {m}>", m, k)
    if type == OPAQUE_SECOND:
        return Parts(f"{_FORMS[1]}<{element}, {columns}, {k}>", k, columns)
    return Parts(f"{_FORMS[2]}<{element}, {columns}, {m}>", m, columns)


def register(type: Struct, unit: Unit) -> str:
    """The WGSL type of an opaque matrix."""
    parts = parts_of(type, unit)
    return parts.type if parts.count == 1 else f"array<{parts.type}, {parts.count}>"
