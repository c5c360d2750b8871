"""The commands and what they share: exit statuses and one clear line for an error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from treadle.cli import kernel_commands, launch_command, model_commands
from treadle.cli.usage import USER_ERRORS, WrongUsage, say, wrong_usage
from treadle.codegen import TARGETS
from treadle.core.errors import DeviceNotFound

app = typer.Typer(
    name="treadle",
    help="One kernel, every GPU. Try `treadle devices`, then `treadle demo`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_debug = False


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit status 0 on success, 2 for wrong usage, 1 with one clear line.
    What is not an error of users, but a fault of treadle, keeps its traceback."""
    try:
        app(arguments)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except USER_ERRORS as error:
        if _debug:
            raise
        given = sys.argv[1:] if arguments is None else arguments
        chosen = any(each.partition("=")[0] == "--device" for each in given)
        wrong = isinstance(error, WrongUsage) or (isinstance(error, DeviceNotFound) and chosen)
        _fail(str(error) or type(error).__name__, 2 if wrong else 1)


def _fail(message: str, status: int) -> None:
    say(message)
    sys.exit(status)


def _what_is_installed() -> str:
    """One line for a report of a fault: the version, and those of what it stands on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from treadle.core.version import __version__

    found = [f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"]
    for package in ("numpy", "llvmlite", "wgpu", "wgpudawn", "cuda-bindings"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"treadle {__version__} ({', '.join(found)})"


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the versions of treadle and its dependencies.")
    ] = False,
) -> None:
    """One kernel, every GPU."""
    global _debug
    _debug = debug
    if version:
        typer.echo(_what_is_installed())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def devices(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List every device that kernels can run on, best first."""
    from treadle.cli.listing import describe, hints
    from treadle.runtime import devices as known

    found = known.devices()
    if as_json:
        typer.echo(json.dumps([describe(device) for device in found], indent=2))
        if os.environ.get("TREADLE_DEVICE"):
            known.default_device()  # DeviceNotFound, if the variable names none
        return
    table = Table(header_style="bold", box=None, pad_edge=False)
    for heading in ("device", "kind", "name and driver", "features"):
        table.add_column(heading, overflow="fold")
    for device in found:
        facts = describe(device)
        table.add_row(
            device.id, device.kind, f"{device.name}\n[dim]{facts['through']}[/dim]",
            " ".join(sorted(device.features)),
        )  # fmt: skip
        table.add_section()
    Console().print(table)
    used = known.default_device().id
    typer.echo(
        f"The default device is {used}; TREADLE_DEVICE=… or td.set_default_device(…) changes it."
    )
    for hint in hints(found):
        typer.echo(hint)


