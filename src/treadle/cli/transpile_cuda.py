"""`treadle transpile` of CUDA C++: what a file's kernels become on a target, and its report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treadle.cli.transpile import Printed
from treadle.cli.usage import WrongUsage
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, TreadleError
from treadle.cuda_cpp.kernel import Kernel
from treadle.cuda_cpp.load import cuda_module
from treadle.cuda_cpp.module import CudaModule
from treadle.cuda_cpp.program import LEVELS
from treadle.cuda_cpp.report import Report
from treadle.cuda_cpp.semantics.types import Double


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file, how it is read, and which kernels of it: all, one by name, an instance of one."""

    file: Path
    kernel: str | None = None
    template: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()  # as after -D: NAME or NAME=VALUE
    include: tuple[Path, ...] = ()
    skip_missing_headers: bool = False
    double: Double = "double"
    recursion: int | None = None

    def open(self) -> CudaModule:
        """The file as a module."""
        macros: dict[str, str | None] = {}
        for define in self.defines:
            name, equals, value = define.partition("=")
            macros[name.strip()] = value if equals else None
        return cuda_module(
            self.file,
            defines=macros,
            include=self.include,
            skip_missing_headers=self.skip_missing_headers,
            double=self.double,
            recursion=LEVELS if self.recursion is None else self.recursion,
        )


def template_arguments(text: str) -> tuple[str, ...]:
    """The parts of "float,256", where commas within brackets divide nothing.

    >>> template_arguments("Pair<int, 4>, 2")
    ('Pair<int, 4>', '2')
    """
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return tuple(part.strip() for part in parts)


def transpile_cuda(
    wanted: Wanted, to: str, block: Dim3 | None, shared: int, sm: str | None = None
) -> Printed:
    """The text of the kernels, and a sentence for each that has none. TreadleError where none has.

    `block` None leaves it to each kernel. `sm` is a compute capability.
    """
    texts: dict[str, str] = {}
    left_out: list[str] = []
    module = wanted.open()
    for name in _names(module, wanted):
        try:
            kernel = _kernel(module, name, wanted)
            bytes_of_it = shared if shared and kernel.has_dynamic_memory else 0
            made = kernel.texts(to, block=block, shared_bytes=bytes_of_it, sm=sm)
            texts |= made if len(made) > 1 else {name: "".join(made.values())}
        except (CompileError, LaunchError) as error:
            left_out.append(f"kernel {name} is left out: {error}")
    if not texts:
        raise TreadleError("\n".join([*left_out, f"no kernel of {wanted.file} can be printed"]))
    return Printed(texts, tuple(left_out))


def report_of(wanted: Wanted, to: str | None) -> Report:
    """What the kernels use, what is emulated and refused, by a target too if one is named."""
    module = wanted.open()
    names = _names(module, wanted)
    if wanted.kernel is None and not wanted.template:
        return module.report(to)
    made = [_kernel(module, name, wanted).name for name in names]
    report = module.report(to)
    return replace(report, kernels=tuple(one for one in report if one.name in made))


def show_report(report: Report, output: Path | None) -> None:
    """Print a report: as a table on a terminal, else as plain lines."""
    if output is not None:
        output.write_text(f"{report}\n")
    elif sys.stdout.isatty():
        Console().print(_table(report))
        for note in report.notes:
            typer.echo(report.text_of(note))
    else:
        typer.echo(str(report))


_STYLES = {"emulated": "yellow", "refused": "red", "template": "dim"}


def _table(report: Report) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, title=report.file)
    for heading in ("kernel", "", "what, and why"):
        table.add_column(heading, overflow="fold")
    for kernel in report:
        name = f"{kernel.name}\nline {kernel.line}"
        for kind, text in report.rows(kernel):
            table.add_row(Text(name), Text(kind, _STYLES.get(kind, "")), Text(text))
            name = ""
        table.add_section()
    return table


def _names(module: CudaModule, wanted: Wanted) -> Sequence[str]:
    """The kernels that are wanted; TreadleError for one that is not there."""
    if not module.kernels:
        raise TreadleError(f"{wanted.file} has no kernels (__global__ functions)")
    if wanted.kernel is not None:
        if wanted.kernel not in module.kernels:
            listed = ", ".join(module.kernels)
            raise WrongUsage(f"{wanted.file} has no kernel {wanted.kernel!r}; it has {listed}")
        return [wanted.kernel]
    if wanted.template:
        templates = module.templates
        if len(templates) != 1:
            listed = ", ".join(templates) or "none"
            raise WrongUsage(
                f"--template needs --kernel to name the kernel: {wanted.file} has the templates "
                f"{listed}"
            )
        return templates
    return module.kernels


def _kernel(module: CudaModule, name: str, wanted: Wanted) -> Kernel:
    template = module.template(name)
    if not wanted.template and template.needs_arguments:
        raise LaunchError(
            f"it is a {template.head}: print an instance with --kernel {name} "
            f'--template "{template.example("float", "256")}"'
        )
    return module.kernel(name, *wanted.template)
