"""The counts of what is accepted, and the reasons of what is not, as text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TARGETS = ("browser", "native", "ptx", "cpu")
_MOST_REASONS, _MOST_NAMES = 150, 8
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


def _by_target(one: Row) -> dict[str, str]:
    told: Mapping[str, str] = one["targets"]
    if "all" in told:
        return dict.fromkeys(TARGETS, told["all"])
    return {target: told[target] for target in TARGETS}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Files, files that parse, kernels, and kernels that each target accepts."""
    kernels = kernels_of(rows)
    return {
        "files": len(rows),
        "parsed": sum(not row["problem"] for row in rows),
        "kernels": len(kernels),
        **{
            target: sum(not told[target] for told in kernels.values()) for target in TARGETS
        },
    }  # fmt: skip


def table(found: Mapping[str, Sequence[Row]]) -> str:
    """The shares by project, then the reasons, most frequent first."""
    lines = [f"{'project':<14} {'files':>6} {'parse':>6} {'kernels':>8}"]
    lines[0] += "".join(f"{target:>14}" for target in TARGETS)
    every: list[tuple[str, str, str]] = []
    for name, rows in found.items():
        made = counts(rows)
        line = f"{name:<14} {made['files']:>6} {made['parsed']:>6} {made['kernels']:>8}"
        for target in TARGETS:
            share = 100 * made[target] / max(made["kernels"], 1)
            line += f"{made[target]:>8} {share:>3.0f} %"
        lines.append(line)
        for (file, _, kernel), told in kernels_of(rows).items():
            for target, words in told.items():
                if words:
                    every.append((target, words, f"{name}/{file} {kernel}"))
        every += [
            ("parse", row["problem"], f"{name}/{row['file']}") for row in rows if row["problem"]
        ]
    return "\n".join([*lines, "", *_reasons(every)]) + "\n"


def _reasons(every: Sequence[tuple[str, str, str]]) -> list[str]:
    groups: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    raw: dict[str, Counter[str]] = defaultdict(Counter)
    example: dict[str, str] = {}
    for target, words, who in every:
        place, message, line = (*words.split("\n"), "", "")[:3]
        if "\n" not in words:
            place, message = who, words
        reason = general(message, line)
        groups[reason][target].add(who)
        raw[reason][message] += 1
        example.setdefault(reason, f"{who}  at {place}: {line[:110]}")
    order = sorted(groups, key=lambda one: -len(set().union(*groups[one].values())))
    lines = []
    for reason in order[:_MOST_REASONS]:
        kinds = groups[reason]
        whole = len(set().union(*(members for kind, members in kinds.items() if kind != "parse")))
        each = ", ".join(f"{len(kinds[t])} {t}" for t in (*TARGETS, "parse") if t in kinds)
        lines.append(f"{whole:>4} kernels ({each}): {reason}")
        if len(raw[reason]) > 1:
            known = [message for message, _ in raw[reason].most_common(_MOST_NAMES)]
            lines += [f"        - {message[:150]}" for message in known]
        lines.append(f"        e.g. {example[reason]}")
    if len(order) > _MOST_REASONS:
        lines.append(f"and {len(order) - _MOST_REASONS} other reasons")
    return lines


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
