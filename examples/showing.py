"""What the examples share: options, and results as files that people and programs read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import treadle as td


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every example takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device", type=device, help="where to compute: cpu, cuda, webgpu … (the best one)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (0)")
    parser.add_argument("--out", type=Path, help="a folder for the curves and a picture")
    return parser


def device(given: str) -> str:
    """An option's device, which is there."""
    try:
        td.device(given)
    except td.errors.DeviceNotFound as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return given


def count(given: str) -> int:
    """An option's number of things, of which there is one at least."""
    if not given.isdecimal() or int(given) == 0:
        raise argparse.ArgumentTypeError(f"{given} should be a whole number, 1 or greater")
    return int(given)


def save(
    out: Path | None,
    name: str,
    curves: dict[str, Sequence[float]],
    draw: Callable[[Any, Any], None],
    **facts: Any,
) -> None:
    """Write NAME.json with the curves, and NAME.png, of which `draw(figure, plain)` draws the rest.

    The curves are drawn at the left, if there are any. Nothing happens without a folder.
    """
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps({**facts, **curves}, indent=1))
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"{out / name}.json is written. For a picture: pip install treadle[plot]")
        return
    figure = Figure(figsize=(12, 3.5 if curves else 4), layout="constrained")
    if curves:
        left, right = figure.subfigures(1, 2, width_ratios=(1, 2.4))
        axes = left.subplots()
        for label, values in curves.items():
            axes.semilogy(values, label=label, linewidth=1)
        axes.set_xlabel("step")
        axes.legend()
        draw(right, axes)
    else:
        draw(figure, None)
    figure.savefig(out / f"{name}.png", dpi=110)
    print(f"{out / name}.json and .png are written")
