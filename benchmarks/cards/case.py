"""One computation on a card, beside PyTorch's in the same run: recorded launches by the card's own
clock, on inputs that are in no cache.

A result is compared with one in float64 before anything is timed. Both libraries' launches are
recorded as graphs and replayed in turns, so that neither's host is in the figure; what waits for
the host itself is timed by calls.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, torch_on_cuda, wall_seconds
from treadle.tuning.clock import Batch

Arrays = Sequence[np.ndarray[Any, Any]]
Run = Callable[[], Any]

_UNCACHED = 128 << 20  # bytes of inputs, one set after the other
_MOST_SETS = 16
_BATCH = 2e-3  # seconds of replayed launches between two events
_MOST = 64
_ROUNDS = 7
_SCALES = {"TFLOP/s": 1e12, "GB/s": 1e9, "M/s": 1e6}


@dataclass(frozen=True)
class Case:
    """`draw` makes the inputs from a random generator. `ours` and `theirs` (which gets PyTorch)
    give what is timed, from tensors of the inputs: a function whose results are computed at each
    call. `right` has PyTorch and its tensors, of the first of the results, in float64.

    `work` is what `unit` counts; "s" is for times. Floats are in `dtype` if that is given, and
    float32 products as exact as `precision` says. `targets` are of PyTorch's speed, by device.
    `waits` says that a call waits for the host. `more` are further peers, by what they are called.
    """

    name: str
    draw: Callable[[np.random.Generator], Arrays]
    ours: Callable[..., Run]
    theirs: Callable[..., Run]
    right: Callable[..., Any]
    work: float = 1.0
    unit: str = "TFLOP/s"
    dtype: str = ""
    precision: str = "highest"
    bound: float = 2e-3
    targets: dict[str, float] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cuda",)
    waits: bool = False
    more: dict[str, Callable[..., Run]] = field(default_factory=dict)


def simple(function: Callable[..., Any]) -> Callable[..., Run]:
    """`ours` of a function of tensors."""

    def of(*tensors: Any) -> Run:
        return lambda: function(*tensors)

    return of


def measure(suite: str, device: td.Device, case: Case) -> list[Figure]:
    """A case's figure. None without PyTorch on the card."""
    torch = torch_on_cuda()
    if torch is None:
        return []
    before = td.get_float32_matmul_precision()
    td.set_float32_matmul_precision(case.precision)
    exact = case.precision == "highest"
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul_before, matmul.allow_tf32 = matmul.allow_tf32, not exact
    flags = {"enabled": cudnn.enabled, "benchmark": cudnn.benchmark, "allow_tf32": not exact}
    try:
        with td.use_device(device), cudnn.flags(**flags):
            return [_figure(suite, device, torch, case)]
    finally:
        td.set_float32_matmul_precision(before)
        matmul.allow_tf32 = matmul_before


