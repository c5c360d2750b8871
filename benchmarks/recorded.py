"""The recorded figures: benchmarks/results/*.json, for the tables and the charts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Figure

Result = dict[str, Any]  # a file's contents


def read_results(folder: Path = RESULTS) -> list[Result]:
    """The result files' contents, oldest first; files of one date in the order of their names."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted((one for one in found if "figures" in one), key=lambda one: str(one["date"]))


def figure_of(entry: dict[str, Any]) -> Figure:
    """A figure from its entry in a file."""
    others = tuple((name, value) for name, value in entry.get("others") or ())
    return Figure(**{**entry, "others": others})


def by_machine(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The results of each machine, by what it is called."""
    machines: dict[str, list[Result]] = {}
    for result in results:
        machines.setdefault(machine(result), []).append(result)
    return machines


def machine(result: Result) -> str:
    """What a result's machine is called: its card, if it has one, and its processor."""
    return ", ".join(text for text in (result.get("card", ""), result["machine"]) if text)


def suite(results: Iterable[Result], name: str) -> tuple[str, dict[str, Figure]]:
    """A suite's newest figures by their names, and the card (or processor) that they are of: the
    one with most figures of the suite."""
    where, found = suite_with_results(results, name)
    return where, {name: figure for name, (figure, _) in found.items()}


def suite_with_results(
    results: Iterable[Result], name: str
) -> tuple[str, dict[str, tuple[Figure, Result]]]:
    """The same, each figure with the result that it is from."""
    found: dict[str, dict[str, tuple[Figure, Result]]] = {}
    for result in results:
        where = result.get("card") or result["machine"]
        for entry in result["figures"]:
            if entry["suite"] == name:
                found.setdefault(where, {})[entry["name"]] = figure_of(entry), result
    return max(found.items(), key=lambda one: len(one[1]), default=("", {}))
