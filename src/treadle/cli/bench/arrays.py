"""The suite `arrays`: whole expressions beside a copy, and what an operation costs the host.

A result is compared with NumPy's in float64 before anything is timed.
"""

from __future__ import annotations

import functools
import importlib
import math
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.cli.bench import expressions
from treadle.cli.bench.expressions import Expression
from treadle.cli.bench.harness import (
    Figure,
    Run,
    device_seconds,
    host_seconds,
    installed,
    seconds,
    torch_on_cuda,
    torch_seconds,
    wall_seconds,
)
from treadle.core.errors import TreadleError
from treadle.runtime.devices import Device
from treadle.runtime.profile.session import profile
from treadle.tensor import Tensor, asarray, ones
from treadle.tensor import sum as sum_of

_TOLERANCE = 2e-5  # relative, of a norm
_SMALL = 64
_OPERATIONS = 100
_CHAIN = 50


@dataclass(frozen=True)
class Sizes:
    """How many elements the large arrays have, and a square's edge."""

    flat: int = 16 << 20
    summed: int = 8192
    rows: int = 4096
    memory: int = 4 << 20
    repeats: int = 31


FULL = Sizes()
SMALL = Sizes(flat=10_007, summed=101, rows=67, memory=1 << 16, repeats=3)


def measurements(device: Device, small: bool = False) -> list[Callable[[], list[Figure]]]:
    """What the suite measures, one after the other."""
    sizes = SMALL if small else FULL
    bench = Bench("arrays", device)
    return [
        *(functools.partial(bench.speed, one) for one in the_expressions(sizes, device)),
        functools.partial(bench.costs, sizes.repeats),
        functools.partial(bench.memory, sizes.memory),
    ]


