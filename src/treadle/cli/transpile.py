"""`treadle transpile`: what the kernels of a file become on a target."""

from __future__ import annotations

import os
import re
import runpy
from dataclasses import dataclass
from pathlib import Path

from treadle.cli.usage import WrongUsage
from treadle.codegen import TARGETS
from treadle.core.dim3 import Dim3
from treadle.core.errors import TreadleError
from treadle.core.paths import no_file, no_folder
from treadle.ir.signature import Signature
from treadle.lang.decorators import Kernel
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.launch import MAX_BLOCK
from treadle.stencils.decorator import Stencil

LANGUAGES = (*TARGETS, "ir")  # what kernels are printed in; the IR has a text form, too


def parse_block(text: str) -> Dim3:
    """A block from "X" or "X,Y" or "X,Y,Z"; ValueError says what is wrong."""
    try:
        extent = Dim3.of(tuple(int(part) for part in text.split(",")))
    except ValueError:
        raise ValueError(f"{text!r} is not X, X,Y or X,Y,Z") from None
    if min(extent) < 1 or extent.count > MAX_BLOCK:
        raise ValueError(
            f"{text!r}: each part must be at least 1, and the product at most {MAX_BLOCK}"
        )
    return extent


@dataclass(frozen=True)
class Printed:
    """The text of a file's kernels, and a sentence for each that has none."""

    texts: dict[str, str]  # by the kernels' names
    left_out: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of them, one after the other."""
        return "\n".join(self.texts.values())

    def write(self, output: Path) -> tuple[Path, ...]:
        """Write the text to a file; of several kernels, each to its own, since compilers take one
        of them in a file: `out.wgsl` becomes `out.blur.wgsl` and so on."""
        written = []
        for name, text in self.texts.items():
            plain = re.sub(r"\W+", "_", name).strip("_")
            several = len(self.texts) > 1
            path = output.with_name(f"{output.stem}.{plain}{output.suffix}") if several else output
            path.write_text(text)
            written.append(path)
        return tuple(written)


def transpile_file(
    file: Path, to: str, name: str | None, block: Dim3 | None, shared: int, sm: str | None = None
) -> Printed:
    """The text of every kernel in a file, or of the one called `name`, for a card of a compute
    capability, `sm`.

    Kernels whose parameters have no known type are left out, unless none is left then.
    """
    if not file.is_file():
        raise TreadleError(no_file(file))
    found = kernels_of(file)
    if not found:
        raise TreadleError(f"{file} has no @td.kernel or @td.stencil function at its top level")
    if name is not None:
        if name not in found:
            raise WrongUsage(f"{file} has no kernel {name!r}; it has {', '.join(found)}")
        found = {name: found[name]}
    known = {key: one for key, one in found.items() if not _untyped(one)}
    left_out = tuple(_why_left_out(one) for key, one in found.items() if key not in known)
    if not known:
        raise TreadleError("; ".join(left_out))
    texts = {
        name: kernel.source(to, block=block, sm=sm)
        if isinstance(kernel, Stencil)
        else kernel.source(
            to, block=block, shared_bytes=shared if _dynamic(kernel, shared) else 0, sm=sm
        )
        for name, kernel in known.items()
    }
    return Printed(texts, left_out)


def _untyped(kernel: Kernel | Stencil) -> list[str]:
    return [parameter.name for parameter in kernel.parameters if parameter.declared is None]


def _why_left_out(kernel: Kernel | Stencil) -> str:
    names = ", ".join(_untyped(kernel))
    return (
        f"kernel {kernel.name} is left out, since the types of its parameters are not known: "
        f"annotate {names}, or choose another kernel with --kernel"
    )


def _dynamic(kernel: Kernel, shared: int) -> bool:
    """Whether a kernel has dynamic shared memory, where there are bytes for it."""
    if not shared:
        return False
    memories = kernel.lower(Signature(declared_arguments(kernel))).kernel.memories
    return any(memory.length is None for memory in memories)


def check_output(output: Path) -> None:
    """WrongUsage unless a file can be written there: before the work, not after it."""
    if os.path.isdir(output):
        raise WrongUsage(f"{output} is a folder: name a file to write to")
    if not os.path.isdir(output.parent):
        raise WrongUsage(f"{no_folder(output.parent)}: cannot write {output.name} there")


def kernels_of(file: Path) -> dict[str, Kernel | Stencil]:
    """The kernels and stencils that running a file defines, by name."""
    if b"\0" in file.read_bytes():
        raise TreadleError(f"{file} is not a Python file: it has null bytes")
    try:
        names = runpy.run_path(str(file), run_name="<transpile>")
    except TreadleError:
        raise
    except SyntaxError as error:
        raise TreadleError(f"{file}:{error.lineno}: {error.msg}") from error
    except SystemExit as error:
        raise TreadleError(
            f"running {file} ended with sys.exit({error.code!r}) before its kernels could be "
            'printed: put what a program does under if __name__ == "__main__"'
        ) from error
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise TreadleError(
            f"running {file} failed: {words} (treadle --debug transpile … shows the traceback)"
        ) from error
    return {name: value for name, value in names.items() if isinstance(value, (Kernel, Stencil))}
