"""Products of matrices, or of stacks of them, whatever strides they have.

NumPy's BLAS multiplies floats on the CPU, a vendor's library does on a card where it is installed.
Everything else is multiplied by treadle's own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.limits import MOST_NARROW
from treadle.core.sizes import has_sizes
from treadle.kernels import blas, vendor_product
from treadle.kernels.best_tiles import choice_for
from treadle.kernels.device_code.copied_product import copied_multiplier
from treadle.kernels.device_code.fragment_product import FragmentTile, fragment_multiplier
from treadle.kernels.device_code.group_product import (
    MOST_STREAMED,
    GroupTile,
    group_multiplier,
    takes,
)
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import (
    LINES,
    MOST_BATCHES,
    Form,
    Loading,
    line_multiplier,
    part_joiner,
    tile_multiplier,
)
from treadle.kernels.device_code.opaque_product import OpaqueTile, opaque_multiplier
from treadle.kernels.factors import TF32, Factor, Product, dtypes_of
from treadle.kernels.launching import new, serial_threads, zeros
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.tiles import AnyTile, Problem, chunk_for
from treadle.lang.decorators import Kernel
from treadle.runtime import settings
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.varying import varying

Route = Literal["host", "vendor", "kernel"]
# Takes the two factors' arrays and the result's, and writes the latter.
Filling = Callable[[DeviceArray, DeviceArray, DeviceArray], None]
JOINING = 64  # threads of a block of `part_joiner`
_LANES = 256  # threads of a block of `line_multiplier`
_TURNED_AS_READ = 2  # bytes of elements that `ldmatrix` turns
LARGE_PRODUCT = 1 << 31  # operations, from which on another kernel for a factor pays
MANY_LINES = 512  # of the other factor
_SIXTEEN = 16  # bytes that are copied at once
_FEWEST_STEPS = 4  # of a block that has an equal share of all
_MOST_TOGETHER = 2  # blocks of groups of threads that a multiprocessor runs at once


def route_of(device: Device, dtype: DType, product: Product) -> Route | None:
    """What computes a product: the host's BLAS, a library of the card's vendor, or one of treadle's
    kernels, into which an epilogue can be fused. None if the device has none of these."""
    if device.traits.host_memory:
        if dtype in blas.MULTIPLIED:
            return "host"
    elif not _may_vary(product) and vendor_product.prepared(device, dtype, product) is not None:
        return "vendor"
    return "kernel" if dtype.kind in ("int", "uint", "float") else None


def _may_vary(product: Product) -> bool:
    """Whether a recording is to multiply matrices of other sizes, which libraries do not."""
    return varying.get() is not None and has_sizes(product)


def rounds_to_tf32(device: Device) -> bool:
    """Whether float32 factors are to be rounded to TF32 (`td.set_float32_matmul_precision`): it was
    asked for, and the device has instructions for it."""
    return settings.float32_products != "highest" and TF32 in device.traits.matrix_products


def turned_first(device: Device, dtype: DType, product: Product) -> tuple[bool, bool]:
    """Which factors are better copied first, with the inner axis last: those of large products by
    fragments that would be turned on their way to shared memory for each tile of the result."""
    if dtype.itemsize == _TURNED_AS_READ or product.operations < LARGE_PRODUCT:
        return False, False
    if (product.factors or dtype.short) not in device.traits.matrix_products:
        return False, False
    first, second = product.first, product.second
    return (
        first.inner != 1 and product.columns >= MANY_LINES,
        second.inner != 1 and product.rows >= MANY_LINES,
    )


def factors_of(dtype: DType, product: Product) -> tuple[DType, DType]:
    """The dtypes of the factors of a product whose result has a dtype."""
    return dtypes_of(product.factors or dtype.short)


def by_groups(device: Device, dtype: DType, product: Product) -> bool:
    """Whether tiles of groups of threads compute a product whose factors are in memory."""
    machine = machine_of(device)
    if dtype.short not in machine.group_products or product.factors:
        return False
    first, second = loadings_of(product, dtype)
    boxes = takes(Form(dtype, len(product.batch), first, second, 4, False, False))
    across = (not first.inner, not second.inner)
    problem = Problem(dtype, *product.extents, boxes=boxes, across=across)
    return isinstance(choice_for(machine, problem).tile, GroupTile)


def multiply(x: DeviceArray, y: DeviceArray, product: Product) -> DeviceArray:
    """The product of two factors in contiguous arrays, as an array of (stack, rows, columns)."""
    dtype = x.dtype
    assert isinstance(dtype, DType)
    shape = (product.matrices, product.rows, product.columns)
    if product.inner == 0:
        return zeros(x, dtype, *shape)
    out = new(x, dtype, *shape)
    if out.size:
        filling(x.device, dtype, product)(x, y, out)
    return out


def filling(device: Device, dtype: DType, product: Product, result: DType | None = None) -> Filling:
    """A function that computes a product that is not empty, to be called often. `result` is the
    dtype of the result; only a vendor's library can have another one than that of the factors.
    UnsupportedOnTarget if nothing computes it."""
    if result is not None and result is not dtype:
        how = vendor_product.prepared(device, dtype, product, result)
        if how is None:
            raise UnsupportedOnTarget(
                f"there is no product of matrices of {dtype} in {result} on {device.id}"
            )
        return partial(vendor_product.multiply, product=product, how=how)
    route = route_of(device, dtype, product)
    if route == "host":
        return blas.filling(dtype, product)
    if route == "vendor":
        how = vendor_product.prepared(device, dtype, product)
        assert how is not None
        return partial(vendor_product.multiply, product=product, how=how)
    if route is None:
        raise UnsupportedOnTarget(f"there is no product of matrices of {dtype} on {device.id}")
    return partial(by_lines if serial_threads(device) else by_tiles, product=product)


# --- treadle's own kernels ------------------------------------------------------------------------


class Launch(NamedTuple):
    """How a kernel by tiles computes a product."""

    tile: AnyTile
    exact: bool
    grid: tuple[int, int, int]
    parts: int = 1  # of the inner axis, each of `chunk`
    chunk: int = 0


def launch_for(machine: Machine, problem: Problem) -> Launch:
    """The tile, and how many there are."""
    tile, parts = choice_for(machine, problem)
    return launch_by(tile, problem, machine, parts)


def launch_by(tile: AnyTile, problem: Problem, machine: Machine, parts: int = 0) -> Launch:
    """The launch for a tile, and for so many parts of the inner axis, if not 0. Blocks of groups
    stay for several tiles, as many as run at once. UnsupportedOnTarget where blocks of a cluster
    would have no part of the inner axis."""
    columns, rows = -(-problem.columns // tile.columns), -(-problem.rows // tile.rows)
    if isinstance(tile, GroupTile):
        item = problem.dtype.itemsize
        clusters = -(-columns // tile.wide) * -(-rows // tile.tall) * problem.matrices
        if tile.streamed:
            return _streamed(tile, problem, machine, columns * rows * problem.matrices)
        if machine.multiprocessors:
            clusters = min(clusters, max(_at_once(tile, machine, item) // tile.cluster, 1))
        chunk = problem.inner
        if tile.split > 1 and machine.clusters:
            if not tile.divides(problem.inner, item):
                raise UnsupportedOnTarget(
                    f"an inner axis of {problem.inner} is too short to be split over {tile.split} "
                    "blocks: let the product choose its tiles"
                )
            depth = tile.depth_of(item)
            chunk = -(-problem.inner // (tile.split * depth)) * depth
        return Launch(tile, True, (clusters * tile.cluster, 1, 1), 1, chunk)
    exact = problem.inner % tile.depth == 0 and not tile.guarded
    chunk = chunk_for(problem, tile, columns * rows * problem.matrices)
    if parts:
        chunk = -(-max(problem.inner, 1) // (parts * tile.depth)) * tile.depth
    parts = max(-(-problem.inner // chunk), 1)
    return Launch(tile, exact, (columns, rows, problem.matrices * parts), parts, chunk)


def _at_once(tile: GroupTile, machine: Machine, item: int) -> int:
    """How many blocks run at once."""
    together = min(machine.shared_bytes // tile.shared_bytes(item), _MOST_TOGETHER)
    return machine.multiprocessors * together


def _streamed(tile: GroupTile, problem: Problem, machine: Machine, tiles: int) -> Launch:
    """The launch of blocks that have equal shares of the steps of all tiles: `chunk` is how many
    parts a tile has at most, as many as are kept of each."""
    item = problem.dtype.itemsize
    steps = -(-problem.inner // tile.depth_of(item))
    blocks = min(_at_once(tile, machine, item) or tiles, max(tiles * steps // _FEWEST_STEPS, 1))
    each = tiles * steps // blocks
    parts = 1 if tiles % blocks == 0 else 2 if each >= steps else -(-steps // each) + 1
    if parts * problem.rows * problem.columns * problem.matrices > MOST_STREAMED:
        raise UnsupportedOnTarget(
            f"{parts} parts of a result of {problem.rows} x {problem.columns} are more than are "
            "kept: let the product choose its tiles"
        )
    return Launch(tile, True, (blocks, 1, 1), parts, parts)


def multiplier_for(form: Form, tile: AnyTile) -> Kernel:
    """The kernel whose blocks compute a tile each, or several."""
    if isinstance(tile, GroupTile):
        return group_multiplier(form, tile)
    if isinstance(tile, FragmentTile):
        return fragment_multiplier(form, tile)
    if isinstance(tile, OpaqueTile):
        return opaque_multiplier(form, tile)
    if tile.is_copied:
        return copied_multiplier(form, tile)
    return tile_multiplier(form, tile)


def loadings_of(product: Product, dtype: DType, alignment: int = 16) -> tuple[Loading, Loading]:
    """How each factor is best read, of arrays that begin at a multiple of `alignment` elements."""
    _, rows, columns, inner, first, second, _ = product
    sixteen = _SIXTEEN // dtype.itemsize if 4 * dtype.itemsize <= _SIXTEEN else 0
    if alignment < sixteen:
        sixteen = 0
    return (
        _loading(first, rows, inner, alignment, sixteen),
        _loading(second, columns, inner, alignment, sixteen),
    )


def _loading(factor: Factor, lines: int, inner: int, alignment: int, sixteen: int) -> Loading:
    """Neighbours are loaded as vec4s where all rows are aligned to them; they are `aligned` where
    all begin at a multiple of `sixteen` bytes, counted in elements (0: unknown)."""
    along = factor.inner == 1 or factor.line != 1
    near, length, far = (
        (factor.inner, inner, factor.line) if along else (factor.line, lines, factor.inner)
    )
    vec4s = alignment >= 4 and near == 1 and length % 4 == 0
    vec4s = vec4s and not any(step % 4 for step in (*factor.batch, far, factor.offset))
    steps = (length, *factor.batch, far, factor.offset)
    aligned = vec4s and sixteen > 0 and not any(step % sixteen for step in steps)
    return Loading(along, 4 if vec4s else 1, aligned=aligned)


def integers_of(product: Product, loadings: Sequence[Loading]) -> list[int]:
    """The numbers that the kernels take behind rows, columns and inner extent."""
    extents = [*product.batch[1:], 1, 1][:2]
    found = extents
    for factor, loading in zip((product.first, product.second), loadings, strict=True):
        found += [*(step // loading.lanes for step in factor.batch), 0, 0, 0][:MOST_BATCHES]
        line, inner = factor.line, factor.inner
        if loading.lanes == 4:
            # One step is a vec4, along the axis whose elements are adjacent.
            line, inner = (line // 4, 1) if loading.inner else (1, inner // 4)
        found += [line, inner, factor.offset // loading.lanes]
    return found


def by_tiles(
    x: DeviceArray,
    y: DeviceArray,
    out: DeviceArray,
    product: Product,
    tile: AnyTile | None = None,
    parts: int = 0,
) -> None:
    """Fill `out`, by tiles that suit the device or by others (and with the inner axis in so many
    parts; 0 is as many as suit them). UnsupportedOnTarget for tiles of groups of threads where the
    factors do not suit them."""
    dtype = x.dtype
    assert isinstance(dtype, DType)
    made = out.dtype
    assert isinstance(made, DType)
    other = None if y.dtype is dtype else y.dtype
    assert other is None or isinstance(other, DType)
    machine = machine_of(x.device)
    places = [number for array in (x, y) for number in (array.size, array.offset)]
    alignment = next((a for a in (16, 8, 4) if not any(place % a for place in places)), 1)
    first, second = loadings_of(product, dtype, alignment)
    lanes = 4 if product.columns % 4 == 0 else 1
    big = _is_big(x, y, out)
    result = None if made is dtype else made
    form = Form(
        dtype, len(product.batch), first, second, lanes, False, big, result=result, other=other
    )
    boxes = takes(form)
    problem = Problem(
        dtype, *product.extents,
        boxes=boxes,
        rounded=product.factors == TF32,
        across=(not first.inner, not second.inner),
        other=other,
    )  # fmt: skip
    if tile is None:
        tile, parts = choice_for(machine, problem)
    if isinstance(tile, GroupTile) and not (boxes and product.inner):
        raise UnsupportedOnTarget(
            "tiles of groups of threads multiply 16-bit floats, and TF32 and 8-bit integers along "
            "the inner axis, whose lines begin at multiples of 16 bytes, in one stack at most: let "
            "the product choose its tiles"
        )
    _, exact, grid, parts, chunk = launch_by(tile, problem, machine, parts)
    form = form._replace(exact=exact, parts=parts > 1)
    matrices, rows, columns, inner = product.extents
    numbers = (rows, columns, inner, *integers_of(product, (first, second)), matrices, chunk)
    into = out if parts == 1 else new(x, wide(dtype), parts * out.size)
    multiplier_for(form, tile)[grid, tile.threads](_flat(x), _flat(y), _flat(into), *numbers)
    if parts > 1:
        joiner = part_joiner(made, lanes, big)[-(-out.size // (lanes * JOINING)), JOINING]
        joiner(_flat(into), _flat(out), rows, columns, matrices, parts)


def by_lines(x: DeviceArray, y: DeviceArray, out: DeviceArray, product: Product) -> None:
    """Fill `out` by threads that have a column of some rows each, without shared memory."""
    dtype = x.dtype
    made = out.dtype
    assert isinstance(dtype, DType)
    assert isinstance(made, DType)
    assert isinstance(y.dtype, DType)
    kernel = line_multiplier(dtype, y.dtype, len(product.batch), _is_big(x, y, out), made)
    sizes = (product.rows, product.columns, product.inner)
    numbers = integers_of(product, (Loading(True, 1), Loading(True, 1)))
    grid = (-(-product.columns // _LANES), -(-product.rows // LINES), product.matrices)
    kernel[grid, _LANES](_flat(x), _flat(y), _flat(out), *sizes, *numbers)


def _flat(array: DeviceArray) -> DeviceArray:
    return array.view((array.size,), (1,), array.offset)


def _is_big(*arrays: DeviceArray) -> bool:
    return any(array.offset + array.size >= MOST_NARROW for array in arrays)
