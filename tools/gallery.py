"""Run the examples on the CPU and keep their pictures for the pages docs/gallery*.md.

python tools/gallery.py            # all of them: some minutes on 2 cores
python tools/gallery.py galaxies stencils/heat
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
IMAGES = ROOT / "docs" / "images" / "gallery"
HELPERS = ("showing", "pictures")
NAMES = sorted(
    path.relative_to(EXAMPLES).with_suffix("").as_posix()
    for path in EXAMPLES.rglob("*.py")
    if path.stem not in HELPERS
)


def picture(name: str) -> Path:
    """Where an example's picture lies."""
    return IMAGES / f"{name}.webp"


def main(names: list[str]) -> None:
    """Run these examples, or all."""
    sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "stencils")]
    for name in names or NAMES:
        module = Path(name).name
        picture(name).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            importlib.import_module(module).main(["--device", "cpu", "--out", folder])
            with Image.open(Path(folder) / f"{module}.png") as drawn:
                drawn.convert("RGB").save(picture(name), quality=82, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
