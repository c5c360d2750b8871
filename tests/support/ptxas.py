"""ptxas, NVIDIA's assembler, as a checker: no GPU and no driver needed, the wheel brings it."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PACKAGE = "nvidia-cuda-nvcc"


@functools.cache
def ptxas() -> Path:
    """The assembler's path; LookupError if its package is not installed."""
    name = "ptxas.exe" if os.name == "nt" else "ptxas"
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise LookupError(f"tests of PTX need ptxas: pip install {PACKAGE}") from None
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    raise LookupError(f"{PACKAGE} has no {name} for this machine")


@dataclass(frozen=True)
class Assembled:
    """What ptxas says of a module: an error, or what its kernel takes."""

    error: str | None
    log: str

    def number(self, before: str) -> int:
        """The number that stands before these words in the log."""
        words = self.log.replace(",", " ").split()
        wanted = before.split()
        for position in range(1, len(words) - len(wanted) + 1):
            if words[position : position + len(wanted)] == wanted:
                return int(words[position - 1])
        raise ValueError(f"ptxas says nothing of {before!r}:\n{self.log}")


def assemble(source: str, architecture: str) -> Assembled:
    """Machine code for an architecture, thrown away; what was said about it."""
    with tempfile.TemporaryDirectory(prefix="treadle-ptx-") as folder:
        module = Path(folder) / "kernel.ptx"
        module.write_text(source, encoding="ascii")
        command = [ptxas(), f"-arch={architecture}", "--verbose", "--warn-on-spills", module]
        result = subprocess.run(
            [*command, "-o", module.with_suffix(".cubin")], capture_output=True, text=True
        )
    return Assembled(result.stderr if result.returncode else None, result.stderr)


def ptxas_error(source: str, architecture: str) -> str | None:
    """What ptxas says against a module; None if nothing."""
    return assemble(source, architecture).error
