"""`python -m benchmarks.table`: the tables of figures, from benchmarks/results/*.json.

The README has those of kernels, launches and arrays, docs/benchmarks.md those of the kernel
library, with their rooflines. One table for each machine. A figure that is in several files of a
machine is taken from the newest; files of the same date count in the order of their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Figure, number

_ROOT = Path(__file__).resolve().parent.parent
README, PAGE = _ROOT / "README.md", _ROOT / "docs" / "benchmarks.md"
_LIBRARY = "library-"  # what the names of the library's suites start with
BEGIN, END = "<!-- benchmarks:begin -->\n", "<!-- benchmarks:end -->"
NONE_YET = "*No results are recorded yet. `make bench` measures this machine.*\n"
# What a result file says beside its figures, and how a table's heading calls it.
_ABOUT = {
    "card": "",
    "cuda": "CUDA on ",
    "webgpu": "WebGPU on ",
    "dawn": "Dawn on ",
    "torch": "PyTorch ",
}


def read_results(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The result files' contents, oldest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted((one for one in found if "figures" in one), key=lambda one: str(one["date"]))


def tables(results: Iterable[dict[str, Any]], library: bool = False) -> str:
    """A heading and a table for each machine, or the line that says that there are none: of the
    library's suites, or of the others."""
    machines: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        figures = [f for f in result["figures"] if f["suite"].startswith(_LIBRARY) is library]
        if not figures:
            continue
        result = result | {"figures": figures}
        machines.setdefault(_machine(result), []).append(result)
    if not machines:
        return NONE_YET
    return "\n".join(_table(name, found) for name, found in machines.items())


def page_with_table(page: str, results: Iterable[dict[str, Any]], library: bool = False) -> str:
    """The page's text with the tables as they should be now."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{tables(results, library)}{END}{after}"


def row(figure: Figure) -> str:
    """A figure as a line of its table.

    >>> row(Figure("cpu", "n-body", "ms", 12.0, 1.0, False, "Numba", 15.0, True))
    '| cpu | n-body | 12 ms | Numba 15 ms (0.80) | at most 1 × Numba |'
    >>> row(Figure("start", "import", "s", 0.21345, 0.2, peer="import numpy", peers=0.1))
    '| start | import | 0.213 s | import numpy 0.1 s (2.13) | **missed**: at most 0.2 s |'
    """
    peer = f"{figure.peer} {number(figure.peers)} {figure.unit}" if figure.peers else ""
    if figure.peers:
        peer += f" ({figure.ours / figure.peers:.2f})"
    others = (f"{name} {number(value)} {figure.unit}" for name, value in figure.others)
    peer = ", ".join(text for text in (peer, *others) if text)
    name = figure.name + (f" ({figure.note})" if figure.note else "")
    cells = [figure.suite, name, f"{number(figure.ours)} {figure.unit}", peer, _target(figure)]
    if figure.roofline is not None:
        cells.insert(3, f"{figure.roofline:.2f}")
    return f"| {' | '.join(cells)} |"


_HEADING = {
    False: ("| suite | figure | treadle | peer, same run | target |", "|---" * 5 + "|"),
    True: ("| suite | figure | treadle | roofline | peer, same run | target |", "|---" * 6 + "|"),
}


def _target(figure: Figure) -> str:
    if figure.met is None:  # no target, or nobody beside it
        return ""
    text = f"at {'least' if figure.higher else 'most'} {number(figure.target)} "
    text += f"× {figure.peer}" if figure.ratio else figure.unit
    return text if figure.met else f"**missed**: {text}"


def _machine(result: dict[str, Any]) -> str:
    return ", ".join(text for text in (result.get("card", ""), result["machine"]) if text)


def _table(machine: str, results: list[dict[str, Any]]) -> str:
    figures: dict[tuple[str, str], Figure] = {}
    details: dict[str, str] = {}
    for result in results:
        details |= {key: f"{word}{result[key]}" for key, word in _ABOUT.items() if result.get(key)}
        for entry in result["figures"]:
            others = tuple((name, value) for name, value in entry.pop("others", ()))
            figure = Figure(**entry, others=others)
            figures[figure.suite, figure.name] = figure
    details.pop("card", None)
    dates = sorted({str(result["date"]) for result in results})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    lines = [
        f"**{machine}**",
        "",
        f"Measured {'; '.join([when, *details.values()])}. In brackets: ours / peer.",
        "",
        *_HEADING[any(figure.roofline is not None for figure in figures.values())],
        *(row(figure) for figure in figures.values()),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the tables of the README and of the documentation's page."""
    for path, library in ((README, False), (PAGE, True)):
        page = path.read_text(encoding="utf-8")
        path.write_text(page_with_table(page, read_results(), library), encoding="utf-8")


if __name__ == "__main__":
    main()
