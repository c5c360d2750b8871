"""`treadle.torch.distributed` beside NumPy, in processes that a script starts itself."""

import socket
import sys
from datetime import timedelta

import derived
import numpy as np
import pytest
import torch_tutorial

import treadle.torch as torch
import treadle.torch.distributed as dist
import treadle.torch.multiprocessing as mp
from treadle.torch.distributed import ReduceOp
from treadle.torch.nn.parallel import DistributedDataParallel


def same(found, wanted, what):
    np.testing.assert_allclose(found.numpy(), wanted, 1e-13, 1e-13, err_msg=what)


def drawn(random, size, shape):
    """All ranks' arrays, and this rank's as a tensor."""
    every = random.normal(size=(size, *shape))
    return every, torch.tensor(every[dist.get_rank()])


def collectives(seed, rank, size):
    random = np.random.default_rng(seed)
    for op, wanted in {
        ReduceOp.SUM: np.sum, ReduceOp.AVG: np.mean, ReduceOp.PRODUCT: np.prod,
        ReduceOp.MIN: np.min, ReduceOp.MAX: np.max,
    }.items():  # fmt: skip
        every, x = drawn(random, size, (3, 5))
        work = dist.all_reduce(x, op, async_op=True)
        same(x, every[rank], "before wait")
        assert work.wait()
        same(x, wanted(every, 0), f"all_reduce {op}")
    bits = random.integers(0, 2**31, (size, 4))
    for op, wanted in {
        ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or, ReduceOp.BXOR: np.bitwise_xor,
    }.items():  # fmt: skip
        x = torch.tensor(bits[rank])
        dist.all_reduce(x, op)
        same(x, wanted.reduce(bits, 0), f"all_reduce {op}")
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags)
    assert flags.tolist() == [True, True, False]

    every, x = drawn(random, size, (2, 7))
    root = int(random.integers(size))
    y = x.clone()
    dist.reduce(y, dst=root)
    same(y, every.sum(0) if rank == root else every[rank], "reduce")
    y = x.clone()
    dist.broadcast(y, src=root)
    same(y, every[root], "broadcast")
    found = [torch.zeros_like(x) for _ in range(size)]
    dist.all_gather(found, x)
    for each, wanted in zip(found, every, strict=True):
        same(each, wanted, "all_gather")
    for shape in ((size * 2, 7), (size, 2, 7)):
        y = torch.zeros(*shape, dtype=torch.float64)
        dist.all_gather_into_tensor(y, x)
        same(y, every.reshape(shape), "all_gather_into_tensor")
    found = [torch.zeros_like(x) for _ in range(size)] if rank == root else None
    dist.gather(x, found, dst=root)
    for each, wanted in zip(found or (), every, strict=False):
        same(each, wanted, "gather")
    given = [torch.tensor(each) for each in every] if rank == root else None
    y = torch.zeros_like(x)
    dist.scatter(y, given, src=root)
    same(y, every[rank], "scatter")

    every, x = drawn(random, size, (size, 3))
    y = torch.zeros(3, dtype=torch.float64)
    dist.reduce_scatter(y, list(x))
    same(y, every.sum(0)[rank], "reduce_scatter")
    dist.reduce_scatter_tensor(y, x.reshape(-1), ReduceOp.AVG)
    same(y, every.mean(0)[rank], "reduce_scatter_tensor")
    y = torch.zeros_like(x)
    dist.all_to_all_single(y, x)
    same(y, every[:, rank], "all_to_all_single")
    # Parts of other lengths: rank r gives r + s + 1 rows to rank s, or none.
    counts = np.add.outer(np.arange(size), np.arange(size)) * int(random.integers(2)) + 1
    counts[0, -1] = 0
    rows = [random.normal(size=(counts[each].sum(), 2)) for each in range(size)]
    starts = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), 1)
    wanted = np.concatenate(
        [rows[each][starts[each, rank] : starts[each, rank + 1]] for each in range(size)]
    )
    y = torch.zeros(*wanted.shape, dtype=torch.float64)
    dist.all_to_all_single(
        y, torch.tensor(rows[rank]), counts[:, rank].tolist(), counts[rank].tolist()
    )
    same(y, wanted, "all_to_all_single, uneven")
    pieces = list(torch.tensor(rows[rank]).split(counts[rank].tolist()))
    found = [torch.zeros(int(n), 2, dtype=torch.float64) for n in counts[:, rank]]
    dist.all_to_all(found, pieces)
    same(torch.cat(found), wanted, "all_to_all")

    every, x = drawn(random, size, (4,))
    after, before = (rank + 1) % size, (rank - 1) % size
    y = torch.zeros_like(x)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before),
    ])  # fmt: skip
    for work in works:
        work.wait()
    same(y, every[before], "batch")
    if rank == 0:
        dist.send(x, 1)
        assert dist.recv(y, 1) == 1
    elif rank == 1:
        dist.recv(y, 0)
        dist.send(x, 0)
    if rank < 2:
        same(y, every[1 - rank], "recv")

    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": each, "text": "x" * each} for each in range(size)]
    shared = [("a", 1), None] if rank == root else [None, None]
    dist.broadcast_object_list(shared, src=root)
    assert shared == [("a", 1), None]
    got = [None]
    dist.scatter_object_list(got, [*range(size)] if rank == 0 else None, src=0)
    assert got == [rank]
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier(timeout=timedelta(seconds=20))


