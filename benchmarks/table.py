"""`python -m benchmarks.table`: tables and charts of the figures in benchmarks/results/*.json.

The README has ten of them, docs/benchmarks.md has tables of all, folded, below the charts of
docs/images/charts, docs/guides/launch-or-actor.md those of actors, and docs/crossover.md curves of
calls on host and device. One table for each machine. A figure that is in several files of a machine
is taken from the newest; files of the same date count in the order of their names.

Each figure stands with the commit that it was measured at; those that are older than the code that
they measure are marked: "(old)". `benchmarks.commits` has the rule. The marks are those of the day
that the command was run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks import charts, commits, curves
from benchmarks.actors_table import launch_or_actor
from benchmarks.commits import IsOld
from benchmarks.harness import Figure, number
from benchmarks.marks import OLD, amount, page_with
from benchmarks.programs_table import programs
from benchmarks.recorded import Result, by_machine, figure_of, read_results, suite_with_results

_ROOT = Path(__file__).resolve().parent.parent
README, PAGE = _ROOT / "README.md", _ROOT / "docs" / "benchmarks.md"
CROSSOVER = _ROOT / "docs" / "crossover.md"
LAUNCH_OR_ACTOR = _ROOT / "docs" / "guides" / "launch-or-actor.md"
_LIBRARY = "library-"  # what the names of the library's suites start with
_CURVES = "crossover-"  # those of the suites that have a page of their own
NONE_YET = "*No results are recorded yet. `make bench` measures this machine.*\n"
# What a result file says beside its figures, and how a table's heading calls it.
_ABOUT = {
    "card": "",
    "cuda": "CUDA on ",
    "webgpu": "WebGPU on ",
    "dawn": "Dawn on ",
    "torch": "PyTorch ",
}
# The README's figures: a suite, a figure's name, and what a reader is told that it is.
TEN = (
    ("start", "first kernel result on cpu, whole process, from the disk cache",
     "CPU: start Python, import treadle, run a kernel"),
    ("cpu", "n-body forces, 8192 bodies", "CPU: forces between 8192 bodies, a Python kernel"),
    ("arrays-cpu", "gelu_tanh(x * w + b), 16 M float32", "CPU: gelu(x * w + b) of an array"),
    ("training-cpu", "digits MLP, batch 64", "CPU: a training step of a small network"),
    ("launch-cuda", "launch of a small kernel, host time", "CUDA: host time of a launch"),
    ("arrays-cuda", "layer norm of 8192 x 8192", "CUDA: layer norm of 8192 × 8192"),
    ("arrays-webgpu", "gelu_tanh(x * w + b), w and b numbers, 64 M float32",
     "WebGPU: gelu(x * w + b) of an array"),
    ("cuda_cpp-webgpu", "n-body, 32768 bodies", "WebGPU: 32768 bodies, a CUDA C++ kernel"),
    ("products-cuda", "float16 4096³", "CUDA, H200: float16 matrix product of 4096³"),
    ("attention-cuda", "forward, 4 × 16 × 4096 × 128 float16, causal",
     "CUDA, H200: float16 attention, 4096 tokens"),
)  # fmt: skip


def tables(results: Iterable[Result], is_old: IsOld = commits.never) -> str:
    """For each machine its tables, folded: of the kernel library, and of everything else."""
    parts = []
    for machine, found in by_machine(results).items():
        for library in (False, True):
            chosen = [
                result | {"figures": figures}
                for result in found
                if (figures := [
                    entry
                    for entry in result["figures"]
                    if entry["suite"].startswith(_LIBRARY) is library
                    and not entry["suite"].startswith(_CURVES)
                ])
            ]  # fmt: skip
            if chosen:
                parts.append(_folded(machine, library, chosen, is_old))
    return "\n".join(parts) or NONE_YET


def ten(results: Iterable[Result], is_old: IsOld = commits.never) -> str:
    """The README's table."""
    results = list(results)
    rows: list[str] = []
    where: dict[str, set[str]] = {}
    for name, figure_name, shown in TEN:
        machine, figures = suite_with_results(results, name)
        if figure_name in figures:
            where.setdefault(name.rpartition("-")[2] if "-" in name else "cpu", set()).add(machine)
            figure, result = figures[figure_name]
            peers = ", ".join(f"{peer} {amount(v, figure.unit)}" for peer, v in _peers(figure))
            cells = (shown, amount(figure.ours, figure.unit), peers, _commit(name, result, is_old))
            rows.append(f"| {' | '.join(cells)} |")
    if not rows:
        return NONE_YET
    cpus = sorted(where.pop("cpu", ()))
    cards = sorted(set().union(*where.values()))
    machines = [f"CPU: {', '.join(cpus)}"] if cpus else []
    machines += [f"CUDA and WebGPU: {', '.join(cards)}; PyTorch runs on CUDA"] if cards else []
    return "\n".join(
        ["| what | treadle | others, in the same run | commit |", "|---|---|---|---|", *rows, "",
         f"{'. '.join(machines)}."]
    ) + "\n"  # fmt: skip


