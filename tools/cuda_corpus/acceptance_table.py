"""The counts of what is accepted, and the reasons of what is not, as text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

TARGETS = ("browser", "narrow", "native", "ptx", "cpu")
_MOST_REASONS, _MOST_NAMES, _MOST_RECORDED = 150, 8, 20
RECORDS = {
    "known": "cuda-acceptance.json",
    "unseen": "cuda-acceptance-unseen.json",
    "later": "cuda-acceptance-later.json",
    "unseen-2": "cuda-acceptance-unseen-2.json",
    "unseen-3": "cuda-acceptance-unseen-3.json",
}
"""What the page reads, in benchmarks/results: of known projects; of those that nothing was done for
before the count, three times others; and of the first of these when what they showed was mended."""
Row = dict[str, Any]
Key = tuple[str, int, str]


def kernels_of(rows: Iterable[Row]) -> dict[Key, dict[str, str]]:
    """Each kernel once, by file, line and name, with why each target refuses it, or "". A header's
    kernel counts as accepted if any file that includes it has it accepted."""
    found: dict[Key, dict[str, str]] = {}
    unparsed: list[Row] = []
    for row in rows:
        for one in row["kernels"]:
            if not one["line"]:
                unparsed.append(one)
                continue
            said = _by_target(one)
            known = found.setdefault((one["file"], one["line"], one["name"]), said)
            for target in TARGETS:
                if not said[target]:
                    known[target] = ""
    names = {(file, name.rpartition("::")[2]) for file, _, name in found}
    for number, one in enumerate(unparsed):  # of files that do not parse by themselves
        if (one["file"], one["name"]) not in names:
            found[one["file"], -number, one["name"]] = _by_target(one)
    return found


def apart(rows: Sequence[Row]) -> dict[Key, str]:
    """The kernels that nvcc does not take either, and why: those that no file has accepted."""
    why: dict[tuple[str, str], str] = {}
    for row in rows:
        for one in row["kernels"]:
            if one.get("apart"):
                why.setdefault((one["file"], one["name"].rpartition("::")[2]), one["apart"])
    return {
        (file, line, name): why[file, short]
        for (file, line, name), told in kernels_of(rows).items()
        if (file, short := name.rpartition("::")[2]) in why and all(told.values())
    }


def _by_target(one: Row) -> dict[str, str]:
    told: Mapping[str, str] = one["targets"]
    if "all" in told:
        return dict.fromkeys(TARGETS, told["all"])
    return {target: told.get(target, told["browser"]) for target in TARGETS}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Files, files that parse, kernels, and kernels that each target accepts."""
    kernels = kernels_of(rows)
    return {
        "files": len(rows),
        "parsed": sum(not row["problem"] for row in rows),
        "kernels": len(kernels),
        "apart": len(apart(rows)),
        **{
            target: sum(not told[target] for told in kernels.values()) for target in TARGETS
        },
    }  # fmt: skip


def shares(made: Mapping[str, int], target: str) -> str:
    """The share of a project's kernels that a target accepts, in percent: of all, and of those that
    nvcc takes.

    >>> shares({"kernels": 200, "apart": 2, "ptx": 190}, "ptx")
    '95/96 %'
    """
    of_all = 100 * made[target] / max(made["kernels"], 1)
    of_ours = 100 * made[target] / max(made["kernels"] - made["apart"], 1)
    return f"{of_all:.0f}/{of_ours:.0f} %"


@dataclass(slots=True)
class Reason:
    """Why kernels are refused, without their own names: `who` by target, files by "parse"."""

    text: str
    who: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    messages: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def kernels(self) -> int:
        """How many kernels one target or another refuses for it."""
        sets = [members for target, members in self.who.items() if target != "parse"]
        return len(set().union(*sets))