@app.command()
def transpile(
    file: Annotated[
        Path,
        typer.Argument(help="CUDA C++ (.cu, .cuh, .cpp, .h), or Python with @td.kernel functions."),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", help=f"The target: {', '.join(TARGETS)} or ir. wgsl by default."),
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", help="Print only this kernel.")] = None,
    block: Annotated[
        str | None,
        typer.Option("--block", help="Threads in a block: X or X,Y,Z. 256 by default."),
    ] = None,
    shared: Annotated[
        int,
        typer.Option(
            "--shared",
            min=0,
            help="Bytes of dynamic shared memory (extern __shared__, or td.shared(None, …)).",
        ),
    ] = 0,
    sm: Annotated[
        str | None,
        typer.Option(
            "--sm",
            help="The compute capability that ptx and cuda are printed for: 75, 80, 90, … 70 by "
            "default.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option("--template", help='Arguments of a C++ template, as "float,256".'),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", metavar="NAME[=VALUE]", help="Define a macro of CUDA C++. Repeatable."),
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option("-I", metavar="DIR", help="A folder to search for #include. Repeatable."),
    ] = None,
    skip_missing_headers: Annotated[
        bool,
        typer.Option("--skip-missing-headers", help="Skip an #include that is not found."),
    ] = False,
    double: Annotated[
        Literal["double", "float", "pair"],
        typer.Option("--double", help="What `double` is in CUDA C++: a float, a pair of floats."),
    ] = "double",
    recursion: Annotated[
        int | None,
        typer.Option(
            "--recursion",
            metavar="LEVELS",
            help="How deep functions of CUDA C++ may call themselves (64).",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="List what each CUDA C++ kernel uses, and what is emulated or refused."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            help="Write to this file (- is standard output); several kernels to one file each, as "
            "out.KERNEL.wgsl.",
        ),
    ] = None,
) -> None:
    """Print the kernels of a file in the language of a target. No device is needed.

    A CUDA C++ file is read as nvcc reads it, and its host code is skipped.
    A template needs its arguments: --kernel reduce --template "float,256".
    Kernels that cannot be printed are listed at the end, with the reason;
    the exit status is 1 if there are no others. --report lists what each
    kernel uses, line by line, and what other devices emulate or refuse; with
    --to also what that target refuses.

    A Python file is run, like `python FILE` but with another __name__.
    Kernels with unannotated parameters are left out: their types are not
    known.
    """
    from treadle.cli.transpile import LANGUAGES, check_output, parse_block, transpile_file
    from treadle.cuda_cpp.load import SUFFIXES, is_cuda_text

    if to not in (None, *LANGUAGES):
        raise typer.BadParameter(f"{to!r} is not one of {', '.join(LANGUAGES)}", param_hint="--to")
    with wrong_usage("--block"):
        extent = None if block is None else parse_block(block)
    if sm is not None:
        from treadle.drivers.offline import find_card

        with wrong_usage("--sm"):
            find_card(sm, to or "wgsl")
    output = None if str(output) == "-" else output
    if output is not None:
        check_output(output)
    if file.suffix != ".py" and file.suffix not in SUFFIXES and is_cuda_text(file):
        raise typer.BadParameter(
            f"{file} has kernels of CUDA C++, and is read as Python: rename it to {file.stem}.cu"
        )
    if file.suffix in SUFFIXES:
        from treadle.cli import transpile_cuda as cuda

        arguments = () if template is None else cuda.template_arguments(template)
        wanted = cuda.Wanted(
            file,
            kernel,
            arguments,
            tuple(define or ()),
            tuple(include or ()),
            skip_missing_headers,
            double,
            recursion,
        )
        if report:
            cuda.show_report(cuda.report_of(wanted, to), output)
            return
        printed = cuda.transpile_cuda(wanted, to or "wgsl", extent, shared, sm)
    elif (
        template
        or define
        or include
        or skip_missing_headers
        or double != "double"
        or recursion is not None
        or report
    ):
        raise typer.BadParameter(
            "--template, -D, -I, --skip-missing-headers, --double, --recursion and --report are "
            "only for CUDA C++ files"
        )
    else:
        printed = transpile_file(file, to or "wgsl", kernel, extent, shared, sm)
    if output is None:
        typer.echo(printed.text)
    else:
        written = printed.write(output)
        if len(written) > 1:
            say(f"wrote one file for each kernel: {', '.join(map(str, written))}")
    for note in printed.left_out:
        say(note)


@app.command(context_settings={"ignore_unknown_options": True})
def profile(
    script: Annotated[Path, typer.Argument(help="The Python program to run.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Arguments of the program. Put -- before those that look like options here."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", help="Also write a trace to this file, to be opened in https://ui.perfetto.dev."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="The program's default device, as cuda or cpu."),
    ] = None,
) -> None:
    """Run a Python program, and show how long its kernels, copies and waits took.

    The program runs like `python SCRIPT ARGUMENTS`. The table is shown at its
    end, also if it fails.
    """
    from treadle.cli.profile import profile_script

    status = profile_script(script, arguments or [], output, device)
    if status:
        raise typer.Exit(status)


@app.command()
def bench(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE]...", help="arrays, programs (both by default), distributed."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="The device to measure. The best one by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", help="Also write the figures to this file, as JSON.")
    ] = None,
    small: Annotated[
        bool,
        typer.Option("--small", help="Small arrays: a quick test, not for its figures."),
    ] = False,
) -> None:
    """Measure how fast this machine computes, compared with NumPy and PyTorch if installed.

    The suite "arrays" measures elementwise chains, sums, softmax and layer
    norm of large arrays, in GB/s, compared with a copy on the same device;
    the host time of a small operation; and the peak memory of an expression.

    The suite "programs" measures whole programs: a decoder token by token,
    steps of training, loops of small operations, and the first step of a
    process.

    The suite "distributed" starts processes (two, or one for each NVIDIA GPU),
    and measures collectives by size beside MPI's or NCCL's own: the time of 4
    bytes, and the bandwidth of a link for larger ones.

    Each result is compared with NumPy's in float64, or with PyTorch's, before
    it is timed. Close other programs first.
    """
    from treadle.cli.bench.command import SUITES, USUAL, run_bench

    for suite in suites or ():
        if suite not in SUITES:
            raise typer.BadParameter(f"{suite!r} is not one of {', '.join(SUITES)}")
    run_bench(suites or USUAL, device, output, small)


