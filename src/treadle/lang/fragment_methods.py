"""The methods of matrix fragments, in the kernel language: a function for each kind of fragment, of
its local array. `fragments` says what the array holds.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType

from treadle.core.dtypes import BY_SHORT_NAME, DType
from treadle.lang import builtins
from treadle.lang import namespace as td
from treadle.lang.fragments import OPERATIONS, SUMS, FragmentKind, Layout

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
    pack = _packer(dtype)

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
    pack = _packer(kind.element)

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
    multiply = getattr(builtins, OPERATIONS[first.dtype, second.dtype])
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
