"""What a vendor's library is asked for when it multiplies matrices: plain records."""

from __future__ import annotations

from typing import NamedTuple

# The dtypes that libraries multiply, by their short names, and the bytes of an element.
ITEM_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16}


class Operand(NamedTuple):
    """A stack of matrices in memory. `pitch` is the elements from one row to the next; from one
    column to the next if it is `transposed`, whose rows are neighbours then. `step` is the elements
    from one matrix to the next, 0 for the same one."""

    transposed: bool
    pitch: int
    step: int


class DenseProduct(NamedTuple):
    """`batch` products of (rows, depth) by (depth, columns) matrices of one dtype (its short name).
    The results lie row by row, one after the other, in the same dtype unless `result` names another
    one. Halves are added up in float32. float32 numbers may be `rounded` to TF32 first."""

    dtype: str
    batch: int
    rows: int
    columns: int
    depth: int
    left: Operand
    right: Operand
    result: str = ""
    rounded: bool = False

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.rows * self.columns * self.depth

    @property
    def bytes(self) -> int:
        """What has to be moved: each matrix once."""
        left = self.rows * self.depth * (self.batch if self.left.step else 1)
        right = self.depth * self.columns * (self.batch if self.right.step else 1)
        out = self.rows * self.columns * self.batch
        item = ITEM_SIZES[self.dtype]
        return item * (left + right) + ITEM_SIZES[self.result or self.dtype] * out


class PreparedProduct(NamedTuple):
    """How a library computes a product: bytes of scratch memory that it needs, and its own plan."""

    workspace: int
    plan: object
    product: DenseProduct
