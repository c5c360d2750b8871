"""What share of other people's kernels each target accepts, and what the others are refused for.

    python -m tools.cuda_corpus accept --sources DIR [DIR…] --out FOLDER

Each DIR is one project. Every `.cu` file below it that no other file includes, then every file of
C++ and every header that brings kernels which none before has, is parsed, and each kernel in it is
printed for the targets; nothing runs. A file has a process of its own. What came of a file is kept
in FOLDER and is not done again as long as the sources and the compiler's own code stay the same;
`--again refused` does only files anew of which something was refused, which shows quickly what a
change gained, `--again lost` those with a kernel that no target has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS
from tools.cuda_corpus.acceptance_table import RECORDS, recorded, table
from tools.cuda_corpus.accepted_file import INCLUDED, Unit, tell
from tools.cuda_corpus.not_compiled import why_not_compiled
from tools.cuda_corpus.sources import kernels_in, read

UNITS, HEADERS = (".cu",), (".cuh", ".h", ".hpp", ".inl", ".inc")
HOST = (".cpp", ".cc", ".cxx", ".c")  # some Makefiles have these compiled as CUDA
LIMIT = 600.0  # seconds without a word from a file's process, which limits its own time
_COMPILER = ("core", "lang", "ir", "codegen", "cuda_cpp", "runtime")  # rooms that printing uses
_ROOT = Path(__file__).parents[2]
Row = dict[str, Any]


@dataclass(frozen=True)
class Project:
    """A folder of other people's files: `root`, and all texts below it by relative path."""

    root: Path
    texts: dict[str, str]
    libraries: tuple[Path, ...] = ()  # folders that files of others are included from

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.root.name

    @cached_property
    def includes(self) -> dict[str, set[str]]:
        """The files of the project that each file includes itself."""
        ends: dict[str, list[str]] = {}
        for name in self.texts:
            ends.setdefault(name.rpartition("/")[2], []).append(name)
        return {name: set(self._included_by(name, ends)) for name in self.texts}

    def _included_by(self, name: str, ends: dict[str, list[str]]) -> Iterator[str]:
        folder = name.rpartition("/")[0]
        for wanted in INCLUDED.findall(self.texts[name]):
            beside = os.path.normpath(f"{folder}/{wanted}") if folder else wanted
            if beside in self.texts:
                yield beside
                continue
            tail = re.sub(r"^(\.\./)+", "", wanted)
            for one in ends.get(tail.rpartition("/")[2], ()):
                same = one == tail or one.endswith(f"/{tail}")
                if same and one != name and _program(one) == _program(name):
                    yield one

    @cached_property
    def included(self) -> set[str]:
        """The files that others include."""
        return {one for names in self.includes.values() for one in names}

    def reached(self, name: str) -> set[str]:
        """The files that a file includes, and so on."""
        found: set[str] = set()
        todo = [name]
        while todo:
            todo += self.includes[todo.pop()] - found
            found.update(todo)
        return found

    def digest(self, relative: str) -> str:
        """A hash of a file, and of all headers that it could include."""
        made = hashlib.sha256(f"{self.texts[relative]}{self.libraries or ''}".encode())
        top = _program(relative)
        for path, text in self.texts.items():
            if path != relative and _program(path) in (top, ""):
                made.update(text.encode())
        return made.hexdigest()


def _program(relative: str) -> str:
    """The program that a file of a collection belongs to: a folder named as one, "" elsewhere."""
    return next((part for part in relative.split("/") if part.endswith("-cuda")), "")


def accept(chosen: argparse.Namespace) -> None:
    """`accept`: print the table, and keep it and the rows in `--out`."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    version = _compiler_version()
    found: dict[str, list[Row]] = {}
    for folder in chosen.sources:
        project = _project(folder.resolve(), tuple(one.resolve() for one in chosen.include))
        kept = chosen.out / f"{project.name}.jsonl"
        before = _read_rows(kept)
        rows: dict[str, Row] = {}
        for wave in (_units, _host_units, _headers_left):
            names = wave(project, rows.values())
            names = [one for one in names[:: chosen.every] if chosen.only in one]
            if chosen.without:
                names = [one for one in names if chosen.without not in one]
            todo = []
            for name in names:
                key = f"{version} {project.digest(name)}"
                known = before.get(name)
                if known and (known["key"] == key or _is_good_enough(chosen, known)):
                    rows[name] = known
                else:
                    todo.append((name, key))
            rows |= _done(project, todo, chosen.jobs, kept)
        found[project.name] = list(rows.values())
    words = table(found)
    (chosen.out / "table.txt").write_text(words, encoding="utf-8")
    if chosen.record:
        record = json.dumps(recorded(found), indent=1) + "\n"
        (RESULTS / RECORDS[chosen.record]).write_text(record, encoding="utf-8")
    print(words)


def _is_good_enough(chosen: argparse.Namespace, row: Row) -> bool:
    """Whether `--again` keeps what an earlier compiler made of a file."""
    if chosen.again == "changed" or row["problem"]:
        return False
    told = [kernel["targets"] for kernel in row["kernels"]]
    if chosen.again == "lost":
        return not any("all" in one for one in told)
    return not any(words for one in told for words in one.values())


def _project(root: Path, libraries: tuple[Path, ...]) -> Project:
    texts = {
        str(path.relative_to(root)): read(path)
        for path in sorted(root.rglob("*"))
        if path.suffix in (*UNITS, *HEADERS, *HOST) and path.is_file()
    }
    return Project(root, texts, libraries)


def _units(project: Project, rows: Iterable[Row]) -> list[str]:
    """The `.cu` files that are compiled: those that no other file includes."""
    included = project.included
    return [one for one in project.texts if one.endswith(UNITS) and one not in included]


def _host_units(project: Project, rows: Iterable[Row]) -> list[str]:
    """Files of C and C++ that include, themselves or by headers, kernels that nothing has read."""
    left = {*_headers_left(project, rows)}
    left |= {one for one in project.included - _read(rows) if one.endswith(UNITS)}
    found: list[str] = []
    for name in project.texts:
        if left and name.endswith(HOST) and (reached := project.reached(name) & left):
            found.append(name)
            left -= reached
    return found


def _headers_left(project: Project, rows: Iterable[Row]) -> list[str]:
    """Headers with kernels that no unit has read."""
    seen = _read(rows)
    return [
        name
        for name, text in project.texts.items()
        if name.endswith(HEADERS) and name not in seen and kernels_in(text)
    ]


def _read(rows: Iterable[Row]) -> set[str]:
    """The files that units have read, as the project's own names."""
    return {os.path.normpath(file) for row in rows for file in row["read"]}