def reasons(found: Mapping[str, Sequence[Row]]) -> list[Reason]:
    """All reasons, those of most kernels first."""
    known: dict[str, Reason] = {}

    def add(target: str, words: str, who: str) -> None:
        place, message, line = (*words.split("\n"), "", "")[:3]
        if "\n" not in words:
            place, message = who, words
        text = general(message, line)
        reason = known.setdefault(text, Reason(text, example=f"{who}  at {place}: {line[:110]}"))
        reason.who[target].add(who)
        reason.messages[message] += 1

    for project, rows in found.items():
        for (file, _, kernel), told in kernels_of(rows).items():
            for target, words in told.items():
                if words:
                    add(target, words, f"{project}/{file} {kernel}")
        for row in rows:
            if row["problem"]:
                add("parse", row["problem"], f"{project}/{row['file']}")
    return sorted(known.values(), key=lambda one: -one.kernels())


def table(found: Mapping[str, Sequence[Row]]) -> str:
    """The shares by project, then the reasons, most frequent first."""
    lines = [f"{'project':<14} {'files':>6} {'parse':>6} {'kernels':>8} {'apart':>6}"]
    lines[0] += "".join(f"{target:>16}" for target in TARGETS)
    for name, rows in found.items():
        made = counts(rows)
        line = f"{name:<14} {made['files']:>6} {made['parsed']:>6} {made['kernels']:>8}"
        line += f" {made['apart']:>6}"
        for target in TARGETS:
            line += f"{made[target]:>7} {shares(made, target):>9}"
        lines.append(line)
    lines += ["", "% of all, and of those that nvcc takes; apart, as nvcc does not take them:"]
    for name, rows in found.items():
        lines += [f"   {name}/{key[0]} {key[2]}: {why}" for key, why in apart(rows).items()]
    lines.append("")
    every = reasons(found)
    for reason in every[:_MOST_REASONS]:
        who = reason.who
        each = ", ".join(f"{len(who[one])} {one}" for one in (*TARGETS, "parse") if one in who)
        lines.append(f"{reason.kernels():>4} kernels ({each}): {reason.text}")
        if len(reason.messages) > 1:
            said = [message for message, _ in reason.messages.most_common(_MOST_NAMES)]
            lines += [f"        - {message[:150]}" for message in said]
        lines.append(f"        e.g. {reason.example}")
    if len(every) > _MOST_REASONS:
        lines.append(f"and {len(every) - _MOST_REASONS} other reasons")
    return "\n".join(lines) + "\n"


def recorded(found: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """What the page shows, for a file in benchmarks/results."""
    most = [
        {"reason": one.text, "kernels": {target: len(one.who[target]) for target in TARGETS}}
        for one in reasons(found)[:_MOST_RECORDED]
        if one.kernels()
    ]
    return {
        "date": date.today().isoformat(),
        "projects": {
            name: {**counts(rows), "listed": [(k[0], k[2], why) for k, why in apart(rows).items()]}
            for name, rows in found.items()
        },
        "reasons": most,
    }


_COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "cannot", "device", "for",
    "from", "has", "have", "if", "in", "into", "is", "it", "its", "kernel", "kernels", "no", "not",
    "of", "on", "or", "out", "that", "the", "this", "to", "type", "types", "value", "with",
    "int", "float", "double", "const", "static", "void", "struct", "template", "typename", "return",
    "unsigned", "pointer", "inline", "constexpr", "auto", "operator", "array", "memory", "index",
    "function", "name", "class", "member", "size", "long", "extern", "union", "all",
))  # fmt: skip


_ENDS = re.compile(r"\n|, because |; |: (?:the first definition|include the file|declare it)")


def general(message: str, line: str) -> str:
    """A message without the names and numbers of one program: its first sentence or so.

    >>> general("total_sum is not declared", "x = total_sum + 3;")
    '… is not declared'
    """
    names = set(re.findall(r"[A-Za-z_]\w*", line)) - _COMMON
    said = re.split(
        r"\n|, because |; |: (?:the first definition|include the file|declare it)", message
    )[0]

    def change(match: re.Match[str]) -> str:
        word = match[0]
        odd = "_" in word or any(sign.isdigit() for sign in word) or word in names
        return "…" if odd or (word[1:] != word[1:].lower() and word[1:] != "IMD") else word

    said = re.sub(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>", "<…>", said)
    said = re.sub(r"[A-Za-z_]\w*(?:::~?\w+)*", change, said)
    said = re.sub(r"\d[\d,]*", "N", said)
    said = re.sub(r"…(?:[\s:,.*&]*…)+", "…", said)
    return said[:170]
