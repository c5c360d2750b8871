"""What a vendor's library is asked for when it multiplies matrices: plain records."""

from __future__ import annotations

from typing import NamedTuple


class Operand(NamedTuple):
    """A stack of matrices in memory. `pitch` is the elements from one row to the next; from one
    column to the next if it is `transposed`, whose rows are neighbours then. `step` is the elements
    from one matrix to the next, 0 for the same one."""

    transposed: bool
    pitch: int
    step: int


class DenseProduct(NamedTuple):
    """`batch` products of (rows, depth) by (depth, columns) matrices of one dtype (its short name).
    The results lie row by row, one after the other. Halves are added up in float32."""

    dtype: str
    batch: int
    rows: int
    columns: int
    depth: int
    left: Operand
    right: Operand


class PreparedProduct(NamedTuple):
    """How a library computes a product: bytes of scratch memory that it wants, and its own plan."""

    workspace: int
    plan: object
