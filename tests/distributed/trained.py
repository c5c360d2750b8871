"""Data parallel training beside the same training of one process, in float64."""

import copy
from functools import partial

import numpy as np
from derived import raised

import treadle as td
from treadle import distributed as dist

BUCKET = 200  # bytes: several buckets


class Net(td.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = td.nn.Linear(5, 7, dtype=td.float64)
        self.second = td.nn.Linear(7, 3, dtype=td.float64)
        self.extra = td.nn.Linear(7, 3, dtype=td.float64)

    def forward(self, x, with_extra=True):
        hidden = td.tanh(self.first(x))
        return self.second(hidden) + (self.extra(hidden) if with_extra else 0)


def made(seed):
    td.manual_seed(seed)
    return Net()


def loss_of(model, x, y, *options):
    return ((model(x, *options) - y) ** 2).mean()


def runs(seed):
    """Losses and parameters after some steps: eager, compiled, one line, several passes a step."""
    rank, size = dist.rank(), dist.size()
    random = np.random.default_rng(seed)
    batches = [(random.normal(size=(4 * size, 5)), random.normal(size=(4 * size, 3)))
               for _ in range(4)]  # fmt: skip
    tensors = [tuple(td.asarray(each) for each in batch) for batch in batches]
    parts = [tuple(td.asarray(each[4 * rank : 4 * rank + 4].copy()) for each in batch)
             for batch in batches]  # fmt: skip

    alone = made(1)
    optimizer = td.optim.AdamW(alone.parameters(), lr=0.02)
    wanted = []
    for x, y in tensors:
        optimizer.zero_grad()
        loss = loss_of(alone, x, y)
        loss.backward()
        optimizer.step()
        wanted.append(loss.item())

    def compare(what, losses, model):
        found = [dist.all_reduce(each, "mean").item() for each in losses]
        np.testing.assert_allclose(found, wanted, 1e-12, err_msg=what)
        for (name, each), other in zip(model.named_parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(
                each.numpy(), other.numpy(), 1e-10, 1e-12, err_msg=f"{what} {name}"
            )

    kinds = ["eager", "compiled", "one line", "several passes"]
    for what in kinds if size == 2 else kinds[:1]:
        inner = made(1 + rank)  # rank 0's count
        if what == "one line":
            inner = made(1)
            model = inner
        else:
            model = dist.DataParallel(inner, BUCKET)
        optimizer = td.optim.AdamW(inner.parameters(), lr=0.02)

        def step(x, y, model=model, inner=inner, optimizer=optimizer, what=what):
            optimizer.zero_grad()
            if what == "several passes":
                with model.no_sync():
                    (loss_of(model, x[:2], y[:2]) / 2).backward()
                (loss_of(model, x[2:], y[2:]) / 2).backward()
                loss = loss_of(inner, x, y)
            else:
                loss = loss_of(model, x, y)
                loss.backward()
            if what == "one line":
                dist.average_gradients(inner, BUCKET)
            optimizer.step()
            return loss

        if what == "compiled":
            step = td.compile(step)
        compare(what, [step(*part) for part in parts], inner)


def unused_and_buffers(seed):
    """A layer that only rank 0 uses, and the statistics of a batch norm."""
    rank, size = dist.rank(), dist.size()
    model = dist.DataParallel(made(3), BUCKET)
    x = td.asarray(np.random.default_rng(seed).normal(size=(4, 5)))
    model(x, rank == 0).sum().backward()
    alone = made(3)
    alone(x).sum().backward()
    np.testing.assert_allclose(
        model.module.extra.weight.grad.numpy(), alone.extra.weight.grad.numpy() / size, 1e-12
    )
    norm = dist.DataParallel(td.nn.BatchNorm1d(5, dtype=td.float64))
    for _ in range(2):
        norm(x * (rank + 1))
    means = dist.all_gather(norm.module.running_mean.reshape(1, 5)).numpy()
    norm(x)  # which begins with rank 0's
    found = dist.all_gather(norm.module.running_mean.reshape(1, 5)).numpy()
    momentum = 0.1
    mean = x.numpy().mean(0)
    np.testing.assert_allclose(
        found, np.tile((1 - momentum) * means[0] + momentum * mean, (size, 1))
    )
    assert size == 1 or not np.allclose(means[0], means[1])


def changed(seed):
    """Models that are cast or copied still average; one with other parameters is refused."""
    rank = dist.rank()
    x = td.asarray(np.random.default_rng(seed).normal(size=(4, 5)))
    alone = made(1).float()
    loss_of(alone, x.to(td.float32), 0.0).backward()
    model = dist.DataParallel(made(1 + rank), BUCKET).to(td.float32)
    for each in (model, copy.deepcopy(model)):
        each.zero_grad()
        factor = 2 * (rank == 0)
        (loss_of(each, x.to(td.float32), 0.0) * factor).backward()
        for found, wanted in zip(each.parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(
                found.grad.numpy(), wanted.grad.numpy() * 2 / dist.size(), 1e-5, 1e-6
            )
    if dist.size() > 1:
        assign = partial(model.module.load_state_dict, alone.state_dict(), assign=True)
        assert "load without assign" in str(raised(assign))


def samplers(seed):
    """All items once, in another order in each epoch."""
    size = dist.size()
    data = range(4 * size)
    seen = []
    for epoch in range(2):
        sampler = dist.DistributedSampler(data)
        sampler.set_epoch(epoch)
        mine = td.asarray(list(sampler), dtype=td.int64)
        seen.append(dist.all_gather(mine).tolist())
        assert sorted(seen[-1]) == list(data)
    assert seen[0] != seen[1]
