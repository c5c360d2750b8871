"""The tables of docs/guides/launch-or-actor.md: what messages to an actor cost beside a launch for
each, for every device that has recorded figures."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import commits
from benchmarks.commits import IsOld
from benchmarks.harness import Figure
from benchmarks.marks import OLD, amount
from benchmarks.recorded import Result, suite_with_results

DEVICES = {"cpu": "CPU", "webgpu": "WebGPU", "dawn": "WebGPU through Dawn", "cuda": "CUDA"}
# How a figure's name begins, and what a reader sees.
ROWS = (
    ("round trip, median", "one question whose answer is waited for"),
    ("round trip, p99", "the same, the slowest of a hundred"),
    ("messages end to end, each", "one of many messages that do not wait for each other"),
    ("300 commands", "300 commands to a simulation: inject, read back, step"),
    ("nearest of", "one of many queries for the nearest of 4,096 points"),
)
NONE_YET = "*No results are recorded yet.*\n"


def launch_or_actor(results: Iterable[Result], is_old: IsOld = commits.never) -> str:
    """The tables, one for each device."""
    results = list(results)
    parts = []
    for name, shown in DEVICES.items():
        suite = f"actors-{name}"
        where, figures = suite_with_results(results, suite)
        rows = [row for begin, what in ROWS if (row := _row(figures, begin, what))]
        if not rows:
            continue
        _, result = next(iter(figures.values()))
        commit, at = commits.of_result(result)
        driver = f", {result[name]}" if name != "cpu" and result.get(name) else ""
        parts.append(
            f"{shown}: {where}{driver}, at {at}{OLD * is_old(commit, suite)}.\n\n"
            "| what | actor | a launch for each | the launch takes |\n|---|---|---|---|\n"
            + "\n".join(rows)
        )
    return "\n\n".join(parts) + "\n" if parts else NONE_YET


def _row(figures: dict[str, tuple[Figure, Result]], begin: str, what: str) -> str | None:
    found = [figure for name, (figure, _) in figures.items() if name.startswith(begin)]
    if not found or not found[0].peers:
        return None
    figure = found[0]
    times = figure.peers / figure.ours
    cells = (
        what, amount(figure.ours, figure.unit), amount(figure.peers, figure.unit),
        f"{times:.2g} times as long" if times < 100 else f"{times:.0f} times as long",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"
