"""What NVIDIA's assembler says of a module, and how many of its blocks fit on a multiprocessor."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from treadle.core.errors import TreadleError

_PACKAGE = "nvidia-cuda-nvcc"


@dataclass(frozen=True)
class Resources:
    """What a kernel takes, as the assembler says."""

    registers: int
    shared: int
    stack: int
    spill_stores: int
    """Bytes a thread stores since registers do not suffice."""
    spill_loads: int


@dataclass(frozen=True)
class Multiprocessor:
    """What a multiprocessor has for the blocks that run on it at once."""

    warps: int
    blocks: int
    shared: int
    """Bytes."""
    reserved: int
    """Bytes of shared memory that each block costs besides its own."""


# From the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ guide.
_MULTIPROCESSORS = {
    70: Multiprocessor(64, 32, 96 * 1024, 0),
    75: Multiprocessor(32, 16, 64 * 1024, 0),
    80: Multiprocessor(64, 32, 164 * 1024, 1024),
    86: Multiprocessor(48, 16, 100 * 1024, 1024),
    87: Multiprocessor(48, 16, 164 * 1024, 1024),
    89: Multiprocessor(48, 24, 100 * 1024, 1024),
    90: Multiprocessor(64, 32, 228 * 1024, 1024),
    100: Multiprocessor(64, 32, 228 * 1024, 1024),
    120: Multiprocessor(48, 24, 100 * 1024, 1024),
}
_MOST_ERRORS = 8  # of the assembler's that are shown
_REGISTERS, _REGISTER_UNIT = 65536, 256
"""Registers of a multiprocessor, and how many a warp is given at once."""


@functools.cache
def find_ptxas() -> Path | None:
    """NVIDIA's assembler: of the package `nvidia-cuda-nvcc`, of a toolkit (`CUDA_HOME`), or on the
    path. None if it is not on this machine."""
    name = "ptxas.exe" if os.name == "nt" else "ptxas"
    try:
        for file in metadata.files(_PACKAGE) or []:
            if file.name == name:
                return Path(str(file.locate()))
    except metadata.PackageNotFoundError:
        pass
    for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if folder and (found := Path(folder) / "bin" / name).is_file():
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def resources(text: str, target: str, ptxas: Path) -> dict[str, Resources]:
    """What each kernel of a module takes on a target such as `sm_90`.

    Raises `TreadleError` with the assembler's words if it refuses the module, a line for each
    error.
    """
    with tempfile.TemporaryDirectory(prefix="treadle-ptx-") as folder:
        module = Path(folder) / "kernel.ptx"
        module.write_text(text, encoding="utf-8")
        binary = module.with_suffix(".cubin")
        command = [str(ptxas), f"-arch={target}", "--verbose", str(module), "-o", str(binary)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise TreadleError(f"ptxas refuses the text for {target}:\n{_errors(done.stderr)}")
    found: dict[str, Resources] = {}
    for piece in re.split(r"(?=Compiling entry function)", done.stderr):
        name = re.match(r"Compiling entry function '([^']+)'", piece)
        if name:
            found[name[1]] = Resources(*(_before(piece, words) for words in _WORDS))
    return found


def _errors(said: str) -> str:
    """The assembler's errors, each with its line."""
    found = re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", said)
    lines = [f"  line {number}: {words}" for number, words in found]
    if len(lines) > _MOST_ERRORS:
        lines[_MOST_ERRORS:] = [f"  and {len(lines) - _MOST_ERRORS} more errors"]
    return "\n".join(lines) or f"  {said.strip()}"


def assembled_for(own: str, asked: str | None, ptxas: Path) -> str | None:
    """The target that a text is assembled for: the one that was asked for, or its own, or the
    oldest one after it where the assembler has left that out, as newer ones do with old GPUs. None
    if it is newer than all that the assembler knows.

    Raises ValueError if the one that was asked for does not take the text, or is not known.
    """
    known = _targets(ptxas)
    numbers = sorted({_number(each) for each in known})
    if asked is None:
        later = [each for each in numbers if each >= _number(own)]
        if own in known or not later:
            return own if own in known else None
        return None if own.endswith("a") else f"sm_{later[0]}"
    if own.endswith("a") and asked != own:
        raise ValueError(f"the text is for {own} and no other GPU (.target): leave out --sm")
    if _number(asked) < _number(own):
        raise ValueError(f"the text is for {own} and newer GPUs (.target), which {asked} is not")
    if asked not in known:
        listed = ", ".join(map(str, numbers))
        raise ValueError(f"the assembler of this machine does not know {asked}; it knows {listed}")
    return asked


def _number(target: str) -> int:
    return int(re.sub(r"\D", "", target))


@functools.cache
def _targets(ptxas: Path) -> frozenset[str]:
    """The targets that the assembler's help lists."""
    done = subprocess.run([str(ptxas), "--help"], capture_output=True, text=True)
    return frozenset(re.findall(r"'(sm_\d+[af]?)'", done.stdout))


_WORDS = ("registers", "bytes smem", "bytes stack frame", "bytes spill stores", "bytes spill loads")


def _before(text: str, words: str) -> int:
    found = re.search(rf"(\d+) {words}", text)
    return int(found[1]) if found else 0


def blocks_at_once(
    capability: int, threads: int, registers: int, shared: int
) -> tuple[int, str] | None:
    """How many blocks a multiprocessor runs at once, and what does not allow more: "registers",
    "shared memory", "warps" or "blocks". None for a capability whose limits are not known here.

    >>> blocks_at_once(90, 256, 64, 0)
    (4, 'registers')
    """
    has = _MULTIPROCESSORS.get(capability)
    if has is None:
        return None
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    limits = {
        "blocks": has.blocks,
        "warps": has.warps // warps,
        "registers": _REGISTERS // (of_a_warp * warps) if registers else has.blocks,
        "shared memory": has.shared // (shared + has.reserved) if shared else has.blocks,
    }
    least = min(limits, key=lambda each: limits[each])
    return limits[least], least


def warps_at_once(capability: int) -> int:
    """The warps that a multiprocessor can hold."""
    return _MULTIPROCESSORS[capability].warps
