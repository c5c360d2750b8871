"""Matrix fragments: small matrices that the threads of a subgroup hold together, `td.fragment(…)`.

A fragment is a local array, with the elements of a matrix that a thread holds (`ir.matrices` has
the layout): the numbers of an accumulator, and words of 32 bits with one to four elements of a
factor. So kernels index the numbers of an accumulator as they index any local array, and passes and
printers see local arrays and a few operations of subgroups. The methods are functions of the kernel
language (`fragment_methods`).

With `indexed=False` kernels do not see where elements are, and the local array has opaque matrices
of 16 x 16 (`ir.opaque`), whose layout is the target's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treadle.core.dtypes import BY_SHORT_NAME, DType, u32
from treadle.ir.matrices import COLUMNS, PRODUCTS, ROWS, MatrixProduct
from treadle.ir.opaque import OPAQUE_FIRST, OPAQUE_SECOND, OPAQUE_SUMS, SIDE
from treadle.ir.types import Struct

Use = Literal["a", "b", "accumulator"]
Layout = Literal["row", "column"]
USES = ("a", "b", "accumulator")
LAYOUTS = ("row", "column")
METHODS = (
    "fill", "load", "store", "multiply_add", "part", "row", "column", "size", "shape", "dtype",
)  # fmt: skip
_MOST_WORDS = 256  # that a thread has of a fragment
_HALF = 16  # bits

# The operations by the dtypes of the factors.
OPERATIONS = {tuple(map(str, product.elements)): op for op, product in PRODUCTS.items()}
OPAQUE: dict[str, tuple[str, Struct]] = {
    "a": ("f16", OPAQUE_FIRST), "b": ("f16", OPAQUE_SECOND), "accumulator": ("f32", OPAQUE_SUMS),
}  # fmt: skip
SUMS = {product.element.name: product.sums.name for product in PRODUCTS.values()}


@dataclass(frozen=True, slots=True)
class FragmentKind:
    """The extents, the dtype and the use of a fragment. `dtype` is a short name."""

    rows: int
    columns: int
    dtype: str
    use: Use
    indexed: bool = True

    @property
    def element(self) -> DType:
        """The dtype of the matrix."""
        return BY_SHORT_NAME[self.dtype]

    @property
    def product(self) -> MatrixProduct:
        """What multiplies it, of a factor."""
        return PRODUCTS[OPERATIONS[self.dtype, self.dtype]]

    @property
    def held(self) -> DType:
        """The dtype of the local array."""
        return self.element if self.use == "accumulator" else u32

    @property
    def tile(self) -> tuple[int, int]:
        """The part of it that one operation takes."""
        if not self.indexed:
            return SIDE, SIDE
        if self.use == "accumulator":
            return ROWS, COLUMNS
        inner = self.product.inner
        return (ROWS, inner) if self.use == "a" else (inner, COLUMNS)

    @property
    def tiles(self) -> tuple[int, int]:
        """How many parts there are, along rows and columns."""
        down, across = self.tile
        return self.rows // down, self.columns // across

    @property
    def words(self) -> int:
        """The elements of the local array."""
        down, across = self.tiles
        each = 2 if self.use == "b" else 4
        return down * across * (each if self.indexed else 8 if self.use == "accumulator" else 4)

    @property
    def opaque(self) -> Struct:
        """What its parts are, if it is not indexed."""
        return OPAQUE[self.use][1]

    def __str__(self) -> str:
        how = "" if self.indexed else ", indexed=False"
        return f"a fragment of {self.rows} x {self.columns} td.{self.dtype}, use={self.use!r}{how}"


def kind_of(
    rows: object, columns: object, dtype: object, use: object, indexed: object = True
) -> FragmentKind | str:
    """The kind of a fragment with these arguments, or what is wrong with them."""
    if use not in USES:
        return f"use is 'a', 'b' or 'accumulator', not {use!r}"
    short = dtype.short if isinstance(dtype, DType) else str(dtype)
    if not isinstance(indexed, bool):
        return f"indexed is True or False, not {indexed!r}"
    known = sorted(set(SUMS.values())) if use == "accumulator" else list(SUMS)
    if not indexed:
        known = [OPAQUE[str(use)][0]]
    if not isinstance(dtype, DType) or short not in known:
        allowed = ", ".join(f"td.{name}" for name in known)
        how = "" if indexed else " and indexed=False"
        one_of = "one of " if len(known) > 1 else ""
        return f"the dtype of use={use!r}{how} is {one_of}{allowed}, not {short}"
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (rows, columns)):
        return "rows and columns are integers that are known when the kernel is compiled"
    kind = FragmentKind(rows, columns, short, use, indexed)  # type: ignore[arg-type]
    down, across = kind.tile
    if kind.rows < 1 or kind.columns < 1 or kind.rows % down or kind.columns % across:
        how = "" if indexed else " and indexed=False"
        return (
            f"a fragment of td.{short} with use={use!r}{how} has multiples of {down} rows and of "
            f"{across} columns, not {rows} x {columns}"
        )
    if kind.words > _MOST_WORDS:
        return (
            f"{kind} takes {kind.words} registers of each thread, and at most {_MOST_WORDS} are "
            "possible: use several warps"
        )
    return kind


def multiplied_fault(sums: FragmentKind, first: FragmentKind, second: FragmentKind) -> str | None:
    """What is wrong with a product of fragments; None if nothing."""
    uses = (sums.use, first.use, second.use)
    if uses != ("accumulator", "a", "b"):
        return (
            "an accumulator multiplies a fragment of use='a' by one of use='b', as in "
            f"sums.multiply_add(a, b); these are {', '.join(map(repr, uses))}"
        )
    if not sums.indexed == first.indexed == second.indexed:
        return "a product has three fragments with indexed=False, or none"
    multiplied = sums.indexed and (first.dtype, second.dtype) in OPERATIONS
    if not (multiplied or first.dtype == second.dtype) or SUMS[first.dtype] != sums.dtype:
        return (
            f"products of td.{first.dtype} and td.{second.dtype} cannot be summed in "
            f"td.{sums.dtype}: both factors have one dtype, or are td.i8 and td.u8, and their sums "
            f"are td.{SUMS[first.dtype]}"
        )
    return _extents_fault(sums, first, second)


def _extents_fault(sums: FragmentKind, first: FragmentKind, second: FragmentKind) -> str | None:
    pairs = (
        ("columns of a", first.columns, "rows of b", second.rows),
        ("rows of the accumulator", sums.rows, "rows of a", first.rows),
        ("columns of the accumulator", sums.columns, "columns of b", second.columns),
    )
    wrong = [f"{one} ({m}) are not the {other} ({n})" for one, m, other, n in pairs if m != n]
    if not wrong:
        return None
    return (
        f"the {', and the '.join(wrong)}: an accumulator of m x n adds the product of a, m x k, "
        f"and b, k x n, and here are {sums.rows} x {sums.columns}, {first.rows} x {first.columns} "
        f"and {second.rows} x {second.columns}"
    )


def aligned_fault(kind: FragmentKind, layout: Layout, same_dtype: bool) -> str | None:
    """Why `aligned=True` does not suit a load; None if it does."""
    if kind.use == "accumulator":
        return "aligned=True is for factors: an accumulator is loaded number by number"
    if not same_dtype:
        return f"aligned=True needs an array of the fragment's dtype, td.{kind.dtype}"
    along = layout == ("row" if kind.use == "a" else "column")
    if not along and kind.element.itemsize * 8 != _HALF:
        wanted = "row" if kind.use == "a" else "column"
        return (
            f"aligned=True loads td.{kind.dtype} with use={kind.use!r} in layout={wanted!r} only: "
            "elements along the inner axis are neighbours there"
        )
    return None
