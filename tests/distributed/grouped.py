"""Groups of ranks, and gradients through messages, beside NumPy."""

import numpy as np
from derived import close, raised

import treadle as td
from treadle import distributed as dist


def groups(seed):
    """Every collective in groups that are of consecutive ranks, of others, in another order."""
    rank, size = dist.rank(), dist.size()
    half = size // 2
    kinds = [
        dist.new_group([[*range(half)], [*range(half, size)]]),
        dist.new_group(np.arange(half * 2).reshape(half, 2).T[:, ::-1]),
        dist.new_group([*range(size)][::-1]),
        dist.new_group([size - 1]),
    ]
    for number, group in enumerate(kinds):
        random = np.random.default_rng(seed + number)
        if not group.is_member:
            outside(group)
            continue
        assert group.ranks[group.rank] == rank
        assert group.size == len(group.ranks)
        xs = random.normal(size=(size, 2 * group.size, 3))
        mine, own = [xs[each] for each in group.ranks], td.asarray(xs[rank].copy())
        part = slice(2 * group.rank, 2 * group.rank + 2)
        close(dist.all_reduce(own, group=group), np.sum(mine, 0), "all_reduce")
        close(dist.all_reduce(own, "mean", group), np.mean(mine, 0), "mean")
        close(dist.all_gather(own, 1, group), np.concatenate(mine, 1), "all_gather")
        close(dist.reduce_scatter(own, group=group), np.sum(mine, 0)[part], "reduce_scatter")
        for root in range(group.size):
            close(dist.broadcast(own, root, group), mine[root], "broadcast")
        exchanged = np.concatenate([x[part] for x in mine])
        close(dist.all_to_all(own, group=group), exchanged, "all_to_all")
        dist.barrier(group)
        # A gradient: of the sum over the group of weighted sums.
        x = own.detach().requires_grad_()
        (dist.all_reduce(x, group=group) * (group.rank + 1)).sum().backward()
        close(x.grad, np.full(x.shape, group.size * (group.size + 1) / 2), "gradient")


def outside(group):
    """What is given a group without this rank is refused, and is not done by all ranks."""
    x = td.ones((2, 2))
    for call in (
        lambda: dist.all_reduce(x, group=group), lambda: dist.all_reduce(x, "max", group),
        lambda: dist.broadcast(x, 0, group), lambda: dist.barrier(group), lambda: group.rank,
        lambda: dist.send(x, 0, group=group), lambda: dist.recv(x, 0, group=group),
        lambda: dist.DataParallel(td.nn.Linear(2, 2), group=group),
        lambda: dist.Sharded(td.nn.Linear(2, 2), group=group),
        lambda: dist.ColumnParallelLinear(2, 4, group=group),
        lambda: dist.Pipeline([td.nn.Linear(2, 2)], 2, group=group),
    ):  # fmt: skip
        error = raised(call)
        assert isinstance(error, td.errors.DistributedError), error
        assert f"this rank, {dist.rank()}, is not in the group [" in str(error), error
    assert "without this rank" in repr(group)


def messages(seed):
    """Through all ranks and back: each multiplies by its own factor."""
    rank, size = dist.rank(), dist.size()
    random = np.random.default_rng(seed)
    start, factors = random.normal(size=(5, 3)), random.normal(size=(size, 5, 3))
    backwards = dist.new_group([*range(size)][::-1])
    for group, tag in ((None, 0), (backwards, 0), (None, 7 * (dist.backend() == "mpi"))):
        place = rank if group is None else group.rank
        factor = td.asarray(factors[place].copy()).requires_grad_()
        like = td.asarray(start.copy())
        x = like if place == 0 else dist.recv(
            like, place - 1, tag=tag, group=group, requires_grad=True
        )  # fmt: skip
        y = td.sin(x) * factor
        if place == size - 1:
            loss = (y**2).sum()
        else:
            loss = dist.send(y, place + 1, tag, group) + (factor**2).sum() * 0
        loss.backward()

        known = [td.asarray(each.copy()).requires_grad_() for each in factors]
        z = td.asarray(start.copy())
        for each in known:
            z = td.sin(z) * each
        (z**2).sum().backward()
        close(factor.grad, known[place].grad.numpy(), "message")
    if rank < 2 and dist.backend() == "mpi":  # what another shape or dtype is sent for
        for shape, dtype in (((4,), td.float32), ((2,), td.float32), ((3,), td.int32)):
            if rank == 0:
                dist.send(td.ones(3), 1)
            else:
                found = raised(lambda: dist.recv(shape, 0, dtype=dtype).numpy())  # noqa: B023
                assert "the message that arrives is float32[3]" in str(found), found
    x = td.ones(3).requires_grad_()
    if rank < 2:  # what is differentiated twice is refused
        if rank == 0:
            sent = dist.send(x, 1)
            found = raised(lambda: td.autograd.grad(sent, [x], create_graph=True))
        else:
            got = dist.recv(x, 0, requires_grad=True)
            found = raised(lambda: got.sum().backward(create_graph=True))
        assert "first derivatives alone" in str(found), found


def refused(seed):
    """Bad groups are refused on each rank, and the ranks go on."""
    size = dist.size()
    bad = [
        (ValueError, "from 0 to", lambda: dist.new_group([size])),
        (ValueError, "twice", lambda: dist.new_group([[0, 1], [1]])),
        (ValueError, "at least one", lambda: dist.new_group([])),
    ]
    if size > 1:
        rank = dist.rank()
        differing = lambda: dist.new_group([rank])  # noqa: E731
        bad.append((td.errors.DistributedError, "the same groups", differing))
    for kind, words, call in bad:
        error = raised(call)
        assert isinstance(error, kind), error
        assert words in str(error), error
