"""Eigenvalues and eigenvectors of symmetric matrices, on the device.

A matrix is scaled and made tridiagonal (`condensing`), whose eigenvalues are found by bisection, or
with eigenvectors from those of small parts, which are merged (`eigen_halves`). Small matrices are
diagonalized by a block of threads each. Nothing waits for the host.

On the CPU and for complex numbers LAPACK computes (`lapack`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels import lapack, product
from treadle.kernels.device_code import condensing, eigen_blocks, eigen_halves
from treadle.kernels.device_code.condensing import LANES
from treadle.kernels.factors import Factor, Product
from treadle.kernels.launching import Steps, flat, new, zeros
from treadle.kernels.triangular import Part, multiply, whole
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

Route = Literal["host", "device"]

_TOGETHER = 32  # reflections that are applied together
_MOST_IN_SOFTWARE = 512  # rows; software drivers end long loops early
_FEW, _MANY = 64, 256  # threads of a block
_GRIDS = 32  # that the steps for a matrix have
_MANY_ROWS = 16384

forced: Route | None = None
"""For tests, which run the device's kernels on the CPU, too."""


def route(device: Device, dtype: DType, extent: int) -> Route:
    """Where eigenvalues and singular values of matrices of so many rows or columns are computed: on
    the device, or on the host by LAPACK, as on a CPU, and for complex numbers."""
    traits = device.traits
    if dtype.is_complex or (traits.software and extent > _MOST_IN_SOFTWARE):
        return "host"
    if forced is not None:
        return forced
    return "host" if traits.host_memory else "device"


