"""How a figure is taken, printed and kept."""

from __future__ import annotations

import json
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

RESULTS = Path(__file__).parent / "results"
BATCH = 5e-3  # seconds between two events


@dataclass(frozen=True)
class Figure:
    """One measured figure, its peer's in the same run, and what was aimed at.

    `target` is of `ours` itself, or of ours / peer where `ratio` is set. `higher` says which way
    is better.
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


def seconds(
    run: Callable[[], object],
    wait: Callable[[], object] = lambda: None,
    *,
    inner: int = 1,
    repeats: int = 7,
    warm: int = 2,
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


def host_seconds(run: Callable[[], object], wait: Callable[[], object], count: int) -> float:
    """The median host time of one `run`, of `count` in a row; what the device then still has to do
    is left out."""
    times = []
    for _ in range(31):
        wait()
        began = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - began) / count)
    wait()
    return statistics.median(times)


def device_seconds(device: Any, *runs: Callable[[], object]) -> list[float]:
    """The median device time of each of `runs`, in turns, between events around a batch of it."""
    from treadle import Event

    stream = device.default_stream

    def batch(run: Callable[[], object], count: int) -> float:
        start, end = Event(), Event()
        start.record(stream)
        for _ in range(count):
            run()
        end.record(stream)
        return start.elapsed(end) / count

    return _in_turns(batch, runs)


def torch_seconds(torch: Any, *runs: Callable[[], object]) -> list[float]:
    """The same for PyTorch, with its events."""

    def batch(run: Callable[[], object], count: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / count / 1e3

    return _in_turns(batch, runs)


def _in_turns(
    batch: Callable[[Callable[[], object], int], float], runs: tuple[Callable[[], object], ...]
) -> list[float]:
    """Medians over batches of some milliseconds. Clocks and neighbours change with time, and in
    turns they change for all."""
    for run in runs:
        batch(run, 2)
    counts = [min(max(int(BATCH / max(batch(run, 3), 1e-9)), 5), 200) for run in runs]
    times = [[batch(run, n) for run, n in zip(runs, counts, strict=True)] for _ in range(9)]
    return [statistics.median(of_one) for of_one in zip(*times, strict=True)]


def torch_on_cuda() -> Any:
    """PyTorch, if it is installed and has a GPU, else None."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def about_device(spec: str) -> dict[str, Any]:
    """The device measured, and its peer's version, for a result file."""
    import treadle as td

    device, torch = td.device(spec), torch_on_cuda()
    found = {spec: f"{device.name} ({device.driver})"}
    return found | ({"torch": torch.__version__} if torch else {})


def medians(figures: list[Figure]) -> list[Figure]:
    """Of the figures with one name, the middle one by what is held against its target (a machine
    that others share is never still for long)."""
    same: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        same.setdefault((figure.suite, figure.name), []).append(figure)
    return [sorted(of_one, key=lambda f: f.measure)[len(of_one) // 2] for of_one in same.values()]


def machine() -> str:
    """The processor (and card) that the figures are of."""
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


def show(figures: list[Figure]) -> None:
    """A table on the screen."""
    print(f"{'figure':58} {'ours':>10} {'peer':>26} {'ratio':>7} {'target':>9}")
    for f in figures:
        ours = f"{f.ours:.4g} {f.unit}"
        peer = f"{f.peer} {f.peers:.4g}" if f.peers else ""
        ratio = f"{f.ours / f.peers:.2f}" if f.peers else ""
        sign = "≥" if f.higher else "≤"
        target = "" if f.target is None else f"{sign} {f.target:g}{'x' if f.ratio else ''}"
        verdict = {True: "ok", False: "MISSED", None: ""}[f.met]
        print(
            f"{f.suite + ': ' + f.name:58} {ours:>10} {peer:>26} {ratio:>7} {target:>9} {verdict}"
        )


def keep(figures: list[Figure], name: str, about: dict[str, Any]) -> Path:
    """The figures as JSON under `benchmarks/results/`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"date": date.today().isoformat(), **about, "figures": [asdict(f) for f in figures]}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
