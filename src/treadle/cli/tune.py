"""`treadle tune`: the autotuner on the screen."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from treadle.cli.bench.harness import number, readable_seconds
from treadle.cli.transpile import check_output
from treadle.core.errors import TreadleError
from treadle.kernels.tuned_families import FAMILIES
from treadle.runtime import disk_cache, settings
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tuning import choices, tuner
from treadle.tuning.records import Candidate, Family, Problem, Result, Workload
from treadle.tuning.tuner import Outcome

SUITES: dict[str, Family] = {family.name: family for family in FAMILIES}
_WIDTH = 150  # of a table in a file


def run_tune(
    suites: Sequence[str], device: str | None, seconds: float, again: bool, output: Path | None
) -> None:
    """Tune, show, write, also when it is stopped: then KeyboardInterrupt goes on. TreadleError if
    nothing could be tuned at all."""
    chosen = _checked(device, output)
    families = [SUITES[name] for name in suites]
    total = len(tuner.workloads_of(chosen, families, again=True))
    if not total:
        sys.stdout.write(f"There is nothing to choose on {chosen.id}: {_reason(chosen, suites)}\n")
        if output is not None:
            write_results(chosen, families, output)
        return
    wanted = tuner.workloads_of(chosen, families, again)
    outcomes: list[Outcome] = []
    stopped: KeyboardInterrupt | None = None
    try:
        _tune(chosen, wanted, seconds, outcomes)
    except KeyboardInterrupt as error:
        stopped = error
        some = any(each.result is not None for each in outcomes)
        what = "what was found is kept" if some else "nothing was found yet"
        sys.stdout.write(f"Stopped: {what}\n")
    if outcomes:
        _show(outcomes)
    left = len(wanted) - sum(each.result is not None and each.result.complete for each in outcomes)
    sys.stdout.write(_remark(total, len(wanted), left) + "\n")
    if output is not None:
        write_results(chosen, families, output)
    if stopped is not None:
        raise stopped
    if outcomes and all(each.result is None for each in outcomes):
        raise TreadleError(f"nothing could be tuned: {outcomes[0].failure}")


def list_results(suites: Sequence[str], device: str | None, output: Path | None) -> None:
    """Show all that is known of a device: this machine's results, also for problems that came up in
    programs, and those that are shipped."""
    chosen = _checked(device, output)
    families = [SUITES[name] for name in suites]
    known = known_results(chosen, families)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("problem", "chosen", "first guess", "gain", "from"):
        table.add_column(heading)
    for each in known:
        seconds = "" if each.first_seconds is None else readable_seconds(each.first_seconds)
        gain = "not noted" if each.gain is None else f"{each.gain:.2f}"
        table.add_row(each.label, str(each.chosen), seconds, gain, each.source)
    if known:
        _console().print(table)
        sys.stdout.write(_gained(known) + "\n")
    else:
        of = "" if set(suites) == set(SUITES) else f" of {' and '.join(suites)}"
        sys.stdout.write(f"Nothing was measured{of} on {chosen.id}: first guesses are used\n")
    if output is not None:
        write_results(chosen, families, output)


class Known(NamedTuple):
    """A line of `treadle tune --list`."""

    label: str
    chosen: Candidate
    first_seconds: float | None  # of the first guess
    gain: float | None  # how many times as fast as that
    source: str


def known_results(device: Device, families: Sequence[Family]) -> list[Known]:
    """The results that planners use: those of the suites' problems first."""
    found: list[Known] = []
    shipped = choices.shipped_results(choices.shipped_name(device))
    for problem, (label, result) in _measured(device, families).items():
        gain = result.first_seconds / result.seconds
        found.append(Known(label, result.chosen, result.first_seconds, gain, "this machine"))
        shipped.pop(problem, None)
    labels = _labels(device, families)
    for problem, given in shipped.items():
        for family in families:
            if problem.family == family.name:
                label = labels.get(problem) or family.label(problem)
                found.append(Known(label, given.chosen, None, given.gain, "treadle"))
    return found


def _labels(device: Device, families: Sequence[Family]) -> dict[Problem, str]:
    """Of the suites' problems."""
    wanted = tuner.workloads_of(device, families, again=True)
    return {workload.problem: workload.label for _, workload in wanted}


def _measured(device: Device, families: Sequence[Family]) -> dict[Problem, tuple[str, Result]]:
    """What was found on this machine for present editions of the families, with what it is of."""
    found: dict[Problem, tuple[str, Result]] = {}
    labels = _labels(device, families)
    editions = {(problem.family, problem.edition) for problem in labels}
    for problem, label in labels.items():
        result = choices.result_of(device, problem)
        if result is not None:
            found[problem] = label, result
    others = choices.results_of(device)
    for problem in sorted(others, key=lambda each: each.name):
        for family in families:
            if problem.family == family.name and (family.name, problem.edition) in editions:
                found.setdefault(problem, (family.label(problem), others[problem]))
    return found


