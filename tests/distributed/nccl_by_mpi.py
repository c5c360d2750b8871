"""The NCCL backend without a card: NCCL's calls made by MPI, on the memory of the CPU device, whose
stream runs them at once. `everything.py` does the rest.

This shows which call of NCCL each collective makes, with which counts and addresses; that NCCL and
CUDA's streams do what they say is for a card. In a capture a call is recorded, as there: a replay
makes it again, without what the host does in the program.
"""

import contextlib
import ctypes
import os
import sys
from enum import IntEnum
from functools import partial
from types import ModuleType

import ml_dtypes
import mpi4py
import numpy as np

mpi4py.rc.thread_level = "serialized"
from mpi4py import MPI  # noqa: E402

import treadle as td  # noqa: E402
from treadle.distributed import group  # noqa: E402
from treadle.drivers.cpu import stream  # noqa: E402

RANKS = MPI.COMM_WORLD
DataType = IntEnum(
    "DataType", "Int8 Uint8 Int32 Uint32 Int64 Uint64 Float16 Float32 Float64 Bfloat16", start=0
)
RedOp = IntEnum("RedOp", "Sum Prod Max Min", start=0)
REDUCE = {
    RedOp.Sum: np.add, RedOp.Prod: np.multiply, RedOp.Max: np.maximum, RedOp.Min: np.minimum,
}  # fmt: skip
sends, receives = [], []


def memory(address, count, kind):
    name = DataType(kind).name.lower()
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    held = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(held, dtype)


def every(ranks, address, count, kind):
    """All ranks' memory."""
    return ranks.allgather(memory(address, count, kind).copy())


def reduced(found, op):
    made = found[0]
    for each in found[1:]:
        made = REDUCE[op](made, each)
    return made


def all_reduce(given, result, count, kind, op, communicator, stream):
    memory(result, count, kind)[:] = reduced(every(communicator, given, count, kind), op)


def reduce(given, result, count, kind, op, root, communicator, stream):
    total = reduced(every(communicator, given, count, kind), op)
    if communicator.rank == root:
        memory(result, count, kind)[:] = total


def broadcast(given, result, count, kind, root, communicator, stream):
    memory(result, count, kind)[:] = every(communicator, given, count, kind)[root]


def all_gather(given, result, count, kind, communicator, stream):
    memory(result, count * communicator.size, kind)[:] = np.concatenate(
        every(communicator, given, count, kind)
    )


def reduce_scatter(given, result, count, kind, op, communicator, stream):
    total = reduced(every(communicator, given, count * communicator.size, kind), op)
    memory(result, count, kind)[:] = total[
        count * communicator.rank : count * (communicator.rank + 1)
    ]


def group_start():
    sends.append(None)


def group_end():
    sends.remove(None)
    for each in receives:
        each.Wait()
    receives.clear()


def send(address, count, kind, to, communicator, stream):
    held = memory(address, count, kind).copy()
    sends.append((held, communicator.Isend([held, held.nbytes, MPI.BYTE], to)))


def recv(address, count, kind, source, communicator, stream):
    target = memory(address, count, kind)
    receives.append(communicator.Irecv([target, target.nbytes, MPI.BYTE], source))
    if None not in sends:
        receives.pop().Wait()


def destroyed(communicator):
    while sends:
        sends.pop()[1].Wait()
    communicator.Barrier()
    if communicator is not RANKS:
        communicator.Free()


library = ModuleType("nccl.bindings.nccl")
library.DataType, library.RedOp = DataType, RedOp
library.NCCLError = type("NCCLError", (Exception,), {})
library.get_version = lambda: 23000
library.get_unique_id = lambda: bytes(128)
library.comm_init_rank_scalable = lambda *arguments: RANKS
library.comm_split = lambda ranks, color, key, config: ranks.Split(
    MPI.UNDEFINED if color < 0 else color, key
)
library.comm_get_async_error = lambda communicator: 0
library.comm_destroy = destroyed
for each in (
    all_reduce, reduce, broadcast, all_gather, reduce_scatter, group_start, group_end, send, recv,
):  # fmt: skip
    setattr(library, each.__name__, each)
for name in ("nccl", "nccl.bindings"):
    sys.modules[name] = ModuleType(name)
sys.modules["nccl.bindings.nccl"] = library

cpu = td.device("cpu")
type(cpu.handle).current = lambda self: contextlib.nullcontext()
stream.Stream.call_library = lambda self, name, work, reads, writes: self.call_host(
    lambda: work(0), [*reads, *writes]
)
stream.Stream.at_submission = lambda self, work: self.call_host(work, ())
group._choices = lambda *others: ("nccl", cpu)
os.environ["NCCL_HOSTID"] = str(RANKS.rank)

td.distributed.init = partial(group.init, check=True)

import derived  # noqa: E402
import everything  # noqa: E402, F401
import piped  # noqa: E402

piped.pipeline(int(sys.argv[2]), is_full=False)

error = derived.raised(lambda: td.distributed.all_reduce(td.ones(2, device="numpy")))
assert "is on numpy, and nccl moves data of this rank's device, cpu" in str(error), error

# NCCL gives what arrives, or waits for ever.
if RANKS.rank == 0:
    td.distributed.send(td.ones(4), 1)
else:
    error = derived.raised(lambda: td.distributed.recv((2, 2), 0))
    assert "the message that arrives is float32[4]" in str(error), error
    RANKS.Recv(np.empty(16, np.uint8), 0)
