"""Trials in processes of their own: what takes a process down, or does not end, costs one trial.

A stage is one machine that trials run on: `cuda-itself`, a device of treadle's, or `targets`, which
prints kernels without running them. The worker tells of each trial in a line of JSON when it begins
and when it ends; outputs lie beside, as arrays.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.cuda_corpus.cubins import MANIFEST
from tools.cuda_corpus.spec import NumPy, Printed, Trial
from tools.cuda_corpus.trials import ALL

REFERENCE, TARGETS, FILES = "cuda-itself", "targets", "files"
LIMIT = 60.0  # seconds for one trial
DEAD = 3  # the status of a worker whose context is dead, after it told which trial did that
_STEP = 0.05
Report = dict[str, Any]


def outputs_file(folder: Path, stage: str, name: str) -> Path:
    """Where a trial's outputs lie."""
    return folder / stage.replace(":", "-") / f"{zlib.crc32(name.encode()):08x}.npz"


def read_outputs(folder: Path, stage: str, name: str) -> list[NumPy]:
    """A trial's outputs."""
    with np.load(outputs_file(folder, stage, name), allow_pickle=False) as found:
        arrays = [found[f"arr_{number}"] for number in range(len(found.files))]
    return [_brains_back(array) for array in arrays]


# --- the parent ----------------------------------------------------------------------------------


def run_stage(
    stage: str, names: Sequence[str], sources: Path, cubins: Path | None, folder: Path
) -> dict[str, Report]:
    """What became of each trial."""
    (folder / stage.replace(":", "-")).mkdir(parents=True, exist_ok=True)
    reports: dict[str, Report] = {}
    left = list(names)
    while left:
        finished, broken = _one_process(stage, left, sources, cubins, folder)
        reports |= finished
        left = [name for name in left if name not in finished]
        if broken and left:
            reports[left[0]] = {"problem": broken}
            left = left[1:]
    return reports


def _one_process(
    stage: str, names: list[str], sources: Path, cubins: Path | None, folder: Path
) -> tuple[dict[str, Report], str]:
    """What a worker got done, and what ended it early."""
    with tempfile.TemporaryDirectory() as scratch:
        told, todo = Path(scratch) / "told.jsonl", Path(scratch) / "todo.json"
        told.touch()
        todo.write_text(json.dumps(names), encoding="utf-8")
        command = [sys.executable, "-m", "tools.cuda_corpus", "work", "--stage", stage]
        command += ["--todo", str(todo), "--told", str(told), "--sources", str(sources)]
        command += ["--folder", str(folder), *(["--cubins", str(cubins)] if cubins else [])]
        worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        size, since, broken = 0, time.monotonic(), ""
        while worker.poll() is None:
            time.sleep(_STEP)
            if told.stat().st_size != size:
                size, since = told.stat().st_size, time.monotonic()
            elif time.monotonic() - since > LIMIT:
                worker.kill()
                worker.wait()
                broken = f"it did not end within {LIMIT:.0f} s"
        if worker.returncode not in (0, DEAD) and not broken:
            code = worker.returncode
            word = signal.Signals(-code).name if code < 0 else f"status {code}"
            broken = f"the process ended with {word}"
        reports = {}
        for line in told.read_text(encoding="utf-8").splitlines():
            report = json.loads(line)
            reports[report.pop("name")] = report
        return reports, broken


# --- the worker ----------------------------------------------------------------------------------


def work(
    stage: str, todo: Path, told: Path, sources: Path, cubins: Path | None, folder: Path
) -> None:
    """Do the trials of a list, and tell of each."""
    trials = {trial.name: trial for trial in ALL}
    manifest: dict[str, dict[str, str]] = {}
    if stage == REFERENCE:
        from tools.cuda_corpus import reference

        assert cubins is not None, "CUDA's reference needs --cubins"
        manifest = json.loads((cubins / MANIFEST).read_text(encoding="utf-8"))
        reference.open_card()
    with told.open("a", encoding="utf-8") as out:
        for name in json.loads(todo.read_text(encoding="utf-8")):
            began = time.perf_counter()
            if stage == FILES:
                report = _parsed(sources, name)
            elif stage == TARGETS:
                report = _printed(sources, trials[name])
            else:
                report = _ran(stage, trials[name], sources, cubins, manifest, folder)
            dead = report.pop("dead", False)
            report["seconds"] = round(time.perf_counter() - began, 3)
            out.write(json.dumps({"name": name, **report}) + "\n")
            out.flush()
            if dead:
                sys.exit(DEAD)


def _parsed(sources: Path, name: str) -> Report:
    from tools.cuda_corpus import ours

    try:
        return {"kernels": list(ours.module_of(sources, name).kernels)}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of this file
        return {"problem": _words(error)}


def _printed(sources: Path, trial: Trial) -> Report:
    """What a trial's kernel is on each target: "", or why it is nothing."""
    from tools.cuda_corpus import ours

    found = {}
    for target in ours.TARGETS:
        try:
            ours.printed(sources, trial, target)
            found[target] = ""
        except Exception as error:  # noqa: BLE001
            found[target] = _words(error)
    return {"targets": found}


def _ran(
    stage: str,
    trial: Trial,
    sources: Path,
    cubins: Path | None,
    manifest: dict[str, dict[str, str]],
    folder: Path,
) -> Report:
    """Run a trial and keep its outputs."""
    prints = isinstance(trial.agreement, Printed)
    lines = ""
    try:
        with contextlib.ExitStack() as stack:
            heard = stack.enter_context(_hearing()) if prints else None
            if stage == REFERENCE:
                from tools.cuda_corpus import reference

                entry = manifest.get(trial.name, {})
                if cubins is None or "cubin" not in entry:
                    return {"problem": entry.get("problem", "there is no cubin: build them again")}
                outputs = reference.run(trial, cubins / entry["cubin"], entry["entry"])
            else:
                from tools.cuda_corpus import ours

                outputs = ours.run(sources, trial, stage)
        if heard is not None:
            lines = heard[0]
    except Exception as error:  # noqa: BLE001
        return {"problem": _words(error), "dead": _is_dead(error)}
    np.savez(outputs_file(folder, stage, trial.name), *map(_storable, outputs))
    return {"lines": lines} if prints else {}


def _is_dead(error: Exception) -> bool:
    """Whether CUDA works again only in another process."""
    words = str(error)
    return type(error).__name__ in ("DeviceLost", "CudaError") and not any(
        harmless in words for harmless in ("argument", "parameters", "no variable", "NOT_FOUND")
    )


def _words(error: Exception) -> str:
    """An error in a few lines."""
    if type(error).__module__.startswith(("treadle", "tools")):
        return f"{type(error).__name__}: {error}"[:600]
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return f"{type(error).__name__}: {error} ({where})"[:600]


@contextlib.contextmanager
def _hearing() -> Iterator[list[str]]:
    """What is printed within the block, by Python and by libraries, is in the list afterwards."""
    heard: list[str] = []
    library = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield heard
        finally:
            sys.stdout.flush()
            library.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            heard.append(file.read().decode(errors="replace"))


# NumPy's files know no bfloat16: it is stored as an integer in a struct that says so.
_BRAIN = np.dtype([("bfloat16", "u2")])


def _storable(array: NumPy) -> NumPy:
    return array.view(np.uint16).view(_BRAIN) if array.dtype.name == "bfloat16" else array


def _brains_back(array: NumPy) -> NumPy:
    if array.dtype != _BRAIN:
        return array
    import ml_dtypes

    return array.view(np.uint16).view(ml_dtypes.bfloat16)
