"""Pipelines beside the model that is not divided, in float64."""

import copy
import weakref
from functools import partial

import numpy as np
from derived import close, raised
from divided import norms

import treadle as td
from treadle import distributed as dist

F64 = {"dtype": td.float64}
mse = td.nn.functional.mse_loss


class Stage(td.nn.Module):
    """A layer, with integers that go along; it counts how many of its results there are."""

    def __init__(self, inputs, outputs, is_last):
        super().__init__()
        self.layer = td.nn.Linear(inputs, outputs, **F64)
        self.is_last = is_last
        self.results = []
        self.most = 0

    def forward(self, x, signs=None):
        signs = (x > 0).any(axis=1).to(td.int32) if signs is None else signs
        found = td.tanh(self.layer(x)) + signs[:, None]
        self.results = [each for each in self.results if each() is not None]
        self.results.append(weakref.ref(found))
        self.most = max(self.most, len(self.results))
        return found if self.is_last else (found, signs)


class Whole(td.nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = td.nn.ModuleList(stages)

    def forward(self, x):
        for stage in self.stages:
            x = stage(*x) if isinstance(x, tuple) else stage(x)
        return x


def stages_of(count, seed):
    widths = [3, *(4 + k for k in range(count - 1)), 2]
    td.manual_seed(seed)
    return [Stage(widths[k], widths[k + 1], k == count - 1) for k in range(count)]


def made(stages, k):
    return stages[k]


def check(stage, known, what):
    for (name, each), other in zip(stage.named_parameters(), known.parameters(), strict=True):
        close(each.grad, other.grad.numpy(), f"{what} {name}")


def pipeline(seed, is_full):
    """Losses, gradients, results, and how many microbatches are alive."""
    random = np.random.default_rng(seed)
    count, place = dist.size(), dist.rank()
    known = Whole(stages_of(count, seed))
    for microbatches, reduction in [(5, "mean"), (1, "sum")][: 1 + is_full]:
        own = stages_of(count, seed)
        pipe = dist.Pipeline(
            [partial(made, own, k) for k in range(count)], microbatches,
            lambda x, y, how=reduction: mse(x, y, reduction=how), reduction,
        )  # fmt: skip
        stage = pipe.stage
        step = pipe.forward_backward
        known.zero_grad()
        # 13 rows are parts of 3 and 2.
        # A compiled first batch is one whose shapes the stages tell each other.
        for number, rows in enumerate([13, 13, 12, 13, 13] if is_full else [10, 10, 10]):
            if number == (3 if is_full else 0):
                step = td.compile(pipe.forward_backward)
            x, y = (random.normal(size=(rows, n)) for n in (3, 2))
            loss = mse(known(td.asarray(x)), td.asarray(y), reduction=reduction)
            loss.backward()
            close(step(td.asarray(x), td.asarray(y)), loss.numpy(), "pipeline: loss")
            check(stage, known.stages[place], "pipeline")
            norms(pipe.parameters(), known)
            if is_full and number < 3:
                assert stage.most <= min(count - place, microbatches), (place, stage.most)
        x = td.asarray(random.normal(size=(7, 3)))
        found = pipe(x)
        assert (found is None) == (place < count - 1)
        if found is not None:
            close(found, known(x).detach().numpy(), "pipeline: result")
    if count > 1:
        error = raised(lambda: td.optim.LBFGS(pipe.parameters()))
        assert "all parameters of a model" in str(error), error
    td.optim.Adafactor(pipe.parameters())
    few = raised(lambda: pipe.forward_backward(x[:0], x[:0]))
    assert "one for each microbatch" in str(few), few
    many = raised(lambda: dist.Pipeline(own * 2, 2))
    assert "each rank has one stage" in str(many), many


def with_data_parallel(seed):
    """Two stages, each on two ranks that have other parts of the batch."""
    random = np.random.default_rng(seed)
    pipe_group, copies = dist.new_group([[0, 1], [2, 3]]), dist.new_group([[0, 2], [1, 3]])
    known = Whole(stages_of(2, seed))
    own = stages_of(2, seed + copies.rank)  # the first copy's values count
    pipe = dist.Pipeline(
        [lambda: dist.DataParallel(own[0], group=copies),
         lambda: dist.DataParallel(own[1], group=copies)], 3, mse, group=pipe_group,
    )  # fmt: skip
    x, y = (random.normal(size=(12, n)) for n in (3, 2))
    loss = mse(known(td.asarray(x)), td.asarray(y))
    loss.backward()
    mine = slice(6 * copies.rank, 6 * copies.rank + 6)
    found = pipe.forward_backward(td.asarray(x[mine].copy()), td.asarray(y[mine].copy()))
    close(dist.all_reduce(found, "mean", copies), loss.numpy(), "loss of two copies")
    check(pipe.stage.module, known.stages[pipe_group.rank], "two copies")
    norms(pipe.parameters(), known)

    # Stages whose layers are divided, and what of them is not.
    td.manual_seed(seed)
    known = Whole([
        td.nn.Sequential(td.nn.Linear(3, 5, **F64), td.nn.Linear(5, 3, **F64)) for _ in range(2)
    ])  # fmt: skip
    stages = [
        td.nn.Sequential(
            dist.ColumnParallelLinear.of(each[0], group=copies),
            dist.RowParallelLinear.of(each[1], group=copies),
        )
        for each in copy.deepcopy(known).stages  # a bias that is not divided is shared
    ]
    pipe = dist.Pipeline(stages, 3, mse, group=pipe_group)
    x, y = (td.asarray(random.normal(size=(6, 3))) for _ in range(2))
    mse(known(x), y).backward()
    pipe.forward_backward(x, y)
    norms(pipe.parameters(), known)
