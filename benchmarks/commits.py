"""At which commit figures were measured, and whether the code has changed since.

The rule is simple: a figure is old if a commit after its own changed a file in one of the folders
that its suite measures (`MEASURED`), be it a comment. A commit that this clone does not have counts
as old, too: its code is not the one that is here.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CHANGED = "+changes"  # after a commit: files differed from it
_DIGITS = 10  # of a commit
_KERNELS = ("core", "ir", "codegen", "drivers", "runtime", "lang")
_ARRAYS = (*_KERNELS, "kernels", "graph", "tensor")
_PROGRAMS = (*_ARRAYS, "autograd", "nn", "optim", "data")
# The folders of src/treadle that a suite measures, by the first part of its name.
MEASURED: dict[str, tuple[str, ...]] = {
    "start": _KERNELS,
    "cpu": _KERNELS,
    "gpu": _KERNELS,
    "launch": _KERNELS,
    "ptx": _KERNELS,
    "compile": _KERNELS,
    "cuda_cpp": (*_KERNELS, "cuda_cpp"),
    "parsing": ("core", "ir", "cuda_cpp"),
    "arrays": _ARRAYS,
    "library": _ARRAYS,
    "products": _ARRAYS,
    "attention": (*_ARRAYS, "autograd"),
    "convolutions": _ARRAYS,
    "algorithms": _ARRAYS,
    "steps": _PROGRAMS,
    "compiled": _ARRAYS,
    "crossover": _ARRAYS,
    "quantized": (*_ARRAYS, "quant"),
    "training": _PROGRAMS,
    "programs": _PROGRAMS,
    "distributed": (*_PROGRAMS, "distributed"),
    "encoders": (*_ARRAYS, "models"),
    "actors": (*_ARRAYS, "actors"),
    "stencils": (*_PROGRAMS, "stencils"),
    "models": (*_ARRAYS, "quant", "models"),
    "browser": _ARRAYS,
}

# Whether what was measured of a suite at a commit is old.
IsOld = Callable[[str, str], bool]


class NoHistory(Exception):
    """There is no git, or no clone: what is old cannot be known."""


def here(root: Path = ROOT) -> str:
    """The commit of this clone, with `CHANGED` if tracked files differ from it; "" in a copy
    without git's history."""
    try:
        commit = _git(root, "rev-parse", f"--short={_DIGITS}", "HEAD").strip()
        changes = _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src")
    except NoHistory:
        return ""
    return commit + CHANGED * bool(changes.strip())


def of_result(result: dict[str, Any]) -> tuple[str, str]:
    """The commit that a result file's figures were measured at, and how a table writes it. Files
    from before commits were noted have the one that recorded them: they are not newer than it."""
    commit = str(result.get("commit") or "")
    if commit:
        return commit.removesuffix(CHANGED), commit
    recorded = str(result.get("recorded") or "")
    return recorded, f"≤ {recorded}" if recorded else "unknown"


def never(commit: str, suite: str) -> bool:
    """Nothing is old: for pages without marks."""
    return False


def history(root: Path = ROOT) -> IsOld:
    """What is old, by git's history. NoHistory where there is none."""
    _git(root, "rev-parse", "HEAD")

    @functools.cache
    def changed(commit: str, folders: tuple[str, ...]) -> bool:
        paths = [f"src/treadle/{folder}" for folder in folders]
        try:
            found = _git(root, "rev-list", "-1", f"{commit}..HEAD", "--", *paths)
        except NoHistory:  # no such commit
            return True
        return bool(found.strip())

    def is_old(commit: str, suite: str) -> bool:
        return not commit or changed(commit, MEASURED[suite.partition("-")[0]])

    return is_old


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistory(str(error)) from None