def _figure(suite: str, device: td.Device, torch: Any, case: Case) -> Figure:
    rng = np.random.default_rng()
    first = case.draw(rng)
    size = max(sum(_bytes(array, case.dtype) for array in first), 1)
    sets = 1 if case.waits else min(max(-(-_UNCACHED // size), 1), _MOST_SETS)
    drawn = [first, *(case.draw(rng) for _ in range(sets - 1))]
    mine = [case.ours(*[_ours(a, case.dtype, device) for a in each]) for each in drawn]
    tensors = [[_theirs(torch, a, case.dtype) for a in each] for each in drawn]
    _check(case, torch, mine[0](), tensors[0])
    peers = {"PyTorch": case.theirs, **case.more}
    took = (_by_calls if case.waits else _by_graphs)(device, torch, mine, peers, tensors)
    own, first_peer = took[0], took[1]
    scale = _SCALES.get(case.unit)
    shown = [each if scale is None else case.work / scale / each for each in took]
    target = case.targets.get(device.backend)
    if scale is None and target is not None:
        target = 1 / target  # of a time
    return Figure(
        suite, case.name, case.unit, shown[0], target, scale is not None, "PyTorch", shown[1], True,
        others=tuple(zip(list(peers)[1:], shown[2:], strict=True)), seconds=own,
        note=f"{first_peer / own:.2f} of its speed",
    )  # fmt: skip


# --- inputs --------------------------------------------------------------------------------------


def _bytes(array: np.ndarray[Any, Any], dtype: str) -> int:
    return array.nbytes // 2 if dtype and array.dtype == np.float32 else array.nbytes


def _ours(array: np.ndarray[Any, Any], dtype: str, device: td.Device) -> td.Tensor:
    tensor = td.asarray(array, device=device)
    if dtype and array.dtype == np.float32:
        tensor = tensor.to(getattr(td, dtype))
    return tensor.realize()


def _theirs(torch: Any, array: np.ndarray[Any, Any], dtype: str) -> Any:
    tensor = torch.from_numpy(array).cuda()
    return tensor.to(getattr(torch, dtype)) if dtype and array.dtype == np.float32 else tensor


def _check(case: Case, torch: Any, found: Any, tensors: Sequence[Any]) -> None:
    """ValueError unless the first result is right."""
    result = found[0] if isinstance(found, tuple) else found
    right = torch.as_tensor(case.right(torch, *tensors))
    values = result.to(td.float32).numpy() if result.dtype == td.bfloat16 else result.numpy()
    if values.shape != tuple(right.shape):
        raise ValueError(f"{case.name}: shape {values.shape} where {right.shape} is right")
    wide = torch.complex128 if right.is_complex() else torch.float64
    found, right = (
        each.to(right.device, wide) for each in (torch.from_numpy(np.asarray(values)), right)
    )
    gap, norm = (float(torch.linalg.vector_norm(each)) for each in (found - right, right))
    if not gap <= case.bound * norm:
        raise ValueError(f"{case.name} is wrong: relative error {gap / max(norm, 1e-30):.1e}")


# --- clocks --------------------------------------------------------------------------------------


def _realized(found: Any) -> None:
    for each in found if isinstance(found, tuple) else (found,):
        each.realize()


def _by_calls(
    device: td.Device, torch: Any, mine: Sequence[Run], peers: dict[str, Callable[..., Run]],
    tensors: Sequence[Sequence[Any]],
) -> list[float]:  # fmt: skip
    """Seconds of a call, with what the host does for it."""

    def wait() -> None:
        device.synchronize()
        torch.cuda.synchronize()

    runs = [make(torch, *tensors[0]) for make in peers.values()]
    return wall_seconds(wait, lambda: _realized(mine[0]()), *runs)


def _by_graphs(
    device: td.Device, torch: Any, mine: Sequence[Run], peers: dict[str, Callable[..., Run]],
    tensors: Sequence[Sequence[Any]],
) -> list[float]:  # fmt: skip
    """The median seconds of recorded launches, in turns."""
    batches: list[Batch | _TorchBatch] = [
        Batch(device, lambda number: _realized(mine[number]()), len(mine)),
        *[_TorchBatch(torch, make, tensors) for make in peers.values()],
    ]
    rounds = min(batch.rounds for batch in batches)
    times = [[batch.seconds() for batch in batches] for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*times, strict=True)]


class _TorchBatch:
    """PyTorch's launches as `tuning.clock.Batch` has ours."""

    def __init__(
        self, torch: Any, make: Callable[..., Run], tensors: Sequence[Sequence[Any]]
    ) -> None:
        self._torch = torch
        self._stream = torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):  # where a backward pass goes, too
            self._runs = [make(torch, *each) for each in tensors]
            for _ in range(2):
                self._runs[0]()
        self._count = len(self._runs)
        self._graph = self._recorded(range(self._count))
        self.seconds()
        once = self.seconds()
        count = min(max(int(_BATCH / max(once, 1e-9)), 1), _MOST)
        if count > self._count:
            self._graph = self._recorded([at % len(self._runs) for at in range(count)])
            self._count = count
            self.seconds()
        self.rounds = _ROUNDS

    def _recorded(self, numbers: Sequence[int]) -> Any:
        torch = self._torch
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            for number in numbers:
                self._runs[number]()
        return graph

    def seconds(self) -> float:
        """The seconds of a run, the mean of a batch."""
        torch = self._torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / self._count / 1e3
