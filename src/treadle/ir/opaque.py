"""Matrices of 16 x 16 elements that a subgroup holds in a layout of the target's own.

The matrices of WebGPU's subgroups and of Metal's SIMD groups cannot be indexed: they are loaded
from memory, multiplied, and stored. So nothing looks into a value of these types but the operations
here. Targets without such matrices take the fields for what they are, the words of `ir.matrices`
(`passes.opaque`); the others declare the types as their own.

An operation loads, fills or multiplies (`OPAQUE_OPERATIONS`); `nodes.OpaqueStore` stores. All lanes
take part, and give the same place and stride. A stride counts elements of the array, as its index
does; an element of 16 bytes has several of the matrix.

    opaque_rows      the load of the first element, stride    rows are adjacent elements
    opaque_columns   the same                                 columns are
    opaque_fill      a number of the matrix's type            the same everywhere
    opaque_multiply  first, second, sums                      sums + first @ second
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from treadle.ir.matrices import FIRST, SECOND
from treadle.ir.types import F16, F32, Field, Scalar, Struct, Vector

SIDE = 16  # rows, and columns
Unit: TypeAlias = tuple[int, int, int]  # rows, columns and inner extent of a product
_SUMS = Vector(F32, 4)

# Their names are none that users can give.
OPAQUE_FIRST = Struct("matrix.first", (Field("words", FIRST),))
OPAQUE_SECOND = Struct("matrix.second", (Field("left", SECOND), Field("right", SECOND)))
OPAQUE_SUMS = Struct("matrix.sums", (Field("left", _SUMS), Field("right", _SUMS)))

ELEMENTS: dict[Struct, Scalar] = {OPAQUE_FIRST: F16, OPAQUE_SECOND: F16, OPAQUE_SUMS: F32}
LOADS = ("opaque_rows", "opaque_columns")
MULTIPLIED = (OPAQUE_FIRST, OPAQUE_SECOND, OPAQUE_SUMS)  # the operands of `opaque_multiply`


def unit_of(units: Iterable[Unit]) -> Unit | None:
    """The rows, columns and inner extent of the products to use, of those that a device has: the
    largest that 16 x 16 x 16 is made of.

    >>> unit_of([(8, 8, 8), (8, 16, 16), (32, 8, 16)])
    (8, 16, 16)
    """
    fitting = [unit for unit in units if not any(SIDE % extent for extent in unit)]
    return max(fitting, key=lambda unit: (unit[0] * unit[1] * unit[2], unit), default=None)
