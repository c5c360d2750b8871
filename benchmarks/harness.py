"""How a figure is taken, printed and kept."""

from __future__ import annotations

import json
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
        if self.target is None:
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


def medians(runs: list[list[Figure]]) -> list[Figure]:
    """Of several runs, each figure's middle one by what is held against its target (a machine that
    others share is never still for long)."""
    together = zip(*runs, strict=True)
    return [sorted(same, key=lambda figure: figure.measure)[len(runs) // 2] for same in together]


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
    import os

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
