"""The charts of docs/benchmarks.md, drawn from the recorded figures as SVG.

Bars lie beside their peers' of the same run, with the value at their end. The colours suit light
and dark pages. (The curves of docs/crossover.md are in `curves.py`.) `python -m benchmarks.table`
writes the files, which a test compares.
"""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks import curves
from benchmarks.harness import Figure, number
from benchmarks.recorded import Result, suite

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "charts"

# What a series is drawn in: (on light, on dark).
_COLOURS = {
    "treadle": ("#0b7285", "#3bc0d9"),
    "treadle, CUDA": ("#0b7285", "#3bc0d9"),
    "treadle, WebGPU": ("#4aa3b5", "#1f8ba0"),
    "treadle, Dawn": ("#9ccfd8", "#14616f"),
    "PyTorch": ("#d9641e", "#f08a4b"),
    "PyTorch, compiled": ("#f2b184", "#a8592a"),
    "PyTorch, CUDA graph": ("#f2b184", "#a8592a"),
    "NumPy": ("#868e96", "#9aa3ab"),
    "Numba": ("#868e96", "#9aa3ab"),
    "NVRTC": ("#868e96", "#9aa3ab"),
}
_STYLE = """
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #24292f; }
  .head { font-weight: 600; font-size: 15px; }
  .dim, .value { font-size: 12px; fill: #57606a; }
  .axis { stroke: #d0d7de; } .line { stroke: #57606a; stroke-dasharray: 4 3; }
"""
_DARK = """
    text { fill: #e6edf3; } .dim, .value { fill: #9da7b1; }
    .axis { stroke: #3d444d; } .line { stroke: #9da7b1; }
"""
_WIDTH, _PLOT = 540, 440  # of the picture, and of the longest bar
_BAR, _LABEL = 13, 19  # heights


@dataclass(frozen=True)
class Row:
    """A label, and the bars below it: series, value, and what is written at the bar's end.

    `mark` is where a dashed line crosses the bars, if there is one.
    """

    label: str
    bars: tuple[tuple[str, float, str], ...]
    mark: float | None = None


@dataclass(frozen=True)
class Group:
    """Rows below a heading of their own, or below none."""

    title: str
    rows: tuple[Row, ...]


def draw(title: str, about: str, groups: Iterable[Group], top: float | None = None) -> str:
    """A chart of horizontal bars, whose longest is `top`, or else the largest value."""
    groups = [group for group in groups if group.rows]
    rows = [row for group in groups for row in group.rows]
    values = [value for row in rows for _, value, _ in row.bars]
    top = top or max([*values, *(row.mark for row in rows if row.mark)], default=1.0)
    series = list(dict.fromkeys(name for row in rows for name, _, _ in row.bars))

    body, y = [_text(0, 18, title, "head")], 18
    for line in textwrap.wrap(about, 80):
        y += 18
        body.append(_text(0, y, line, "dim"))
    x, y = 0, y + 24
    for name in series:
        width = 22 + round(7.2 * len(name)) + 16
        if x + width > _WIDTH:
            x, y = 0, y + 20
        body.append(f'<rect class="{_kind(name)}" x="{x}" y="{y - 10}" width="12" height="12"/>')
        body.append(_text(x + 18, y, name))
        x += width
    y += 10
    start = y
    for group in groups:
        if group.title:
            y += 26
            body.append(_text(0, y, group.title, "head"))
            y += 4
        for row in group.rows:
            y += _LABEL + 5
            body.append(_text(0, y - 5, row.label))
            first = y
            at = round(_PLOT * min((row.mark or 0.0) / top, 1.0), 1)
            for name, value, shown in row.bars:
                length = max(round(_PLOT * min(value / top, 1.0), 1), 1)
                body.append(
                    f'<rect class="{_kind(name)}" x="0" y="{y}" width="{length:g}" '
                    f'height="{_BAR - 2}"/>'
                )
                after = length + 5
                if after - 4 < at < after + 7 * len(shown):
                    after = at + 5  # not across the dashed line
                body.append(_text(after, y + _BAR - 3, shown, "value"))
                y += _BAR
            if row.mark:
                body.append(f'<path class="line" d="M{at:g} {first - 2}V{y}"/>')
    body.append(f'<path class="axis" d="M0.5 {start}V{y + 2}"/>')
    light = "".join(f"  .{_kind(name)} {{ fill: {_COLOURS[name][0]}; }}\n" for name in series)
    dark = "".join(f"    .{_kind(name)} {{ fill: {_COLOURS[name][1]}; }}\n" for name in series)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 8}" '
            f'width="{_WIDTH}" height="{y + 8}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}{light}  @media (prefers-color-scheme: dark) {{{_DARK}{dark}  }}",
            "</style>",
            *body,
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y}"{style}>{escape(text)}</text>'


def _kind(series: str) -> str:
    return "s-" + "".join(c for c in series.lower() if c.isalnum())


def charts(results: Iterable[Result]) -> dict[str, str]:
    """All charts by their files' names."""
    results = list(results)
    return {name: make(results) for name, make in _CHARTS.items()} | curves.charts(results)


