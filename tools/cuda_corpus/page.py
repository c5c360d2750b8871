"""docs/cuda_corpus.md, from what was measured."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Figure
from benchmarks.table import row as figure_row
from tools.cuda_corpus.sources import CHECKOUTS
from tools.cuda_corpus.spec import REASONS
from tools.cuda_corpus.trials import EXCLUDED, TRIALS

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "cuda_corpus.md"
RESULT = RESULTS / "cuda-corpus-h100.json"
SPEEDS = RESULTS / "cuda-cpp-h100.json"
_LONGEST = 160
_NAMES = {"cuda-samples": "NVIDIA/cuda-samples", "llm.c": "karpathy/llm.c"}
Row = dict[str, Any]
Key = tuple[str, str]

_INTRODUCTION = """# Public CUDA kernels, tried

*Written by `python -m tools.cuda_corpus page` from `benchmarks/results`.*

Kernels of NVIDIA's cuda-samples and of llm.c, from the files as they are published, which are
fetched for the trial and not kept here. Each kernel runs with the same inputs as machine code of
NVIDIA's own compiler (nvcc) and through `td.cuda_module` on each device, and what they leave in
memory, or print, is compared: integers bit for bit, floats by a relative norm that the trial names
with its reason (mostly 1e-5: products and sums may be fused). `tools/cuda_corpus/trials` has every
launch; `python -m tools.cuda_corpus check` shows that no kernel is left out of the lists.
"""


def write() -> None:
    """Write the page."""
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    parts = [
        _INTRODUCTION, _where(content), _files(content), _kernels(content), _excluded(),
        _failures(content), _speeds(),
    ]  # fmt: skip
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(PAGE)


def table(heading: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    r"""A table in Markdown.

    >>> print(table(["a", "b"], [[1, "x|y"]]), end="")
    | a | b |
    |---|---|
    | 1 | x\|y |
    """
    names = list(heading)
    lines = [names, None, *(list(one) for one in rows)]
    texts = (
        "|---" * len(names) + "|"
        if line is None
        else f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |"
        for line in lines
    )
    return "\n".join(texts) + "\n"


def _where(content: dict[str, Any]) -> str:
    devices = "; ".join(f"`{device}` is {name}" for device, name in content["names"].items())
    return (
        f"Tried on {content['date']} against the code of {content['compiler'] or 'nobody'}: "
        f"{content['card']}, {content['machine']}. {devices}. WGSL is printed in the dialect that "
        "all browsers take, without 64-bit numbers; the devices may take more.\n"
    )


def _files(content: dict[str, Any]) -> str:
    rows = []
    for checkout in CHECKOUTS:
        mine = [words for name, words in content["files"].items() if name.startswith(checkout)]
        rows.append((_NAMES[checkout], len(mine), sum(not words for words in mine)))
    return "## Files\n\n" + table(("", "files", "parse"), rows)


def _by_kernel(content: dict[str, Any]) -> dict[Key, list[Row]]:
    """The trials of each kernel that is counted; none where there is no launch."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for trial in TRIALS:
        found[trial.file, trial.kernel] = []
    for row in content["trials"]:
        found[row["file"], row["kernel"]].append(row)
    return found


def _all_well(rows: list[Row], part: str, key: str) -> bool:
    return bool(rows) and all(row[part].get(key, row[part].get("all", "?")) == "" for row in rows)


def _kernels(content: dict[str, Any]) -> str:
    kernels = _by_kernel(content)
    targets = next((list(r["targets"]) for r in content["trials"] if "all" not in r["targets"]), [])
    columns = [("targets", name, f"compile: {name}") for name in targets]
    columns += [("runs", name, f"run: {name}") for name in content["devices"]]
    columns += [("agrees", name, f"**agree**: {name}") for name in content["devices"]]
    heading = ["", *_NAMES.values()]
    mine = {
        checkout: [rows for (file, _), rows in kernels.items() if file.startswith(checkout)]
        for checkout in CHECKOUTS
    }
    excluded = Counter(one.file.partition("/")[0] for one in EXCLUDED)
    lines: list[list[object]] = [
        ["kernels", *(len(mine[c]) + excluded[c] for c in CHECKOUTS)],
        ["of these excluded, see below", *(excluded[c] for c in CHECKOUTS)],
        ["counted", *(len(mine[c]) for c in CHECKOUTS)],
    ]
    for part, key, title in columns:
        counts = (_share([_all_well(rows, part, key) for rows in mine[c]]) for c in CHECKOUTS)
        lines.append([title, *counts])
    return "## Kernels\n\n" + table(heading, lines)


def _share(well: list[bool]) -> str:
    return f"{sum(well)} ({100 * sum(well) / max(len(well), 1):.0f} %)"


def _excluded() -> str:
    counts = Counter((one.reason, one.file.partition("/")[0]) for one in EXCLUDED)
    rows = [
        (reason, *(counts[reason, checkout] for checkout in CHECKOUTS))
        for reason in REASONS
        if any(counts[reason, checkout] for checkout in CHECKOUTS)
    ]
    text = (
        "## Excluded\n\nWhat the front end does not take yet, or not at all; "
        "`tools/cuda_corpus/trials/excluded.toml` lists every kernel. A cooperative group that "
        "only stands for the block counts.\n\n"
    )
    return text + table(("uses", *_NAMES.values()), rows)


def _failures(content: dict[str, Any]) -> str:
    """Kernels that do not agree everywhere, with the reasons."""
    rows: list[tuple[object, ...]] = [
        (_short(trial.file), trial.kernel, "all", trial.impossible)
        for trial in TRIALS
        if trial.impossible
    ]
    for row in content["trials"]:
        words = {device: text for device, text in row["agrees"].items() if text}
        for text in dict.fromkeys(words.values()):
            devices = [device for device, one in words.items() if one == text]
            where = "all" if devices == content["devices"] else ", ".join(devices)
            rows.append((_short(row["file"]), row["kernel"], where, _line(text)))
    return "## What does not agree\n\n" + table(("file", "kernel", "on", "why"), rows)


def _short(file: str) -> str:
    return file.replace("cuda-samples/Samples/", "")


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _speeds() -> str:
    if not SPEEDS.exists():
        return ""
    content = json.loads(SPEEDS.read_text(encoding="utf-8"))
    figures = [
        Figure(**{**one, "others": tuple(map(tuple, one.get("others", ())))})
        for one in content["figures"]
    ]
    lines = ["| suite | figure | treadle | peer, same run | target |", "|---" * 5 + "|"]
    lines += [figure_row(figure) for figure in figures]
    return (
        "## Speeds\n\nKernels of `benchmarks/cuda_cpp/kernels`, the same source compiled by NVRTC "
        f"and by us, in one process, on {content['date']}: {content.get('card', '')}. In brackets: "
        "ours / NVRTC's, as rates.\n\n" + "\n".join(lines) + "\n"
    )
