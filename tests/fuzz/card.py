"""`python -m tests.fuzz.card --devices cuda:0,webgpu:0 --seconds 300 -n 14`: kernels for cards.

Processes draw kernels, in Python and in CUDA C++, run each on the cpu and on the devices, and
compare what they wrote to the last bit: everything drawn has one exact value. A kernel on which a
device differs, or fails, is reduced on the spot and printed, with what the kernel language's
interpreter says. The last lines count. The exit status is 1 if anything differed.

A kernel is known by its family and seed: `--family python --seed 17 --kernels 1 -n 1` draws it
again.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import queue
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import treadle as td
from tests.fuzz.cases import FAMILIES, Case, PythonCase
from tests.fuzz.reducing import reduced_tape, reduced_text
from tests.fuzz.running import Arrays, differences, interpreted
from treadle.core.errors import CompileError, UnsupportedOnTarget

SHORTEST, LONGEST = 100, 500  # bytes of a tape


@dataclass(frozen=True)
class Job:
    """What one process does: every `step`th seed from `first` on."""

    devices: tuple[str, ...]
    families: tuple[str, ...]
    first: int
    step: int
    kernels: int | None
    until: float
    reduce_seconds: float


@dataclass
class Outcome:
    """What came of one kernel on the devices."""

    agreed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)  # device: in words


def tape_of(family: str, seed: int) -> bytes:
    """The tape that a seed stands for."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    return rng.integers(0, 256, rng.integers(SHORTEST, LONGEST), dtype=np.uint8).tobytes()


def compare(case: Case, devices: tuple[str, ...]) -> Outcome:
    """Run a kernel on the cpu and on devices."""
    outcome = Outcome()
    expected = case.run(td.device("cpu"))
    for name in devices:
        try:
            found = case.run(td.device(name))
        except UnsupportedOnTarget:
            outcome.refused.append(name)
            continue
        except Exception as error:
            last = traceback.format_exception_only(error)[-1].strip()
            outcome.wrong[name] = f"{type(error).__name__}: {last[:2000]}"
            continue
        wrong = "; ".join(differences(expected, found))
        if wrong:
            outcome.wrong[name] = wrong
        else:
            outcome.agreed.append(name)
    return outcome


def still_wrong(case: Case, device: str, kind: str) -> bool:
    """Whether a smaller kernel differs on a device, or fails there, as the larger did."""
    try:
        found = compare(case, (device,)).wrong.get(device)
    except Exception:  # not a kernel at all
        return False
    return found is not None and _kind(found) == kind


def _kind(words: str) -> str:
    first = words.split(":")[0]
    return first if first.endswith("Error") else "differs"


def reduced(family: str, tape: bytes, device: str, kind: str, seconds: float) -> Case:
    """The smallest kernel found in that time with the fault."""
    make = FAMILIES[family]
    half = seconds / 2
    tape = reduced_tape(tape, lambda t: still_wrong(make(t), device, kind), half)
    case = make(tape)
    text = reduced_text(case.text, lambda t: still_wrong(case.with_text(t), device, kind), half)
    return case.with_text(text)


def report(family: str, seed: int, outcome: Outcome, seconds: float) -> str:
    """A kernel on which devices differ, reduced on the first of them."""
    device, words = next(iter(outcome.wrong.items()))
    case = reduced(family, tape_of(family, seed), device, _kind(words), seconds)
    lines = [f"=== {family}, seed {seed}"]
    lines += [f"{name}: {wrong}" for name, wrong in outcome.wrong.items()]
    now = compare(case, (device,)).wrong.get(device, "nothing")
    lines += [f"--- reduced for {device}, where it gives {now}", str(case).rstrip()]
    if isinstance(case, PythonCase):
        lines.append(f"--- the interpreter and the cpu {_arbitrated(case)}")
    return "\n".join(lines)


def _arbitrated(case: PythonCase) -> str:
    right: Arrays = interpreted(case.program, case.kernel)
    wrong = "; ".join(differences(right, case.run(td.device("cpu"))))
    return f"differ: {wrong}" if wrong else "agree"