def _compiler_version() -> str:
    """A hash of the compiler's own files and of this tool's."""
    made = hashlib.sha256()
    here = Path(__file__).parent
    own = [*sorted(here.glob("accept*.py")), here / "instances.py", here / "host_code.py"]
    rooms = (sorted((_ROOT / "src/treadle" / one).rglob("*.py")) for one in _COMPILER)
    for path in (*own, *(path for room in rooms for path in room)):
        made.update(path.read_bytes())
    return made.hexdigest()[:16]


def _read_rows(kept: Path) -> dict[str, Row]:
    if not kept.exists():
        return {}
    rows = map(json.loads, kept.read_text(encoding="utf-8").splitlines())
    return {row["file"]: row for row in rows}  # the last one counts


# --- processes -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Worker:
    """A process at work on one file, and what it has written so far."""

    process: int
    name: str
    key: str
    told: Path
    began: float
    size: int = 0
    heard: float = 0.0


def _done(project: Project, todo: list[tuple[str, str]], jobs: int, kept: Path) -> dict[str, Row]:
    """Do files, so many at a time; each row is appended to `kept` as it comes."""
    import treadle.cuda_cpp.lower  # once, before processes are made
    import treadle.runtime.build  # noqa: F401

    rows: dict[str, Row] = {}
    waiting, running = list(reversed(todo)), list[_Worker]()
    with kept.open("a", encoding="utf-8") as out:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_begin(project, *waiting.pop(), kept.parent))
            time.sleep(0.01)
            for worker in tuple(running):
                ended = _ended(worker)
                if ended is None:
                    continue
                running.remove(worker)
                row = _row(project, worker, ended)
                rows[worker.name] = row
                out.write(json.dumps(row) + "\n")
                out.flush()
                good = sum(not any(one["targets"].values()) for one in row["kernels"])
                print(
                    f"{project.name} {len(rows)}/{len(todo)} {worker.name}: {good} of "
                    f"{len(row['kernels'])}, {row['seconds']} s {row['problem'][:80]!r}",
                    flush=True,
                )
    return rows


def _begin(project: Project, name: str, key: str, folder: Path) -> _Worker:
    told = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:12]}.told"
    told.write_text("", encoding="utf-8")
    process = os.fork()
    if not process:
        try:
            tell(Unit(project.root, name, tuple(project.texts), project.libraries), told)
        finally:
            os._exit(0)
    now = time.monotonic()
    return _Worker(process, name, key, told, now, heard=now)


def _ended(worker: _Worker) -> str | None:
    """None while it works; else what ended it early, or ""."""
    done, status = os.waitpid(worker.process, os.WNOHANG)
    if done:
        return "" if not status else f"the process ended with status {status}"
    now, size = time.monotonic(), worker.told.stat().st_size
    if size != worker.size:
        worker.size, worker.heard = size, now
    if now - worker.heard > LIMIT:
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)
        return f"it did not end within {LIMIT:.0f} s"
    return None


def _row(project: Project, worker: _Worker, broken: str) -> Row:
    """What came of a file. Kernels that its process did not come to are refused for what ended it;
    if it does not parse, those that its text names are refused for that."""
    lines = list(map(json.loads, worker.told.read_text(encoding="utf-8").splitlines()))
    worker.told.unlink()
    parsed = next((one for one in lines if "names" in one), None)
    problem = next((one["problem"] for one in lines if "problem" in one), "")
    kernels = [one for one in lines if "targets" in one]
    if parsed is None:
        problem = problem or broken or "it gave no result"
        text = project.texts[worker.name]
        kernels = [
            {"name": name, "file": worker.name, "line": 0, "targets": {"all": problem}}
            for name in kernels_in(text)
        ]
    else:
        kernels += _not_reached(parsed["names"], kernels, broken)
    missing = next((one["missing"] for one in lines if "missing" in one), [])
    for one in kernels:
        _, message, line = [*one["targets"].get("all", "").split("\n"), "", ""][:3]
        one["apart"] = why_not_compiled(message, line, missing)
    return {
        "file": worker.name,
        "key": worker.key,
        "problem": problem,
        "read": parsed["read"] if parsed else [worker.name],
        "kernels": kernels,
        "seconds": round(time.monotonic() - worker.began, 2),
    }


def _not_reached(names: list[Row], kernels: list[Row], broken: str) -> Iterator[Row]:
    there = {(one["name"], one["line"]) for one in kernels}
    for one in names:
        if (one["name"], one["line"]) not in there:
            yield {**one, "targets": {"all": broken or "it gave no result"}}
