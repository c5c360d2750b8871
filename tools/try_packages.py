"""`python tools/try_packages.py FOLDER`: whether what was built works where nothing else is.

Each package of the folder is installed into an environment of its own, away from the source, and
computes there with arrays and with a kernel. The exit status is 1 if one does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROGRAM = """
import numpy as np
import treadle as td

@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        y[i] += a * x[i]

device = td.device("cpu")
x, y = td.arange(1000, dtype=td.float32, device=device), td.ones(1000, device=device)
saxpy[4, 256](2.0, x, y)
assert np.array_equal(y.numpy(), 2.0 * np.arange(1000, dtype=np.float32) + 1)
assert float(td.sum(x)) == 499500.0
print(td.__version__, *td.devices(), sep=", ")
"""


def try_package(package: Path, folder: Path) -> None:
    """Install it and run the program; CalledProcessError if either fails."""
    venv.create(folder, with_pip=True, clear=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(binaries / "python")
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(package)],
        check=True,
    )
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    for command in (
        [python, str(program)],
        [str(binaries / "treadle"), "--version"],
        [python, "-m", "treadle", "devices"],
    ):
        subprocess.run(command, check=True, cwd=folder)


def main() -> None:
    """Try every package of the folder that is named."""
    packages = sorted(Path(sys.argv[1]).resolve().glob("treadle-*"))
    if not packages:
        sys.exit(f"there are no packages in {sys.argv[1]}")
    for package in packages:
        with tempfile.TemporaryDirectory() as folder:
            print(f"--- {package.name} on Python {sys.version.split()[0]}", flush=True)
            try_package(package, Path(folder) / "environment")


if __name__ == "__main__":
    main()