@app.command()
def tune(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE]...", help="products, convolutions, attention. All by default."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="The device to tune. The best one by default.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="How long it may take, about.")
    ] = 60.0,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what was tuned before.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--list", help="Only show the results that are known.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--json", help="Also write this machine's results to this file.")
    ] = None,
) -> None:
    """Find the fastest kernels for this machine's device, and use them from now on.

    A product of matrices can be computed by tiles of many sizes, and which is
    fastest depends on the device. Without tuning, a table says which is a
    good first guess. This command measures others on the device's own clock,
    for matrices of usual sizes and dtypes ("products"), and likewise for
    "convolutions" and "attention". What is clearly faster than the
    first guess is kept in the cache folder, for this device and driver, and
    each process that starts later uses it for operands of about that size.

    The result of each candidate is compared with that of the first guess. One
    that differs is rejected, with a warning that names it.

    Stop it when you like: what was found is kept, and the next run goes on.
    With TREADLE_TUNE=0 results are not used; with TREADLE_TUNE=1 a program
    also measures what was not tuned, when it first comes up.
    """
    from treadle.cli.tune import SUITES, list_results, run_tune

    for suite in suites or ():
        if suite not in SUITES:
            raise typer.BadParameter(f"{suite!r} is not one of {', '.join(SUITES)}")
    if not math.isfinite(seconds):
        raise typer.BadParameter(f"{seconds} is not a number of seconds", param_hint="--seconds")
    if show:
        list_results(list(dict.fromkeys(suites or SUITES)), device, output)
    else:
        run_tune(list(dict.fromkeys(suites or SUITES)), device, seconds, again, output)


