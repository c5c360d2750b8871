"""MPI without an mpiexec: a rank answers what its MPI asks of what has started it.

MPICH, and those made from it, ask a process manager how many processes there are and where the
others listen, in lines of text over a connection whose number `PMI_FD` says (PMI-1, MPICH's "wire
protocol" of process managers). Here a thread of the rank itself answers. What ranks tell one
another goes through the store, at each barrier. So ranks that Ray, torchrun or a script has started
find each other as those of mpiexec do.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client

# Of MPI libraries that ask so, what they say of themselves.
_KINDS = ("MPICH", "Intel(R) MPI", "MVAPICH", "CRAY")
_LOOK = 0.5  # seconds between looks whether a rank that is waited for has failed
_VARIABLES = ("PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID")


class Answers:
    """The answers to what a rank's MPI asks."""

    def __init__(self, rank: int, size: int, client: Client, check: Callable[[], None]) -> None:
        self._rank, self._size = rank, size
        self._client = client
        self._check = check
        self._known: dict[str, str] = {}
        self._own: dict[str, str] = {}  # put since the last barrier
        self._name = ""
        self._barriers = 0
        self.are_all_ending = False  # whether no rank starts anything any more

    def to(self, line: str) -> str:
        """The answer to a line."""
        asked = dict(each.split("=", 1) for each in line.split() if "=" in each)
        found = _ANSWERS.get(asked.get("cmd", ""))
        return "cmd=unknown rc=-1" if found is None else found(self, asked)

    def begun(self, asked: Mapping[str, str]) -> str:
        """The version of the protocol."""
        return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"

    def limits(self, asked: Mapping[str, str]) -> str:
        """How long names and values may be."""
        return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0"

    def program(self, asked: Mapping[str, str]) -> str:
        """Which of several programs this is."""
        return "cmd=appnum appnum=0 rc=0"

    def count(self, asked: Mapping[str, str]) -> str:
        """How many processes there are."""
        return f"cmd=universe_size size={self._size} rc=0"

    def name(self, asked: Mapping[str, str]) -> str:
        """The name of this job's values, by which MPI also calls the memory that ranks share: no
        other job has it, even one that has not ended as it should."""
        if not self._name and self._rank == 0:
            self._client.set("pmi name", f"treadle_{secrets.token_hex(8)}")
        self._name = self._name or self._given("pmi name")
        return f"cmd=my_kvsname kvsname={self._name} rc=0"

    def put(self, asked: Mapping[str, str]) -> str:
        """A value for the others."""
        self._own[asked["key"]] = self._known[asked["key"]] = asked["value"]
        return "cmd=put_result rc=0 msg=success"

    def get(self, asked: Mapping[str, str]) -> str:
        """A value that a rank has put before the last barrier."""
        value = self._known.get(asked["key"])
        if value is None:
            return "cmd=get_result rc=-1 msg=key_not_found"
        return f"cmd=get_result rc=0 msg=success value={value}"

    def barrier(self, asked: Mapping[str, str]) -> str:
        """All ranks are here, and know what the others have put."""
        if self.are_all_ending:
            return "cmd=barrier_out rc=0"
        number = self._barriers = self._barriers + 1
        self._client.set(f"pmi {number} {self._rank}", self._own)
        self._own = {}
        for rank in range(self._size):
            if rank != self._rank:
                self._known.update(self._given(f"pmi {number} {rank}"))
        # All ranks have had what was given at the barrier before.
        self._client.drop(f"pmi {number - 1} {self._rank}")
        return "cmd=barrier_out rc=0"

    def over(self, asked: Mapping[str, str]) -> str:
        """The end of MPI."""
        return "cmd=finalize_ack rc=0"

    def _given(self, key: str) -> Any:
        while True:
            try:
                return self._client.get(key, _LOOK)
            except TimeoutError:
                self._check()


_ANSWERS: dict[str, Callable[[Answers, Mapping[str, str]], str]] = {
    "init": Answers.begun,
    "get_maxes": Answers.limits,
    "get_appnum": Answers.program,
    "get_universe_size": Answers.count,
    "get_my_kvsname": Answers.name,
    "put": Answers.put,
    "get": Answers.get,
    "barrier_in": Answers.barrier,
    "finalize": Answers.over,
}


def begin(mpi: Any, answers: Answers, rank: int, size: int) -> Callable[[], None]:
    """Have MPI begin, with answers; returned is what ends it. `mpi` is mpi4py's module, which has
    not begun. Its calls would keep Python's lock meanwhile, so the library itself is called."""
    said = mpi.Get_library_version()
    if not any(kind in said for kind in _KINDS):
        raise DistributedError(
            f"this MPI ({said.splitlines()[0].split(',')[0]}) begins under its own mpiexec alone: "
            "start the script with mpiexec or treadle launch, or use MPICH (pip install mpich)"
        )
    own, other = socket.socketpair()
    threading.Thread(target=_serve, args=(own, answers), name="treadle pmi", daemon=True).start()
    before = {name: os.environ.pop(name) for name in _VARIABLES if name in os.environ}
    os.environ.update(PMI_FD=str(other.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(size))
    library = ctypes.CDLL(mpi.__file__)
    level = ctypes.c_int()
    try:
        status = library.MPI_Init_thread(
            None, None, int(mpi.THREAD_SERIALIZED), ctypes.byref(level)
        )
    finally:
        # Programs that this one starts have none of it.
        for name in _VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(before)
    if status:
        raise DistributedError(f"MPI does not begin (error {status}): its messages above say more")

    def end() -> None:
        # All ranks have said in the store that they end, and have left it: that was the barrier.
        answers.are_all_ending = True
        library.MPI_Finalize()
        # MPICH says goodbye when the process ends, after Python: the answer lies ready.
        own.sendall(_ANSWERS["finalize"](answers, {}).encode() + b"\n")
        own.detach()
        other.detach()

    return end


def _serve(connection: socket.socket, answers: Answers) -> None:
    """Answer each line until MPI ends. After a failure it is left without an answer: this process
    hears of it elsewhere, and ends."""
    with connection.makefile("rw", encoding="ascii", newline="\n") as lines:
        try:
            for line in lines:
                lines.write(answers.to(line) + "\n")
                lines.flush()
        except (OSError, ValueError, DistributedError):
            return