def the_expressions(sizes: Sizes, device: Device) -> list[Expression]:
    """Those of the suite, of arrays that a kernel of the device sees as a whole."""
    most = device.limits.max_binding_size // 4
    flat = _fitting(sizes.flat, most)
    summed, rows = (_fitting(edge, math.isqrt(most)) for edge in (sizes.summed, sizes.rows))
    return [
        expressions.gelu(flat),
        expressions.mean_of_gelu(flat),
        expressions.full_sum(flat),
        expressions.sum_along(0, summed),
        expressions.sum_along(1, summed),
        expressions.softmax(rows),
        expressions.layer_norm(rows),
        expressions.gray_scott(rows // 2),
    ]


def _fitting(size: int, most: int) -> int:
    """The size, halved until it fits.

    >>> _fitting(8192, 5792)
    4096
    """
    while size > most:
        size //= 2
    return size


def everything() -> Any:
    """The public namespace, whose names the expressions use."""
    return importlib.import_module("treadle")


class Bench:
    """Measurements on a device, beside the peers that are installed.

    PyTorch is a peer on the CPU, and on CUDA of every device of that card.
    """

    def __init__(self, suite: str, device: Device) -> None:
        self.suite = suite
        self.device = device
        self.numpy = device.traits.host_memory
        self.torch_device = "cpu" if self.numpy else "cuda"
        self.torch = installed("torch") if self.numpy else None
        if device.kind == "discrete" and "nvidia" in device.vendor.lower():
            self.torch = torch_on_cuda()

    # --- whole expressions -----------------------------------------------------------------------

    def speed(self, one: Expression) -> list[Figure]:
        """An expression's rate beside the best copy of its first array."""
        arrays = one.arrays()
        tensors = [asarray(array, device=self.device) for array in arrays]
        check(one, tensors, arrays)
        ours, *copies = self._seconds(
            lambda: one.compute(everything(), *tensors).realize(), *self._copies(arrays, tensors)
        )
        notes: list[str] = []
        peers = list(self._peers(one, arrays, notes))
        return [
            Figure(
                self.suite, one.name, "GB/s", one.nbytes / ours / 1e9, None, True,
                "copy", 2 * arrays[0].nbytes / min(copies) / 1e9, True, "; ".join(notes),
                tuple((name, one.nbytes / took / 1e9) for name, took in peers), ours,
            )
        ]  # fmt: skip

    def _copies(self, arrays: Sequence[Any], tensors: Sequence[Tensor]) -> list[Run]:
        copies: list[Run] = [lambda: tensors[0].copied().realize()]
        if self.numpy:
            target = np.empty_like(arrays[0])
            copies.append(lambda: np.copyto(target, arrays[0]))
        return copies

    def _seconds(self, *runs: Run) -> list[float]:
        if self.device.kind == "discrete":
            return device_seconds(self.device, *runs)
        return wall_seconds(self.device.synchronize, *runs)

    def _peers(
        self, one: Expression, arrays: Sequence[np.ndarray[Any, Any]], notes: list[str]
    ) -> Iterator[tuple[str, float]]:
        if self.numpy:
            yield "NumPy", seconds(lambda: one.compute(np, *arrays), repeats=3, warm=1)
        torch = self.torch
        if torch is None:
            return
        tensors = [torch.asarray(array, device=self.torch_device) for array in arrays]

        def eager(*tensors: Any) -> Any:
            return one.torch(torch, *tensors)

        if self.torch_device == "cpu":
            yield "PyTorch", seconds(lambda: eager(*tensors), repeats=5, warm=2)
            return
        yield "PyTorch", torch_seconds(torch, lambda: eager(*tensors))[0]
        try:
            compiled = torch.compile(eager)
            compiled(*tensors)
        except Exception as error:  # noqa: BLE001 - it needs a compiler, and fails in many ways
            notes.append(f"torch.compile failed: {type(error).__name__}")
            return
        yield "torch.compile", torch_seconds(torch, lambda: compiled(*tensors))[0]

    # --- what an operation costs -----------------------------------------------------------------

    def costs(self, repeats: int) -> list[Figure]:
        """Host times of small operations."""
        return [self._each(repeats), self._chain(repeats), self._read(repeats)]

    def _each(self, repeats: int) -> Figure:
        x: Any = ones(_SMALL, device=self.device)

        def each() -> Any:
            y = x
            for _ in range(_OPERATIONS):
                y = (y + 1.0).realize()
            return y

        assert (each().numpy() == 1 + _OPERATIONS).all()
        ours = host_seconds(each, self.device.synchronize, 1, repeats) / _OPERATIONS

        def plain(x: Any) -> None:
            y = x
            for _ in range(_OPERATIONS):
                y = y + 1.0

        name = "small operation, realized at once: host time"
        return self._microseconds(name, ours, plain, repeats, _OPERATIONS)

    def _chain(self, repeats: int) -> Figure:
        x: Any = ones(_SMALL, device=self.device)

        def chain(x: Any) -> Any:
            y = x
            for _ in range(_CHAIN // 2):
                y = (y + 1.0) * 0.5
            return y

        assert np.allclose(chain(x).numpy(), 1.0)
        chain(x).realize()
        ours = (
            host_seconds(lambda: chain(x).realize(), self.device.synchronize, 1, repeats) / _CHAIN
        )
        name = f"operation of a chain of {_CHAIN}, built and scheduled: host time"
        return self._microseconds(name, ours, chain, repeats, _CHAIN)

    def _read(self, repeats: int) -> Figure:
        x: Any = ones(1, device=self.device)
        assert (x + 1.0).item() == 2.0
        ours = seconds(lambda: (x + 1.0).item(), inner=50, repeats=repeats)
        return self._microseconds(
            "one small operation with its read", ours, lambda x: (x + 1.0).item(), repeats, 1, 1
        )

    def _microseconds(
        self, name: str, ours: float, plain: Callable[[Any], object], repeats: int,
        operations: int, size: int = _SMALL,
    ) -> Figure:  # fmt: skip
        peers: list[tuple[str, float]] = []
        if self.numpy:
            x = np.ones(size, np.float32)
            peers.append(("NumPy", host_seconds(lambda: plain(x), lambda: None, 1, repeats)))
        if (torch := self.torch) is not None:
            y = torch.ones(size, device=self.torch_device)
            wait = (lambda: None) if self.torch_device == "cpu" else torch.cuda.synchronize
            peers.append(("PyTorch", host_seconds(lambda: plain(y), wait, 1, repeats)))
        others = [(peer, 1e6 * took / operations) for peer, took in peers]
        first = others.pop() if others else ("", None)
        return Figure(
            self.suite, name, "µs", 1e6 * ours, peer=first[0], peers=first[1], others=tuple(others)
        )

    # --- memory ----------------------------------------------------------------------------------

    def memory(self, count: int) -> list[Figure]:
        """What an expression takes at most beyond its inputs."""
        data = np.random.default_rng(0).random((4, count), np.float32)
        tensors: list[Any] = [asarray(array, device=self.device) for array in data]
        found: list[float] = []

        def run() -> None:
            a, b, c, d = tensors
            found.append(sum_of((a * b + c) * d).item())

        ours = peak_beyond(self.device, run)
        a, b, c, d = data.astype(np.float64)
        right = float(((a * b + c) * d).sum())
        _compare("((a * b + c) * d).sum()", np.asarray(found[0]), np.asarray(right))
        peer, peers = "", None
        if self.numpy:
            a, b, c, d = data
            peer, peers = "NumPy", _traced(lambda: ((a * b + c) * d).sum()) / 2**20
        return [
            Figure(
                self.suite, "peak memory of ((a * b + c) * d).sum() beyond its inputs",
                "MiB", ours / 2**20, peer=peer, peers=peers,
            )
        ]  # fmt: skip


def peak_beyond(device: Device, run: Run) -> int:
    """The most bytes that arrays take while `run` runs, beyond those before."""
    before = int(device.memory_stats()["used"])
    with profile() as measured:
        run()
    return measured.memory.get(device.id, before) - before


def _traced(run: Run) -> int:
    """The same for NumPy, which tells Python's own tracer."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check(
    one: Expression, tensors: Sequence[Tensor], arrays: Sequence[np.ndarray[Any, Any]]
) -> None:
    """TreadleError unless an expression's result is NumPy's in float64, but for rounding."""
    right = one.compute(np, *(array.astype(np.float64) for array in arrays))
    _compare(one.name, one.compute(everything(), *tensors).numpy(), np.asarray(right))


def _compare(name: str, found: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> None:
    error = float(np.linalg.norm(found - right) / np.linalg.norm(right))
    if found.shape != right.shape or not error <= _TOLERANCE:
        raise TreadleError(
            f"{name} is wrong: shape {found.shape} where NumPy has {right.shape}, relative error "
            f"{error:.1e} where {_TOLERANCE:g} is allowed. It was not timed; please report this"
        )
