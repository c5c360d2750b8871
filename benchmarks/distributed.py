"""Several processes: collectives beside MPI's and NCCL's own, and data parallel training of a small
language model beside one process of it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import treadle as td
from benchmarks.harness import Figure, about_device
from treadle.cli.bench import distributed
from treadle.distributed.launching import Launch, Shown, run

__all__ = ["about", "measurements"]

about = about_device
_REDUCED = 0.95  # of NCCL's own rate, from so many bytes on
_LARGE = ("16 MiB", "64 MiB")
_SPEEDUP = {"cpu": 1.8, "cuda": 1.84}  # of two processes


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device; nothing where there is only one GPU."""
    if spec != "cpu" and len([each for each in td.devices() if each.id.startswith(spec)]) < 2:
        return []
    parts = distributed.measurements(td.device(spec))
    return [
        *(functools.partial(_aimed, part, f"distributed-{spec}") for part in parts),
        functools.partial(_data_parallel, spec),
    ]


def _aimed(part: Callable[[], list[Figure]], suite: str) -> list[Figure]:
    found = []
    for each in part():
        is_aimed = each.peer == "NCCL" and each.name.startswith("all_reduce")
        aim = _REDUCED if is_aimed and each.name.endswith(_LARGE) else None
        found.append(dataclasses.replace(each, suite=suite, target=aim, ratio=aim is not None))
    return found


def _data_parallel(spec: str) -> list[Figure]:
    alone, both = _launched(spec, 1), _launched(spec, 2)
    rates = [each["size"] * each["tokens"] / each["seconds"] for each in (alone, both)]
    suite, name = f"distributed-{spec}", "small language model, data parallel, 2 processes"
    return [
        Figure(
            suite, name, "tokens/s", rates[1], _SPEEDUP[spec], True, "1 process", rates[0], True,
            seconds=both["seconds"],
        ),
        Figure(
            suite, f"{name}: processor", "s", both["processor"], peer="1 process",
            peers=alone["processor"],
        ),
    ]  # fmt: skip


def _launched(spec: str, count: int) -> dict[str, Any]:
    """What `data_parallel.py` writes. On the CPU each process has one core."""
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="treadle-") as folder:
        file = Path(folder) / "figures.json"
        script = ["-m", "benchmarks.data_parallel", str(file)]
        variables = {"TREADLE_DEVICE": spec, "TREADLE_CPU_THREADS": "1"}
        backend = "mpi" if spec == "cpu" else "nccl"
        launch = Launch(count, script, backend, variables=variables)
        if run(launch, said.append, Shown(sys.stderr, sys.stderr)):
            raise RuntimeError("; ".join(said))
        found: dict[str, Any] = json.loads(file.read_text())
    return found