def _gained(known: Sequence[Known]) -> str:
    """A line on all of them."""
    gains = [each.gain for each in known if each.gain is not None]
    better = [gain for gain in gains if gain > 1]
    line = f"{len(known)} result{'s' * (len(known) > 1)}"
    if not better:
        return f"{line}: the first guesses are the fastest" if gains else line
    mean, verb = statistics.geometric_mean(better), "is" if len(better) == 1 else "are"
    return (
        f"{line}: {len(better)} {verb} faster than the first guess, {mean:.2f} times in the mean, "
        f"{max(better):.2f} at most"
    )


def write_results(device: Device, families: Sequence[Family], output: Path) -> None:
    """Write the results of this machine, as `tools/tuned.py` reads them."""
    found = {
        problem.name: _plain(result) for problem, (_, result) in _measured(device, families).items()
    }
    content = {
        "device": choices.shipped_name(device), "driver": device.driver, "results": found
    }  # fmt: skip
    output.write_text(json.dumps(content, indent=1) + "\n")
    sys.stdout.write(f"saved {output}\n")


def _plain(result: Result) -> dict[str, Any]:
    return {
        "choice": [result.chosen.kind, *result.chosen.numbers],
        "gain": round(result.first_seconds / result.seconds, 3),
        "seconds": float(f"{result.seconds:.4g}"),
    }


def _checked(device: str | None, output: Path | None) -> Device:
    if output is not None:
        check_output(output)
    chosen = find_device(device)
    sys.stdout.write(f"{chosen.id}: {chosen.name} ({chosen.driver})\n")
    if not settings.disk_cache or not disk_cache.is_usable():
        raise TreadleError(
            "results are kept in the cache folder, and there is none that can be used "
            "(TREADLE_NO_CACHE, TREADLE_CACHE_DIR)"
        )
    if not disk_cache.can_save():
        raise TreadleError(
            f"results are kept in the cache folder, and {disk_cache.folder()} cannot be written "
            "to: TREADLE_CACHE_DIR chooses another one"
        )
    return chosen


def _reason(device: Device, suites: Sequence[str]) -> str:
    if device.traits.serial_threads:
        return "NumPy's BLAS multiplies floats there, and its other kernels have no variants"
    if set(suites) == set(SUITES):
        return "no suite has a workload for it"
    return f"{' and '.join(suites)} {'has' if len(suites) == 1 else 'have'} no workload for it"


def _tune(
    device: Device,
    wanted: Sequence[tuple[Family, Workload]],
    seconds: float,
    outcomes: list[Outcome],
) -> None:
    """Add what is found to a list, problem by problem, with a line on the screen meanwhile."""
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
        TimeElapsedColumn(), TextColumn("{task.fields[now]}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as screen:
        task = screen.add_task("tuning", total=len(wanted), now="")

        def show(at: tuner.Progress) -> None:
            done = at.problem - 1 + (at.candidate - 1) / max(at.candidates, 1)
            now = f"{at.label}: {at.candidate} of {at.candidates}, {at.gain:.2f} times as fast"
            text = f"{at.problem} of {at.problems}"
            screen.update(task, completed=done, description=text, now=now)

        outcomes.extend(tuner.tune(device, wanted, seconds, tuner.Progress(show)))


def _show(outcomes: Sequence[Outcome]) -> None:
    """A table of what was found."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("problem")
    for heading in ("first guess", "best", "gain", "rate"):
        table.add_column(heading, justify="right")
    for heading in ("chosen", "tried"):
        table.add_column(heading)
    for each in outcomes:
        result = each.result
        if result is None:
            table.add_row(each.workload.label, "", "", "", "", each.failure, "")
            continue
        kept = result.chosen == each.first
        rejected = f", {len(each.rejected)} wrong" if each.rejected else ""
        table.add_row(
            each.workload.label, readable_seconds(result.first_seconds),
            readable_seconds(result.seconds), f"{each.gain:.2f}",
            f"{number(each.workload.operations / result.seconds * 1e-12)} TFLOP/s",
            "the first guess" if kept else str(result.chosen),
            f"{result.tried} of {each.candidates}{rejected}",
        )  # fmt: skip
    _console().print(table)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def _remark(total: int, wanted: int, left: int) -> str:
    if not wanted:
        return f"All {total} problems are tuned already; --again measures them anew"
    if left:
        return f"{left} of {total} problems are not done with all candidates: run it again to go on"
    return f"All {total} problems are tuned"
