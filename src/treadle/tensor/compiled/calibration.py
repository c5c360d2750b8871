"""Measuring the costs of a device: small programs of each kind of computation, of growing amounts.

A curve is measured when a plan with its kind is to be placed for the first time: each takes a few
runs of milliseconds, and compiling its kernels where they are not on disk. Everything that is
measured is kept on disk, so it happens once for a device, its driver and a version of treadle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, NamedTuple

import numpy as np

from treadle.core import forks
from treadle.core.errors import TreadleError
from treadle.runtime.costs import Costs, Curve, load_costs, save_costs
from treadle.runtime.devices import Device, use_device
from treadle.tensor.creation import asarray, full
from treadle.tensor.tensor import Tensor

_RUNS = 3  # of each amount at least; the quickest counts
_SHORT = 2e-3  # seconds that runs of an amount take in all, at least
_ENOUGH = 2e-3  # seconds of a run, after which no larger amount is measured
_BUDGET = 3.0  # seconds of measuring a kind, compilers included, after which none is either
_CALLS = 15  # of small functions
_SMALL = 16  # elements
_COPIED = 1 << 22  # bytes of arrays that are copied to measure rates
_COPIES = 12  # of them: in the first ones drivers allocate memory to stage copies
_LAUNCHES = 16
_DRAWN = 100_003  # random numbers; a prime, so that rows differ
_LEAST = 1e-9  # seconds

Run = Callable[[], object]

_lock = forks.lock()
_known: dict[tuple[Device, Device], Costs] = {}


def costs_of(
    device: Device,
    host: Device,
    kinds: Sequence[str],
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """The costs of a device with curves of these kinds: known, from disk, or measured now."""
    with _lock:
        costs = _known.get((device, host)) or load_costs(device, host)
        if costs is None or costs.missing(kinds):
            # In a context of its own: autocast, say, would change what is measured.
            costs = Context().run(_measured, costs, device, kinds, clock)
            save_costs(device, host, costs)
        _known[device, host] = costs
        return costs


def _measured(
    costs: Costs | None, device: Device, kinds: Sequence[str], clock: Callable[[], float]
) -> Costs:
    """Costs with curves of these kinds, of which those that are given are not measured again."""
    with use_device(device):
        if costs is None:
            costs = _basic(device, clock)
        missing = costs.missing(kinds)
        return costs.with_curves({kind: _curve(kind, device, clock) for kind in missing})


def forget() -> None:
    """Forget what this process knows; what is on disk stays."""
    with _lock:
        _known.clear()


# --- calls and copies -----------------------------------------------------------------------------


def _basic(device: Device, clock: Callable[[], float]) -> Costs:
    """The costs of calls, launches and copies. Calls are as `td.compile` makes them: an upload for
    each array, kernels, and a download for each result."""
    one = np.ones(_SMALL, np.float32)
    several = [one] * 4

    def call(arrays: Sequence[Any], results: int) -> Run:
        def run() -> None:
            tensors = [asarray(each) for each in arrays]
            total = tensors[0]
            for each in tensors[1:]:
                total = total + each
            found = [(total + at).realize() for at in range(results)]
            for each in found:
                each.numpy()

        return run

    simple = _least(call([one], 1), _CALLS, clock)
    argument = (_least(call(several, 1), _CALLS, clock) - simple) / 3
    result = (_least(call([one], 4), _CALLS, clock) - simple) / 3
    upload, download = _rates(device, clock)
    return Costs(
        max(simple, _LEAST), max(argument, _LEAST), max(result, _LEAST),
        _launch(device, clock), upload, download,
    )  # fmt: skip


def _launch(device: Device, clock: Callable[[], float]) -> float:
    """The seconds of a further small launch."""
    x = full((_SMALL,), 1.0).realize()

    def run(count: int) -> Run:
        def launched() -> None:
            for _ in range(count):
                (x + 1.0).realize()
            device.synchronize()

        return launched

    few, many = (_least(run(count), _CALLS, clock) for count in (1, 1 + _LAUNCHES))
    return max((many - few) / _LAUNCHES, _LEAST)


def _rates(device: Device, clock: Callable[[], float]) -> tuple[float, float]:
    """The bytes a second of uploads and downloads of large arrays."""
    large, small = np.ones(_COPIED // 4, np.float32), np.ones(_SMALL, np.float32)

    def up(array: Any) -> Run:
        def run() -> None:
            asarray(array)
            device.synchronize()

        return run

    def down(tensor: Tensor) -> Run:
        return lambda: tensor.numpy()

    def rate(some: Run, none: Run) -> float:
        seconds = _least(some, _COPIES, clock) - _least(none, _COPIES, clock)
        return _COPIED / max(seconds, _COPIED * 1e-12)

    upload = rate(up(large), up(small))
    return upload, rate(down(asarray(large)), down(asarray(small)))


# --- kinds ----------------------------------------------------------------------------------------


class _Program(NamedTuple):
    """What measures a kind: for a size its amount and what runs it; and the sizes."""

    prepare: Callable[[int], tuple[float, Callable[[], Tensor]]]
    sizes: Sequence[int]


def _random(*shape: int) -> Tensor:
    """Random numbers; large arrays repeat them, as drawing takes longer than what is measured."""
    numbers = np.random.default_rng(0).standard_normal(_DRAWN, np.float32)
    return asarray(np.resize(numbers, shape)).realize()


def _elementwise(n: int) -> tuple[float, Callable[[], Tensor]]:
    x = _random(n)
    return 8.0 * n, lambda: x * 1.5 + 0.5


def _reduction(n: int) -> tuple[float, Callable[[], Tensor]]:
    from treadle.tensor.functional import softmax  # some tens of modules

    x = _random(n // 256, 256)
    return 8.0 * n, lambda: softmax(x, -1)


def _arithmetic(n: int) -> tuple[float, Callable[[], Tensor]]:
    x = _random(n)

    def run() -> Tensor:
        y = x
        for at in range(64):
            y = y * x + 0.5 * at
        return y

    return 128.0 * n, run


def _product(n: int) -> tuple[float, Callable[[], Tensor]]:
    x = _random(n, n)
    return 2.0 * n**3, lambda: x @ x


def _convolution(n: int) -> tuple[float, Callable[[], Tensor]]:
    from treadle.tensor.functional import conv2d

    x, weight = _random(1, 16, n, n), _random(16, 16, 3, 3)
    return 2.0 * 16 * 16 * 9 * n * n, lambda: conv2d(x, weight, padding=1)


def _sort(n: int) -> tuple[float, Callable[[], Tensor]]:
    from treadle.tensor.sorting import sort

    x = _random(n)
    return float(n), lambda: sort(x)


_ELEMENTS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
_PROGRAMS = {
    "elementwise": _Program(_elementwise, _ELEMENTS),
    "reduction": _Program(_reduction, _ELEMENTS),
    "arithmetic": _Program(_arithmetic, _ELEMENTS),
    "product": _Program(_product, (32, 128, 512, 1024, 2048, 4096)),
    "convolution": _Program(_convolution, (16, 64, 256, 1024)),
    "sort": _Program(_sort, (1 << 10, 1 << 14, 1 << 18, 1 << 22)),
}


def _curve(kind: str, device: Device, clock: Callable[[], float]) -> Curve:
    """The seconds of growing amounts of a kind, beyond those of a launch."""
    program = _PROGRAMS[kind]
    x = full((_SMALL,), 1.0).realize()
    empty = _least(_finished(device, lambda: x + 1.0), _RUNS + 2, clock)
    found: list[tuple[float, float]] = []
    began = clock()
    for size in program.sizes:
        try:
            amount, compute = program.prepare(size)
            seconds = _least(_finished(device, compute), _RUNS, clock)
        except (TreadleError, MemoryError):
            if not found:
                raise
            break  # too large for the device
        # What is lost in the noise of a launch takes a small part of one.
        found.append((amount, max(seconds - empty, 0.05 * empty, _LEAST)))
        if seconds > _ENOUGH or clock() - began > _BUDGET:
            break
    return tuple(found)


def _finished(device: Device, compute: Callable[[], Tensor]) -> Run:
    def run() -> None:
        compute().realize()
        device.synchronize()

    return run


def _least(run: Run, count: int, clock: Callable[[], float]) -> float:
    """The least seconds of some runs, after one that does not count. Short runs are repeated."""
    run()
    least, total = math.inf, 0.0
    for number in range(10 * count):
        if number >= count and total > _SHORT:
            break
        began = clock()
        run()
        seconds = clock() - began
        least, total = min(least, seconds), total + seconds
    return least
