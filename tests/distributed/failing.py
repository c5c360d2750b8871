"""Run by `treadle launch`: ways in which ranks fail."""

import os
import signal
import sys
import threading
import time

import beginning
import numpy as np

import treadle as td
from treadle import distributed as dist

mode = sys.argv[1]
print("pid", os.getpid(), os.environ.get("TREADLE_STORE_KEY"), flush=True)
if mode == "forgotten":
    dist.all_reduce(td.ones(2))
if mode == "unused":
    sys.exit(0)
# Short where the time is to pass, and long enough for ranks that start on a busy machine.
beginning.init(
    timeout=3 if mode in ("late", "recv", "busy", "group") else 30,
    check=mode.startswith("check"),
)
rank = dist.rank()
x = td.asarray(np.full(3, rank + 1, np.float32))  # which takes no compiler
dist.barrier()
first = dist.all_reduce(x)
if mode == "alone":  # rank 0 waits in MPI's end for a rank that is gone
    from mpi4py import MPI

    if rank == 0:
        threading.Thread(target=MPI.Finalize, daemon=True).start()
    time.sleep(1)
    os._exit(1)
if mode == "other":
    if rank == 1:
        dist.send(x, 0)
    else:
        other = dist.recv((2,), 1)
        print((other + 1).tolist())
if mode == "group":
    group = dist.new_group([1, 0])
    dist.all_reduce(x, group=group)
    if rank == 0:
        dist.all_reduce(x, group=group).numpy()
    time.sleep(60)
if mode in ("message", "check-message"):
    for k in range(3):
        if rank == 1:
            dist.send(x[: k + 1], 0, tag=k // 2)
        elif k < 1:
            dist.recv((k + 1,), 1)
if mode == "check-group":
    dist.all_gather(td.ones(3 + rank, dtype=td.int32), group=dist.new_group([1, 0]))
if rank == 1:
    time.sleep(0.3)
    if mode == "raised":
        raise ZeroDivisionError("one over nothing")
    if mode == "busy":
        raise KeyError("gone")
    if mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "left":
        sys.exit(0)
    if mode in ("late", "recv"):
        time.sleep(60)
    if mode == "check-shape":
        x = td.asarray(np.ones(4, np.float32))
if mode == "busy":
    time.sleep(60)
    raise SystemExit(0)
if mode == "recv" and rank == 0:
    print(dist.recv(x, 1).tolist())
print(rank, dist.all_reduce(x).tolist())
