"""Run all stages, hold what they computed against CUDA's, and keep it as JSON."""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import treadle as td
from benchmarks.harness import RESULTS, card, machine
from tools.cuda_corpus.compare import difference, difference_of_lines
from tools.cuda_corpus.cubins import COMPILER, MANIFEST
from tools.cuda_corpus.sources import CHECKOUTS, files, read
from tools.cuda_corpus.spec import Printed, Trial
from tools.cuda_corpus.trials import ALL
from tools.cuda_corpus.work import FILES, REFERENCE, TARGETS, Report, read_outputs, run_stage

INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


def compare(chosen: argparse.Namespace) -> None:
    """`compare`: on a machine without an NVIDIA card, devices are held against the first one."""
    trials = [one for one in ALL if not one.impossible and chosen.only in one.name]
    names = [trial.name for trial in sorted(trials, key=lambda one: one.source)]
    devices = [device for device in chosen.devices.split(",") if device]
    base = REFERENCE if chosen.cubins else devices[0]
    sources = chosen.sources.resolve()
    cubins = chosen.cubins.resolve() if chosen.cubins else None
    with _folder(chosen.keep) as folder:
        sources_tried = [] if chosen.only else _compiled_files(sources)
        stages = (FILES, TARGETS, *dict.fromkeys((base, *devices)))
        found: dict[str, dict[str, Report]] = {stage: {} for stage in stages}
        with ThreadPoolExecutor(chosen.jobs) as pool:
            pending = {}
            for stage in stages:
                for part in _parts(sources_tried if stage == FILES else names, chosen.jobs):
                    future = pool.submit(run_stage, stage, part, sources, cubins, folder)
                    pending[future] = stage
            for done in as_completed(pending):
                found[pending[done]] |= done.result()
                print(f"{pending[done]}: {len(found[pending[done]])}", flush=True)
        compiler = _compiler(cubins) if cubins else ""
        content = {
            "date": date.today().isoformat(), "machine": machine(), "card": card(), "base": base,
            "compiler": compiler, "devices": devices,
            "names": {device: td.device(device).name for device in devices},
            "files": {name: one.get("problem", "") for name, one in found[FILES].items()},
            "trials": [_row(trial, base, devices, found, folder) for trial in trials],
        }  # fmt: skip
    # Messages name files: as the checkouts have them, wherever those lie.
    content = json.loads(json.dumps(content).replace(f"{sources}/", ""))
    _say(content)
    name = chosen.name or ("cuda-corpus-h200" if chosen.cubins else "cuda-corpus-without-cuda")
    if not chosen.only or chosen.name:
        path = RESULTS / f"{name}.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(path)


def _compiler(cubins: Path) -> str:
    """What made the reference's machine code."""
    manifest = json.loads((cubins / MANIFEST).read_text(encoding="utf-8"))
    return str(manifest[COMPILER]["version"])


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _parts(names: list[str], count: int) -> list[list[str]]:
    """The names in so many parts; those of one file stay together, for it is parsed once."""
    size = -(-len(names) // count) or 1
    return [names[start : start + size] for start in range(0, len(names), size)]


def _compiled_files(sources: Path) -> list[str]:
    """The `.cu` files of the checkouts that no other file includes, and what trials compile."""
    texts = {path: read(path) for path in files(sources)}
    included = {
        Path(os.path.normpath(path.parent / name))
        for path, text in texts.items()
        for name in INCLUDED.findall(text)
    }
    found = {str(one.relative_to(sources)) for one in texts if one.suffix == ".cu"}
    found -= {str(one.relative_to(sources)) for one in included if one.is_relative_to(sources)}
    return sorted(found | {trial.source for trial in ALL if not trial.impossible})


def _row(
    trial: Trial, base: str, devices: list[str], found: dict[str, dict[str, Report]], folder: Path
) -> dict[str, Any]:
    """What came of a trial. Where a text is "" all is well; else it says why not."""
    name = trial.name
    printed = found[TARGETS][name]
    targets = printed.get("targets") or {"all": printed.get("problem", "")}
    return {
        "name": name, "file": trial.file, "kernel": trial.kernel, "targets": targets,
        "reference": found[base][name].get("problem", ""),
        "runs": {device: found[device][name].get("problem", "") for device in devices},
        "agrees": {device: _verdict(trial, base, device, found, folder) for device in devices},
    }  # fmt: skip


def _verdict(
    trial: Trial, base: str, device: str, found: dict[str, dict[str, Report]], folder: Path
) -> str:
    ours, theirs = found[device][trial.name], found[base][trial.name]
    if "problem" in ours:
        return str(ours["problem"])
    if "problem" in theirs:
        return f"nothing to compare with: {theirs['problem']}"
    if isinstance(trial.agreement, Printed):
        return difference_of_lines(ours["lines"], theirs["lines"])
    outputs = [read_outputs(folder, stage, trial.name) for stage in (device, base)]
    return difference(trial, *outputs)


def _say(content: dict[str, Any]) -> None:
    """The counts, and what does not agree."""
    rows = content["trials"]
    for row in rows:
        if row["reference"] and content["base"] not in content["devices"]:
            print(f"{row['name']}: {content['base']}: {row['reference']}")
        for device, words in row["agrees"].items():
            if words:
                print(f"{row['name']}: {device}: {words.splitlines()[0][:160]}")
    for checkout in CHECKOUTS:
        mine = [row for row in rows if row["file"].startswith(checkout)]
        counts = ", ".join(
            f"{sum(not row['agrees'][device] for row in mine)} on {device}"
            for device in content["devices"]
        )
        print(f"{checkout}: of {len(mine)} trials agree {counts}")
    parsed = sum(not words for words in content["files"].values())
    print(f"{parsed} of {len(content['files'])} files parse")
