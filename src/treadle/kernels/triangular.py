"""Triangular matrices: solving with them, block by block, and the product of blocks.

Arrays have three axes, (matrices, rows, columns); a `Part` is some rows and columns. Nearly all
operations are in `multiply`; what remains is small blocks on the diagonal.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.kernels import product
from treadle.kernels.device_code import matrix_blocks
from treadle.kernels.device_code.matrix_blocks import Layout, Multiplying, Substituting
from treadle.kernels.device_code.substitution_steps import Substitution, substitution_step
from treadle.kernels.factors import Factor, Product
from treadle.kernels.launching import flat, new, packed, serial_threads
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device

WIDE = 256  # rows or columns done in small steps before one large product updates all that follow
DEEP = 64  # from here on the library's product pays, although it writes to a temporary array
# By the bytes of an element: rows and columns of a thread's part of a product, the width of a
# block on the diagonal, and the columns that are solved for at once: in 16 KiB of shared memory.
_TILES = {4: (4, 4), 8: (4, 2), 16: (1, 2)}
_WIDTHS = {4: (32, 64), 8: (16, 64), 16: (16, 32)}


def solve_triangular(
    a: DeviceArray, b: DeviceArray, lower: bool, unit: bool = False
) -> DeviceArray:
    """The x with a @ x = b for each matrix, of which only one triangle is read; with `unit` its
    diagonal is taken for ones.

    >>> import treadle as td
    >>> a = td.asarray([[[2.0, 9.0], [1.0, 4.0]]], device="cpu")
    >>> b = td.asarray([[[2.0], [9.0]]], device="cpu")
    >>> solve_triangular(a._array, b._array, lower=True).to_host().tolist()
    [[[1.0], [2.0]]]
    """
    assert isinstance(b.dtype, DType)
    x = copy_of(b)
    if not x.size:
        return x
    if serial_threads(a.device):  # in small blocks, which stay in the cache
        solve_through(whole(a), whole(x), lower=lower, unit=unit)
        return x
    found = new(b, b.dtype, *b.shape)
    substitute(whole(a), whole(x), whole(found), lower=lower, unit=unit)
    return found


def substitute(a: Part, y: Part, x: Part, *, lower: bool = True, unit: bool = False) -> None:
    """Write to x the solution of a @ x = y, through a triangle of `a`; y is overwritten."""
    if not lower:  # an upper triangle, reversed, is a lower one
        a = a.upside_down().transposed().upside_down().transposed()
        x, y = x.upside_down(), y.upside_down()
    what = substitution_of(x.array.device, x.dtype)
    kernel = substitution_step(what)
    n, wide = x.rows, -(-x.columns // what.tile)
    for at, end in stretches(0, n, what.width):
        high = max(1, -(-(n - end) // what.tile))
        kernel[x.matrices * high * wide, what.threads](
            *a.arguments, *y.arguments, *x.arguments, at, end, int(unit)
        )


def substitution_of(device: Device, dtype: DType) -> Substitution:
    """The widest steps that the shared memory of a device has room for."""
    # A row of a block, twice, is in the registers of a thread.
    width, tile = (4, 32) if device.traits.software else (128 // dtype.itemsize, 64)
    threads = min(256, device.limits.max_threads_per_block)
    while (what := Substitution(dtype, threads, width, tile)).shared_bytes > (
        device.limits.max_shared_memory
    ):
        width //= 2
    return what


class Part(NamedTuple):
    """Some rows and columns of each matrix of an array."""

    array: DeviceArray  # of one axis
    matrices: int  # how many
    at: int  # the first element
    step: int  # from matrix to matrix
    down: int  # from row to row
    along: int  # from column to column
    rows: int
    columns: int

    @property
    def dtype(self) -> DType:
        """The elements' dtype."""
        assert isinstance(self.array.dtype, DType)
        return self.array.dtype

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of kernels: the array, and the layout of the part."""
        return self.array, _layout(*self[2:])

    def part(self, top: int, bottom: int, left: int, right: int) -> Part:
        """Some rows and columns of it."""
        at = self.at + top * self.down + left * self.along
        return self._replace(at=at, rows=bottom - top, columns=right - left)

    def transposed(self) -> Part:
        """Rows as columns."""
        return self._replace(down=self.along, along=self.down, rows=self.columns, columns=self.rows)

    def upside_down(self) -> Part:
        """The last row first."""
        return self._replace(at=self.at + (self.rows - 1) * self.down, down=-self.down)


@functools.lru_cache(4096)
def _layout(*numbers: int) -> Packed:
    return packed(Layout, *numbers)


def whole(a: DeviceArray) -> Part:
    """All rows and columns."""
    count, rows, columns = a.shape
    return Part(flat(a), count, 0, rows * columns, columns, 1, rows, columns)


def solve_through(a: Part, x: Part, *, lower: bool = True, unit: bool = False) -> None:
    """Replace x by the solution of a @ … = x, through a triangle of `a`."""
    if not lower:  # an upper triangle, reversed, is a lower one
        a = a.upside_down().transposed().upside_down().transposed()
        x = x.upside_down()
    width, threads = _WIDTHS[x.dtype.itemsize]
    what = Substituting(x.dtype, width, threads)
    substitute = matrix_blocks.substituter(what)[x.matrices * -(-x.columns // threads), threads]
    n = x.rows
    for start, stop in stretches(0, n, WIDE):
        for at, end in stretches(start, stop, width):
            corner, known = a.part(at, end, at, end), x.part(at, end, 0, x.columns)
            substitute(*corner.arguments, *known.arguments, int(unit))
            if end < stop:
                remaining = x.part(end, stop, 0, x.columns)
                multiply(a.part(end, stop, at, end), known, remaining, subtract=True)
        if stop < n:
            known, remaining = x.part(start, stop, 0, x.columns), x.part(stop, n, 0, x.columns)
            multiply(a.part(stop, n, start, stop), known, remaining, subtract=True)


def stretches(start: int, stop: int, length: int) -> list[tuple[int, int]]:
    """Where each stretch of up to this length begins and ends."""
    return [(at, min(at + length, stop)) for at in range(start, stop, length)]


def multiply(a: Part, b: Part, c: Part, *, conj: bool = False, subtract: bool = False) -> None:
    """Write a @ b (or with the conjugate of a) into c, or subtract it from c."""
    if subtract and min(a.columns, a.rows, b.columns) >= DEEP and not c.dtype.is_complex:
        _subtract_large(a, b, c)
        return
    rows, columns = _TILES[c.dtype.itemsize]
    traits = c.array.device.traits
    if traits.software or traits.serial_threads:  # slow to compile unrolled code
        rows = columns = 1
    rows = rows if c.rows > matrix_blocks.SIDE else 1
    columns = columns if c.columns > matrix_blocks.SIDE else 1
    what = Multiplying(c.dtype, rows, columns, conj and c.dtype.is_complex)
    tiles = -(-c.rows // (matrix_blocks.SIDE * rows)) * -(
        -c.columns // (matrix_blocks.SIDE * columns)
    )
    kernel = matrix_blocks.multiplier(what)[
        c.matrices * tiles, matrix_blocks.SIDE * matrix_blocks.SIDE
    ]
    transposed = int(a.along != 1 and a.down == 1)
    kernel(*a.arguments, *b.arguments, *c.arguments, transposed, int(subtract))


def _subtract_large(a: Part, b: Part, c: Part) -> None:
    """Subtract a @ b from c by the library's own product, the quickest that the device has."""
    if a.along < 0 and b.down < 0:  # the inner axis reversed in both factors: the same product
        a = a.transposed().upside_down().transposed()
        b = b.upside_down()
    if a.down < 0 and c.down < 0:
        a, c = a.upside_down(), c.upside_down()
    first = Factor((a.step,), a.down, a.along, a.at)
    second = Factor((b.step,), b.along, b.down, b.at)
    what = Product((a.matrices,), a.rows, b.columns, a.columns, first, second)
    by = whole(product.multiply(a.array, b.array, what))
    size = c.matrices * c.rows * c.columns
    matrix_blocks.subtract.launch(size, *by.arguments, *c.arguments)


def fill(out: Part, kind: int, source: Part | None = None) -> None:
    """Copy a triangle and write zeros elsewhere; or write the identity."""
    source = source or out
    kernel = matrix_blocks.filler(out.dtype)
    size = out.matrices * out.rows * out.columns
    kernel.launch(size, *source.arguments, *out.arguments, kind)


def copy_of(a: DeviceArray) -> DeviceArray:
    """The elements in memory of their own."""
    assert isinstance(a.dtype, DType)
    made = new(a, a.dtype, *a.shape)
    if not a.key.imagined:
        a.copy_elements_to(made)
    return made
