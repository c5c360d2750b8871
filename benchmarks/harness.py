"""How a figure is taken and printed: `treadle bench`'s ways; and where figures are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from treadle.cli.bench.harness import (
    Figure,
    about_device,
    card,
    content,
    device_seconds,
    host_seconds,
    installed,
    machine,
    medians,
    number,
    seconds,
    show,
    torch_on_cuda,
    torch_seconds,
    wall_seconds,
)

__all__ = [
    "RESULTS",
    "Figure",
    "about_device",
    "card",
    "device_seconds",
    "host_seconds",
    "installed",
    "keep",
    "machine",
    "medians",
    "number",
    "seconds",
    "show",
    "torch_on_cuda",
    "torch_seconds",
    "wall_seconds",
]

RESULTS = Path(__file__).parent / "results"


def keep(figures: list[Figure], name: str, about: dict[str, Any]) -> Path:
    """The figures as JSON under `benchmarks/results/`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content(figures, about), indent=1) + "\n")
    return path
