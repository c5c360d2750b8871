"""docs/cuda_corpus.md, from what was measured."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Figure
from benchmarks.table import row as figure_row
from tools.cuda_corpus.acceptance_table import RECORDS
from tools.cuda_corpus.acceptance_table import shares as _shares
from tools.cuda_corpus.sources import CHECKOUTS
from tools.cuda_corpus.spec import REASONS, Trial
from tools.cuda_corpus.trials import ALL, BEYOND, EXCLUDED, MORE, TRIALS

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "cuda_corpus.md"
RESULT = RESULTS / "cuda-corpus-h200.json"
SPEEDS = RESULTS / "cuda-cpp-h100.json"
_LONGEST = 220
_NAMES = {
    "cuda-samples": "NVIDIA/cuda-samples",
    "llm.c": "karpathy/llm.c",
    "PolyBench-ACC": "cavazos-lab/PolyBench-ACC",
    "gpu-rodinia": "yuhc/gpu-rodinia",
}
_ASKED = ("cuda-samples", "llm.c")  # whose every kernel is listed
_PRINTED = {
    "wgsl": "as WGSL for any browser", "ptx": "as PTX", "cuda": "as CUDA C++", "msl": "as Metal",
    "llvm": "as LLVM, for processors", "numpy": "as NumPy",
}  # fmt: skip
_PLACE = re.compile(r"^\w+(?:Error|Target): |\S*?\.(?:cuh?|h):(\d+):\d+: ")
Row = dict[str, Any]
Key = tuple[str, str]

_INTRODUCTION = """# Public CUDA kernels, tried

*Written by `python -m tools.cuda_corpus page` from `benchmarks/results`.*

`td.cuda_module` reads CUDA C++ as it is, so here it reads other people's: every kernel of NVIDIA's
cuda-samples and of llm.c is listed, as the files are published. They are fetched for the trial and
not kept in this repository.

Each kernel is launched with the same inputs twice: as machine code of NVIDIA's own compiler (nvcc),
through CUDA's driver, and through `td.cuda_module` on each device. What the launches leave in
memory, or print, is compared: integers bit for bit, floats by a relative norm that the trial names
with its reason (mostly 1e-5: products and sums may be fused). Every launch begins with variables as
the file declares them. `tools/cuda_corpus/trials` has the launches; `python -m tools.cuda_corpus
check` shows that no kernel is left out of the lists.
"""
_PRINTING = """
*Printed* means that the kernel becomes a whole program in that language, on any machine: WGSL in
the dialect that every browser's WebGPU takes (no 64-bit numbers, 8 arrays and 16 KiB of shared
memory a kernel), Metal in version 3. A device may take more than that: what the `webgpu` device
here took, with the features that it has, are the rows *runs*.
"""
_BEYOND = """## Beyond that

Kernels of the same two that were left out for cooperative groups, class templates or inline
assembly, all CUDA kernels of PolyBench, and some of Rodinia's. They are not counted above.

"""
_LEFT_OUT = """## What is left out

Kernels with a texture, inline assembly, a class template, a cooperative group or an external
library were not part of the goal. A cooperative group that only stands for the block is one, too.
The column *tried all the same* counts those of the section before.

"""


def write() -> None:
    """Write the page."""
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    asked, beyond = _by_kernel(content, TRIALS), _by_kernel(content, (*BEYOND, *MORE))
    parts = [
        _INTRODUCTION, _summary(content, asked), _where(content), _files(content),
        _counted(content, asked), _beyond(content, beyond),
        _failures("## What does not agree", content, asked),
        _failures("### Of what is beyond", content, beyond), _excluded(),
        *(_accepted(RECORDS[name], introduction) for name, introduction in _PROJECTS.items()),
        _speeds(),
    ]  # fmt: skip
    PAGE.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    print(PAGE)


_ACCEPTED = """## Projects that are only printed

Every kernel of some larger projects, as `python -m tools.cuda_corpus accept` finds them: each file
is parsed with the headers that the project has (those of absent libraries are skipped) and the
macros of its Makefile, each template is instantiated as the file launches it, as far as its host
code tells, or with plain arguments, and each kernel is printed, but not run: for any browser, also
with `double="float"`; for a desktop's card through wgpu-native, with 64-bit numbers, 32 arrays and
48 KiB of shared memory; as PTX; and for the CPU. *Apart* are kernels that nvcc does not take from
the project's files either; shares are of all kernels, and of those without them.

"""
_TARGETS = {
    "browser": "any browser", "narrow": 'browser, `double="float"`', "native": "native WebGPU",
    "ptx": "PTX", "cpu": "CPU",
}  # fmt: skip


_UNSEEN = """## Projects not seen before