def _commit(suite: str, result: Result, is_old: IsOld) -> str:
    """The commit of a result's figure of a suite, marked if the code has changed since."""
    commit, shown = commits.of_result(result)
    return shown + OLD * is_old(commit, suite)


def _peers(figure: Figure) -> list[tuple[str, float]]:
    found = [(figure.peer, figure.peers), *figure.others] if figure.peers else list(figure.others)
    return [(name, value) for name, value in found if name not in ("copy", "read")]


def pages(results: Iterable[Result], is_old: IsOld = commits.never) -> dict[Path, str]:
    """The pages with figures, as they should be now."""
    results = list(results)
    texts = {README: ten(results, is_old), PAGE: tables(results, is_old)}
    found = {
        path: page_with(path.read_text(encoding="utf-8"), text) for path, text in texts.items()
    }
    found[README] = page_with(found[README], programs(results, is_old), "programs")
    actors = LAUNCH_OR_ACTOR.read_text(encoding="utf-8")
    found[LAUNCH_OR_ACTOR] = page_with(actors, launch_or_actor(results, is_old), "actors")
    crossover = CROSSOVER.read_text(encoding="utf-8")
    found[CROSSOVER] = page_with(crossover, curves.page(results, is_old), "crossover")
    return found


def row(figure: Figure, commit: str) -> str:
    """A figure as a line of its table.

    >>> row(Figure("cpu", "n-body", "ms", 12.0, 1.0, False, "Numba", 15.0, True), "4527901d")
    '| cpu | n-body | 12 ms | Numba 15 ms (0.80) | at most 1 × Numba | 4527901d |'
    >>> row(Figure("start", "import", "s", 0.21345, 0.2, peer="import numpy", peers=0.1), "")
    '| start | import | 213 ms | import numpy 100 ms (2.13) | **missed**: at most 200 ms |  |'
    """
    peer = f"{figure.peer} {_shown(figure.peers, figure.unit)}" if figure.peers else ""
    if figure.peers:
        peer += f" ({figure.ours / figure.peers:.2f})"
    others = (f"{name} {_shown(value, figure.unit)}" for name, value in figure.others)
    peer = ", ".join(text for text in (peer, *others) if text)
    name = figure.name + (f" ({figure.note})" if figure.note else "")
    cells = [
        figure.suite,
        name,
        _shown(figure.ours, figure.unit),
        peer,
        _target(figure),
        commit,
    ]
    if figure.roofline is not None:
        cells.insert(3, f"{figure.roofline:.2f}")
    return f"| {' | '.join(cells)} |"


def _shown(value: float, unit: str) -> str:
    """A value with its unit: that of the figure, but for times, which vary most."""
    return amount(value, unit) if unit == "s" else f"{number(value)} {unit}"


_HEADING = {
    False: ("| suite | figure | treadle | peer, same run | target | commit |", "|---" * 6 + "|"),
    True: (
        "| suite | figure | treadle | roofline | peer, same run | target | commit |",
        "|---" * 7 + "|",
    ),
}


def _target(figure: Figure) -> str:
    if figure.met is None:  # no target, or no peer was measured
        return ""
    target = figure.target or 0.0
    text = f"at {'least' if figure.higher else 'most'} "
    text += f"{number(target)} × {figure.peer}" if figure.ratio else _shown(target, figure.unit)
    return text if figure.met else f"**missed**: {text}"


def _folded(machine: str, library: bool, results: list[Result], is_old: IsOld) -> str:
    what = "the kernel library" if library else "kernels, arrays, launches, training, programs"
    lines = [
        '<details markdown="1">',
        f"<summary>{machine}: {what}</summary>",
        "",
        _table(results, is_old),
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _table(results: list[Result], is_old: IsOld) -> str:
    figures: dict[tuple[str, str], tuple[Figure, str]] = {}
    details: dict[str, str] = {}
    for result in results:
        details |= {key: f"{word}{result[key]}" for key, word in _ABOUT.items() if result.get(key)}
        for entry in result["figures"]:
            figure = figure_of(entry)
            commit = _commit(figure.suite, result, is_old)
            figures[figure.suite, figure.name] = figure, commit
    details.pop("card", None)
    dates = sorted({str(result["date"]) for result in results})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    lines = [
        f"Measured {'; '.join([when, *details.values()])}. In brackets: treadle / peer.",
        "",
        *_HEADING[any(figure.roofline is not None for figure, _ in figures.values())],
        *(row(*one) for one in figures.values()),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the README's table, the page's tables, and the charts."""
    results = read_results()
    try:
        is_old = commits.history()
    except commits.NoHistory as error:
        sys.exit(f"which figures are old is known from git's history: run it in a clone ({error})")
    for path, text in pages(results, is_old).items():
        path.write_text(text, encoding="utf-8")
    charts.FOLDER.mkdir(exist_ok=True)
    for name, text in charts.charts(results).items():
        (charts.FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