# --- rates, and times -----------------------------------------------------------------------------

_SHOWN = {"torch.compile": "PyTorch, compiled", "PyTorch, eager": "PyTorch"}


def _peers(figure: Figure, wanted: Iterable[str]) -> list[tuple[str, float]]:
    found = [(figure.peer, figure.peers), *figure.others] if figure.peers else list(figure.others)
    named = {_SHOWN.get(name, name): value for name, value in found if value}
    return [(name, named[name]) for name in wanted if name in named]


def _label(name: str) -> str:
    name = name.replace(" x ", " × ").replace(": host time", "").replace(", host time", "")
    name = re.sub(r"(?:\*\*|\^)(\d+)", lambda power: power[1].translate(_RAISED), name)
    return name.replace("gelu_tanh", "gelu")


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _rows(
    figures: dict[str, dict[str, Figure]],
    names: Iterable[str],
    peers: Iterable[str],
    mark: str | None = None,
) -> list[Row]:
    """A row for each name; `figures` has a device's figures by what its series is called."""
    peers, rows = tuple(peers), []
    for name in names:
        having = {series: found[name] for series, found in figures.items() if name in found}
        if not having:
            continue
        first = next(iter(having.values()))
        bars = [(series, one.ours) for series, one in having.items()] + _peers(first, peers)
        marks = dict(_peers(first, [mark] if mark else []))
        shown = tuple((one, value, f"{number(value)} {first.unit}") for one, value in bars)
        rows.append(Row(_label(first.name), shown, marks.get(mark or "")))
    return rows


def _arrays_on_a_card(results: list[Result]) -> str:
    card, cuda = suite(results, "arrays-cuda")
    webgpu = _of_card(results, "arrays-webgpu", card)
    names = [n for n, one in cuda.items() if one.unit == "GB/s" and ", beside " not in n]
    figures = {"treadle, CUDA": cuda, "treadle, WebGPU": webgpu}
    rows = _rows(figures, names, ("PyTorch", "PyTorch, compiled"), "copy")
    return draw(
        f"Array expressions, {card}",
        "Memory traffic in GB/s: longer is better. Dashed: a copy on the same card.",
        [Group("", tuple(rows))],
    )


def _arrays_on_the_cpu(results: list[Result]) -> str:
    machine, cpu = suite(results, "arrays-cpu")
    names = [name for name, one in cpu.items() if one.unit == "GB/s"]
    rows = _rows({"treadle": cpu}, names, ("PyTorch", "NumPy"), "copy")
    return draw(
        f"Array expressions, {machine}",
        "Memory traffic in GB/s: longer is better. Dashed: a copy on the same machine.",
        [Group("", tuple(rows))],
    )


def _kernels_on_the_cpu(results: list[Result]) -> str:
    machine, cpu = suite(results, "cpu")
    names = [name for name, one in cpu.items() if one.peer == "Numba"]
    rows = _rows({"treadle": cpu}, names, ("Numba",))
    return draw(
        f"Kernels in Python, {machine}",
        "Time of a run in ms: shorter is better.",
        [Group("", tuple(rows))],
    )


def _host_time(results: list[Result]) -> str:
    card, launch = suite(results, "launch-cuda")
    on = {
        kind: {
            name.replace(f"-{kind}", ""): figure
            for part in ("launch", "compiled", "arrays")
            for name, figure in _of_card(results, f"{part}-{kind}", card).items()
        }
        for kind in ("cuda", "webgpu", "dawn")
    }
    figures = {
        "treadle, CUDA": on["cuda"], "treadle, WebGPU": on["webgpu"], "treadle, Dawn": on["dawn"],
    }  # fmt: skip
    names = [
        *(name for name, one in launch.items() if one.unit == "µs"),
        *(n for n, one in on["cuda"].items() if n.startswith("compiled: 200") and one.peers),
    ]
    rows = _rows(figures, dict.fromkeys(names), ("PyTorch", "PyTorch, CUDA graph"))
    return draw(
        f"Host time of a call, {card}",
        "In µs: shorter is better.",
        [Group("", tuple(rows))],
    )


def _of_card(results: list[Result], name: str, card: str) -> dict[str, Figure]:
    return suite([one for one in results if one.get("card") == card], name)[1]


# --- speeds beside a peer -------------------------------------------------------------------------


def _speed(figure: Figure, peer: str) -> float | None:
    """How many times as fast as the peer."""
    value = dict(_peers(figure, [peer])).get(peer)
    if not value:
        return None
    return figure.ours / value if figure.higher else value / figure.ours


def _ratio_rows(figures: dict[str, dict[str, Figure]], peer: str, label: str = "{}") -> list[Row]:
    names = dict.fromkeys(name for found in figures.values() for name in found)
    rows = []
    for name in names:
        bars = tuple(
            (series, speed, f"{speed:.2f} ×")
            for series, found in figures.items()
            if name in found and (speed := _speed(found[name], peer)) is not None
        )
        if bars:
            rows.append(Row(label.format(_label(name)), bars, 1.0))
    return rows


