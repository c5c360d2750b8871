"""Small products of matrices whose elements the 32 lanes of a subgroup hold together.

A lane holds a few words of 32 bits of each matrix. Which element lies in which lane and word is the
layout of NVIDIA's `mma` instructions, on every target: what prints them needs no rearrangement,
and all others make the product of what the lanes exchange (`passes.matrices`).

With `per` elements in a word (2 of 16 bits, 4 of 8 bits, 1 of 32 bits), an operation multiplies a
matrix of 16 rows by one of 8 columns, over 8 * `per` elements of their inner axis:

    first   four words  word w, part e of lane l: row l / 4 + 8 (w % 2),
                                                  inner per (l % 4) + 4 per (w / 2) + e
    second  two words   word w, part e of lane l: inner per (l % 4) + 4 per w + e, column l / 4
    sums    four        number i of lane l:       row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.ir.types import BF16, F16, F32, I8, I32, U8, U32, Scalar, Type, Vector

WIDTH = 32  # lanes
ROWS, COLUMNS = 16, 8  # of one operation
FIRST = Vector(U32, 4)  # the words that a lane holds of a factor
SECOND = Vector(U32, 2)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """What `multiply_*` multiplies: elements of a type, those of the second factor perhaps of
    another one of its size, summed in a third."""

    element: Scalar
    sums: Scalar
    other: Scalar | None = None

    @property
    def elements(self) -> tuple[Scalar, Scalar]:
        """The types of both factors."""
        return self.element, self.other or self.element

    @property
    def per(self) -> int:
        """The elements in a word."""
        return 32 // self.element.bits

    @property
    def inner(self) -> int:
        """The extent of the inner axis of one operation."""
        return 8 * self.per


# Sums of integers wrap; those of floats are rounded as float32, in an order that a target chooses.
# `multiply_tf32` ignores the lowest 13 bits of the elements.
PRODUCTS: dict[str, MatrixProduct] = {
    "multiply_f16": MatrixProduct(F16, F32),
    "multiply_bf16": MatrixProduct(BF16, F32),
    "multiply_tf32": MatrixProduct(F32, F32),
    "multiply_i8": MatrixProduct(I8, I32),
    "multiply_u8": MatrixProduct(U8, I32),
    "multiply_i8u8": MatrixProduct(I8, I32, U8),
    "multiply_u8i8": MatrixProduct(U8, I32, I8),
}

# Lane 8 i + j gives row j of matrix i, 16 bytes. As `rows` a lane l gets, as word i of the result,
# word l % 4 of row l / 4 of matrix i; as `columns`, of elements of 16 bits, element l / 4 of the
# rows 2 (l % 4) and the one after. Of a result with fewer words, the lanes of the other matrices
# give a row that no lane gets, wherever it is said to be.
EXCHANGES = ("matrix_rows", "matrix_columns")
EXCHANGED: dict[Type, int] = {U32: 1, Vector(U32, 2): 2, Vector(U32, 4): 4}  # words, by the result


def operand_types(op: str) -> tuple[Type, ...]:
    """The types of the operands of an operation on matrices; the last one is the result's."""
    product = PRODUCTS.get(op)
    return (FIRST,) if product is None else (FIRST, SECOND, Vector(product.sums, 4))
