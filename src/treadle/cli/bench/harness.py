"""How a figure is taken and written: records, medians, clocks of hosts and devices."""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.runtime.events import Event

BATCH = 5e-3  # seconds between two events
_WIDTH = 180  # of a table in a file
_FILLER, _FILLERS = 1 << 28, 120  # bytes to copy, and how often: 10 ms of a large card
_LONG = 0.2  # seconds from which on a run is not repeated often


@dataclass(frozen=True)
class Figure:
    """One measured figure, its peer's in the same run, and what was aimed at.

    `target` is of `ours` itself, or of ours / peer where `ratio` is set. `higher` says which way
    is better. `others` are further peers, by name, in the same unit. `seconds` is the time that a
    rate was taken from, and `roofline` the part of the device's own ceiling that was reached.
    """

    suite: str
    name: str
    unit: str
    ours: float
    target: float | None = None
    higher: bool = False
    peer: str = ""
    peers: float | None = None
    ratio: bool = False
    note: str = ""
    others: tuple[tuple[str, float], ...] = ()
    seconds: float | None = None
    roofline: float | None = None

    @property
    def measure(self) -> float:
        """The number that is held against the target."""
        return self.ours / self.peers if self.ratio and self.peers else self.ours

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None or (self.ratio and not self.peers):
            return None
        return self.measure >= self.target if self.higher else self.measure <= self.target


Run = Callable[[], object]


def seconds(
    run: Run, wait: Run = lambda: None, *, inner: int = 1, repeats: int = 7, warm: int = 2
) -> float:
    """The median time of one `run`, over `repeats` batches of `inner`, each ended by `wait`."""
    for _ in range(warm):
        run()
    wait()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(inner):
            run()
        wait()
        times.append((time.perf_counter() - began) / inner)
    return statistics.median(times)


def host_seconds(run: Run, wait: Run, count: int, repeats: int = 31) -> float:
    """The median host time of one `run`, of `count` in a row; what the device then still has to do
    is left out."""
    times = []
    for _ in range(repeats):
        wait()
        began = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - began) / count)
    wait()
    return statistics.median(times)


def device_seconds(device: Device, *runs: Run) -> list[float]:
    """The median device time of each of `runs`, in turns, between events around a batch of it.

    CUDA starts what it is given at once, and would wait for the host between short kernels: so it
    is busy with something else while the host gets ahead."""
    stream = device.default_stream
    filler = device.pool.take(_FILLER) if device.traits.starts_at_once else None

    def batch(run: Run, count: int) -> float:
        start, end = Event(), Event()
        if filler is not None:
            for _ in range(_FILLERS):
                stream.handle.copy(filler, 0, filler, _FILLER // 2, _FILLER // 2)
        start.record(stream)
        for _ in range(count):
            run()
        end.record(stream)
        return start.elapsed(end) / count

    try:
        return _interleaved(batch, runs)
    finally:
        if filler is not None:
            device.pool.give(filler)


def torch_seconds(torch: Any, *runs: Run) -> list[float]:
    """The same for PyTorch, with its events."""
    filler = torch.empty(_FILLER, dtype=torch.uint8, device="cuda")

    def batch(run: Run, count: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(_FILLERS):
            filler[_FILLER // 2 :].copy_(filler[: _FILLER // 2])
        start.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / count / 1e3

    return _interleaved(batch, runs)


def wall_seconds(wait: Run, *runs: Run) -> list[float]:
    """The same by the host's clock, each batch ended by `wait`."""

    def batch(run: Run, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        return (time.perf_counter() - began) / count

    return _interleaved(batch, runs)


def _interleaved(batch: Callable[[Run, int], float], runs: tuple[Run, ...]) -> list[float]:
    """Medians over batches of some milliseconds. Clocks and other load change with time;
    interleaved, they change for all."""
    once = [(batch(run, 2), batch(run, 1))[1] for run in runs]
    counts = [min(max(int(BATCH / max(one, 1e-9)), 5 if one < BATCH else 1), 200) for one in once]
    rounds = 9 if max(once) < _LONG else 3
    times = [[batch(run, n) for run, n in zip(runs, counts, strict=True)] for _ in range(rounds)]
    return [statistics.median(of_one) for of_one in zip(*times, strict=True)]


def medians(figures: list[Figure]) -> list[Figure]:
    """Of the figures with one name, the middle one by what is held against its target (a machine
    that others share is never still for long)."""
    same: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        same.setdefault((figure.suite, figure.name), []).append(figure)
    return [sorted(of_one, key=lambda f: f.measure)[len(of_one) // 2] for of_one in same.values()]


def torch_on_cuda() -> Any:
    """PyTorch, if it is installed and has a GPU, else None."""
    torch = installed("torch")
    return torch if torch and torch.cuda.is_available() else None


def installed(name: str) -> Any:
    """A module that may serve as a peer, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def about_device(spec: str) -> dict[str, Any]:
    """The device measured, and its peer's version, for a result file."""
    device, torch = find_device(spec), torch_on_cuda()
    found = {spec: f"{device.name} ({device.driver})"}
    return found | ({"torch": torch.__version__} if torch else {})


def machine() -> str:
    """The processor that the figures are of."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores"


def card() -> str:
    """The NVIDIA card's name, or ""."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip()


def content(figures: list[Figure], about: dict[str, Any]) -> dict[str, Any]:
    """What a result file says."""
    return {"date": date.today().isoformat(), **about, "figures": [asdict(f) for f in figures]}


def show(figures: list[Figure]) -> None:
    """A table on the screen, or in a file."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(table(figures))


def table(figures: list[Figure]) -> Table:
    """The figures for a screen."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    shown.add_column("figure")
    for heading in ("treadle", "time", "beside", "ratio"):
        shown.add_column(heading, justify="right")
    shown.add_column("others")
    with_targets = any(figure.target is not None for figure in figures)
    if with_targets:
        shown.add_column("target")
    for figure in figures:
        shown.add_row(*_cells(figure), *([_target(figure)] if with_targets else []))
    return shown


def _cells(figure: Figure) -> list[str]:
    peers, unit = figure.peers, figure.unit
    amount = readable_seconds if unit == "s" else number
    others = ", ".join(f"{name} {amount(value)}" for name, value in figure.others)
    return [
        f"{figure.suite}: {figure.name}" + (f" ({figure.note})" if figure.note else ""),
        amount(figure.ours) if unit == "s" else f"{number(figure.ours)} {unit}",
        "" if figure.seconds is None else readable_seconds(figure.seconds),
        f"{figure.peer} {amount(peers)}" if peers else "",
        f"{figure.ours / peers:.2f}" if peers else "",
        others,
    ]


def _target(figure: Figure) -> str:
    if figure.target is None:
        return ""
    is_time = figure.unit == "s" and not figure.ratio
    target = (readable_seconds if is_time else number)(figure.target)
    verdict = {True: " [green]ok[/]", False: " [red]MISSED[/]", None: ""}[figure.met]
    return f"{'≥' if figure.higher else '≤'} {target}{'x' * figure.ratio}{verdict}"


def number(value: float | None) -> str:
    """Three digits are more than a measurement is good for.

    >>> number(0.21345), number(2871.3), number(0.0)
    ('0.213', '2870', '0')
    """
    rounded = float(f"{value or 0.0:.3g}")
    return f"{rounded:.0f}" if abs(rounded) >= 1000 else f"{rounded:g}"


def readable_seconds(value: float) -> str:
    """A time in the unit that fits it.

    >>> readable_seconds(0.00412), readable_seconds(3.1e-6)
    ('4.12 ms', '3.1 µs')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value * 1e6)} µs"
