"""Products of matrices for the tuner: which tiles and parts are tried, and on what."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import product as combinations

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, int32
from treadle.kernels.best_tiles import (
    FAMILY,
    Choice,
    candidate_of,
    choice_from,
    kind_of,
    tuned,
)
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.group_product import GroupTile
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.factors import TF32, Factor, Product, dtypes_of
from treadle.kernels.launching import serial_threads
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import (
    FRAGMENT_TILES,
    GROUP_TILES,
    OTHER_GROUP_TILES,
    TILES,
    AnyTile,
    Problem,
    tile_for,
)
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tuning import records
from treadle.tuning.records import Bench, Candidate, Family, Workload

# Matrices, rows, columns, inner extent. The most usual first.
_SIZES = (
    (1, 4096, 4096, 4096), (1, 1024, 1024, 1024), (1, 16, 4096, 4096), (1, 2048, 2048, 2048),
    (1, 512, 512, 512), (1, 512, 512, 8192), (16, 512, 512, 512), (1, 4096, 4096, 1024),
    (1, 4096, 1024, 4096), (1, 8192, 8192, 8192), (1, 2048, 4096, 1024), (1, 256, 256, 256),
    (64, 256, 256, 64), (1, 128, 4096, 4096), (1, 64, 1024, 1024), (1, 4096, 16, 4096),
    (1, 256, 1024, 256), (1, 8192, 1024, 1024),
)  # fmt: skip
_SOFTWARE_SIZES = ((1, 256, 256, 256), (1, 128, 128, 128), (1, 16, 256, 256), (4, 64, 64, 64))
_DTYPES = ("f16", "f32")
# And what only tensor cores multiply, with both factors along the inner axis.
_OF_TENSOR_CORES = (TF32, "i8")
_CACHE = 64 << 20  # bytes: sets of arrays together use more than a GPU's cache has
_MOST_SETS = 8
_DRAWN = 1_000_003  # random numbers, which larger arrays repeat; a prime, so that rows differ
_TOGETHER = (4, 16)  # rows of tiles that blocks of groups go down
_PARTS = (1, 2, 3, 4, 6, 8, 16)
_FEW_BLOCKS = 264  # below which parts of the inner axis are tried
_SHORT = 128  # steps of the inner axis that a part has at least
_MOST_SUMS = 128  # registers of a thread for sums, of fragments
_MOST_THREADS = 512
_WARP = 32
_LEAST = 16  # rows or columns of a tile


def _workloads(device: Device) -> list[Workload]:
    """None on the CPU, where NumPy's BLAS multiplies floats."""
    if serial_threads(device):
        return []
    sizes = _SOFTWARE_SIZES if device.traits.software else _SIZES
    dtypes = [name for name in _DTYPES if name != "f16" or "float16" in device.features]
    problems = [
        Problem(BY_SHORT_NAME[name], *each, boxes=True) for each in sizes for name in dtypes
    ]
    machine = machine_of(device)
    problems += [
        Problem(
            dtypes_of(name)[0], *each,
            boxes=name in machine.group_products, rounded=name == TF32, across=(False, False),
        )
        for each in sizes
        for name in _OF_TENSOR_CORES
        if name in machine.matrix_products
    ]  # fmt: skip
    made = (_workload(device, problem) for problem in problems)
    return [each for each in made if each is not None]


def _workload(device: Device, problem: Problem) -> Workload | None:
    known = tuned(problem, tile_for(machine_of(device), problem))
    if known is None:
        return None
    dtype, matrices, rows, columns, inner = problem[:5]
    what = TF32 if problem.rounded else dtype
    label = f"{what} {rows} x {columns} x {inner}" + (f", {matrices} times" if matrices > 1 else "")
    operations = 2.0 * matrices * rows * columns * inner
    return Workload(known, label, problem, operations)


