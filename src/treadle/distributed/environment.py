"""What the launcher of this process says in environment variables: how many processes there are,
which of them this is, and where they meet.

`treadle launch` uses torchrun's names. Each launcher is a row of a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from treadle.core.errors import DistributedError

# treadle launch's own: its store, the key that opens it, where what ranks print is shown, which
# backend to use, and where a trace of all ranks is written.
STORE, KEY, PROFILE = "TREADLE_STORE", "TREADLE_STORE_KEY", "TREADLE_LAUNCH_PROFILE"
OUTPUT, BACKEND = "TREADLE_OUTPUT", "TREADLE_DISTRIBUTED_BACKEND"
_PORTS = range(20_000, 32_000)  # for rank 0's store, where only the number of a job is known


@dataclass(frozen=True, slots=True)
class Names:
    """The variables of a launcher."""

    launcher: str
    rank: str
    size: str
    local_rank: str = ""
    local_size: str = ""
    job: str = ""  # a number that all processes of a job have, and other jobs do not
    is_mpi: bool = False  # whether MPI finds the others by itself


@dataclass(frozen=True, slots=True)
class Launched:
    """One process of several."""

    launcher: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    is_mpi: bool
    store: tuple[str, int] | None  # where the store is, or where rank 0 is to open it
    store_is_open: bool  # whether the launcher has opened it
    key: str
    backend: str | None


# The first one whose rank and size are set counts: what a job's manager says of all processes of a
# job comes after what the launcher within it says.
LAUNCHERS = (
    Names("torchrun or treadle launch", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    Names(
        "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", is_mpi=True,
    ),
    Names("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", is_mpi=True),
    Names(
        "SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
        "SLURM_JOB_ID", is_mpi=True,
    ),
)  # fmt: skip


def launched(variables: Mapping[str, str] | None = None) -> Launched | None:
    """What started this process as one of several; None if it is the only one."""
    found = os.environ if variables is None else variables
    for names in LAUNCHERS:
        if names.rank in found and names.size in found:
            return _launched(names, found)
    return None


def _launched(names: Names, variables: Mapping[str, str]) -> Launched | None:
    rank, size = (_number(variables, name) for name in (names.rank, names.size))
    if not 0 <= rank < size:
        raise DistributedError(
            f"{names.rank} is {rank} and {names.size} is {size}: ranks count from 0 to one less "
            "than the size"
        )
    # An agent of torchrun's may be a task of srun's or mpiexec's itself, and its processes are not.
    mpi = "TORCHELASTIC_RUN_ID" not in variables and any(
        each.is_mpi and each.rank in variables for each in LAUNCHERS
    )
    local_rank = _number(variables, names.local_rank, rank)
    if names.launcher == "SLURM" and (size == 1 or "SLURM_STEP_ID" not in variables):
        return None  # a script of sbatch, not a task of srun
    store, is_open = _store(names, variables)
    return Launched(
        names.launcher, rank, size, local_rank, _number(variables, names.local_size, size), mpi,
        store, is_open, variables.get(KEY, ""), variables.get(BACKEND) or None,
    )  # fmt: skip


def address_in(name: str, variables: Mapping[str, str]) -> tuple[str, int]:
    """The host and the port that a variable names."""
    host, _, port = variables[name].rpartition(":")
    if not host or not port.isdecimal():
        raise DistributedError(f"{name} is {variables[name]!r}, and not HOST:PORT")
    return host, int(port)


def _store(names: Names, variables: Mapping[str, str]) -> tuple[tuple[str, int] | None, bool]:
    if STORE in variables:
        return address_in(STORE, variables), True
    address, port = variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")
    if address and port:
        # An agent of torchrun's has its own store at that port.
        is_taken = variables.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"
        return (address, _number(variables, "MASTER_PORT") + is_taken), False
    if names.job and names.job in variables:
        job = _number(variables, names.job)
        nodes = variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", "")
        if nodes:
            return (first_node(nodes), _PORTS[job % len(_PORTS)]), False
    return None, False


def first_node(nodes: str) -> str:
    """The first host of SLURM's lists: "gpu[03-06,9],login" is gpu03.

    >>> first_node("gpu[03-06,9],login")
    'gpu03'
    """
    found = re.match(r"([^,\[]+)(?:\[([^\],-]+))?", nodes)
    return nodes if found is None else found[1] + (found[2] or "")


def _number(variables: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    text = variables.get(name, "").split("(")[0] if name else ""  # SLURM writes "2(x3)"
    if not text and otherwise is not None:
        return otherwise
    if not text.isdecimal():
        raise DistributedError(f"{name} is {text!r}, and should be a number")
    return int(text)


# How many threads a process may use: kernels', and those of the libraries of NumPy's products.
THREADS = "TREADLE_CPU_THREADS"
_LIBRARIES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


def threads_of(variables: Mapping[str, str], processes: int) -> dict[str, str]:
    """Variables that give each of some processes of this host its part of the cores, or as many as
    `variables` says for kernels; those that are there stay."""
    own = variables.get(THREADS) or str(max((os.cpu_count() or 1) // processes, 1))
    names = [each for each in (THREADS, *_LIBRARIES) if each not in variables]
    return dict.fromkeys(names, own)
