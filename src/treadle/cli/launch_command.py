"""`treadle launch`: a script as several processes that compute together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from treadle.cli.usage import say


def launch(
    script: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT [ARGUMENTS]...", help="The script and its arguments; -m MODULE first."
        ),
    ],
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, help="How many processes to start.")
    ] = 1,
    backend: Annotated[
        Literal["mpi", "nccl"] | None,
        typer.Option(
            "--backend",
            help="What moves the data: mpi (all devices) or nccl (NVIDIA GPUs). nccl where the "
            "default device is an NVIDIA GPU.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option("--hosts", help="Hosts for mpiexec, as a,b or a:2,b:2 (two on each)."),
    ] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module.")] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="The kind of device, as cpu, or one device, as cuda:0."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Compare kind, shape and dtype of each collective among the processes "
            "(TREADLE_CHECK=1, which checks kernels too).",
        ),
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            help="Write what all processes compute and exchange as a trace for ui.perfetto.dev.",
        ),
    ] = None,
    prefix: Annotated[
        bool, typer.Option("--prefix/--no-prefix", help="Begin each line with its rank: [0] …")
    ] = True,
) -> None:
    """Run a script as several processes, each with a device of its own.

    The script calls td.distributed.init() first. Then td.distributed.rank()
    and size() say which of the processes it is, and collectives combine
    tensors of all of them: td.distributed.all_reduce(x) is their sum.

    If one process fails, the others are ended, and the first one that failed
    is named. Ctrl-C ends all. The processor's cores are divided among them,
    unless TREADLE_CPU_THREADS says how many threads each has.

    Examples: treadle launch -n 2 train.py --epochs 3, and of a module on the
    CPU: treadle launch -n 4 --device cpu -m package.train --epochs 3

    Scripts run under torchrun, srun and mpiexec as well.
    """
    from treadle.cli.transpile import check_output
    from treadle.distributed.environment import PROFILE
    from treadle.distributed.launching import Launch, run
    from treadle.runtime import devices

    if not module and not Path(script[0]).is_file():
        raise typer.BadParameter(f"there is no file {script[0]!r}", param_hint="SCRIPT")
    if backend is None:
        chosen = devices.default_device() if device is None else devices.device(device)
        backend = "nccl" if chosen.traits.cuda_memory else "mpi"
    variables = {"TREADLE_DEVICE": device} if device is not None else {}
    if check:
        variables["TREADLE_CHECK"] = "1"
    if profile is not None:
        check_output(profile)
        variables[PROFILE] = str(profile.absolute())
    names = tuple(each.strip() for each in hosts.split(",")) if hosts else ()
    arguments = ["-m", *script] if module else script
    raise typer.Exit(run(Launch(count, arguments, backend, names, prefix, variables), say))
