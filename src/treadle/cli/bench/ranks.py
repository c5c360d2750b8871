"""What each process of the suite `distributed` runs: `treadle.cli.bench.ranks SMALL FILE`.

Each collective is compared with NumPy's before it is timed. Times are medians of the slowest rank,
of batches that begin after a barrier, in turns with the library's own collectives.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.core.errors import DistributedError
from treadle.distributed import collectives, group
from treadle.distributed.request import Request
from treadle.runtime.devices import default_device
from treadle.tensor.tensor import Tensor, from_numpy

_SMALL = (4, 4096)
_SIZES = (4, 65_536, 1 << 20, 1 << 24, 1 << 26)  # bytes of the larger side
_ROUNDS = 7
_BYTES = 1 << 27  # of a batch
_LATENCY = 4096  # bytes up to which a time is shown, and not a rate
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A collective: how many ranks' parts its input and result have, what it gives, how much of its
    bytes go over each rank's link, and the call of mpi4py's."""

    run: Callable[[Tensor], Tensor]
    given: int  # parts of the input: 0 for as many as there are ranks
    wanted: Callable[[list[Array], int], Array]
    travels: Callable[[int], float]
    mpi: Callable[[Any, Array, Array], None]
    reduction: str = ""


def _part(x: Array, rank: int, size: int) -> Array:
    return np.split(x, size)[rank]


KINDS = {
    "all_reduce": Kind(
        collectives.all_reduce, 0, lambda xs, rank: np.sum(xs, 0), lambda n: 2 * (n - 1) / n,
        lambda ranks, x, y: ranks.Allreduce(x, y), "sum",
    ),
    "broadcast": Kind(
        collectives.broadcast, 0, lambda xs, rank: xs[0], lambda n: 1.0,
        lambda ranks, x, y: ranks.Bcast(x, 0),
    ),
    "all_gather": Kind(
        collectives.all_gather, 1, lambda xs, rank: np.concatenate(xs), lambda n: (n - 1) / n,
        lambda ranks, x, y: ranks.Allgather(x, y),
    ),
    "reduce_scatter": Kind(
        collectives.reduce_scatter, 0, lambda xs, rank: _part(np.sum(xs, 0), rank, len(xs)),
        lambda n: (n - 1) / n, lambda ranks, x, y: ranks.Reduce_scatter_block(x, y), "sum",
    ),
    "all_to_all": Kind(
        collectives.all_to_all, 0,
        lambda xs, rank: np.concatenate([_part(x, rank, len(xs)) for x in xs]),
        lambda n: (n - 1) / n, lambda ranks, x, y: ranks.Alltoall(x, y),
    ),
}  # fmt: skip


def main(small: bool, file: Path) -> None:
    """Measure all, and write figures on rank 0."""
    group.init()
    figures = [figure for name, kind in KINDS.items() for figure in _measured(name, kind, small)]
    if group.rank() == 0:
        file.write_text(json.dumps([asdict(each) for each in figures]))


def _measured(name: str, kind: Kind, small: bool) -> Iterator[Figure]:
    size, rank = group.size(), group.rank()
    for count in _SMALL if small else _SIZES:
        # The larger side has `count` bytes, at least an element for each rank.
        parts = max(count // 4 // size, 1)
        length = parts if kind.given else parts * size
        if name in ("all_reduce", "broadcast") and count == _SIZES[0]:
            length = 1
        inputs = [_drawn(each, length) for each in range(size)]
        x = from_numpy(inputs[rank], default_device())
        wanted = kind.wanted([each.astype(np.float64) for each in inputs], rank)
        found = kind.run(x).numpy()
        if not np.allclose(found, wanted, 1e-5, 1e-5):
            raise DistributedError(f"{name} of {length} float32 is wrong on rank {rank}")
        bytes_ = max(length, found.size) * 4
        times = max(min(_BYTES // bytes_, 200), 3)
        ours, theirs = _times(kind, x, found, times)
        shown = f"{name} of {_readable(bytes_)}"
        if bytes_ <= _LATENCY:
            yield Figure("distributed", shown, "s", ours, peer=_peer(), peers=theirs)
        else:
            travels = kind.travels(size) * bytes_ / 1e9
            yield Figure(
                "distributed", shown, "GB/s", travels / ours, higher=True, peer=_peer(),
                peers=travels / theirs, seconds=ours,
            )  # fmt: skip


def _drawn(rank: int, length: int) -> Array:
    return np.random.default_rng((rank, length)).normal(size=length).astype(np.float32)


def _peer() -> str:
    return {"mpi": "mpi4py", "nccl": "NCCL"}[group.backend() or "mpi"]


def _times(kind: Kind, x: Tensor, found: Array, times: int) -> tuple[float, float]:
    """Seconds of our collective, and of the library's, in turns."""

    def ours() -> None:
        results = [kind.run(x) for _ in range(times)]
        results[-1].realize()
        default_device().synchronize()
        for each in results:
            each.realize()

    runs = ours, _bare(kind, x, found, times)
    taken: list[list[float]] = [[], []]
    for _ in range(_ROUNDS + 1):
        for run, seconds in zip(runs, taken, strict=True):
            collectives.barrier()
            began = time.perf_counter()
            run()
            seconds.append((time.perf_counter() - began) / times)
    medians = [statistics.median(each[1:]) for each in taken]
    slowest = np.max(group.world().exchange("times", medians, None), 0)
    return float(slowest[0]), float(slowest[1])


def _bare(kind: Kind, x: Tensor, found: Array, times: int) -> Callable[[], None]:
    """The library's own collective, so many times."""
    engine: Any = group.current().engine
    if engine.on_host:
        # The backend's thread waits meanwhile: nothing of ours is under way.
        ranks, given, result = _communicator(), x.numpy().copy(), np.empty_like(found)

        def run() -> None:
            for _ in range(times):
                kind.mpi(ranks, given, result)

        return run
    name = next(each for each, other in KINDS.items() if other is kind)
    array = x.realize()._node.whole_array
    place = from_numpy(np.empty_like(found), default_device()).realize()._node.whole_array
    root = 0 if name == "broadcast" else None
    request = Request(name, x.dtype, x.shape, kind.reduction, root)

    def on_stream() -> None:
        engine.bare(request, array, place, times)
        default_device().synchronize()

    return on_stream


_made: list[Any] = []


def _communicator() -> Any:
    """A communicator apart from the backend's."""
    if not _made:
        from mpi4py import MPI

        _made.append(MPI.COMM_WORLD.Dup())
    return _made[0]


def _readable(count: int) -> str:
    for unit in ("B", "KiB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} MiB"


if __name__ == "__main__":
    main(bool(int(sys.argv[1])), Path(sys.argv[2]))
