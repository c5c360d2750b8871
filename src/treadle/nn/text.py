"""A module as text: its name, what it was made with, and the modules within it."""

from __future__ import annotations

from itertools import groupby
from typing import Any


def representation(module: Any) -> str:
    """A module's text, in PyTorch's layout."""
    own = module.extra_repr()
    lines = own.split("\n") if own else []
    inner = [f"({name}): {_indented(repr(each))}" for name, each in module._modules.items()]
    if not inner and len(lines) <= 1:
        return f"{module._get_name()}({own})"
    return _block(module._get_name(), [*lines, *inner])


def numbered(module: Any) -> str:
    """The text of a list of modules: equal ones that follow one another are said once."""
    texts = [repr(each) for each in module._modules.values()]
    lines, first = [], 0
    for text, equal in groupby(texts):
        count = len(list(equal))
        last = first + count - 1
        label = f"({first})" if count == 1 else f"({first}-{last})"
        lines.append(f"{label}: {'' if count == 1 else f'{count} x '}{_indented(text)}")
        first = last + 1
    return _block(module._get_name(), lines) if lines else f"{module._get_name()}()"


def _block(name: str, lines: list[str]) -> str:
    return "\n".join([f"{name}(", *[f"  {line}" for line in lines], ")"])


def _indented(text: str) -> str:
    """A text whose further lines are as far in as the first one will be."""
    return text.replace("\n", "\n  ")
