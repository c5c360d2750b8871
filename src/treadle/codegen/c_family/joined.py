"""Texts of several kernels as one, in which what they share is declared once."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECTION = re.compile(r"\n\n(?=\S)")
_COMMENT = re.compile(r"(?:^//.*\n)+", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_STRUCT = re.compile(r"(?:template <[^>]*> )?struct (\w+)")
_KERNEL = re.compile(r"\bvoid (?:__launch_bounds__\(\d+\) )?(\w+)\(")
_FUNCTION = re.compile(r"[^(]*?(\w+)\(([^{]*)\) \{")


def joined(texts: Iterable[str]) -> str:
    """The texts of kernels in one language as one text.

    Each has sections: a comment, declarations, and the kernel at the end. A declaration that an
    earlier kernel has as well is left out. One of another meaning gets another name: a function
    may be folded otherwise for another kernel.
    """
    texts = [text.rstrip("\n") for text in texts]
    sections: list[str] = []
    declared: dict[str, str] = {}  # by what no two declarations may have in common
    taken = {word for text in texts for word in _WORD.findall(text)}
    kernels = {found[1] for text in texts if (found := _KERNEL.search(_SECTION.split(text)[-1]))}
    for text in texts:
        text = _with_own_names(text, declared, kernels, taken)
        head, *shared, kernel = _SECTION.split(text)
        for section in shared:
            key = _key(section)
            if key not in declared:
                declared[key] = _COMMENT.sub("", section, count=1)
                sections.append(section)
        sections.append(f"{head}\n{kernel}")
    return "\n\n".join(sections) + "\n"


def _with_own_names(text: str, declared: dict[str, str], kernels: set[str], taken: set[str]) -> str:
    """A text in which no declaration has the name of a kernel, or of something else that is
    declared already."""
    while True:
        for section in _SECTION.split(text)[1:-1]:
            plain, name = _COMMENT.sub("", section, count=1), _name(section)
            if declared.get(_key(section), plain) != plain or name in kernels:
                text = re.sub(rf"\b{re.escape(name)}\b", _fresh(name, taken), text)
                break
        else:
            return text


def _fresh(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def _key(section: str) -> str:
    """What no other declaration may have: a struct's name, a function's with its types."""
    plain = _COMMENT.sub("", section, count=1)
    if struct := _STRUCT.match(plain):
        return struct[1]
    if function := _FUNCTION.match(plain):
        name, parameters = function.groups()
        types = [re.sub(r"\s*\w+\s*$", "", one).strip() for one in parameters.split(",")]
        return f"{name}({','.join(types)})"
    return plain


def _name(section: str) -> str:
    return _key(section).split("(")[0]
