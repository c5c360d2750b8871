"""What a Makefile gives the compiler: macros and folders, as far as its plain lines tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_SET = re.compile(r"\s*(?:export\s+)?([\w.]+)\s*([:?+]?)=\s*(.*)")
_TEST = re.compile(r"\s*(ifeq|ifneq)\s*\(([^,]*),([^)]*(?:\)[^)]*)?)\)\s*$")
_DEFINED = re.compile(r"\s*(ifdef|ifndef)\s+(\w+)")
_OPTION = re.compile(r"(?<![\w-])-(D|I)\s*((?:\\?\"[^\"]*\"|'[^']*'|[^\s'\"])+)")
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")


def options(makefile: Path) -> tuple[dict[str, str], list[Path]]:
    """The macros that `-D` defines and the folders of `-I` that there are.

    Conditions on variables are followed; functions of make are not.
    """
    defines: dict[str, str] = {}
    folders: list[Path] = []
    for line in _lines(makefile.read_text(encoding="utf-8", errors="replace")):
        for kind, word in _OPTION.findall(line):
            word = word.strip("'\"")
            if kind == "D":
                name, _, value = word.partition("=")
                if name.isidentifier() and "$" not in value:
                    defines[name] = value.replace('\\"', '"') or "1"
            elif (makefile.parent / word).is_dir():
                folders.append(makefile.parent / word)
    return defines, folders


def _lines(text: str) -> Iterator[str]:
    r"""The lines that count, with variables replaced.

    >>> list(_lines("N = 2\nifeq ($(N),2)\nA = -DX=$(N)\nelse\nA = -DY\nendif"))
    ['N = 2', 'A = -DX=2']
    """
    values: dict[str, str] = {}
    taken: list[bool] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.partition("#")[0].rstrip()
        word = line.split(None, 1)[0] if line.split() else ""
        if word in ("ifeq", "ifneq", "ifdef", "ifndef"):
            taken.append(_holds(line, values))
        elif word == "else" and taken:
            taken[-1] = not taken[-1]
        elif word == "endif" and taken:
            taken.pop()
        elif all(taken):
            line = _replaced(line, values)
            if found := _SET.match(line):
                name, kind, value = found.groups()
                if kind == "+":
                    value = f"{values.get(name, '')} {value}"
                if kind != "?" or name not in values:
                    values[name] = value.strip()
            yield line


def _holds(line: str, values: dict[str, str]) -> bool:
    if found := _DEFINED.match(line):
        return bool(values.get(found[2])) is (found[1] == "ifdef")
    found = _TEST.match(line)
    if found is None:
        return False
    one, other = (_replaced(side, values).strip() for side in found.groups()[1:])
    return (one == other) is (found[1] == "ifeq")


def _replaced(text: str, values: dict[str, str]) -> str:
    """A text with the variables that are set; others that are named alone are empty."""
    for _ in range(4):
        new = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
        if new == text:
            break
        text = new
    return text
