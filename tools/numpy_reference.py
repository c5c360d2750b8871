"""Write the list of NumPy's public names, of which the reference says which `treadle.numpy` has
(`website/numpy_page.py`): from the NumPy that is installed, so that the page is the same anywhere.

python tools/numpy_reference.py
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
NAMES = ROOT / "tools" / "website" / "numpy_names.txt"
SPACES = (
    "numpy", "numpy.ndarray", "numpy.ufunc", "numpy.linalg", "numpy.fft", "numpy.random",
    "numpy.random.Generator",
)  # fmt: skip


def _owner(space: str, root: str) -> Any:
    rest = space.partition(".")[2]
    found = importlib.import_module(root)
    for part in rest.split(".") if rest else ():
        found = getattr(found, part, None)
    return found


def collect() -> str:
    """The names, a line each space."""
    lines = []
    for space in SPACES:
        owner = _owner(space, "numpy")
        names = getattr(owner, "__all__", None) or dir(owner)
        kept = sorted(each for each in names if not each.startswith("_"))
        lines.append(f"{space}: {' '.join(kept)}")
    return "\n".join(lines) + "\n"


def names() -> dict[str, list[str]]:
    """NumPy's names by their spaces."""
    found = {}
    for line in NAMES.read_text().splitlines():
        space, _, listed = line.partition(": ")
        found[space] = listed.split()
    return found


def place(space: str) -> Any:
    """The module or class that has the names of a space."""
    return _owner(space, "treadle.numpy")


def main() -> int:
    """Write the list."""
    NAMES.write_text(collect())
    return 0


if __name__ == "__main__":
    sys.exit(main())
