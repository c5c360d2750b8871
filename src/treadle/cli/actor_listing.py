"""`treadle actors`: the actors of processes that have given themselves a name."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from treadle.actors.publishing import published

_COLUMNS = (
    "process",
    "actor",
    "device",
    "mode",
    "state",
    "messages",
    "a second",
    "errors",
    "in",
    "out",
)
_REFRESH = 0.5


def table_of(
    processes: list[dict[str, Any]], before: dict[Any, tuple[float, int]] | None = None
) -> Table:
    """One row an actor. `before` has the counts of an earlier look, for rates; it is updated."""
    table = Table(*_COLUMNS, box=None)
    now = time.monotonic()
    for process in processes:
        for at, actor in enumerate(process["actors"]):
            count = int(actor["messages_processed"])
            rate = ""
            if before is not None:
                key = process["pid"], at, actor["actor"]
                if key in before and now > before[key][0]:
                    rate = f"{(count - before[key][1]) / (now - before[key][0]):,.0f}"
                before[key] = now, count
            table.add_row(
                escape(f"{process['name']} ({process['pid']})"),
                *(str(actor[name]) for name in ("actor", "device", "mode", "state")),
                f"{count:,}", rate,
                *(str(actor[f]) for f in ("errors_encountered", "input_depth", "output_depth")),
            )  # fmt: skip
    return table


def show_actors(watch: bool) -> None:
    """Print the table, or keep it up to date until Ctrl-C."""
    console = Console()
    if not watch:
        processes = published()
        if not any(process["actors"] for process in processes):
            console.print("No actors: a program shows its own with td.actors.publish(name).")
            return
        console.print(table_of(processes))
        return
    before: dict[Any, tuple[float, int]] = {}
    with Live(table_of(published(), before), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH)
            live.update(table_of(published(), before), refresh=True)
