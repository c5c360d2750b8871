"""Attention for the tuner: tiles of queries and keys, in registers for float32, of fragments for
float16."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME
from treadle.kernels.attend import TUNED, Laid, Problem, attend_result, first_tile
from treadle.kernels.attention_tiles import TUNED_FRAGMENTS, Lengths, rows_of, tile_for
from treadle.kernels.device_code.attention import Tile
from treadle.kernels.device_code.attention_fragments import FragmentTile
from treadle.kernels.launching import serial_threads
from treadle.kernels.matrix_check import usable_groups, usable_products
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tuning.choices import forcing
from treadle.tuning.records import Bench, Candidate, Family, Workload, are_close


class Heads(NamedTuple):
    """Self-attention of so many heads, queries as many as keys."""

    heads: int
    length: int
    size: int
    dtype: str = "f32"


_HEADS = (
    Heads(64, 1024, 64), Heads(64, 1024, 128), Heads(16, 4096, 64), Heads(256, 256, 64),
    Heads(64, 128, 32),
)  # fmt: skip
# Threads along columns and along queries, queries and keys of a thread, vectors of the value, depth
# of the scores at a time, passes of the weights through shared memory.
_TILES = tuple(
    Tile(across, down, rows, keys, vectors, deep, passes)
    for across, down, rows, keys, vectors, deep, passes in (
        (16, 16, 8, 8, 2, 4, 8), (8, 16, 8, 8, 2, 4, 4), (8, 8, 8, 8, 2, 4, 4),
        (16, 4, 4, 4, 1, 4, 4), (16, 16, 4, 4, 1, 4, 4), (16, 8, 8, 8, 1, 4, 8),
        (16, 8, 4, 8, 1, 4, 8), (8, 16, 4, 8, 2, 4, 4), (8, 16, 8, 4, 2, 4, 4),
        (16, 16, 4, 4, 2, 4, 4),
    )
)  # fmt: skip

_FRAGMENTS = tuple(
    FragmentTile(*rows, held)
    for rows in ((64, 64, 16), (128, 64, 16), (64, 32, 16), (128, 64, 32), (128, 32, 16),
                 (64, 128, 16), (128, 128, 32), (128, 128, 16))
    for held in (True, False)
)  # fmt: skip


def _workloads(device: Device) -> list[Workload]:
    """None on the CPU, and none for software adapters, whose compilers take long for these. Where
    groups of threads compute attention of float16 their tiles are a table."""
    if serial_threads(device) or device.traits.software:
        return []
    made = [workload_of(each) for each in _HEADS]
    if "f16" in usable_products(device) and "f16" not in usable_groups(device):
        made += [workload_of(each._replace(dtype="f16")) for each in _HEADS]
    return made


def workload_of(sizes: Heads) -> Workload:
    """Attention as a workload."""
    heads, length, size, dtype = sizes
    kind = TUNED if dtype == "f32" else TUNED_FRAGMENTS
    problem = kind.problem(dtype, (heads, length, length, size))
    label = f"{dtype}, {heads} heads of {length} x {size}"
    return Workload(problem, label, sizes, 4.0 * heads * length * length * size)


def _prepare(device: Device, workload: Workload) -> Bench:
    heads, length, size, short = workload.sizes
    dtype = BY_SHORT_NAME[short]
    draw = np.random.default_rng(22)
    arrays = []
    for _ in range(3):
        array = DeviceArray.allocate(device, dtype, (heads, length, size))
        drawn = draw.standard_normal((heads, length, size), np.float32)
        array.upload(drawn.astype(dtype.numpy))
        arrays.append(array)
    laid = Laid((length * size, size), 0)
    problem = Problem(
        (heads,), (heads,), length, length, size, size, laid, laid, laid, None, size**-0.5, None,
        None, 0.0,
    )  # fmt: skip
    made: list[DeviceArray] = []

    def run(candidate: Candidate, number: int) -> None:
        del number  # what is read from memory is little beside what is computed
        with forcing(TUNED.family, candidate):
            out = attend_result(*arrays, problem)
        made[:] = [out]

    def clear() -> None:
        """The memory may be the next result's."""
        for out in made:
            device.default_stream.handle.fill_zero(out.buffer, 0, out.buffer.size)
        made.clear()

    def result() -> np.ndarray[Any, Any]:
        return made[0].to_host()

    if short != "f32":
        rows = rows_of(dtype, size, (length * size, size))
        guess = tile_for(device, Lengths(heads, length, length), rows, rows)
        return Bench(
            TUNED_FRAGMENTS.candidate(guess), [*map(TUNED_FRAGMENTS.candidate, _FRAGMENTS)],
            lambda _: [], run, lambda _: None, clear, result, agrees=are_close,
        )  # fmt: skip

    def near(candidate: Candidate) -> Sequence[Candidate]:
        tile = Tile(*candidate.numbers)
        return _possible(device, (tile._replace(deep=deep) for deep in (2, 4, 8)))

    first = TUNED.candidate(first_tile(device, dtype, problem))
    return Bench(
        first, _possible(device, _TILES), near, run, lambda _: None, clear, result,
        agrees=are_close,
    )  # fmt: skip


def _possible(device: Device, tiles: Iterable[Tile]) -> list[Candidate]:
    """Those that the device has room for."""
    return [TUNED.candidate(tile) for tile in tiles if TUNED.fits(device, tile)]


def _none(device: Device, sizes: object) -> None:
    """Attention is not measured as it comes up: a planner knows too little of it."""
    del device, sizes


ATTENTION = Family(TUNED.family, "attention", _workloads, _none, _prepare)
