"""Descriptions of products of matrices: plain records of extents and strides."""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import BY_SHORT_NAME, DType

TF32 = "tf32"  # float32 numbers, rounded to 10 bits of fraction before they are multiplied


def dtypes_of(name: str) -> tuple[DType, DType]:
    """The dtypes of the factors that are multiplied, by their name (`Product.factors`, `Traits`).

    >>> dtypes_of("u8i8")
    (treadle.uint8, treadle.int8)
    >>> dtypes_of("tf32")
    (treadle.float32, treadle.float32)
    """
    if name == TF32:
        return BY_SHORT_NAME["f32"], BY_SHORT_NAME["f32"]
    size = len(name) if name in BY_SHORT_NAME else len(name) // 2
    return BY_SHORT_NAME[name[:size]], BY_SHORT_NAME[name[-size:]]


class Factor(NamedTuple):
    """Where a factor's elements are in its array, counted in elements: strides along the axes of
    the stack, from a row of the first factor (a column of the second) to the next, and along the
    inner axis; and the first element."""

    batch: tuple[int, ...]
    line: int
    inner: int
    offset: int


class Product(NamedTuple):
    """The product of matrices of (rows, inner) by (inner, columns), or of stacks of them whose axes
    have the extents `batch`, at most three. Results are stored row by row, matrix by matrix.
    `factors` says what is multiplied if not the result's dtype: `TF32`, or the short name of the
    factors' dtype, those of both where they differ ("i8u8")."""

    batch: tuple[int, ...]
    rows: int
    columns: int
    inner: int
    first: Factor
    second: Factor
    factors: str = ""

    @property
    def name(self) -> str:
        """The name in an explanation for the user."""
        return "product"

    @property
    def matrices(self) -> int:
        """How many matrices the stacks have."""
        return math.prod(self.batch)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Matrices, rows, columns, inner extent."""
        return self.matrices, self.rows, self.columns, self.inner

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.matrices * self.rows * self.columns * self.inner
