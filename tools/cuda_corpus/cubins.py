"""CUDA's own machine code of the files that are tried, by nvcc: the reference's half without a GPU.

One cubin for each file, with the instances of templates that its trials ask for; a manifest says
under which name each trial's kernel lies in it. What was built from the same text is not built
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.cuda_corpus.sources import SUFFIXES, read, without_host
from tools.cuda_corpus.spec import Template, Trial, cpp_argument

OPTIONS = ("-cubin", "-arch=sm_90", "-std=c++17", "--expt-relaxed-constexpr", "-w", "-rdc=false")
MANIFEST = "manifest.json"
COMPILER = "compiler"  # in the manifest, beside the trials: which nvcc it was
_ENTRY = re.compile(rb"\.text\.([A-Za-z_$][\w$]*)\0")


@dataclass(frozen=True, slots=True)
class Unit:
    """A file to compile: what all trials of it have in common."""

    source: str
    strip: bool
    prelude: str
    include: tuple[str, ...]
    defines: tuple[str, ...]


def include_folders(sources: Path, source: str, more: Iterable[str]) -> list[Path]:
    """Where the headers of a file lie: beside it, as samples have it, and where a trial says."""
    checkout = sources / Path(source).parts[0]
    own = (sources / source).parent
    wanted = [own, own / "inc", own.parent / "inc", checkout / "Common"]
    return [path for path in (*wanted, *(sources / one for one in more)) if path.is_dir()]


def build(trials: Iterable[Trial], sources: Path, out: Path) -> dict[str, dict[str, str]]:
    """Compile every file; the manifest: a trial's cubin and entry, or why there is none."""
    out.mkdir(parents=True, exist_ok=True)
    units: dict[Unit, list[Trial]] = defaultdict(list)
    for trial in trials:
        if not trial.impossible:
            unit = Unit(trial.source, trial.strip, trial.prelude, trial.include, trial.defines)
            units[unit].append(trial)
    manifest: dict[str, dict[str, str]] = {}
    for unit, of_unit in units.items():
        instances = sorted({_instance(trial) for trial in of_unit if trial.template})
        path, problem = _compiled(unit, instances, sources, out)
        entries = _entries(path) if path else []
        for trial in of_unit:
            found = [entry for entry in entries if _is_of(trial, entry)]
            if len(found) == 1 and path:
                manifest[trial.name] = {"cubin": path.name, "entry": found[0]}
            else:
                words = problem or f"{len(found)} entries fit, of {', '.join(entries)}"
                manifest[trial.name] = {"problem": words}
                print(f"{trial.name}: {words}")
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"release [\d.]+, V([\d.]+)", said)
    manifest[COMPILER] = {"version": f"nvcc {version[1] if version else '?'}"}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return manifest


def _instance(trial: Trial) -> str:
    return f"{trial.kernel}<{', '.join(map(cpp_argument, trial.template))}>"


def _compiled(
    unit: Unit, instances: list[str], sources: Path, out: Path
) -> tuple[Path | None, str]:
    """The cubin of a file, or what nvcc said."""
    file = sources / unit.source
    text = "\n".join([repr(unit), *OPTIONS, *instances, read(file)])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    target = out / f"{file.stem}-{digest}.cubin"
    if target.exists():
        return target, ""
    with tempfile.TemporaryDirectory() as scratch:
        copy = _copy(unit, instances, sources, Path(scratch))
        folders = include_folders(sources, unit.source, unit.include)
        if unit.strip:
            folders = [copy.parent, *folders[1:]]
        command = ["nvcc", *OPTIONS, *(f"-I{folder}" for folder in folders)]
        command += [f"-D{name}" for name in unit.defines]
        done = subprocess.run(
            [*command, "-o", str(target), "-x", "cu", str(copy)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        return None, "nvcc: " + " | ".join((done.stdout + done.stderr).splitlines()[:4])
    return target, ""


def _copy(unit: Unit, instances: list[str], sources: Path, scratch: Path) -> Path:
    """The file in a folder of its own, with what makes nvcc instantiate templates at its end."""
    file = sources / unit.source
    copy = scratch / file.name
    text = read(file)
    if unit.strip:
        for other in file.parent.rglob("*"):
            if other.suffix in SUFFIXES:
                twin = scratch / other.relative_to(file.parent)
                twin.parent.mkdir(parents=True, exist_ok=True)
                twin.write_text(without_host(read(other)), encoding="utf-8")
        text = without_host(text)
    if instances:
        pointers = ", ".join(f"(void *){one}" for one in instances)
        text += f"\nvoid *corpus_instances[] = {{{pointers}}};\n"
    copy.write_text(f"{unit.prelude}\n#line 1\n{text}", encoding="utf-8")
    return copy


def _entries(path: Path) -> list[str]:
    """The names of the kernels in a cubin, and of the functions that were not inlined."""
    return sorted({match[1].decode() for match in _ENTRY.finditer(path.read_bytes())})


_LETTERS = {
    np.float32: "f", np.float64: "d", np.int32: "i", np.uint32: "j", np.uint8: "h",
    np.uint16: "t", np.float16: "6__half",
}  # fmt: skip


def _mangled(argument: Template) -> str:
    """What a template's argument is in a mangled name, as a pattern."""
    if isinstance(argument, str):
        return rf"X(?:ad)?L_Z{len(argument)}{argument}\w+?EE"
    return _LETTERS[argument] if isinstance(argument, type) else f"L[a-z]{int(argument)}E"


def _is_of(trial: Trial, entry: str) -> bool:
    """Whether a mangled name is that of a trial's kernel."""
    if entry == trial.kernel:
        return not trial.template
    arguments = "".join(map(_mangled, trial.template))
    wanted = f"I{arguments}E" if trial.template else "(?!I)"
    return re.search(rf"(?<!\d){len(trial.kernel)}{trial.kernel}{wanted}", entry) is not None


def carry(sources: Path, cubins: Path, out: Path) -> int:
    """Copy what a machine without nvcc needs into one folder; its bytes."""
    for name in ("sources", "cubins"):
        shutil.rmtree(out / name, ignore_errors=True)
    for folder, _, names in os.walk(sources):
        for name in names:
            file = Path(folder) / name
            if file.suffix in SUFFIXES:
                twin = out / "sources" / file.relative_to(sources)
                twin.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, twin)
    manifest = json.loads((cubins / MANIFEST).read_text(encoding="utf-8"))
    (out / "cubins").mkdir(parents=True, exist_ok=True)
    for name in {one["cubin"] for one in manifest.values() if "cubin" in one}:
        shutil.copyfile(cubins / name, out / "cubins" / name)
    shutil.copyfile(cubins / MANIFEST, out / "cubins" / MANIFEST)
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
