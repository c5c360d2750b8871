"""What launchers say in environment variables."""

from __future__ import annotations

import os

import pytest

from treadle.core.errors import DistributedError
from treadle.distributed.environment import first_node, launched, threads_of

TORCHRUN = {
    "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "gpu1", "MASTER_PORT": "29500",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
SLURM = {
    "SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "123456",
    "SLURM_NTASKS_PER_NODE": "2(x2)", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "gpu[03-04]",
}  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "ranks", "store", "is_mpi"),
    [
        (TORCHRUN, (5, 8, 1, 4), ("gpu1", 29500), False),
        (TORCHRUN | {"TORCHELASTIC_USE_AGENT_STORE": "True"}, (5, 8, 1, 4), ("gpu1", 29501), False),
        (TORCHRUN | SLURM, (5, 8, 1, 4), ("gpu1", 29500), True),
        (TORCHRUN | SLURM | {"TORCHELASTIC_RUN_ID": "1"}, (5, 8, 1, 4), ("gpu1", 29500), False),
        (OPEN_MPI, (2, 4, 0, 2), None, True),
        (OPEN_MPI | SLURM, (2, 4, 0, 2), None, True),
        (MPICH, (1, 2, 1, 2), None, True),
        (MPICH | {"TREADLE_STORE": "::1:4000"}, (1, 2, 1, 2), ("::1", 4000), True),
        (SLURM, (3, 4, 1, 2), ("gpu03", 20000 + 123456 % 12000), True),
    ],
)
def test_launchers(variables, ranks, store, is_mpi):
    found = launched(variables)
    assert found is not None
    assert (found.rank, found.size, found.local_rank, found.local_size) == ranks
    assert (found.store, found.is_mpi) == (store, is_mpi)


def test_a_process_without_a_launcher():
    assert launched({}) is None
    assert launched({"RANK": "0"}) is None
    batch = {name: value for name, value in SLURM.items() if name != "SLURM_STEP_ID"}
    assert launched(batch) is None  # the script of sbatch itself


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (TORCHRUN | {"RANK": "8"}, "RANK is 8 and WORLD_SIZE is 8"),
        (TORCHRUN | {"RANK": "one"}, "RANK is 'one', and should be a number"),
        (TORCHRUN | {"MASTER_PORT": "x"}, "MASTER_PORT is 'x'"),
        (MPICH | {"TREADLE_STORE": "nowhere"}, "TREADLE_STORE is 'nowhere', and not HOST:PORT"),
    ],
)
def test_variables_that_make_no_sense(variables, words):
    with pytest.raises(DistributedError, match=words):
        launched(variables)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a", "a"), ("a,b", "a"), ("n[1-3]", "n1"), ("n[007,9],m", "n007"), ("n[12]", "n12")],
)
def test_lists_of_hosts(nodes, first):
    assert first_node(nodes) == first


def test_threads_of_processes_on_one_host():
    cores = os.cpu_count() or 1
    found = threads_of({"OMP_NUM_THREADS": "3"}, 2 * cores)
    assert found["TREADLE_CPU_THREADS"] == found["OPENBLAS_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in found
    found = threads_of({"TREADLE_CPU_THREADS": "5"}, 2)
    assert found["MKL_NUM_THREADS"] == "5"
    assert "TREADLE_CPU_THREADS" not in found