def _cuda_cpp(results: list[Result]) -> str:
    card, cuda = suite(results, "cuda_cpp-cuda")
    figures = {"treadle, CUDA": cuda}
    for kind in ("WebGPU", "Dawn"):
        figures[f"treadle, {kind}"] = _of_card(results, f"cuda_cpp-{kind.lower()}", card)
    return draw(
        f"CUDA C++ kernels, {card}",
        "Speed beside the same kernel through NVIDIA's NVRTC (dashed: as fast): longer is better.",
        [Group("", tuple(_ratio_rows(figures, "NVRTC")))],
    )


def _training(results: list[Result]) -> str:
    groups = []
    for device, name in (
        ("CUDA", "training-cuda"),
        ("WebGPU", "training-webgpu"),
        ("", "training-cpu"),
    ):
        where, figures = suite(results, name)
        series = f"treadle, {device}" if device else "treadle"
        rows = []
        for figure in figures.values():
            peer = figure.peer.partition(",")[0] if figure.unit == "s" and figure.peers else ""
            if peer:
                speed = figure.peers / figure.ours
                bars = ((series, speed, f"{speed:.2f} ×"),)
                rows.append(Row(f"{_label(figure.name)} (beside {figure.peer})", bars, 1.0))
        groups.append(Group(f"{where}{', ' if device else ''}{device}", tuple(rows)))
    return draw(
        "Steps of training",
        "Speed beside PyTorch (dashed: as fast): longer is better.",
        groups,
        3.0,
    )


def _programs(results: list[Result]) -> str:
    card, cuda = suite(results, "programs-cuda")
    on_card = {"treadle, CUDA": cuda}
    for kind in ("WebGPU", "Dawn"):
        on_card[f"treadle, {kind}"] = _of_card(results, f"programs-{kind.lower()}", card)
    machine, cpu = suite(results, "programs-cpu")
    groups = [
        Group(title, tuple(_ratio_rows({k: _timed(f) for k, f in figures.items()}, "PyTorch")))
        for title, figures in ((card, on_card), (machine, {"treadle": cpu}))
    ]
    return draw(
        "Whole programs",
        "Speed beside PyTorch, eager (dashed: as fast): longer is better.",
        groups,
        3.0,
    )


def _timed(figures: dict[str, Figure]) -> dict[str, Figure]:
    return {name: figure for name, figure in figures.items() if figure.unit in ("s", "µs")}


def _themes(figures: dict[str, Figure]) -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for figure in figures.values():
        found.setdefault(figure.name.partition(":")[0], []).append(figure)
    return found


def _library(results: list[Result]) -> str:
    card, cuda = suite(results, "library-cuda")
    webgpu = _of_card(results, "library-webgpu", card)
    machine, cpu = suite(results, "library-cpu")
    groups = []
    for title, figures in (
        (card, {"treadle, CUDA": cuda, "treadle, WebGPU": webgpu}),
        (machine, {"treadle": cpu}),
    ):
        rows = []
        for theme in dict.fromkeys(t for found in figures.values() for t in _themes(found)):
            bars = []
            for series, found in figures.items():
                speeds = [s for f in _themes(found).get(theme, ()) if (s := _speed(f, "PyTorch"))]
                if speeds:
                    middle = statistics.median(speeds)
                    bars.append((series, middle, f"{middle:.2f} ×"))
            rows.append(Row(theme, tuple(bars), 1.0))
        groups.append(Group(title, tuple(rows)))
    return draw(
        "The kernel library beside PyTorch",
        "Median speed of a theme's figures (dashed: as fast): longer is better.",
        groups,
        3.0,
    )


# --- rooflines ------------------------------------------------------------------------------------


def _roofline(kind: str, series: str, results: list[Result]) -> str:
    where, figures = suite(results, f"library-{kind}")
    groups = []
    for theme, found in _themes(figures).items():
        rows = []
        for figure in found:
            if figure.roofline is None:
                continue
            bars = [(series, figure.roofline, f"{figure.roofline:.0%}")]
            for name, value in _peers(figure, ("PyTorch", "NumPy")):
                share = figure.roofline * value / figure.ours
                bars.append((name, share, f"{share:.0%}"))
            rows.append(Row(_label(figure.name.partition(": ")[2]), tuple(bars), 1.0))
        groups.append(Group(theme, tuple(rows)))
    return draw(
        f"Share of the roofline, {where}",
        "Of what the device's memory or arithmetic allows (dashed: 100%): longer is better.",
        groups,
        1.1,
    )


_CHARTS = {
    "arrays-card.svg": _arrays_on_a_card,
    "arrays-cpu.svg": _arrays_on_the_cpu,
    "kernels-cpu.svg": _kernels_on_the_cpu,
    "host-time.svg": _host_time,
    "cuda-cpp.svg": _cuda_cpp,
    "training.svg": _training,
    "programs.svg": _programs,
    "library.svg": _library,
    "roofline-cuda.svg": lambda results: _roofline("cuda", "treadle, CUDA", results),
    "roofline-webgpu.svg": lambda results: _roofline("webgpu", "treadle, WebGPU", results),
    "roofline-cpu.svg": lambda results: _roofline("cpu", "treadle", results),
}