def work(job: Job, results: Any, at: Any, place: int) -> None:
    """The process: puts ("count", Counter) and ("report", text) into the queue, at last None.
    `at[place]` says which seed it is at, for whoever finds the process dead."""
    faulthandler.enable()  # what a process that dies was at
    counts: Counter[str] = Counter()
    seed = job.first
    done = 0
    while time.time() < job.until and (job.kernels is None or done < job.kernels):
        family = job.families[done % len(job.families)]
        at[place] = seed
        try:
            outcome = compare(FAMILIES[family](tape_of(family, seed)), job.devices)
            counts[f"{family} kernels"] += 1
            counts.update(f"{name} agreed" for name in outcome.agreed)
            counts.update(f"{name} refused" for name in outcome.refused)
            counts.update(f"{name} WRONG" for name in outcome.wrong)
            if outcome.wrong:
                results.put(("report", report(family, seed, outcome, job.reduce_seconds)))
        except CompileError:  # what no device may run, such as a barrier that not all surely reach
            counts["kernels refused on the cpu"] += 1
        except Exception:
            counts["kernels without a result on the cpu"] += 1
            text = traceback.format_exc()
            results.put(("report", f"=== {family}, seed {seed}: no result on the cpu\n{text}"))
        seed += job.step
        done += 1
        if done % 20 == 0:
            results.put(("count", counts))
            counts = Counter()
    results.put(("count", counts))
    results.put(None)


def main() -> None:
    """Start the processes, print what they find, and count."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.card",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--devices", default="", help="cuda:0,webgpu:0,… ; all but the cpu if not")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="all if none")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kernels", type=int, help="at most so many in each process")
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel")
    parser.add_argument("--reduce-seconds", type=float, default=30.0)
    parser.add_argument("-n", type=int, default=max((os.cpu_count() or 2) - 2, 1), dest="count")
    chosen = parser.parse_args()
    names = tuple(chosen.devices.split(",")) if chosen.devices else _others()
    families = tuple(chosen.family or FAMILIES)
    print("\n".join(_described(name) for name in ("cpu", *names)), flush=True)
    until = time.time() + chosen.seconds
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    jobs = [
        Job(names, families, chosen.seed + k, chosen.count, chosen.kernels, until,
            chosen.reduce_seconds)
        for k in range(chosen.count)
    ]  # fmt: skip
    at = context.Array("q", chosen.count)
    processes = [
        context.Process(target=work, args=(job, results, at, k)) for k, job in enumerate(jobs)
    ]
    began = time.time()
    for process in processes:
        process.start()
    counts = _gathered(results, processes)
    for place, process in enumerate(processes):
        process.join()
        if process.exitcode:
            print(f"=== a process ended with {process.exitcode} at seed {at[place]}")
            counts["processes that ended WRONG"] += 1
    for line in sorted(counts):
        print(f"{line}: {counts[line]}")
    kernels = sum(count for line, count in counts.items() if line.endswith(" kernels"))
    wrong = sum(count for line, count in counts.items() if line.endswith("WRONG"))
    wrong += counts["kernels without a result on the cpu"]
    print(
        f"{kernels} kernels in {time.time() - began:.0f} s, seeds from {chosen.seed}: {wrong} wrong"
    )
    sys.exit(bool(wrong))


def _gathered(results: Any, processes: list[Any]) -> Counter[str]:
    """What the processes count, until all have ended; reports are printed as they come."""
    counts: Counter[str] = Counter()
    left = len(processes)
    while left:
        try:
            found = results.get(timeout=1.0)
        except queue.Empty:
            if any(process.is_alive() for process in processes):
                continue
            break
        if found is None:
            left -= 1
        elif found[0] == "count":
            counts.update(found[1])
        else:
            print(found[1], flush=True)
    return counts


def _others() -> tuple[str, ...]:
    return tuple(n for n in ("cuda:0", "webgpu:0", "dawn:0") if td.is_available(n.split(":")[0]))


def _described(name: str) -> str:
    device = td.device(name)
    return f"{device.id}: {device.name}, {device.driver}"


if __name__ == "__main__":
    main()
