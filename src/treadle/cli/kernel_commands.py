"""The commands for kernels as text: `explain`, `kernels`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from treadle.cli.usage import WrongUsage, say, wrong_usage
from treadle.core.errors import TreadleError


def explain(
    file: Annotated[Path, typer.Argument(help="PTX text, of any compiler; - is standard input.")],
    kernel: Annotated[str | None, typer.Option("--kernel", help="Explain only this one.")] = None,
    sm: Annotated[
        str | None,
        typer.Option("--sm", help="Assemble for this GPU: 80, 90a, … As in the file by default."),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            help="Threads in a block, if the kernel does not say: X or X,Y,Z. 256 by default.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a kernel's PTX shows without running it. No device is needed.

    Registers, spills and shared memory, and how many blocks fit (by NVIDIA's
    assembler, if it is here: pip install nvidia-cuda-nvcc). Then, where it
    looks wrong or slow:

    barrier    threads of a block may reach a barrier at different times
    unchecked  an access to global memory that no test of its index decides on
    banks      lanes of a warp access the same bank of shared memory
    sectors    lanes of a warp access global memory that is scattered

    Addresses are compared by their formulas, for the first warp of a block.
    Example: treadle transpile kernel.py --to ptx | treadle explain -
    """
    from treadle.cli import explain as explaining
    from treadle.cli.transpile import parse_block

    with wrong_usage("--block"):
        extent = None if block is None else parse_block(block)
    if sm is not None and not re.fullmatch(r"\d{2,3}[af]?", sm):
        raise typer.BadParameter(f"{sm!r} is not 80, 90, 90a or the like", param_hint="--sm")
    shape = None if extent is None else (extent.x, extent.y, extent.z)
    explained = explaining.explain(file, kernel, sm, shape)
    if as_json:
        typer.echo(json.dumps(explaining.as_json(explained), indent=2))
    else:
        explaining.show(explained, Console())
    if explained.refusal:
        raise TreadleError(explained.refusal)


def kernels(
    name: Annotated[
        str | None, typer.Argument(help="The kernel; without one they are listed.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the kernels.")] = False,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", help="f16, bf16, tf32, f32, i8, …; q4_k, … of quantized."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", help="The sizes to launch it for, as --list names them: MxNxK of gemm."
        ),
    ] = None,
    tile: Annotated[
        str | None,
        typer.Option("--tile", help="A block's rows, columns and depth, as 128x256x64 (gemm)."),
    ] = None,
    sm: Annotated[
        str | None,
        typer.Option(
            "--sm",
            help="The GPU's compute capability: 75, 80, 89, 90, …, 90a (what only Hopper has). "
            "80 by default.",
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="The language: ptx, cuda, msl or wgsl.")
    ] = "ptx",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            help="Write to this file (- is standard output); several kernels to one file each, as "
            "out.KERNEL.ptx.",
        ),
    ] = None,
) -> None:
    """Print a kernel of the library, to be used without treadle. No device is needed.

    Products of matrices, softmax, norms, attention and others are printed as
    they are launched for the device that --sm or --target describes. The text
    begins with a comment: grid, block and shared memory, each parameter with
    its value, and the calls that launch it. PTX needs no toolkit: a driver
    takes it as it is (cuModuleLoadData).

    Examples: treadle kernels gemm --dtype f16 --tile 128x256x64 --sm 90 -o gemm.ptx
    then treadle explain gemm.ptx says what it takes of the GPU.
    """
    from treadle.cli.kernels import TARGETS, listing, print_kernels

    if target not in TARGETS:
        raise typer.BadParameter(f"{target!r} is not one of {', '.join(TARGETS)}")
    choices = {"--dtype": dtype, "--size": size, "--tile": tile, "--sm": sm, "-o": output}
    if name is None or listed:
        given = [option for option, value in choices.items() if value is not None]
        if given:
            raise typer.BadParameter(
                f"the list has no use for it: name a kernel before, as gemm {given[0]} …",
                param_hint=given[0],
            )
        with wrong_usage():
            typer.echo(listing(name))
        return
    output = None if str(output) == "-" else output
    try:
        with wrong_usage():
            printed = print_kernels(name, dtype, size, tile, sm, target, output)
    except TreadleError as error:  # the kernel is what the options make it
        raise WrongUsage(str(error)) from error
    if output is None:
        typer.echo(printed.text)
    else:
        written = printed.write(output)
        if len(written) > 1:
            say(f"wrote one file for each kernel: {', '.join(map(str, written))}")
