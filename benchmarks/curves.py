"""Curves of seconds by size, on logarithmic axes: from which size on a device is quicker.

Drawn from the figures of the suites `crossover-…` as SVG, like the bars of `charts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks import commits
from benchmarks.commits import IsOld
from benchmarks.harness import Figure
from benchmarks.marks import OLD, amount
from benchmarks.recorded import Result, suite, suite_with_results

KINDS = {"cuda": "CUDA", "webgpu": "WebGPU", "dawn": "Dawn"}  # of devices, as people call them

HOST, DEVICE, NUMPY, AUTO = "host", "device", "NumPy", 'device="auto"'
# What a curve is drawn in: (on light, on dark). The points of the last one lie on top.
_COLOURS = {
    NUMPY: ("#868e96", "#9aa3ab"),
    HOST: ("#4aa3b5", "#1f8ba0"),
    DEVICE: ("#d9641e", "#f08a4b"),
    AUTO: ("#24292f", "#e6edf3"),
}
_STYLE = """
  text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #24292f; }
  .head { font-weight: 600; font-size: 15px; } .name { font-weight: 600; }
  .dim { font-size: 11px; fill: #57606a; }
  .grid { stroke: #d0d7de; stroke-width: 0.5; } polyline { fill: none; stroke-width: 1.8; }
"""
_DARK = """
    text { fill: #e6edf3; } .dim { fill: #9da7b1; } .grid { stroke: #3d444d; }
"""
_WIDTH, _COLUMNS = 640, 2
_PANEL = (320, 236)  # of a panel, with its labels
_PLOT = (250, 150)  # of its axes
_LEFT, _TOP = 52, 44  # of the axes, within the panel

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """The curves of a program: sizes and seconds, by what is drawn."""

    name: str
    unit: str
    curves: dict[str, Points]

    @property
    def crossover(self) -> float | None:
        """The size from which on the device is quicker than the host, on the lines between the
        measured sizes; None if it is not at the largest one."""
        pairs = [
            (size, math.log(device / host))
            for (size, host), (_, device) in zip(
                self.curves[HOST], self.curves[DEVICE], strict=True
            )
        ]
        at: float | None = None
        before: tuple[float, float] | None = None
        for size, ratio in pairs:
            if ratio >= 0:
                at = None
            elif at is None:
                at = size
                if before is not None:
                    share = before[1] / (before[1] - ratio)
                    at = before[0] * (size / before[0]) ** share
            before = size, ratio
        return at


def panels(figures: Iterable[Figure]) -> list[Panel]:
    """The panels of a suite's figures: "dot: 1,000 elements" and so on."""
    found: dict[str, Panel] = {}
    for figure in figures:
        name, _, rest = figure.name.partition(": ")
        size, _, unit = rest.partition(" ")
        panel = found.setdefault(name, Panel(name, unit, {each: [] for each in _COLOURS}))
        for curve, seconds in (*figure.others, (AUTO, figure.ours)):
            panel.curves[curve].append((float(size.replace(",", "")), seconds))
    return list(found.values())


def draw(title: str, about: str, shown: Sequence[Panel]) -> str:
    """All panels in one picture."""
    rows = -(-len(shown) // _COLUMNS)
    height = 78 + rows * _PANEL[1]
    body = [_text(0, 16, title, "head"), _text(0, 36, about, "dim")]
    x = 0.0
    for name in _COLOURS:
        body.append(f'<rect class="{_kind(name)} full" x="{x:g}" y="49" width="11" height="11"/>')
        body.append(_text(x + 16, 59, name))
        x += 40 + 7.2 * len(name)
    for number, panel in enumerate(shown):
        left = number % _COLUMNS * _PANEL[0]
        top = 72 + number // _COLUMNS * _PANEL[1]
        body += _panel(panel, left + _LEFT, top + _TOP)
    light = "".join(_rule(name, colours[0], "  ") for name, colours in _COLOURS.items())
    dark = "".join(_rule(name, colours[1], "    ") for name, colours in _COLOURS.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}{light}  @media (prefers-color-scheme: dark) {{{_DARK}{dark}  }}",
            "</style>",
            *body,
            "</svg>",
            "",
        ]
    )


def _panel(panel: Panel, left: float, top: float) -> list[str]:
    width, height = _PLOT
    sizes = [size for points in panel.curves.values() for size, _ in points]
    times = [seconds for points in panel.curves.values() for _, seconds in points]
    low_x, high_x = math.log10(min(sizes)), math.log10(max(sizes))
    low_y, high_y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(size: float, seconds: float) -> tuple[float, float]:
        x = (math.log10(size) - low_x) / ((high_x - low_x) or 1.0)
        y = (math.log10(seconds) - low_y) / ((high_y - low_y) or 1)
        return round(left + width * x, 1), round(top + height * (1 - y), 1)

    body = [_text(left - _LEFT + 8, top - 26, panel.name, "name"), _text(
        left - _LEFT + 8, top - 10, _told(panel), "dim")]  # fmt: skip
    for power in range(low_y, high_y + 1):
        _, y = place(min(sizes), 10.0**power)
        body.append(f'<path class="grid" d="M{left:g} {y:g}h{width}"/>')
        body.append(_text(left - 4, y + 4, _seconds(power), "dim", "end"))
    for size in _ticks(sorted(set(sizes))):
        x, _ = place(size, min(times))
        body.append(f'<path class="grid" d="M{x:g} {top:g}v{height}"/>')
        body.append(_text(x, top + height + 15, _size(size), "dim", "middle"))
    body.append(_text(left + width, top + height + 30, panel.unit, "dim", "end"))
    for name, points in panel.curves.items():
        placed = [place(*point) for point in points]
        if name == AUTO:
            body += [f'<circle class="{_kind(name)} full" cx="{x:g}" cy="{y:g}" r="2.6"/>'
                     for x, y in placed]  # fmt: skip
        else:
            line = " ".join(f"{x:g},{y:g}" for x, y in placed)
            body.append(f'<polyline class="{_kind(name)}" points="{line}"/>')
    return body


def _told(panel: Panel) -> str:
    """Where the curves of host and device cross, in words."""
    at = panel.crossover
    if at is None:
        return "the host is quicker at the largest size"
    if at <= panel.curves[HOST][0][0]:
        return "the device is quicker at all sizes shown"
    return f"the device is quicker from about {float(f'{at:.2g}'):,.0f} on"


def table(shown: Sequence[Panel]) -> str:
    """The crossovers, and the worst ratio of "auto" to the better of both, as a table."""
    lines = [
        '| | the device is quicker from | `device="auto"`, times the better of both |',
        "|---|---|---|",
    ]
    for panel in shown:
        at = panel.crossover
        first = panel.curves[HOST][0][0]
        words = "–" if at is None else "all sizes"
        if at is not None and at > first:
            words = f"about {float(f'{at:.2g}'):,.0f} {panel.unit}"
        ratios = [
            auto / min(host, device)
            for (_, auto), (_, host), (_, device) in zip(
                panel.curves[AUTO], panel.curves[HOST], panel.curves[DEVICE], strict=True
            )
        ]
        middle = sorted(ratios)[len(ratios) // 2]
        lines.append(f"| {panel.name} | {words} | {middle:.2f}, at most {max(ratios):.2f} |")
    return "\n".join(lines) + "\n"


def charts(results: Sequence[Result]) -> dict[str, str]:
    """A chart for each kind of device that there are results of, by their files' names."""
    found = {}
    for kind, name in KINDS.items():
        where, figures = suite(results, f"crossover-{kind}")
        if figures:
            found[f"crossover-{kind}.svg"] = draw(
                f"Host or device: {where}, {name}",
                "Time of a call, from NumPy arrays to NumPy arrays, by size: lower is better.",
                panels(figures.values()),
            )
    return found


def page(results: Sequence[Result], is_old: IsOld) -> str:
    """The charts and tables of `docs/crossover.md`."""
    parts = []
    for kind, name in KINDS.items():
        where, figures = suite_with_results(results, f"crossover-{kind}")
        if not figures:
            continue
        result = next(iter(figures.values()))[1]
        commit, shown = commits.of_result(result)
        old = OLD * is_old(commit, f"crossover-{kind}")
        device = f", {result[kind]}" if where not in result.get(kind, where) else ""
        parts.append(
            f"## {where}: {name}\n\n"
            f"Measured {result['date']} at {shown}{old}; {result['machine']}{device}.\n\n"
            f"![Time of calls on the host and through {name}, by size]"
            f"(images/charts/crossover-{kind}.svg)\n\n"
            + table(panels(figure for figure, _ in figures.values()))
        )
    return "\n".join(parts) or "*No results are recorded yet.*\n"


def _seconds(power: int) -> str:
    return amount(10.0**power, "s")


def _ticks(sizes: Sequence[float]) -> Sequence[float]:
    """Powers of ten within the sizes, or every other size where there are few."""
    first, last = math.ceil(math.log10(sizes[0])), math.floor(math.log10(sizes[-1]))
    powers = [10.0**power for power in range(first, last + 1)]
    return powers if len(powers) > 2 else sizes[::2]


def _size(size: float) -> str:
    for least, word in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if size >= least:
            return f"{size / least * (10 if least == 1e4 else 1):g}{word}"
    return f"{size:g}"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{style}{end}>{escape(text)}</text>'


def _rule(name: str, colour: str, indent: str) -> str:
    kind = _kind(name)
    return (
        f"{indent}.{kind} {{ stroke: {colour}; }} "
        f".{kind}.full {{ fill: {colour}; stroke: none; }}\n"
    )


def _kind(name: str) -> str:
    return "s-" + "".join(c for c in name.lower() if c.isalnum())
