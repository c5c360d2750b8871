"""ptxas, NVIDIA's assembler, as a checker, and its disassembler: no GPU and no driver needed, the
wheels bring them."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}


@functools.cache
def tool(name: str) -> Path:
    """The path of one of NVIDIA's tools; LookupError if its package is not installed."""
    package, file_name = PACKAGES[name], f"{name}.exe" if os.name == "nt" else name
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise LookupError(f"tests of PTX need {name}: pip install {package}") from None
    for file in files:
        if file.name == file_name:
            return Path(str(file.locate()))
    raise LookupError(f"{package} has no {file_name} for this machine")


@functools.cache
def version() -> tuple[int, int]:
    """The release of ptxas that is installed."""
    said = subprocess.run([tool("ptxas"), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release (\d+)\.(\d+)", said)
    assert found is not None, said
    return int(found[1]), int(found[2])


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
        command = [tool("ptxas"), f"-arch={architecture}", "--verbose", "--warn-on-spills", module]
        result = subprocess.run(
            [*command, "-o", module.with_suffix(".cubin")], capture_output=True, text=True
        )
    return Assembled(result.stderr if result.returncode else None, result.stderr)


def disassembled(source: str, architecture: str) -> list[str]:
    """The machine code that ptxas makes of a module, an instruction a line, as nvdisasm spells it;
    without addresses, and without what fills up the end."""
    with tempfile.TemporaryDirectory(prefix="treadle-ptx-") as folder:
        module, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        module.write_text(source, encoding="ascii")
        for command in (
            [tool("ptxas"), f"-arch={architecture}", module, "-o", binary],
            [tool("nvdisasm"), "-c", binary],
        ):
            result = subprocess.run(command, capture_output=True, text=True)
            assert result.returncode == 0, result.stderr
    found = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s*(.*?);", result.stdout, re.MULTILINE)
    return [re.sub(r"\s+", " ", line).strip() for line in found if not line.startswith("NOP")]


def ptxas_error(source: str, architecture: str) -> str | None:
    """What ptxas says against a module; None if nothing."""
    return assemble(source, architecture).error
