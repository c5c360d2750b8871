"""The page that says which of NumPy's names `treadle.numpy` has."""

from __future__ import annotations

import inspect
from typing import Any

from tools import numpy_reference

_HEAD = """# NumPy's names

[`treadle.numpy`](../guides/numpy.md) has NumPy 2's interface. Of NumPy's {total} public names
below, {same} mean the same here, {differ} differ as is said, and {missing} are not here; an
AttributeError says what to use instead, and `np.missing()` lists them. ● the same · ◐ differs ·
○ not here
"""


def status(space: str, name: str) -> tuple[str, str]:
    """The mark of a name, and what is said beside it."""
    from treadle.numpy.absent import missing
    from treadle.numpy.table import DIFFERENCES

    path = f"{space}.{name}".removeprefix("numpy.")
    owner = numpy_reference.place(space)
    if owner is not None and _has(owner, name):
        return ("◐", DIFFERENCES[path]) if path in DIFFERENCES else ("●", "")
    return "○", missing().get(path, "")


def _has(owner: Any, name: str) -> bool:
    if inspect.isclass(owner):
        return any(name in vars(each) for each in owner.__mro__)
    return name in owner.__all__


def text() -> str:
    """The page."""
    parts, counts = [], {"●": 0, "◐": 0, "○": 0}
    for space, names in numpy_reference.names().items():
        marks: dict[str, list[tuple[str, str]]] = {"●": [], "◐": [], "○": []}
        for name in names:
            mark, words = status(space, name)
            marks[mark].append((name, words))
            counts[mark] += 1
        part = [f"## {space}\n"]
        if marks["●"]:
            part.append("● " + " ".join(f"`{name}`" for name, _ in marks["●"]) + "\n")
        part += [f"- ◐ `{name}`: {words}" for name, words in marks["◐"]]
        by_words: dict[str, list[str]] = {}
        for name, words in marks["○"]:
            by_words.setdefault(words, []).append(f"`{name}`")
        part += [f"- ○ {' '.join(names)}: {words}" for words, names in by_words.items()]
        parts.append("\n".join(part))
    head = _HEAD.format(total=sum(counts.values()), same=counts["●"], differ=counts["◐"],
                        missing=counts["○"])  # fmt: skip
    return "\n".join([head, *(f"{part}\n" for part in parts)])


def unexplained() -> list[str]:
    """Names that are neither here nor explained."""
    return [
        f"{space}.{name}"
        for space, names in numpy_reference.names().items()
        for name in names
        if status(space, name) == ("○", "")
    ]
