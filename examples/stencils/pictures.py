"""What the stencil examples share: options, and a row of pictures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import treadle as td


def options(
    description: str | None, arguments: list[str] | None, size: int, steps: int
) -> argparse.Namespace:
    """The options of an example, all of which have these. `device` is a device."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=at_least(8), default=size, help=f"of the grid ({size})")
    parser.add_argument("--steps", type=at_least(2), default=steps, help=f"to compute ({steps})")
    parser.add_argument(
        "--device", type=device, help="where to compute: cpu, cuda, webgpu … (the best one)"
    )
    parser.add_argument("--out", type=Path, help="a folder for the result and a picture")
    given = parser.parse_args(arguments)
    given.device = td.device(given.device) if given.device else td.default_device()
    return given


def device(given: str) -> str:
    """An option's device, which is there."""
    try:
        td.device(given)
    except td.errors.DeviceNotFound as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return given


def at_least(least: int) -> Callable[[str], int]:
    """What reads an option's number, which must not be less."""

    def read(given: str) -> int:
        if not given.isdecimal() or int(given) < least:
            raise argparse.ArgumentTypeError(f"{given} should be a whole number, from {least} on")
        return int(given)

    return read


def save(given: argparse.Namespace, name: str, pictures: dict[str, Any], **facts: Any) -> None:
    """Write NAME.json with the facts and NAME.png with the pictures under their titles: an array,
    or one with keywords of matplotlib's `imshow`. Nothing happens without a folder."""
    if given.out is None:
        return
    given.out.mkdir(parents=True, exist_ok=True)
    facts |= {"device": given.device.id}
    (given.out / f"{name}.json").write_text(json.dumps(facts, indent=1))
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"{given.out / name}.json is written. For a picture: pip install treadle[plot]")
        return
    found = [each if isinstance(each, tuple) else (each, {}) for each in pictures.values()]
    rows, columns = found[0][0].shape[:2]
    flat = columns > 2 * rows
    shape = (len(found), 1) if flat else (1, len(found))
    figure = Figure(figsize=(8, 9) if flat else (12, 4), layout="constrained")
    places = figure.subplots(*shape, squeeze=False).flat
    for axes, title, (array, keywords) in zip(places, pictures, found, strict=True):
        axes.imshow(array, interpolation="nearest", **keywords)
        axes.set_title(title)
        axes.set_axis_off()
    figure.savefig(given.out / f"{name}.png", dpi=110)
    print(f"{given.out / name}.json and .png are written")