@app.command()
def quantize(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="A GGUF file, any file of a split one, or a folder."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.gguf", help="The file to write.")],
    recipe: Annotated[
        str, typer.Option("--type", "-t", help="What the weights become: a name of the list above.")
    ] = "q4_k_m",
    tensor: Annotated[
        list[str] | None,
        typer.Option(
            "--tensor",
            metavar="PATTERN=TYPE",
            help='Another type for some tensors, as "*.attn_v.weight=q8_0". Repeatable.',
        ),
    ] = None,
    requantize: Annotated[
        bool,
        typer.Option("--requantize", help="Round tensors again that are quantized already."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT.gguf if it exists.")
    ] = False,
) -> None:
    """Write a language model with fewer bits a weight: a smaller file, and faster answers.

    IN is a GGUF file of f32, f16 or bf16, or a folder as Hugging Face's
    libraries save models, with config.json, tokenizer.json and safetensors.
    What the weights become, with bits a weight, from the most exact to the
    smallest:

    \b
    f32, f16, bf16        16 or 32; only conversion
    q8_0                  8.5; next to no loss
    q6_k                  6.6; a loss that is hardly measurable
    q5_k_m, q5_k          5.7, 5.5; q5_0 and q5_1 are older and less exact
    q4_k_m, q4_k          4.8, 4.5; the usual choice; q4_0 and q4_1 are older
    iq4_xs, iq4_nl        4.3, 4.5; slower to make
    mxfp4                 4.3; for models that were trained for it
    q3_k, q2_k            3.4, 2.6; a loss that is felt

    The …_m are mixes, with more bits for the weights that need them. The
    matrix that makes the logits has 6.6 bits or more, norms and vectors stay
    as they are, and rows that are not whole blocks get the next larger type.
    These are the recipes of llama.cpp, which reads what is written.

    The file is complete or not there: an error or Ctrl-C leaves what was
    there before.
    """  # noqa: D301 - the escape is the character that keeps click from filling the lines
    from treadle.cli.quantize import Choice, parse_tensor, quantize_file
    from treadle.quant.recipes import RECIPES

    if recipe.lower() not in RECIPES:
        raise typer.BadParameter(
            f"{recipe!r} is not one of {', '.join(RECIPES)}", param_hint="--type"
        )
    with wrong_usage("--tensor"):
        tensors = [parse_tensor(text) for text in tensor or ()]
    quantize_file(source, target, Choice(recipe.lower(), tensors, requantize), overwrite)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled kernels.")] = False,
) -> None:
    """Show or remove the compiled kernels that are kept on disk."""
    from treadle.runtime import disk_cache

    if not disk_cache.is_usable():  # a line of the log has said why
        raise typer.Exit(1)
    usage = disk_cache.clear() if clear else disk_cache.usage()
    size = f"{usage.nbytes / 1024:.0f} KiB"
    if clear:
        typer.echo(f"removed {usage.entries} kernels, {size} in {usage.folder}")
    else:
        most = f"{disk_cache.MOST_BYTES >> 20} MiB"
        kept = f"kept until unused for {disk_cache.KEPT_DAYS} days"
        typer.echo(f"{usage.entries} kernels, {size} of at most {most}, in {usage.folder}; {kept}")


@app.command()
def actors(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the table up to date, with rates.")
    ] = False,
) -> None:
    """List the actors of programs that show theirs (td.actors.publish)."""
    from treadle.cli.actor_listing import show_actors

    show_actors(watch)


@app.command()
def demo(
    device: Annotated[
        str | None,
        typer.Option("--device", help="Only this device."),
    ] = None,
    output: Annotated[Path, typer.Option("-o", help="The file for the picture.")] = Path(
        "treadle-demo.png"
    ),
    kernels: Annotated[
        bool,
        typer.Option("--kernels/--no-kernels", help="Run or skip the kernels."),
    ] = True,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train the network or skip it.")
    ] = True,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, help="Passes over the training data.")
    ] = 15,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the random numbers of the training.")
    ] = 0,
) -> None:
    r"""Test the installation: run kernels on every device, then train a network.

    The kernels blur a photograph, find its edges, compute a histogram of its
    brightness and simulate a wave, on every device. The results are compared
    with NumPy's in float64, and the times are shown.

    Then a network of two layers is trained on 1438 handwritten digits of
    scikit-learn, on the best device, and tested on 359 others. Its code,
    treadle/cli/demo/training.py, is a start for a network of your own.

    A picture of the results is saved. The demo needs matplotlib and
    scikit-learn: pip install "treadle\[demo]"
    """
    from treadle.cli.demo.show import run_demo

    if not (kernels or train):
        raise typer.BadParameter("--no-kernels and --no-train leave nothing to show")
    run_demo(device, output, kernels, epochs if train else 0, seed)


for command in (
    kernel_commands.explain, kernel_commands.kernels,
    model_commands.generate, model_commands.chat, model_commands.embed, model_commands.serve,
):  # fmt: skip
    app.command()(command)
# What comes after the script is the script's.
app.command(context_settings={"allow_interspersed_args": False})(launch_command.launch)