def groups(seed, rank, size):
    """A group of one rank of several, and two groups at once."""
    every, x = drawn(np.random.default_rng(seed), size, (3,))
    last = dist.new_group([size - 1])
    assert dist.get_rank(last) == (0 if rank == size - 1 else -1)
    y = x.clone()
    if dist.get_rank(last) < 0:
        with pytest.raises(RuntimeError, match="not in the process group"):
            DistributedDataParallel(torch.nn.Linear(2, 2), process_group=last)
    dist.all_reduce(y, ReduceOp.SUM, last)
    same(y, every[rank], "all_reduce of a group")
    objects = [None]
    dist.all_gather_object(objects, rank, last)
    assert objects == [size - 1 if rank == size - 1 else None]
    own, listed = dist.new_subgroups_by_enumeration([[0], [*range(1, size)]])
    assert len(listed) == 2
    root = 0 if rank == 0 else size - 1
    dist.broadcast(y, root, own)
    same(y, every[root], "broadcast in a group")
    assert dist.get_process_group_ranks(own) == ([0] if rank == 0 else [*range(1, size)])
    assert dist.new_group() is dist.group.WORLD


def training(seed, rank, size):
    """Gradients of a model on each rank's part, beside those of one process."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(4 * size, 3)), random.normal(size=(4 * size, 2))

    def made(seed):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)
        ).double()

    alone, model = made(0), DistributedDataParallel(made(rank), bucket_cap_mb=1e-4)
    part = slice(4 * rank, 4 * rank + 4)
    for net, rows in ((alone, slice(None)), (model, part)):
        if net is model:
            with model.no_sync():
                (model(torch.tensor(x[part])).sum() * 0).backward()
        ((net(torch.tensor(x[rows])) - torch.tensor(y[rows])) ** 2).mean().backward()
    for own, other in zip(model.parameters(), alone.parameters(), strict=True):
        same(own.grad, other.grad.numpy(), "gradient")
    assert list(model.state_dict()) == [f"module.{name}" for name in alone.state_dict()]


def refused(rank, size):
    for words, call in {
        "has 1 tensors": lambda: dist.all_gather([torch.zeros(1)], torch.zeros(1)),
        "names the rank that sends": lambda: dist.recv(torch.zeros(1)),
        "is not in the group": lambda: dist.broadcast(torch.zeros(1), size),
        "twice": lambda: dist.init_process_group("gloo"),
        "fraction": lambda: dist.all_reduce(torch.tensor([1]), ReduceOp.AVG),
    }.items():
        error = derived.raised(call)
        assert words in str(error), (words, error)
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, size, "gloo")


def main(rank, size, seed, port, folder):
    torch_tutorial.train(rank, size, folder, port)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    collectives(seed, rank, size)
    groups(seed, rank, size)
    training(seed, rank, size)
    refused(rank, size)
    print("right", rank, "of", size)
    dist.barrier()
    if rank == 1:
        raise KeyError("as asked")
    dist.all_reduce(torch.zeros(3))
    torch.zeros(3)
    dist.barrier()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


if __name__ == "__main__":
    size, seed, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    try:
        mp.spawn(main, (size, seed, free_port(), folder), nprocs=size)
    except mp.ProcessRaisedException as error:
        print("named" if error.error_index == 1 and "'as asked'" in str(error) else error)
