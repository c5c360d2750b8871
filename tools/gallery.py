"""Run the examples on the CPU and keep their pictures for docs/gallery.md.

python tools/gallery.py            # all of them: some minutes on 2 cores
python tools/gallery.py galaxies
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
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "showing")


def picture(name: str) -> Path:
    """Where an example's picture lies."""
    return IMAGES / f"{name}.webp"


def main(names: list[str]) -> None:
    """Run these examples, or all."""
    sys.path.insert(0, str(EXAMPLES))
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            importlib.import_module(name).main(["--device", "cpu", "--out", folder])
            with Image.open(Path(folder) / f"{name}.png") as drawn:
                drawn.convert("RGB").save(picture(name), quality=82, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