def eigh(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Eigenvalues of symmetric or Hermitian matrices in ascending order and their eigenvectors, the
    columns. The lower triangles are read. But for the host's, both are NaN for a matrix that is not
    finite.

    >>> import treadle as td
    >>> a = td.asarray([[[3.0, 0.0], [0.0, 2.0]]], device="cpu")
    >>> eigh(a._array)[0].to_host().tolist()
    [[2.0, 3.0]]
    """
    count, n, dtype = checked(a)
    if route(a.device, dtype, n) == "host":
        return lapack.eigh(a)
    values, vectors = new(a, dtype, count, n), new(a, dtype, *a.shape)
    if not a.size:
        return values, vectors
    scales = scales_of(a, lower=True)
    if n <= eigen_blocks.SIDES[dtype.itemsize]:
        copy_scaled(whole(a), scales, vectors, lower=True)
        found = new(a, dtype, count, n)
        eigen_blocks.jacobi_diagonalizer(dtype)[count, eigen_blocks.THREADS](
            flat(vectors), flat(found), n
        )
        bounds, source = None, whole(vectors)
    else:
        tri = tridiagonal(a, scales)
        found, full, bounds = spectrum(tri.diagonal, tri.off_diagonal, n, doubled=False)
        padded = found.shape[1]
        source = Part(full, count, 0, padded * padded, padded, 1, n, n)
        reflect(tri.vectors, tri.taus, source)
    finish_values(found, bounds, scales, values)
    finish_vectors(source, scales, whole(vectors))
    return values, vectors


def eigvalsh(a: DeviceArray) -> DeviceArray:
    """The eigenvalues of symmetric or Hermitian matrices, as `eigh` has them.

    >>> import treadle as td
    >>> a = td.asarray([[[3.0, 0.0], [0.0, 2.0]]], device="cpu")
    >>> eigvalsh(a._array).to_host().tolist()
    [[2.0, 3.0]]
    """
    count, n, dtype = checked(a)
    if route(a.device, dtype, n) == "host":
        return lapack.eigvalsh(a)
    if n <= eigen_blocks.SIDES[dtype.itemsize]:
        return eigh(a)[0]
    values = new(a, dtype, count, n)
    if a.size:
        scales = scales_of(a, lower=True)
        tri = tridiagonal(a, scales)
        bisect(tri.diagonal, tri.off_diagonal, scales, values, n, doubled=False)
    return values


def checked(a: DeviceArray) -> tuple[int, int, DType]:
    """How many matrices, with how many rows, of which dtype."""
    return a.shape[0], a.shape[1], _dtype(a)


def check_size(elements: int) -> None:
    """ShapeError if an array has too many elements for kernels."""
    if elements >= MOST_NARROW:
        raise ShapeError(
            "the matrices are too large, or too many, for eigenvalues or singular values at once: "
            f"they take an array of {elements} elements, which must be fewer than 2**31. Compute "
            'them in parts, or on the device "cpu"'
        )


# --- scales --------------------------------------------------------------------------------------


def scales_of(a: DeviceArray, *, lower: bool) -> DeviceArray:
    """By what the elements of each matrix (or of its lower triangle) are to be divided."""
    count, rows, _ = a.shape
    dtype = _dtype(a)
    sizes, scales = new(a, dtype, count * rows), new(a, dtype, count)
    layout = whole(a).arguments
    measure = condensing.row_measurer(dtype, _FEW)[count * rows, _FEW]
    measure(*layout, sizes, int(lower), float("inf"))
    find = condensing.scale_finder(dtype, _MANY)[count, _MANY]
    find(sizes, scales, rows, float("nan"))
    return scales


def copy_scaled(a: Part, scales: DeviceArray, out: DeviceArray, *, lower: bool = False) -> None:
    """Copy matrices divided by their scales; the rows that `out` has more are zeros."""
    kernel = condensing.scaled_copier(a.dtype)
    kernel.launch(out.size, *a.arguments, scales, flat(out), out.shape[1], int(lower))


def finish_values(
    found: DeviceArray, bounds: DeviceArray | None, scales: DeviceArray, out: DeviceArray
) -> None:
    """Write the first values of each matrix times its bound and its scale."""
    kernel = condensing.value_finisher(_dtype(out))
    pitch = found.shape[1]
    known = scales if bounds is None else bounds
    kernel.launch(
        out.size,
        flat(found),
        known,
        scales,
        flat(out),
        pitch,
        out.shape[1],
        int(bounds is not None),
    )


def finish_vectors(source: Part, scales: DeviceArray, out: Part) -> None:
    """Copy vectors, or write NaN for a matrix that is not finite."""
    kernel = condensing.vector_finisher(source.dtype)
    size = source.matrices * source.rows * source.columns
    kernel.launch(size, *source.arguments, scales, *out.arguments)


# --- tridiagonal matrices ------------------------------------------------------------------------


class Tridiagonal(NamedTuple):
    """Symmetric matrices as Q T Q^T: T, and the reflections of which Q is the product."""

    diagonal: DeviceArray  # (matrices, n)
    off_diagonal: DeviceArray  # (matrices, n), the last one is not used
    vectors: DeviceArray  # (matrices, steps, n), a row each
    taus: DeviceArray  # (matrices, steps)


def tridiagonal(a: DeviceArray, scales: DeviceArray) -> Tridiagonal:
    """Tridiagonal matrices that are similar to symmetric ones, divided by scales."""
    count, n, _ = a.shape
    dtype = _dtype(a)
    steps = steps_for(n)
    work = new(a, dtype, count, n, n)
    copy_scaled(whole(a), scales, work, lower=True)
    vectors, taus = zeros(a, dtype, count, steps, n), zeros(a, dtype, count, steps)
    products = [zeros(a, dtype, count * n) for _ in range(2)]
    diagonal, off_diagonal = new(a, dtype, count, n), new(a, dtype, count, n)
    threads, rows = threads_for(n), rows_for(count * n)
    step = Steps(condensing.symmetric_step(dtype, threads, rows), threads)
    known = flat(work), flat(vectors)
    found = flat(taus), flat(diagonal), flat(off_diagonal)
    for k in range(n):
        blocks = blocks_of(n - grid_step(k, n), threads // LANES * rows)
        step.launch(count * blocks, (*known, *products, *found), n, steps, blocks, k)
        products.reverse()
    return Tridiagonal(diagonal, off_diagonal, vectors, taus)


def steps_for(reflections: int) -> int:
    """Room for so many reflections, of which some are applied together."""
    together = _together(reflections)
    return -(-reflections // together) * together


def _together(steps: int) -> int:
    return min(_TOGETHER, 1 << (steps - 1).bit_length())


def bisect(
    diagonal: DeviceArray,
    off_diagonal: DeviceArray,
    scales: DeviceArray,
    out: DeviceArray,
    n: int,
    *,
    doubled: bool,
) -> None:
    """Write eigenvalues of tridiagonal matrices; with `doubled` the greatest ones of bidiagonal
    matrices as symmetric ones of twice the size."""
    count, wanted = out.shape
    dtype = _dtype(out)
    d, e, bounds = (new(out, dtype, count * size) for size in (n, n, 1))
    _normalize(diagonal, off_diagonal, d, e, bounds, n, n, 0, doubled)
    kernel = eigen_blocks.bisector(dtype)
    kernel[-(-out.size // LANES), LANES](d, e, bounds, scales, flat(out), n, wanted, int(doubled))


def _normalize(
    diagonal: DeviceArray,
    off_diagonal: DeviceArray,
    d: DeviceArray,
    e: DeviceArray,
    bounds: DeviceArray,
    n: int,
    padded: int,
    leaf: int,
    doubled: bool,
) -> None:
    count, pitch = diagonal.shape
    kernel = eigen_blocks.tridiagonal_normalizer(_dtype(d), _MANY)[count, _MANY]
    numbers = n, pitch, padded, leaf, int(doubled)
    kernel(flat(diagonal), flat(off_diagonal), d, e, bounds, *numbers)


def spectrum(
    diagonal: DeviceArray, off_diagonal: DeviceArray, n: int, *, doubled: bool
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Eigenvalues and eigenvectors of tridiagonal matrices of n rows, divided by bounds, and these.
    The matrices are padded to a number of rows that halves well: only the first n eigenvalues and
    elements of vectors are theirs."""
    count, dtype = diagonal.shape[0], _dtype(diagonal)
    leaf, levels = n, 0
    while leaf > eigen_blocks.SIDES[dtype.itemsize]:
        levels += 1
        leaf = -(-n // (1 << levels))
    padded = leaf << levels
    check_size(count * padded * padded)
    d, e, bounds = (new(diagonal, dtype, count * size) for size in (padded, padded, 1))
    _normalize(diagonal, off_diagonal, d, e, bounds, n, padded, leaf, doubled)
    q = new(diagonal, dtype, count * padded * leaf)
    eigen_blocks.leaf_maker(dtype).launch(q.size, d, e, q, leaf)
    blocks = count << levels
    eigen_blocks.jacobi_diagonalizer(dtype)[blocks, eigen_blocks.THREADS](q, d, leaf)
    half = leaf
    while half < padded:
        q = _merged(d, q, e, half)
        half *= 2
    return d.view((count, padded), (padded, 1), 0), q, bounds


def _merged(d: DeviceArray, q: DeviceArray, e: DeviceArray, half: int) -> DeviceArray:
    """The eigenvectors of matrices from those of their halves; d is replaced."""
    dtype, s = _dtype(d), 2 * half
    merges = d.size // s
    ints = new(d, i32, merges * (eigen_halves.INTEGERS * s + 2))
    reals = new(d, dtype, merges * (eigen_halves.REALS * s + 1))
    u = new(d, dtype, merges * s * s)
    sort = eigen_halves.halves_sorter(dtype, _MANY)[merges, _MANY]
    sort(d, q, e, ints, reals, half)
    # Few threads do long loops: they are spread over all multiprocessors.
    few = -(-d.size // LANES)
    eigen_halves.secular_solver(dtype)[few, LANES](ints, reals, d.size, s)
    eigen_halves.weight_maker(dtype)[few, LANES](ints, reals, d, s)
    lanes = eigen_halves.LANES
    make = eigen_halves.vector_maker(dtype)[merges * -(-s // lanes), lanes * eigen_halves.GROUPS]
    make(ints, reals, u, s)
    eigen_halves.rotation_applier(dtype).launch(d.size, ints, reals, u, s)
    first = Factor((half * half,), half, 1, q.offset)
    second = Factor((half * s,), 1, s, u.offset)
    what = Product((2 * merges,), half, s, half, first, second)
    return flat(product.multiply(q, u, what))


# --- reflections ---------------------------------------------------------------------------------


def reflect(vectors: DeviceArray, taus: DeviceArray, x: Part) -> None:
    """Apply the reflections I - tau v v^T to x, the last one first: each v is a row of `vectors`
    (matrices, steps, n), which begins with as many zeros as there are rows before it."""
    count, steps, n = vectors.shape
    dtype = _dtype(vectors)
    together = _together(steps)
    panels = count * steps // together
    rows = Part(flat(vectors), panels, 0, together * n, n, 1, together, n)
    gram = new(vectors, dtype, panels, together, together)
    multiply(rows, rows.transposed(), whole(gram))
    maker = condensing.triangle_maker(dtype, together)[panels, together]
    maker(flat(gram), flat(taus))
    turned = new(vectors, dtype, panels, together, n)  # (v t)^T
    multiply(whole(gram).transposed(), rows, whole(turned))
    step = steps * n
    for at in reversed(range(0, steps, together)):
        if at >= n:
            continue
        known = Part(flat(vectors), count, at * n + at, step, n, 1, together, n - at)
        across = known._replace(array=flat(turned))
        below = x.part(at, n, 0, x.columns)
        sums = _product(known, below)
        multiply(across.transposed(), whole(sums), below, subtract=True)


def _product(a: Part, b: Part) -> DeviceArray:
    """The product by the library's quickest way."""
    first = Factor((a.step,), a.down, a.along, a.at)
    second = Factor((b.step,), b.along, b.down, b.at)
    what = Product((a.matrices,), a.rows, b.columns, a.columns, first, second)
    return product.multiply(a.array, b.array, what)


def threads_for(n: int) -> int:
    """Of a block that takes a step with vectors of n elements."""
    return _FEW if n <= _FEW else _MANY


def grid_step(k: int, steps: int) -> int:
    """The step by whose size the blocks of step k are counted: few grids are quicker to launch."""
    return k - k % max(steps // _GRIDS, 1)


def blocks_of(lines: int, lines_of_each: int) -> int:
    """The blocks for what follows the first of so many rows or columns."""
    return max(-(-(lines - 1) // lines_of_each), 1)


def rows_for(rows: int) -> int:
    """That `LANES` threads multiply at once, of so many in all matrices: several where there are
    enough, since each block finds the vector."""
    return 4 if rows >= _MANY_ROWS else 2 if rows >= _MANY_ROWS // 8 else 1


def _dtype(a: DeviceArray) -> DType:
    assert isinstance(a.dtype, DType)
    return a.dtype
