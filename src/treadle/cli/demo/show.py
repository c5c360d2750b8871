"""The demo's screen and picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import treadle as td
from treadle.cli.demo import training, work
from treadle.cli.transpile import check_output
from treadle.cli.usage import WrongUsage
from treadle.core.errors import TreadleError

_PARTS = ("blur", "edges", "histogram", "wave")
_TOLERANCE = 1e-4  # of the relative norm, against float64; the wave takes 300 float32 steps


def run_demo(device: str | None, output: Path, with_kernels: bool, epochs: int, seed: int) -> None:
    """Run kernels on one device or all, train for some epochs on the best of them, save a picture.

    Raises TreadleError if a kernel's result is not NumPy's.
    """
    console = Console()
    check_output(output)
    _check_format(output)
    chosen = [td.device(device)] if device else td.devices()
    digits = training.load_digits() if epochs else None  # what is missing is said at once
    image = photograph() if with_kernels else None
    result, wrong = (None, []) if image is None else _run_kernels(console, chosen, image)
    if len(chosen) == 1 and device is None:
        console.print("Only the CPU was found. `treadle devices` says what is missing for a GPU.")
    trained = None
    if digits is not None:
        where = chosen[0]
        trained = training.train(digits, where, epochs, seed, console)
        count = round(trained.accuracies[-1] * len(trained.labels))
        console.print(
            f"{where.id} trained the network in {trained.seconds:.1f} s: it reads "
            f"{count} of {len(trained.labels)} new digits correctly ({trained.accuracies[-1]:.1%})",
            highlight=False,
        )
    save_picture(image, result, trained, output)
    console.print(f"saved the picture: {output}", markup=False, highlight=False)
    if wrong:
        raise TreadleError("results differ from NumPy's: " + "; ".join(wrong))


def _run_kernels(
    console: Console, chosen: list[td.Device], image: work.Picture
) -> tuple[work.Results, list[str]]:
    """The first device's results, and what is wrong with those of any."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    results: dict[str, work.Results] = {}
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("NumPy", total=1 + len(_PARTS) * len(chosen))
        truth = work.run_in_numpy(image)
        for one in chosen:

            def step(part: str, name: str = one.id) -> None:
                progress.update(task, advance=1, description=f"{name}: {part}")

            results[one.id] = work.run_on_device(image, one, step)
        progress.update(task, advance=1, description="four kernels on each device")
    console.print(_table(chosen, results, truth))
    wrong = [
        f"{part} on {name} is off by {off:.1e}"
        for name, result in results.items()
        for part, off in _differences(result, truth).items()
        if not off <= _TOLERANCE
    ]
    return next(iter(results.values())), wrong


def _check_format(output: Path) -> None:
    """WrongUsage unless matplotlib draws pictures that end so."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise _no_matplotlib() from None
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    ending = output.suffix.removeprefix(".").lower()
    if ending and ending not in known:
        raise WrongUsage(
            f"{output}: matplotlib does not write .{ending} pictures: use one of {', '.join(known)}"
        )


def _no_matplotlib() -> TreadleError:
    return TreadleError(
        'the demo needs matplotlib, for its photograph and its picture: pip install "treadle[plot]"'
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


def save_picture(
    image: work.Picture | None,
    result: work.Results | None,
    trained: training.Trained | None,
    output: Path,
) -> None:
    """One picture: what the kernels made, and how the training went."""
    from matplotlib.figure import Figure

    rows = (result is not None) + (trained is not None)
    figure = Figure(figsize=(15, 4 * rows), layout="constrained")
    parts: Any = iter(figure.subfigures(rows, 1, squeeze=False).flat)
    if image is not None and result is not None:
        _draw_kernels(next(parts), image, result)
    if trained is not None:
        _draw_training(next(parts), trained)
    figure.savefig(output, dpi=100)


def _draw_kernels(figure: Any, image: work.Picture, result: work.Results) -> None:
    """Photograph, blur, edges, histogram, wave."""
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


def _draw_training(figure: Any, trained: training.Trained) -> None:
    """The loss, the accuracy, and what is read in test pictures, what is wrong first."""
    curves, pictures = figure.subfigures(1, 2, width_ratios=(2, 3))
    loss, accuracy = curves.subplots(1, 2)
    epochs = range(1, len(trained.losses) + 1)
    loss.plot(epochs, trained.losses, color="0.3")
    loss.set_title("loss in training")
    accuracy.plot(epochs, [100 * one for one in trained.accuracies], color="0.3")
    accuracy.set_title(f"% of new digits read right: {100 * trained.accuracies[-1]:.1f}")
    for one in (loss, accuracy):
        one.set_xlabel("epoch")
    is_wrong = trained.readings != trained.labels
    order = np.argsort(~is_wrong, kind="stable")
    for number, place in zip(order, pictures.subplots(4, 10).flat, strict=False):
        place.imshow(trained.pictures[number].reshape(8, 8), cmap="gray_r")
        place.set_axis_off()
        read, label = trained.readings[number], trained.labels[number]
        place.set_title(
            f"{read}, is {label}" if is_wrong[number] else f"{read}",
            color="crimson" if is_wrong[number] else "0.2", fontsize=9,
        )  # fmt: skip
