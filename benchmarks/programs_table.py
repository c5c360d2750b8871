"""The README's table of whole programs: each device's time beside PyTorch's, the CPU's and the
card's. It is empty until there are recorded figures of the suite."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import commits
from benchmarks.commits import IsOld
from benchmarks.harness import Figure
from benchmarks.marks import OLD, amount
from benchmarks.recorded import Result, suite_with_results

# How a figure's name begins and ends, and what a reader sees. Sizes differ between CPU and card.
# All figures are in docs/benchmarks.md.
ROWS = (
    ("decoder", "growing caches, eager", "decoder, a token, growing caches"),
    ("decoder", "fixed room, eager", "decoder, a token, caches of fixed room"),
    ("decoder", "index on the device", "the same, compiled"),
    ("ResNet-18", "a step: eager", "ResNet-18, a step"),
    ("ResNet-18", "a step: compiled", "the same, compiled"),
    ("ResNet-18, first step", "empty cache", "its first step, nothing compiled before"),
    ("float(", "", "float((x + 1).sum())"),
    ("softmax", "", "softmax of 4096 × 8192 in a loop"),
    ("digits", "", "an epoch of the digits"),
)
_ON_CARD = ("cuda", "webgpu", "dawn")
_NONE = "–"


def programs(results: Iterable[Result], is_old: IsOld = commits.never) -> str:
    """The table, with the machines and commits of its figures."""
    results = list(results)
    card, cuda = suite_with_results(results, "programs-cuda")
    of_card = [one for one in results if one.get("card") == card]
    machine, cpu = suite_with_results(results, "programs-cpu")
    found = {"cpu": cpu, "cuda": cuda}
    for name in _ON_CARD[1:]:
        found[name] = suite_with_results(of_card, f"programs-{name}")[1]
    if not any(found.values()):
        return ""
    rows = [row for begin, end, shown in ROWS if (row := _row(found, begin, end, shown))]
    where = [f"CPU: {machine}, smaller models"] * bool(cpu) + [card] * bool(cuda)
    measured = {
        f"{name} {shown}{OLD * is_old(commit, f'programs-{name}')}"
        for name, figures in found.items()
        for _, result in figures.values()
        for commit, shown in [commits.of_result(result)]
    }
    return "\n".join(
        [
            "| program | cpu | PyTorch, CPU | cuda | webgpu | dawn | PyTorch, CUDA |",
            "|---" * 7 + "|", *rows, "",
            f"{'; '.join(where)}. Measured at {', '.join(sorted(measured))}.",
        ]
    ) + "\n"  # fmt: skip


def _row(
    found: dict[str, dict[str, tuple[Figure, Result]]], begin: str, end: str, shown: str
) -> str:
    of = {
        device: next(
            (f for name, (f, _) in all_.items() if name.startswith(begin) and name.endswith(end)),
            None,
        )
        for device, all_ in found.items()
    }
    if not any(of.values()):
        return ""
    on_card = next((figure for name in _ON_CARD if (figure := of[name]) is not None), None)
    cells = [shown, _ours(of["cpu"]), _torch(of["cpu"])]
    cells += [*(_ours(of[name]) for name in _ON_CARD), _torch(on_card)]
    return f"| {' | '.join(cells)} |"


def _ours(figure: Figure | None) -> str:
    return _NONE if figure is None else amount(figure.ours, figure.unit)


def _torch(figure: Figure | None) -> str:
    if figure is None:
        return _NONE
    value = dict([(figure.peer, figure.peers), *figure.others]).get("PyTorch")
    return _NONE if value is None else amount(value, figure.unit)
