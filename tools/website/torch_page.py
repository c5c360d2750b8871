"""The page that says which of PyTorch's names `treadle.torch` has."""

from __future__ import annotations

import inspect
from typing import Any

from tools import torch_reference

_HEAD = """# PyTorch's names

[`treadle.torch`](../guides/torch.md) has PyTorch's interface. Of PyTorch's {total} public names
below, {same} mean the same here, {differ} differ as is said, and {missing} are not here; an
AttributeError says what to use instead, and `torch.missing()` lists them. ● the same · ◐ differs ·
○ not here
"""


def status(space: str, name: str) -> tuple[str, str]:
    """The mark of a name, and what is said beside it."""
    from treadle.torch.lacking import differences, missing

    path = f"{space}.{name}".removeprefix("torch.").removeprefix("torch.")
    owner = torch_reference.place(space)
    if owner is not None and _has(owner, name):
        words = differences().get(path, "")
        return ("◐" if words else "●"), words
    listed: Any = missing()
    return "○", listed.get(path) or listed.get(space.removeprefix("torch."), "")


def _has(owner: Any, name: str) -> bool:
    if inspect.isclass(owner):
        return any(name in vars(each) for each in owner.__mro__)
    return name in getattr(owner, "__all__", ()) or hasattr(owner, name)


def text() -> str:
    """The page."""
    parts, counts = [], {"●": 0, "◐": 0, "○": 0}
    for space, names in torch_reference.names().items():
        marks: dict[str, list[tuple[str, str]]] = {"●": [], "◐": [], "○": []}
        for name in names:
            mark, words = status(space, name)
            marks[mark].append((name, words))
            counts[mark] += 1
        part = [f"## {space}\n"]
        if marks["●"]:
            part.append("● " + " ".join(f"`{name}`" for name, _ in marks["●"]) + "\n")
        for mark in "◐○":
            by_words: dict[str, list[str]] = {}
            for name, words in marks[mark]:
                by_words.setdefault(words, []).append(f"`{name}`")
            part += [f"- {mark} {' '.join(each)}: {words}" for words, each in by_words.items()]
        parts.append("\n".join(part))
    head = _HEAD.format(total=sum(counts.values()), same=counts["●"], differ=counts["◐"],
                        missing=counts["○"])  # fmt: skip
    return "\n".join([head, *(f"{part}\n" for part in parts)])


def unexplained() -> list[str]:
    """Names that are neither here nor explained."""
    return [
        f"{space}.{name}"
        for space, names in torch_reference.names().items()
        for name in names
        if status(space, name) == ("○", "")
    ]