def _prepare(device: Device, workload: Workload) -> Bench:
    """Factors of multiples of 1/4 up to 2, or of integers: their products and all sums of them are
    exact in float32, so that the results of all candidates are the same to the last bit."""
    problem: Problem = workload.sizes
    dtype, matrices, rows, columns, inner = problem[:5]
    machine = machine_of(device)
    guess = tile_for(machine, problem)
    item = dtype.itemsize
    counts = (matrices * rows * inner, matrices * inner * columns, matrices * rows * columns)
    many = 1
    if not device.traits.software and not device.traits.on_host:
        many = min(max(_CACHE // (sum(counts) * item), 1), _MOST_SETS)
    draw = np.random.default_rng(22)
    of_bytes = item == 1
    dtypes = dtype, problem.other or dtype, int32 if of_bytes else dtype
    sets = [
        tuple(
            DeviceArray.allocate(device, held, (count,))
            for held, count in zip(dtypes, counts, strict=True)
        )
        for _ in range(many)
    ]
    for arrays in sets:
        for array, held, count in zip(arrays[:2], dtypes, counts, strict=False):
            drawn = draw.integers(-8, 9, min(count, _DRAWN), np.int8)
            values = np.abs(drawn) if held.kind == "uint" else drawn
            values = values if of_bytes else values / np.float32(4)
            array.upload(np.resize(values.astype(held.numpy), count))
    of_columns = (1, columns) if problem.across[1] else (inner, 1)
    batch = (matrices,) if matrices > 1 else ()
    step = 1 if matrices > 1 else 0
    plain = Product(
        batch, rows, columns, inner,
        Factor((rows * inner * step,) * len(batch), inner, 1, 0),
        Factor((inner * columns * step,) * len(batch), *of_columns, 0),
        problem.multiplied if problem.rounded or of_bytes else "",
    )  # fmt: skip

    def run(candidate: Candidate, number: int) -> None:
        choice = choice_from(machine, problem, guess, candidate)
        x, y, out = sets[number]
        by_tiles(x, y, out, plain, choice.tile, choice.parts)

    def begin(candidate: Candidate) -> None:
        choice = choice_from(machine, problem, guess, candidate)
        x, y, out = (
            DeviceArray.imagined(device, held, (count,))
            for held, count in zip(dtypes, counts, strict=True)
        )
        by_tiles(x, y, out, plain, choice.tile, choice.parts)

    def clear() -> None:
        out = sets[0][2]
        device.default_stream.handle.fill_zero(out.buffer, 0, out.buffer.size)

    first = candidate_of(Choice(guess))

    def possible(found: Iterable[Choice]) -> list[Candidate]:
        """Those that the machine allows."""
        made = map(candidate_of, found)
        return [
            each
            for each in made
            if candidate_of(choice_from(machine, problem, guess, each)) == each
        ]

    def near(candidate: Candidate) -> list[Candidate]:
        return possible(_near(machine, problem, choice_from(machine, problem, guess, candidate)))

    found = possible(_choices(machine, problem, kind_of(guess)))
    return Bench(first, found, near, run, begin, clear, sets[0][2].to_host, many)


def tiles_of(machine: Machine, kind: str | None) -> list[AnyTile]:
    """Tiles of a kind: those of the tables, then others, in an order of no meaning, so that a short
    budget sees different ones."""
    table: list[AnyTile] = []
    others: list[AnyTile] = []
    if kind == "fragments":
        table += [tile for row in FRAGMENT_TILES.values() for tile in row]
        others += _fragment_tiles()
    elif kind == "groups":
        table += GROUP_TILES
        others += [tile._replace(together=count) for tile in GROUP_TILES for count in _TOGETHER]
        others += [tile for tile in OTHER_GROUP_TILES if machine.clusters or tile.cluster == 1]
    elif kind == "registers":
        for row in TILES.values():
            table += [t._replace(unrolled=not machine.software and t.unrolled) for t in row]
        others += _register_tiles(machine)
    random.Random(22).shuffle(others)
    found = dict.fromkeys([*table, *others])
    return [tile for tile in found if kind_of(tile) == kind]


def _choices(machine: Machine, problem: Problem, kind: str | None) -> Iterator[Choice]:
    """What is tried first: tiles that leave least of a block empty, those of the tables before
    others."""
    found = [
        tile.of(problem.dtype) if isinstance(tile, FragmentTile) else tile
        for tile in tiles_of(machine, kind)
    ]
    tiles = [tile for tile in found if _is_near(problem, tile)]
    yield from map(Choice, sorted(tiles, key=lambda tile: round(_waste(problem, tile), 1)))


def _near(machine: Machine, problem: Problem, choice: Choice) -> Iterator[Choice]:
    """What differs in one thing: parts, depth, stages or copies, the shape of warps."""
    tile = choice.tile
    if isinstance(tile, GroupTile):
        return
    blocks = _blocks(problem, tile)
    for parts in _PARTS:
        few = parts == 1 or blocks * parts <= 4 * _FEW_BLOCKS
        if few and problem.inner >= parts * max(_SHORT, tile.depth):
            yield choice._replace(parts=parts)
    if isinstance(tile, FragmentTile):
        for depth, stages in ((64, 2), (64, 3), (64, 4), (32, 3), (32, 4), (32, 6)):
            deep = tile._replace(depth=depth, stages=stages).of(problem.dtype)
            yield choice._replace(tile=deep)
        for down, across in combinations((64, 32, 16), (64, 32, 16)):
            other = tile._replace(warp_rows=down, warp_columns=across)
            if tile.rows % down == tile.columns % across == 0 and _has_room(other):
                yield choice._replace(tile=other)
        yield choice._replace(tile=tile._replace(guarded=not tile.guarded))
        return
    if not isinstance(tile, Tile):
        return  # `best_tiles.kind_of` does not know them
    for depth in (8, 16):
        yield choice._replace(tile=tile._replace(depth=depth))
    if machine.double_buffers:
        for copies in (1, 2):
            yield choice._replace(tile=tile._replace(copies=copies))
    for warp_columns in (4, 8, 16, 32):
        other_tile = tile._replace(warp_columns=warp_columns)
        if _is_whole(other_tile):
            yield choice._replace(tile=other_tile)
    yield choice._replace(tile=tile._replace(guarded=not tile.guarded))


def _blocks(problem: Problem, tile: AnyTile) -> int:
    return -(-problem.rows // tile.rows) * -(-problem.columns // tile.columns) * problem.matrices


def _waste(problem: Problem, tile: AnyTile) -> float:
    """How much more than the result its blocks compute."""
    computed = _blocks(problem, tile) * tile.rows * tile.columns
    return computed / (problem.rows * problem.columns * problem.matrices)


def _fragment_tiles() -> list[FragmentTile]:
    """Tiles of fragments that lie around those of the table."""
    shapes = (
        (256, 128, 64, 64), (128, 256, 64, 64), (128, 128, 64, 64), (128, 128, 64, 32),
        (64, 256, 32, 64), (256, 64, 64, 32), (64, 128, 32, 64), (64, 128, 32, 32),
        (128, 64, 64, 32), (128, 64, 32, 32), (64, 64, 32, 32), (64, 64, 32, 16), (32, 128, 32, 32),
        (128, 32, 32, 32), (32, 64, 16, 32), (64, 32, 32, 16), (32, 32, 16, 16), (16, 128, 16, 32),
        (16, 64, 16, 16), (16, 256, 16, 64), (128, 16, 32, 16), (64, 16, 16, 16), (256, 16, 64, 16),
    )  # fmt: skip
    return [
        FragmentTile(rows, columns, depth, down, across, stages)
        for rows, columns, down, across in shapes
        for depth, stages in ((64, 3), (32, 4))
    ]


def _has_room(tile: FragmentTile) -> bool:
    """Whether sums fit into a thread's registers, and threads into a block."""
    sums = tile.warp_rows * tile.warp_columns // _WARP
    return sums <= _MOST_SUMS and 2 * _WARP <= tile.threads <= _MOST_THREADS


def _is_near(problem: Problem, tile: AnyTile) -> bool:
    """Whether a tile's rows and columns are not mostly outside of the result."""
    rows, columns = max(problem.rows, _LEAST), max(problem.columns, _LEAST)
    return tile.rows < 2 * rows and tile.columns < 2 * columns


def _register_tiles(machine: Machine) -> list[Tile]:
    """Tiles of sums in registers that lie around those of the tables."""
    unrolled = not machine.slow_to_compile and not machine.software
    found = []
    for rows, columns, down, across in (
        (128, 128, 2, 2), (64, 64, 1, 1), (64, 64, 2, 1), (64, 64, 2, 2), (128, 64, 2, 1),
        (128, 64, 2, 2), (64, 128, 1, 2), (64, 128, 2, 2), (32, 64, 1, 1), (64, 32, 1, 1),
        (32, 32, 1, 1), (16, 128, 1, 1), (16, 64, 1, 1), (128, 16, 1, 1), (16, 16, 1, 1),
    ):  # fmt: skip
        # Threads of a warp that are side by side in a tile, as in the tables.
        warp_columns, copies = min(32, columns // (4 * across)), 2 if machine.double_buffers else 1
        found += [
            Tile(rows, columns, depth, down, across, copies, warp_columns, unrolled)
            for depth in (8, 16)
        ]
    return [tile for tile in found if _is_whole(tile)]


def _is_whole(tile: Tile) -> bool:
    """Whether a block is made of whole warps, which cover whole rows of threads."""
    side, high = tile.columns // (4 * tile.across), tile.rows // (4 * tile.down)
    return side % tile.warp_columns == 0 and high % max(_WARP // tile.warp_columns, 1) == 0


def _label(problem: records.Problem) -> str:
    """What `best_tiles.tuned` has of it, in words.

    >>> _label(records.Problem("products", 1, ("f32", "registers", 2, 6, 7, 8)))
    'float32 about 64 x 128 x 256, 4 times'
    """
    short, _, *powers = problem.facts
    matrices, *sizes = (1 << int(power) for power in powers)
    shown = " x ".join(map(str, sizes))
    dtype = BY_SHORT_NAME.get(str(short), short)
    return f"{dtype} about {shown}" + (f", {matrices} times" if matrices > 1 else "")


PRODUCTS = Family(FAMILY, "products of matrices", _workloads, _workload, _prepare, _label)