Chosen when the work on the projects before was done, and counted once, before anything was done
for them: first figures, as a newcomer's own project would have them.

"""


_LATER = """### The same projects, later

Counted again when some of what they showed was mended, and with GLM's own headers, which gsplat and
diff-gaussian-rasterization include (`accept --include`). Of gsplat a third of the files was counted
again so far.

"""


_UNSEEN_2 = """### Others, not seen before

Chosen and counted once when that was mended: again first figures. Of pytorch_scatter and mamba no
file was read, for three constructs that are read since: `x.operator __half()`, `typename ::a::b` as
the type of a template parameter, and `std::max` of a list in a function that no kernel uses.
Instructions of inline PTX with a list in braces and no space before it are read since, too.

"""


_UNSEEN_3 = """### A third set, not seen before

Chosen before that work, and counted once after it: examples of books, molecular dynamics, sparse
matrices, convolutions, matrix products and small networks. tiny-cuda-nn wants macros that its build
gives. Launches written `<< <`, as two of Learn-CUDA-Programming are, are read since.

"""


_PROJECTS = {
    "known": _ACCEPTED, "unseen": _UNSEEN, "later": _LATER, "unseen-2": _UNSEEN_2,
    "unseen-3": _UNSEEN_3,
}  # fmt: skip


def _accepted(file: str, introduction: str) -> str:
    """What share of other projects' kernels each target accepts, and why not the others."""
    path = RESULTS / file
    if not path.is_file():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        [
            name, f"{one['parsed']} of {one['files']}", one["kernels"], one["apart"],
            *(f"{one[target]} ({_shares(one, target)})" for target in _TARGETS),
        ]
        for name, one in record["projects"].items()
    ]  # fmt: skip
    shares = table(["", "files that parse", "kernels", "apart", *_TARGETS.values()], rows)
    reasons = table(
        ["reason", *_TARGETS.values()],
        ([one["reason"], *(one["kernels"][target] for target in _TARGETS)]
         for one in record["reasons"]),
    )  # fmt: skip
    why = f"Counted on {record['date']}. What most of the others are refused for, in kernels:\n\n"
    listed = table(
        ["apart", "kernel", "why"],
        ([f"{name}/{file}", kernel, reason] for name, one in record["projects"].items()
         for file, kernel, reason in one.get("listed", ())),
    )  # fmt: skip
    return f"{introduction}{shares}\n{why}{reasons}\n{listed}"


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


def _summary(content: dict[str, Any], kernels: dict[Key, list[Row]]) -> str:
    """What a reader wants to know first."""
    lines = []
    for checkout in _ASKED:
        mine = _of(kernels, checkout)
        shares = ", ".join(
            f"{_share([_all_well(rows, 'agrees', device) for rows in mine])} on `{device}`"
            for device in content["devices"]
        )
        lines.append(f"- Of {len(mine)} kernels of {_NAMES[checkout]} agree with CUDA: {shares}.\n")
    return "".join(lines)


def _where(content: dict[str, Any]) -> str:
    names = content.get("names", {})
    devices = "".join(f" `{device}` is {name}." for device, name in names.items())
    return (
        f"Tried on {content['date']} against the code of {content.get('compiler') or 'nvcc'}: "
        f"{content['card']}, {content['machine']}.{devices}\n"
    )


def _files(content: dict[str, Any]) -> str:
    rows = []
    for checkout in CHECKOUTS:
        mine = [words for name, words in content["files"].items() if name.startswith(checkout)]
        if mine:
            rows.append((_NAMES[checkout], len(mine), sum(not words for words in mine)))
    return "## Files\n\n" + table(("", "files", "parse"), rows)


def _by_kernel(content: dict[str, Any], trials: Sequence[Trial]) -> dict[Key, list[Row]]:
    """The trials of each kernel; none where there is no launch. Those that the results do not have
    yet are left out."""
    found: dict[Key, list[Row]] = {(trial.file, trial.kernel): [] for trial in trials}
    without = {(trial.file, trial.kernel) for trial in trials if trial.impossible}
    for row in content["trials"]:
        if (row["file"], row["kernel"]) in found:
            found[row["file"], row["kernel"]].append(row)
    return {key: rows for key, rows in found.items() if rows or key in without}


def _of(kernels: dict[Key, list[Row]], checkout: str) -> list[list[Row]]:
    return [rows for (file, _), rows in kernels.items() if file.startswith(checkout)]


def _all_well(rows: list[Row], part: str, key: str) -> bool:
    return bool(rows) and all(row[part].get(key, row[part].get("all", "?")) == "" for row in rows)


