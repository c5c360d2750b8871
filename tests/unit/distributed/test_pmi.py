"""What MPICH asks of what has started it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from treadle.core.errors import DistributedError
from treadle.distributed.backends import pmi
from treadle.distributed.client import Client
from treadle.distributed.store import Store


@pytest.fixture
def answers():
    store = Store(2)
    clients = [
        Client(("127.0.0.1", store.port), rank, 2, "", 10.0, lambda progress: None)
        for rank in range(2)
    ]
    yield [pmi.Answers(rank, 2, clients[rank], lambda: None) for rank in range(2)]
    for each in clients:
        each.bye("")
    store.close()


def test_values_are_known_after_a_barrier(answers):
    first, second = answers
    assert first.to("cmd=init pmi_version=1 pmi_subversion=1\n") == (
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    )
    assert first.to("cmd=get_universe_size\n") == "cmd=universe_size size=2 rc=0"
    assert first.to("cmd=get_my_kvsname\n") == second.to("cmd=get_my_kvsname\n")
    for number in range(2):
        first.to(f"cmd=put kvsname=k key=a{number} value=port#1=2\n")
        assert "rc=-1" in second.to(f"cmd=get kvsname=k key=a{number}\n")
        with ThreadPoolExecutor() as threads:
            other = threads.submit(second.to, "cmd=barrier_in\n")
            assert first.to("cmd=barrier_in\n") == "cmd=barrier_out rc=0"
        assert other.result() == "cmd=barrier_out rc=0"
        assert second.to(f"cmd=get kvsname=k key=a{number}\n").endswith("value=port#1=2")
    assert first.to("cmd=spawn\n") == "cmd=unknown rc=-1"
    first.are_all_ending = True
    assert first.to("cmd=barrier_in\n") == "cmd=barrier_out rc=0"


def test_an_mpi_that_asks_otherwise_is_named(answers):
    open_mpi = SimpleNamespace(Get_library_version=lambda: "Open MPI v5.0.8, package: x\nmore")
    with pytest.raises(
        DistributedError, match=r"this MPI \(Open MPI v5.0.8\) begins under its own"
    ):
        pmi.begin(open_mpi, answers[0], 0, 2)
