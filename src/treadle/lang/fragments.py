"""Matrix fragments: small matrices that the threads of a subgroup hold together, `td.fragment(…)`.

A fragment is a local array, with the elements of a matrix that a thread holds (`ir.matrices` has
the layout): the numbers of an accumulator, and words of 32 bits with one to four elements of a
factor. So kernels index the numbers of an accumulator as they index any local array, and passes and
printers see local arrays and a few operations of subgroups. The methods are functions of the kernel
language, made here for each kind of fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, Literal

from treadle.core.dtypes import BY_SHORT_NAME, DType
from treadle.ir.matrices import COLUMNS, PRODUCTS, ROWS, MatrixProduct
from treadle.lang import builtins
from treadle.lang import namespace as td

Use = Literal["a", "b", "accumulator"]
Layout = Literal["row", "column"]
USES = ("a", "b", "accumulator")
LAYOUTS = ("row", "column")
METHODS = ("fill", "load", "store", "multiply_add", "row", "column", "size", "shape", "dtype")
_MOST_WORDS = 256  # that a thread has of a fragment
_HALF = 16  # bits

# The operations by the dtype of the factors.
OPERATIONS = {product.element.name: op for op, product in PRODUCTS.items()}
SUMS = {product.element.name: product.sums.name for product in PRODUCTS.values()}


@dataclass(frozen=True, slots=True)
class FragmentKind:
    """The extents, the dtype and the use of a fragment. `dtype` is a short name."""

    rows: int
    columns: int
    dtype: str
    use: Use

    @property
    def element(self) -> DType:
        """The dtype of the matrix."""
        return BY_SHORT_NAME[self.dtype]

    @property
    def product(self) -> MatrixProduct:
        """What multiplies it, of a factor."""
        return PRODUCTS[OPERATIONS[self.dtype]]

    @property
    def held(self) -> DType:
        """The dtype of the local array."""
        return self.element if self.use == "accumulator" else td.u32

    @property
    def tile(self) -> tuple[int, int]:
        """The part of it that one operation takes."""
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
        return down * across * (2 if self.use == "b" else 4)

    def __str__(self) -> str:
        return f"a fragment of {self.rows} x {self.columns} td.{self.dtype}, use={self.use!r}"


def fault_of(rows: object, columns: object, dtype: object, use: object) -> str | None:
    """What is wrong with the arguments of `td.fragment`; None if nothing."""
    if use not in USES:
        return f"use is 'a', 'b' or 'accumulator', not {use!r}"
    short = dtype.short if isinstance(dtype, DType) else str(dtype)
    known = sorted(set(SUMS.values())) if use == "accumulator" else list(SUMS)
    if short not in known:
        allowed = ", ".join(f"td.{name}" for name in known)
        return f"the dtype of use={use!r} is one of {allowed}, not {short}"
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (rows, columns)):
        return "rows and columns are integers that are known when the kernel is compiled"
    kind = FragmentKind(rows, columns, short, use)  # type: ignore[arg-type]
    down, across = kind.tile
    if kind.rows < 1 or kind.columns < 1 or kind.rows % down or kind.columns % across:
        return (
            f"a fragment of td.{short} with use={use!r} has multiples of {down} rows and of "
            f"{across} columns, not {rows} x {columns}"
        )
    if kind.words > _MOST_WORDS:
        return (
            f"{kind} takes {kind.words} registers of each thread, and at most {_MOST_WORDS} are "
            "possible: use several warps"
        )
    return None


def multiplied_fault(sums: FragmentKind, first: FragmentKind, second: FragmentKind) -> str | None:
    """What is wrong with a product of fragments; None if nothing."""
    uses = (sums.use, first.use, second.use)
    if uses != ("accumulator", "a", "b"):
        return (
            "an accumulator multiplies a fragment of use='a' by one of use='b', as in "
            f"sums.multiply_add(a, b); these are {', '.join(map(repr, uses))}"
        )
    if first.dtype != second.dtype or SUMS[first.dtype] != sums.dtype:
        return (
            f"products of td.{first.dtype} and td.{second.dtype} cannot be summed in "
            f"td.{sums.dtype}: both factors have one dtype, and its sums are "
            f"td.{SUMS[first.dtype]}"
        )
    if (sums.rows, sums.columns, first.columns) != (first.rows, second.columns, second.rows):
        return (
            f"{first.rows} x {first.columns} times {second.rows} x {second.columns} is not "
            f"{sums.rows} x {sums.columns}"
        )
    return None


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


# --- elements and words ---------------------------------------------------------------------------


@cache
def _packer(dtype: DType) -> FunctionType:
    """A function that makes a word of `per` elements, given as one of a tuple."""
    per = 4 // dtype.itemsize

    if dtype is td.f32:

        def packed(parts):
            """TF32: the nearest number whose lowest 13 bits are zeros; NaN stays NaN."""
            bits = td.bitcast(parts[0], td.u32)
            nearest = (bits + td.u32(0x1000)) & td.u32(0xFFFFE000)
            return td.where(td.isnan(parts[0]), td.u32(0x7FC00000), nearest)

        return packed

    narrow = td.u8 if per == 4 else td.u16

    def together(parts):
        word = td.u32(td.bitcast(parts[0], narrow))
        for at in td.static_range(1, per):
            word = word | (td.u32(td.bitcast(parts[at], narrow)) << td.u32(at * (32 // per)))
        return word

    return together


@cache
def filler(kind: FragmentKind) -> FunctionType:
    """`fragment.fill(value)`."""
    words, dtype, factor = kind.words, kind.element, kind.use != "accumulator"
    per = 4 // dtype.itemsize
    pack = _packer(dtype) if factor else None

    def fill(fragment, value):
        one = dtype(value)
        for at in td.static_range(words):
            if factor:
                if per == 1:
                    fragment[at] = pack((one,))
                elif per == 2:
                    fragment[at] = pack((one, one))
                else:
                    fragment[at] = pack((one, one, one, one))
            else:
                fragment[at] = one

    return fill


@cache
def _places(kind: FragmentKind) -> FunctionType:
    """The row and the column, in the fragment, of part `e` of word `at` of a thread."""
    use, across = kind.use, kind.tiles[1]
    down, right = kind.tile
    per = 1 if use == "accumulator" else kind.product.per
    words = 2 if use == "b" else 4

    def place(at, e):
        tile = at // words
        word = at % words
        group = td.lane() // 4
        quarter = td.lane() % 4
        row = tile // across * down
        column = tile % across * right
        if use == "a":
            row += group + word % 2 * 8
            column += quarter * per + word // 2 * (4 * per) + e
        elif use == "b":
            row += quarter * per + word * (4 * per) + e
            column += group
        else:
            row += group + word // 2 * 8
            column += quarter * 2 + word % 2
        return row, column

    return place


@cache
def place_finder(kind: FragmentKind, axis: int) -> FunctionType:
    """`fragment.row(i)` and `fragment.column(i)`: where number `i` of a thread is."""
    place = _places(kind)

    def find(at):
        return place(at, 0)[axis]

    return find


# --- memory ---------------------------------------------------------------------------------------


@cache
def _element(layout: Layout, ndim: int, dtype: DType) -> FunctionType:
    """An element of an array, counted from where a fragment begins in it, as a dtype."""
    turned = layout == "column"

    def element(array, start, stride, row, column):
        down = column if turned else row
        right = row if turned else column
        if ndim == 2:
            return dtype(array[start[0] + down, start[1] + right])
        return dtype(array[start + down * stride + right])

    return element


@cache
def loader(kind: FragmentKind, layout: Layout, ndim: int) -> FunctionType:
    """`fragment.load(array, index, stride)`, element by element; those outside the array are 0."""
    words, factor = kind.words, kind.use != "accumulator"
    per = kind.product.per if factor else 1
    place, element = _places(kind), _element(layout, ndim, kind.element)
    pack = _packer(kind.element) if factor else None

    def load(fragment, array, start, stride):
        for at in td.static_range(words):
            row, column = place(at, 0)
            one = element(array, start, stride, row, column)
            if not factor:
                fragment[at] = one
            elif per == 1:
                fragment[at] = pack((one,))
            else:
                row, column = place(at, 1)
                two = element(array, start, stride, row, column)
                if per == 2:
                    fragment[at] = pack((one, two))
                else:
                    row, column = place(at, 2)
                    three = element(array, start, stride, row, column)
                    row, column = place(at, 3)
                    four = element(array, start, stride, row, column)
                    fragment[at] = pack((one, two, three, four))

    return load


@cache
def aligned_loader(kind: FragmentKind, layout: Layout, ndim: int) -> FunctionType:
    """`fragment.load(…, aligned=True)`: each lane loads 16 bytes of the matrix, and the lanes
    exchange them. Rows of 8 x 8 parts are along the inner axis, or across it, in `layout`."""
    down, across = kind.tiles
    per = kind.product.per
    near = 4 * per  # elements in 16 bytes
    first = kind.use == "a"
    along = layout == ("row" if first else "column")  # 16 bytes are along the inner axis
    spread = builtins.matrix_rows if along else builtins.matrix_columns
    sixteen = builtins.sixteen_bytes
    is_float = kind.dtype == "f32"

    def rounded(word):
        bits = (word + td.u32(0x1000)) & td.u32(0xFFFFE000)
        return td.where(td.isnan(td.bitcast(word, td.f32)), td.u32(0x7FC00000), bits)

    def load(fragment, array, start, stride):
        lane = td.lane()
        part = lane // 8
        # Of the four parts, `far` counts those along rows of `a` or columns of `b`, `deep` those
        # along the inner axis.
        far = part % 2 if first else part // 2
        deep = part // 2 if first else part % 2
        own = lane % 8
        line = far * 8 + (own if along else 0)
        inner = deep * near + (0 if along else own)
        for i in td.static_range(down):
            # Two columns' parts of `b` in one load; the last may be there twice.
            for j in td.static_range(0, across, 1 if first else 2):
                other = line + (i * 16 if first else j * 8)
                inside = inner + (j if first else i) * (8 * per)
                if not first:
                    other = td.minimum(other, across * 8 - (8 if not along else 1))
                lower = other if along == first else inside
                if along:
                    outer, within = other, inside
                else:
                    outer, within = inside, other
                if ndim == 2:
                    words = spread(sixteen(array, (start[0] + outer, start[1] + within)))
                else:
                    words = spread(sixteen(array, start + outer * stride + within))
                if is_float:
                    words.x = rounded(words.x)
                    words.y = rounded(words.y)
                    words.z = rounded(words.z)
                    words.w = rounded(words.w)
                at = (i * across + j) * (4 if first else 2)
                fragment[at] = words.x
                fragment[at + 1] = words.y
                if first or j + 1 < across:
                    fragment[at + 2] = words.z
                    fragment[at + 3] = words.w

    return load


@cache
def storer(kind: FragmentKind, layout: Layout, ndim: int, dtype: DType) -> FunctionType:
    """`fragment.store(array, index, stride)`; elements outside the array are dropped."""
    words, turned = kind.words, layout == "column"
    place = _places(kind)

    def store(fragment, array, start, stride):
        for at in td.static_range(words):
            row, column = place(at, 0)
            down = column if turned else row
            right = row if turned else column
            if ndim == 2:
                array[start[0] + down, start[1] + right] = dtype(fragment[at])
            else:
                array[start + down * stride + right] = dtype(fragment[at])

    return store


# --- arithmetic -----------------------------------------------------------------------------------


@cache
def multiplier(first: FragmentKind, second: FragmentKind) -> FunctionType:
    """`sums.multiply_add(a, b)`: add the product of two fragments to an accumulator."""
    down, deep = first.tiles
    across = second.tiles[1]
    multiply: Callable[..., Any] = getattr(builtins, OPERATIONS[first.dtype])
    total_type = td.vec4[BY_SHORT_NAME[SUMS[first.dtype]]]
    four, two = td.vec4[td.u32], td.vec2[td.u32]

    def multiply_add(sums, a, b):
        for i in td.static_range(down):
            for j in td.static_range(across):
                at = (i * across + j) * 4
                total = total_type(sums[at], sums[at + 1], sums[at + 2], sums[at + 3])
                for k in td.static_range(deep):
                    p = (i * deep + k) * 4
                    q = (k * across + j) * 2
                    left = four(a[p], a[p + 1], a[p + 2], a[p + 3])
                    total = multiply(left, two(b[q], b[q + 1]), total)
                sums[at] = total.x
                sums[at + 1] = total.y
                sums[at + 2] = total.z
                sums[at + 3] = total.w

    return multiply_add