def _counted(content: dict[str, Any], kernels: dict[Key, list[Row]]) -> str:
    excluded = Counter(one.file.partition("/")[0] for one in EXCLUDED)
    sizes = {checkout: len(_of(kernels, checkout)) for checkout in _ASKED}
    lines: list[list[object]] = [
        ["kernels", *(sizes[c] + excluded[c] for c in _ASKED)],
        ["left out, see below", *(excluded[c] for c in _ASKED)],
        ["**counted**", *sizes.values()],
    ]
    lines += _achieved(content, [_of(kernels, checkout) for checkout in _ASKED])
    heading = ("", *(_NAMES[checkout] for checkout in _ASKED))
    return "## Kernels\n\n" + table(heading, lines) + _PRINTING


def _achieved(content: dict[str, Any], columns: list[list[list[Row]]]) -> list[list[object]]:
    """How many kernels of each column are printed, run and agree."""
    targets = next((list(r["targets"]) for r in content["trials"] if "all" not in r["targets"]), [])
    wanted = [("targets", name, f"printed {_PRINTED[name]}") for name in targets]
    wanted += [("runs", name, f"runs on `{name}`") for name in content["devices"]]
    wanted += [("agrees", name, f"**agrees** on `{name}`") for name in content["devices"]]
    return [
        [title, *(_share([_all_well(rows, part, key) for rows in column]) for column in columns)]
        for part, key, title in wanted
    ]


def _beyond(content: dict[str, Any], kernels: dict[Key, list[Row]]) -> str:
    columns = {name: _of(kernels, checkout) for checkout, name in _NAMES.items()}
    columns = {name: column for name, column in columns.items() if any(column)}
    if not columns:
        return ""
    lines: list[list[object]] = [["kernels", *map(len, columns.values())]]
    lines += _achieved(content, list(columns.values()))
    return _BEYOND + table(("", *columns), lines)


def _share(well: list[bool]) -> str:
    return f"{sum(well)} ({100 * sum(well) / max(len(well), 1):.0f} %)"


def _excluded() -> str:
    tried = {(trial.file, trial.kernel) for trial in BEYOND}
    rows, lists = [], []
    for reason in REASONS:
        mine = [one for one in EXCLUDED if one.reason == reason]
        counts = (sum(one.file.startswith(checkout) for one in mine) for checkout in _ASKED)
        again = sum((one.file, one.kernel) in tried for one in mine)
        if mine:
            rows.append((reason, *counts, again))
        by_file: dict[str, list[str]] = defaultdict(list)
        for one in mine:
            by_file[one.file].append(one.kernel)
        lists += [
            f"<li>{reason}: <code>{_short(file)}</code>: {', '.join(kernels)}</li>"
            for file, kernels in by_file.items()
        ]
    heading = ("uses", *(_NAMES[checkout] for checkout in _ASKED), "tried all the same")
    folded = "<details><summary>Every one of them</summary>\n<ul>\n"
    return (
        _LEFT_OUT
        + table(heading, rows)
        + f"\n{folded}"
        + "\n".join(lists)
        + ("\n</ul>\n</details>\n")
    )


def _failures(heading: str, content: dict[str, Any], kernels: dict[Key, list[Row]]) -> str:
    """Kernels that do not agree everywhere, with the reasons."""
    rows: list[tuple[object, ...]] = [
        (_short(trial.file), trial.kernel, "all", trial.impossible)
        for trial in ALL
        if trial.impossible and (trial.file, trial.kernel) in kernels
    ]
    for row in (row for of_kernel in kernels.values() for row in of_kernel):
        words = {device: text for device, text in row["agrees"].items() if text}
        for text in dict.fromkeys(words.values()):
            devices = [device for device, one in words.items() if one == text]
            where = "all" if devices == content["devices"] else ", ".join(devices)
            rows.append((_short(row["file"]), row["kernel"], where, _line(text)))
    return f"{heading}\n\n{table(('file', 'kernel', 'on', 'why'), rows)}" if rows else ""


def _short(file: str) -> str:
    return file.replace("cuda-samples/Samples/", "")


def _line(text: str) -> str:
    r"""The first line of an error, without the file that the table names: "line 7: …".

    >>> _line("CompileError: a/b.cu:7:3: a texture: read an array\n  7 | tex2D")
    'line 7: a texture: read an array'
    """
    first = _PLACE.sub(lambda found: f"line {found[1]}: " if found[1] else "", text.split("\n")[0])
    words = " ".join(first.split())
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
    lines += [figure_row(figure, "").removesuffix("  |").rstrip() for figure in figures]
    return (
        "## Speeds\n\nKernels of `benchmarks/cuda_cpp/kernels`, the same source compiled by NVRTC "
        f"and by us, in one process, on {content['date']}: {content.get('card', '')}. In brackets: "
        "ours / NVRTC's, as rates.\n\n" + "\n".join(lines) + "\n"
    )
