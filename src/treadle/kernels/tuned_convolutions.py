"""Convolutions in float32 for the tuner: tiles of sums in registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product as combinations
from typing import NamedTuple

import numpy as np

from treadle.core.dtypes import float32
from treadle.kernels.convolve import TUNED, convolve, tile_for
from treadle.kernels.device_code.convolution import Tile
from treadle.kernels.launching import serial_threads
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
_SOFTWARE_SHAPES = ((16, 16, 4, 4), (16, 32, 4, 4), (32, 32, 4, 4), (32, 16, 8, 4))


def _workloads(device: Device) -> list[Workload]:
    if serial_threads(device):
        return []
    layers = _SOFTWARE_LAYERS if device.traits.software else _LAYERS
    return [workload_of(layer) for layer in layers]


def workload_of(layer: Layer) -> Workload:
    """A convolution as a workload."""
    batch, ins, outs, size, kernel, stride = layer
    label = f"{kernel} x {kernel} of {batch} x {ins} x {size}² to {outs}, stride {stride}"
    inner = ins * kernel * kernel
    problem = TUNED.problem("f32", (outs, inner, layer.places))
    return Workload(problem, label, layer, 2.0 * layer.places * outs * inner)


def _prepare(device: Device, workload: Workload) -> Bench:
    """Multiples of 1/4 up to 2, whose sums are exact, as for products of matrices."""
    batch, ins, outs, size, kernel, stride = workload.sizes
    draw = np.random.default_rng(22)
    arrays = []
    for shape in ((batch, ins, size, size), (outs, ins, kernel, kernel)):
        array = DeviceArray.allocate(device, float32, shape)
        array.upload(draw.integers(-8, 9, shape, np.int8) / np.float32(4))
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

    def near(candidate: Candidate) -> Sequence[Candidate]:
        tile = Tile(*candidate.numbers)
        others = (tile._replace(depth=d, copies=c) for d, c in combinations((4, 8, 16), (1, 2)))
        return _possible(device, others)

    first = tile_for(device, float32, outs, workload.sizes.places)
    shapes = _SOFTWARE_SHAPES if device.traits.software else _SHAPES
    copies = 2 if device.traits.double_buffers else 1
    depths = (2,) if device.traits.software else (8,)
    tiles = [
        Tile(rows, columns, depth, down, across, copies)
        for (rows, columns, down, across) in shapes
        for depth in depths
        if rows < 2 * max(outs, 16)
    ]
    return Bench(
        TUNED.candidate(first), _possible(device, tiles),
        (lambda _: []) if device.traits.software else near,
        run, lambda _: None, clear, lambda: made[0].to_host(),
    )  # fmt: skip


def _possible(device: Device, tiles: Iterable[Tile]) -> list[Candidate]:
    """Those that the device has room for."""
    return [TUNED.candidate(tile) for tile in tiles if TUNED.fits(device, tile)]


def _none(device: Device, sizes: object) -> None:
    """Convolutions are not measured as they come up: a planner knows too little of them."""
    del device, sizes


CONVOLUTIONS = Family(TUNED.family, "convolutions in float32", _workloads, _none, _prepare)
