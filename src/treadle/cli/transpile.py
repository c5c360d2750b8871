"""`treadle transpile`: what the kernels of a file become on a target."""

from __future__ import annotations

import runpy
from pathlib import Path

from treadle.core.dim3 import Dim3
from treadle.core.errors import TreadleError
from treadle.lang.kernel import Kernel
from treadle.runtime.launch import MAX_BLOCK

TARGETS = ("wgsl", "cuda", "ptx", "msl", "llvm", "ir")


def parse_block(text: str) -> Dim3:
    """A block from "X" or "X,Y" or "X,Y,Z"; ValueError says what is wrong."""
    try:
        extent = Dim3.of(tuple(int(part) for part in text.split(",")))
    except ValueError:
        raise ValueError(f"{text!r} is not X, X,Y or X,Y,Z") from None
    if min(extent) < 1 or extent.count > MAX_BLOCK:
        raise ValueError(f"{text!r}: every part is at least 1, and all are {MAX_BLOCK} at most")
    return extent


def transpile_file(file: Path, to: str, name: str | None, block: Dim3) -> str:
    """The text of every kernel in a file, or of the one called `name`."""
    if not file.is_file():
        raise TreadleError(f"there is no file {file}")
    found = kernels_of(file)
    if not found:
        raise TreadleError(f"{file} has no @td.kernel function at its top level")
    if name is not None:
        if name not in found:
            raise TreadleError(f"{file} has no kernel {name!r}; it has {', '.join(found)}")
        found = {name: found[name]}
    return "\n".join(kernel.source(to, block=block) for kernel in found.values())


def kernels_of(file: Path) -> dict[str, Kernel]:
    """The kernels that running a file defines, by name."""
    if b"\0" in file.read_bytes():
        raise TreadleError(f"{file} is no Python file: it has null bytes")
    try:
        names = runpy.run_path(str(file), run_name="<transpile>")
    except TreadleError:
        raise
    except SyntaxError as error:
        raise TreadleError(f"{file}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        raise TreadleError(f"running {file} failed: {type(error).__name__}: {error}") from error
    return {name: value for name, value in names.items() if isinstance(value, Kernel)}
