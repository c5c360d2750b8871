"""`treadle bench`: suites run one measurement after the other, a table, a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from treadle.cli.bench import arrays, distributed, harness, programs
from treadle.cli.bench.harness import Figure
from treadle.cli.transpile import check_output
from treadle.core.errors import TreadleError
from treadle.runtime.devices import Device, use_device
from treadle.runtime.devices import device as find_device

SUITES: dict[str, Callable[[Device, bool], list[Callable[[], list[Figure]]]]] = {
    "arrays": arrays.measurements,
    "programs": programs.measurements,
    "distributed": distributed.measurements,
}
# Those that run if none is named.
USUAL = ["arrays", "programs"]


def run_bench(suites: list[str], device: str | None, output: Path | None, small: bool) -> None:
    """Measure, show, write. TreadleError says what was wrong, after what was right is shown."""
    if output is not None:
        check_output(output)
    chosen = find_device(device)
    sys.stdout.write(f"{chosen.id}: {chosen.name} ({chosen.driver}); {harness.machine()}\n")
    with use_device(chosen):
        figures, failed = _measured(suites, chosen, small)
    harness.show(figures)
    if output is not None:
        about = {
            "machine": harness.machine(), "card": harness.card(), **harness.about_device(chosen.id)
        }  # fmt: skip
        output.write_text(json.dumps(harness.content(figures, about), indent=1) + "\n")
        sys.stdout.write(f"saved {output}\n")
    if failed:
        raise TreadleError("; ".join(failed))


def _measured(suites: list[str], device: Device, small: bool) -> tuple[list[Figure], list[str]]:
    """The figures of all suites, and what failed. One failure does not keep the rest away."""
    figures: list[Figure] = []
    failed: list[str] = []
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("preparing")
        for suite in suites:
            parts = SUITES[suite](device, small)
            for at, part in enumerate(parts, 1):
                progress.update(task, description=f"{suite}: {at} of {len(parts)}")
                try:
                    figures += part()
                except TreadleError as error:
                    failed.append(str(error))
    return figures, failed
