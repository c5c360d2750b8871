"""The demo's screen and picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import treadle as td
from treadle.cli.demo import work
from treadle.cli.transpile import check_output
from treadle.core.errors import TreadleError

_PARTS = ("blur", "edges", "histogram", "wave")
_TOLERANCE = 1e-4  # of the relative norm, against float64; the wave takes 300 float32 steps


def run_demo(device: str | None, output: Path) -> None:
    """Run on one device or all, print the comparison, save the picture.

    Raises TreadleError if a device's result is not NumPy's.
    """
    console = Console()
    check_output(output)
    _check_format(output)
    chosen = [td.device(device)] if device else td.devices()
    image = photograph()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    results: dict[str, work.Results] = {}
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("NumPy", total=1 + len(_PARTS) * len(chosen))
        truth = work.run_in_numpy(image)
        for one in chosen:

            def step(part: str, name: str = one.id) -> None:
                progress.update(task, advance=1, description=f"{name}: {part}")

            results[one.id] = work.run_on_device(image, one, step)
        progress.update(task, advance=1, description="done")
    console.print(_table(chosen, results, truth))
    if len(chosen) == 1 and device is None:
        console.print("Only the CPU was found. `treadle devices` says how to make a GPU appear.")
    save_picture(image, truth if not results else next(iter(results.values())), output)
    console.print(f"The picture is in {output}", highlight=False)
    wrong = [
        f"{part} on {name} is off by {off:.1e}"
        for name, result in results.items()
        for part, off in _differences(result, truth).items()
        if not off <= _TOLERANCE
    ]
    if wrong:
        raise TreadleError("results differ from NumPy's: " + "; ".join(wrong))


def _check_format(output: Path) -> None:
    """TreadleError unless matplotlib draws pictures that end so."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise _no_matplotlib() from None
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    ending = output.suffix.removeprefix(".").lower()
    if ending and ending not in known:
        raise TreadleError(
            f"{output}: .{ending} is no known picture: use one of {', '.join(known)}"
        )


def _no_matplotlib() -> TreadleError:
    return TreadleError(
        "the demo needs matplotlib, for its photograph and to draw: pip install treadle[plot]"
    )


def photograph() -> work.Picture:
    """The photograph that matplotlib ships, as brightness from 0 to 1."""
    try:
        import matplotlib.cbook
        import matplotlib.image
    except ImportError:
        raise _no_matplotlib() from None
    path = str(matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    colors = np.asarray(matplotlib.image.imread(path), dtype=np.float32)
    gray = colors[..., :3] @ np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)
    return np.ascontiguousarray(gray / 255, dtype=np.float32)


def _differences(result: work.Results, truth: work.Results) -> dict[str, float]:
    return {
        "blur": work.difference(result.blurred, truth.blurred),
        "edges": work.difference(result.edges, truth.edges),
        "histogram": work.difference(result.counts, truth.counts),
        "wave": work.difference(result.wave, truth.wave),
    }


def _table(chosen: list[td.Device], results: dict[str, work.Results], truth: work.Results) -> Table:
    table = Table(
        title="milliseconds, and relative difference from NumPy in float64",
        header_style="bold", box=None, pad_edge=False, title_justify="left",
    )  # fmt: skip
    for heading in ("device", *_PARTS):
        table.add_column(heading)
    table.add_row("NumPy", *(f"{truth.seconds[part] * 1e3:.2f}" for part in _PARTS))
    for device in chosen:
        result = results[device.id]
        off = _differences(result, truth)
        cells = (f"{result.seconds[part] * 1e3:.2f}  ({off[part]:.0e})" for part in _PARTS)
        table.add_row(f"{device.id} ({device.name})", *cells)
    return table


def save_picture(image: work.Picture, result: work.Results, output: Path) -> None:
    """One PNG: photograph, blur, edges, histogram, wave."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4), layout="constrained")
    axes = figure.subplots(1, 5)
    pictures = (
        ("photograph", image, "gray"), ("Gaussian blur", result.blurred, "gray"),
        ("Sobel edges", result.edges, "magma"), ("wave", result.wave, "RdBu"),
    )  # fmt: skip
    places = (axes[0], axes[1], axes[2], axes[4])
    for place, (title, data, colors) in zip(places, pictures, strict=True):
        place.imshow(data, cmap=colors)
        place.set_title(title)
        place.set_axis_off()
    axes[3].bar(range(len(result.counts)), result.counts, width=1.0, color="0.3")
    axes[3].set_title("histogram")
    figure.savefig(output, dpi=100)
