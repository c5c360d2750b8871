"""`treadle actors`: the actors of processes that have given themselves a name."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from treadle.actors.publishing import published

_TEXTS = ("process", "actor", "device", "mode", "state")
_NUMBERS = ("messages", "per second", "errors", "in", "out")
_RATE = 1  # of these; only looks one after the other give it
_REFRESH = 0.5
_LONGEST_NUMBER = 10_000  # from it on, numbers are rounded where there is little room


@dataclass(frozen=True)
class _Row:
    """An actor: what its `_TEXTS` and `_NUMBERS` are; None where a rate is not known yet."""

    texts: tuple[str, ...]
    numbers: tuple[float | None, ...]


def table_of(
    processes: list[dict[str, Any]],
    before: dict[Any, tuple[float, int]] | None = None,
    width: int | None = None,
) -> Table:
    """One row an actor, in a form that fits the width. `before` has the counts of an earlier look,
    for rates; it is updated."""
    rows = _rows(processes, before)
    rates = before is not None
    table = _wide(rows, rates)
    if width is not None:
        console = Console(width=10 * width)
        if console.measure(table).maximum > width:
            return _narrow(rows, rates)
    return table


def _rows(
    processes: list[dict[str, Any]], before: dict[Any, tuple[float, int]] | None
) -> list[_Row]:
    rows = []
    now = time.monotonic()
    for process in processes:
        for at, actor in enumerate(process["actors"]):
            count = int(actor["messages_processed"])
            rate = None
            if before is not None:
                key = process["pid"], at, actor["actor"]
                if key in before and now > before[key][0]:
                    rate = (count - before[key][1]) / (now - before[key][0])
                before[key] = now, count
            texts = (str(actor[name]) for name in ("actor", "device", "mode", "state"))
            depths = (int(actor[f]) for f in ("errors_encountered", "input_depth", "output_depth"))
            owner = f"{process['name']} ({process['pid']})"
            rows.append(_Row((owner, *texts), (count, rate, *depths)))
    return rows


def _wide(rows: list[_Row], rates: bool) -> Table:
    """A line for each actor."""
    table = Table(*_TEXTS, box=None)
    _add_columns(table, rates)
    for row in rows:
        shown = _chosen(row.numbers, rates)
        numbers = ("" if number is None else f"{number:,.0f}" for number in shown)
        table.add_row(*map(escape, row.texts), *numbers)
    return table


def _chosen(numbers: tuple[Any, ...], rates: bool) -> tuple[Any, ...]:
    """Of the numbers, or what stands for each of them, those that are shown."""
    return numbers if rates else numbers[:_RATE] + numbers[_RATE + 1 :]


def _add_columns(table: Table, rates: bool) -> None:
    for name in _chosen(_NUMBERS, rates):
        table.add_column(name, justify="right", no_wrap=True)


def _narrow(rows: list[_Row], rates: bool) -> Table:
    """Two lines for each actor, under its process; no number is cut off."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("actor", overflow="fold")
    _add_columns(table, rates)
    owner = ""
    for row in rows:
        process, actor, *facts = row.texts
        if process != owner:
            owner = process
            table.add_row(f"[bold]{escape(process)}[/bold]")
        cell = f"{escape(actor)}\n[dim]{escape(' '.join(facts))}[/dim]"
        table.add_row(cell, *map(_short, _chosen(row.numbers, rates)))
    return table


def _short(number: float | None) -> str:
    """A number in up to five characters.

    >>> _short(1234), _short(12_345_678), _short(999_999), _short(5e13)
    ('1,234', '12.3M', '1M', '50T')
    """
    if number is None:
        return ""
    if number < _LONGEST_NUMBER:
        return f"{number:,.0f}"
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if float(f"{number:.3g}") >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def show_actors(watch: bool) -> None:
    """Print the table, or keep it up to date until Ctrl-C."""
    console = Console()
    if not watch:
        processes = published()
        if not any(process["actors"] for process in processes):
            console.print("No actors: a program shows its own with td.actors.publish(name).")
            return
        console.print(table_of(processes, width=console.width))
        return
    before: dict[Any, tuple[float, int]] = {}

    def shown() -> Table:
        return table_of(published(), before, console.width)

    with Live(shown(), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH)
            live.update(shown(), refresh=True)
