"""Convolutions for the tuner: tiles of sums in registers for float32, of fragments or of groups of
threads for float16."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product as combinations
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, float16
from treadle.kernels import winograd
from treadle.kernels.convolve import TUNED, convolve, tile_for
from treadle.kernels.convolve_fragments import TILES, TUNED_FRAGMENTS, padded_to
from treadle.kernels.convolve_fragments import tile_for as fragments_for
from treadle.kernels.convolve_groups import TILES as GROUP_TILES
from treadle.kernels.convolve_groups import TUNED_GROUPS, Chosen, chosen, problem_sizes
from treadle.kernels.convolve_plans import Axis, Channels, along_of, three_axes
from treadle.kernels.device_code.convolution import Tile
from treadle.kernels.device_code.fragment_pipeline import piece_of
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.launching import serial_threads
from treadle.kernels.matrix_check import usable_products
from treadle.kernels.tuned_tiles import TileKind
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tuning.choices import forcing
from treadle.tuning.records import Bench, Candidate, Family, Workload


class Layer(NamedTuple):
    """A convolution of square images by square kernels, with padding that keeps their size."""

    batch: int
    ins: int
    outs: int
    size: int
    kernel: int
    stride: int
    dtype: str = "f32"

    @property
    def places(self) -> int:
        """Output positions of all images."""
        return int(self.batch * (-(-self.size // self.stride)) ** 2)


_LAYERS = (
    Layer(32, 64, 64, 56, 3, 1), Layer(32, 256, 256, 28, 3, 1), Layer(32, 3, 64, 224, 7, 2),
    Layer(32, 128, 128, 28, 3, 1), Layer(32, 512, 512, 7, 3, 1), Layer(32, 256, 64, 56, 1, 1),
    Layer(8, 32, 32, 64, 3, 1), Layer(1, 256, 256, 28, 3, 1),
)  # fmt: skip
_SOFTWARE_LAYERS = (Layer(1, 16, 16, 32, 3, 1), Layer(4, 16, 32, 16, 3, 1))
# Rows and columns of a block, and of a thread.
_SHAPES = (
    (128, 128, 8, 8), (64, 128, 8, 8), (64, 64, 4, 8), (64, 64, 4, 4), (32, 128, 4, 8),
    (32, 64, 4, 4), (32, 32, 4, 4), (128, 64, 8, 4), (64, 64, 8, 8), (16, 64, 4, 4),
)  # fmt: skip
_FRAGMENTS = (
    *TILES,
    *(
        FragmentTile(*shape, *depth)
        for shape in ((128, 128), (128, 256), (64, 128), (128, 64), (64, 64), (32, 128))
        for depth in (
            (32, 64, 64, 4), (64, 64, 64, 3), (32, 32, 64, 4), (64, 32, 64, 3), (32, 32, 32, 4),
            (64, 32, 32, 3),
        )
        if shape[0] % depth[1] == 0 and shape[1] % depth[2] == 0
    ),
)  # fmt: skip
_SOFTWARE_SHAPES = ((16, 16, 4, 4), (16, 32, 4, 4), (32, 32, 4, 4), (32, 16, 8, 4))


def _workloads(device: Device) -> list[Workload]:
    if serial_threads(device):
        return []
    layers = _SOFTWARE_LAYERS if device.traits.software else _LAYERS
    made = [workload_of(layer) for layer in layers if not _by_winograd(device, layer)]
    if "f16" in usable_products(device):
        halves = [layer._replace(dtype="f16") for layer in layers]
        made += [workload_of(layer, _groups(device, layer)) for layer in halves]
    return made


def _groups(device: Device, layer: Layer) -> Chosen | None:
    """How groups of threads compute a layer, if they do."""
    return chosen(device, BY_SHORT_NAME[layer.dtype], *_planned(layer))


def _by_winograd(device: Device, layer: Layer) -> bool:
    """Whether a layer is a product of matrices, whose tiles are tuned as such."""
    return winograd.suits(device, BY_SHORT_NAME[layer.dtype], *_planned(layer))


def _planned(layer: Layer) -> tuple[list[tuple[Axis, ...]], Channels, int]:
    """A layer as planners take it: axes, channels, images."""
    batch, ins, outs, size, kernel, stride, _ = layer
    extent, taps = (size - 1) // stride + 1, kernel * kernel
    axes = three_axes((along_of(size, kernel, stride, kernel // 2, 1, extent),) * 2)
    return [axes], Channels(1, ins, outs, taps, ins * taps, outs * ins * taps), batch


def workload_of(layer: Layer, groups: Chosen | None = None) -> Workload:
    """A convolution as a workload, on a device where groups of threads compute it or not."""
    batch, ins, outs, size, kernel, stride, dtype = layer
    label = f"{dtype}, {kernel} x {kernel} of {batch} x {ins} x {size}² to {outs}, stride {stride}"
    taps = kernel * kernel
    operations = 2.0 * layer.places * outs * ins * taps
    if dtype == "f32":
        problem = TUNED.problem(dtype, (outs, ins * taps, layer.places))
    elif groups is not None:
        sizes = problem_sizes(outs, ins * taps, groups.paddings, batch)
        problem = TUNED_GROUPS.problem(dtype, sizes)
    else:
        padded = padded_to(ins, piece_of(float16))
        problem = TUNED_FRAGMENTS.problem(dtype, (outs, padded * taps, layer.places))
    return Workload(problem, label, layer, operations)


def _prepare(device: Device, workload: Workload) -> Bench:
    """Multiples of 1/4 up to 2, whose sums are exact, as for products of matrices."""
    layer: Layer = workload.sizes
    batch, ins, outs, size, kernel, stride, _ = layer
    dtype = BY_SHORT_NAME[layer.dtype]
    draw = np.random.default_rng(22)
    arrays = []
    for shape in ((batch, ins, size, size), (outs, ins, kernel, kernel)):
        array = DeviceArray.allocate(device, dtype, shape)
        drawn = draw.integers(-8, 9, shape, np.int8) / np.float32(4)
        array.upload(drawn.astype(dtype.numpy))
        arrays.append(array)
    extent = (size - 1) // stride + 1
    made: list[DeviceArray] = []

    def run(candidate: Candidate, number: int) -> None:
        del number  # images are larger than most caches
        with forcing(TUNED.family, candidate):
            out = convolve(*arrays, (stride,) * 2, (kernel // 2,) * 2, (1, 1), 1, (extent,) * 2)
        made[:] = [out]

    def clear() -> None:
        """The memory may be the next result's."""
        for out in made:
            device.default_stream.handle.fill_zero(out.buffer, 0, out.buffer.size)
        made.clear()

    def result() -> np.ndarray[Any, Any]:
        return made[0].to_host()

    groups = None if layer.dtype == "f32" else _groups(device, layer)
    if groups is not None:
        return Bench(
            TUNED_GROUPS.candidate(groups.tile), _possible(device, TUNED_GROUPS, GROUP_TILES),
            lambda _: [], run, lambda _: None, clear, result,
        )  # fmt: skip
    if layer.dtype != "f32":
        inner = padded_to(ins, piece_of(dtype)) * kernel * kernel
        guess = fragments_for(device, outs, layer.places, inner)
        found = [tile for tile in _FRAGMENTS if tile.rows < 2 * max(outs, 16)]
        return Bench(
            TUNED_FRAGMENTS.candidate(guess), _possible(device, TUNED_FRAGMENTS, found),
            lambda _: [], run, lambda _: None, clear, result,
        )  # fmt: skip

    def near(candidate: Candidate) -> Sequence[Candidate]:
        if device.traits.software:
            return []
        tile = Tile(*candidate.numbers)
        others = (tile._replace(depth=d, copies=c) for d, c in combinations((4, 8, 16), (1, 2)))
        return _possible(device, TUNED, others)

    first = tile_for(device, dtype, outs, layer.places)
    shapes = _SOFTWARE_SHAPES if device.traits.software else _SHAPES
    copies = 2 if device.traits.double_buffers else 1
    depth = 2 if device.traits.software else 8
    tiles = [
        Tile(rows, columns, depth, down, across, copies)
        for (rows, columns, down, across) in shapes
        if rows < 2 * max(outs, 16)
    ]
    return Bench(
        TUNED.candidate(first), _possible(device, TUNED, tiles), near, run, lambda _: None, clear,
        result,
    )  # fmt: skip


def _possible(device: Device, kind: TileKind, tiles: Iterable[Any]) -> list[Candidate]:
    """Those that the device has room for."""
    return [kind.candidate(tile) for tile in tiles if kind.fits(device, tile)]


def _none(device: Device, sizes: object) -> None:
    """Convolutions are not measured as they come up: a planner knows too little of them."""
    del device, sizes


CONVOLUTIONS = Family(TUNED.family, "convolutions", _workloads, _none, _prepare)
