"""From which size on a device is sooner done than the host, transfers included, and what
`td.compile(f, device="auto")` chooses: NumPy arrays in, NumPy arrays out.

Each figure is what a call took by itself on the host, on the device, by NumPy, and where "auto" ran
it once it had chosen. All four are measured in turns.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from benchmarks import harness
from benchmarks.harness import Figure, about_device

__all__ = ["about", "measurements"]

about = about_device

AIM = 1.2  # times the better of both
HOST, DEVICE, NUMPY, BEST = "host", "device", "NumPy", "better of both"
_SETTLED = 12  # calls after which "auto" has chosen
_LONG = 0.15  # seconds of a call, after which no larger size is measured
_SHARE = 5.0  # seconds of a program, after which none is either

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """A computation for NumPy arrays of a size: the same function for treadle, on each device."""

    arrays: Callable[[np.random.Generator, int], tuple[Array, ...]]
    treadle: Callable[..., Any]
    numpy: Callable[..., Any]
    sizes: Sequence[int]
    unit: str  # what a size is


def _drawn(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator, int], tuple[Array, ...]]:
    """Arrays whose extents of -1 are the size."""

    def arrays(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
        extents = [tuple(size if n < 0 else n for n in shape) for shape in shapes]
        return tuple(generator.standard_normal(shape, np.float32) for shape in extents)

    return arrays


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _convolution(x: Array, weight: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


PROGRAMS = {
    "dot": Program(
        _drawn((-1,), (-1,)), lambda x, y: x @ y, np.dot,
        (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000), "elements",
    ),
    "matmul": Program(
        _drawn((-1, -1), (-1, -1)), lambda x, y: x @ y, np.matmul,
        (16, 64, 128, 256, 512, 1024, 2048, 4096), "rows and columns",
    ),
    "softmax": Program(
        _drawn((-1, 1024)), lambda x: td.nn.functional.softmax(x, -1), _softmax,
        (1, 8, 64, 512, 4096, 16384), "rows of 1024",
    ),
    "sort": Program(
        _drawn((-1,)), td.sort, np.sort,
        (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000), "elements",
    ),
    "convolution": Program(
        _drawn((1, 32, -1, -1), (32, 32, 3, 3)),
        lambda x, weight: td.nn.functional.conv2d(x, weight, padding=1), _convolution,
        (8, 16, 32, 64, 128, 256, 512, 1024), "rows and columns of 32 channels",
    ),
}  # fmt: skip


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures for a device."""
    return [functools.partial(_program, f"crossover-{spec}", spec, name) for name in PROGRAMS]


def _program(suite: str, spec: str, name: str) -> list[Figure]:
    """The figures of a program, size by size."""
    program, found = PROGRAMS[name], []
    generator = np.random.default_rng(0)
    began = time.perf_counter()
    with td.use_device(spec) as device:
        options: dict[str, Any] = {"dynamic": False}
        functions = {
            HOST: _on(td.compile(program.treadle, **options), td.device("cpu")),
            DEVICE: _on(td.compile(program.treadle, **options), device),
            NUMPY: program.numpy,
        }
        auto = td.compile(lambda *arrays: program.treadle(*arrays), device="auto", **options)
        for size in program.sizes:
            arrays = program.arrays(generator, size)
            seconds = _measured({**functions, "auto": auto}, arrays)
            chosen = _chosen(auto)
            found.append(_figure(suite, f"{name}: {size:,} {program.unit}", seconds, chosen))
            longest = min(seconds[HOST], seconds[DEVICE])
            if longest > _LONG or time.perf_counter() - began > _SHARE:
                break
        for each in functions.values():
            getattr(each, "clear", lambda: None)()
        auto.clear()  # type: ignore[attr-defined]
    return found


def _on(compiled: Any, device: td.Device) -> Callable[..., Any]:
    """A compiled function on a device, from NumPy to NumPy."""

    def run(*arrays: Array) -> Any:
        with td.use_device(device):
            return compiled(*arrays).numpy()

    return run


def _measured(
    functions: dict[str, Callable[..., Any]], arrays: tuple[Array, ...]
) -> dict[str, float]:
    """The seconds of a call of each function, in turns, after their results were compared."""
    expected = functions[NUMPY](*arrays)
    scale = max(float(np.abs(expected).max()), 1.0)
    for name, function in functions.items():
        for _ in range(_SETTLED if name == "auto" else 2):
            result = function(*arrays)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3 * scale, err_msg=name)
    runs = [functools.partial(function, *arrays) for function in functions.values()]
    return dict(zip(functions, harness.wall_seconds(lambda: None, *runs), strict=True))


def _chosen(auto: Any) -> str:
    """The device that the last kind of calls runs on, from its explanation."""
    line = [line for line in str(td.explain(auto)).splitlines() if ": on " in line][-1]
    return line.partition(": on ")[2].partition(",")[0]


def _figure(suite: str, name: str, seconds: dict[str, float], chosen: str) -> Figure:
    others = tuple((each, seconds[each]) for each in (HOST, DEVICE, NUMPY))
    return Figure(
        suite, name, "s", seconds["auto"], AIM, peer=BEST,
        peers=min(seconds[HOST], seconds[DEVICE]), ratio=True, note=f"on {chosen}", others=others,
    )  # fmt: skip
