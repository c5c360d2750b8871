"""`python -m benchmarks.host [DEVICE …]`: every test that needs a GPU, and then the benchmarks.

Each step is a process of its own with a time limit, and its output a file in `benchmarks/results`
named for the step and the card. A step that fails or takes too long does not keep the others from
running.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import treadle as td
from benchmarks import harness
from benchmarks.__main__ import DEVICES

ROOT = Path(__file__).resolve().parent.parent
_WORKERS = ("-n", str(min(8, os.cpu_count() or 1))) if importlib.util.find_spec("xdist") else ()
# Another plugin of that name does not get on with several workers.
_PYTEST = ("-m", "pytest", "-q", "-p", "no:benchmark", *_WORKERS)
# pytest's expressions for the device suite's tests on one device; without the bracket or dash, the
# folder cuda_cpp would match "cuda".
_CHOSEN = {
    "cuda": "[cuda or -cuda", "webgpu": "([webgpu or -webgpu) and not webgpu-gl",
    "dawn": "[dawn or -dawn",
}  # fmt: skip
_NOTHING_COLLECTED = 5  # pytest's exit status


@dataclass(frozen=True)
class Step:
    """A Python process to run."""

    name: str
    arguments: tuple[str, ...]
    seconds: int  # at most
    environment: tuple[tuple[str, str], ...] = ()  # variables beside those of this process


def steps(
    devices: list[str], card: str, *, tests: bool, benchmarks: bool, commit: str = ""
) -> Iterator[Step]:
    """What there is to run, the tests first."""
    if tests:
        for name in devices:
            yield Step(f"device-suite-{name}", (*_PYTEST, "tests/device", "-k", _CHOSEN[name]), 300)
        if "cuda" in devices:
            suite = (*_PYTEST, "tests/device", "-k", _CHOSEN["cuda"])
            route = (("TREADLE_CUDA_LANGUAGE", "cuda"),)
            yield Step("device-suite-cuda-through-nvrtc", suite, 300, route)
        yield Step("limits-suite", (*_PYTEST, "tests/limits"), 300)
        yield Step("fuzz-suite", (*_PYTEST, "tests/fuzz"), 400)
        yield Step("demo", ("-m", "treadle.cli", "demo"), 120)
    if benchmarks:
        for name in devices:
            given = ("--commit", commit) if commit else ()
            command = ("-m", "benchmarks", name, "--name", f"{name}-{card}", *given)
            yield Step(f"benchmarks-{name}", command, 900)


def short(card: str) -> str:
    """A card's name as a part of a file's name.

    >>> short("NVIDIA H100 80GB HBM3"), short("NVIDIA GeForce RTX 4090")
    ('h100', 'geforce-rtx-4090')
    """
    words = re.findall(r"[a-z0-9-]+", card.lower())
    return "-".join(w for w in words if not re.fullmatch(r"nvidia|\d+gb|hbm\w*|pcie", w))


def run(step: Step, about: str, log: Path) -> str:
    """Run a step, its output going to `log`. What became of it, in a word or two."""
    began = time.perf_counter()
    with log.open("w") as file:
        file.write(f"{about}\n")
        file.flush()
        process = subprocess.Popen(
            [sys.executable, *step.arguments],
            cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | dict(step.environment),
        )  # fmt: skip
        try:
            status = process.wait(step.seconds)
            outcome = "ok" if status in (0, _NOTHING_COLLECTED) else f"FAILED with {status}"
        except subprocess.TimeoutExpired:
            outcome = f"STOPPED after {step.seconds} s"
        finally:
            with contextlib.suppress(ProcessLookupError):  # its workers, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"{outcome}, {time.perf_counter() - began:.0f} s"


def main() -> None:
    """Run all steps; the exit status is 1 if one failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.host",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("device", nargs="*", choices=[*DEVICES, []], help="which; all if none")
    parser.add_argument("--no-tests", action="store_true")
    parser.add_argument("--no-benchmarks", action="store_true")
    parser.add_argument("--commit", default="", help="of the code, in a copy without git")
    chosen = parser.parse_args()
    devices = chosen.device or [name for name in DEVICES if td.is_available(name)]
    found = "\n".join(f"{d.id}: {d.name}, {d.driver}" for d in td.devices())
    about = f"{harness.machine()}\n{found}\n"
    print(about)
    if not devices:
        sys.exit(f"none of {', '.join(DEVICES)} is there")
    card = short(harness.card() or td.device(devices[0]).name)
    harness.RESULTS.mkdir(exist_ok=True)
    outcomes = []
    for step in steps(
        devices,
        card,
        tests=not chosen.no_tests,
        benchmarks=not chosen.no_benchmarks,
        commit=chosen.commit,
    ):
        log = harness.RESULTS / f"{step.name}-{card}.log"
        outcomes.append(run(step, about, log))
        last = log.read_text(errors="replace").splitlines()[-15:]
        print(f"--- {step.name}: {outcomes[-1]}; the end of {log.relative_to(ROOT)}:")
        print("\n".join(last), flush=True)
    sys.exit(any(not outcome.startswith("ok") for outcome in outcomes))


if __name__ == "__main__":
    main()
