"""Gradients of collectives, and collectives in compiled functions, beside formulas."""

import contextlib
import json
import pathlib
import tempfile

import numpy as np

import treadle as td
from treadle import distributed as dist


def close(found, wanted, what):
    np.testing.assert_allclose(found.numpy(), wanted, 1e-12, 1e-12, err_msg=what)


def gradients(seed):
    """The gradient of the sum of all ranks' weighted results, by each rank's input."""
    rank, size = dist.rank(), dist.size()
    random = np.random.default_rng(seed)
    xs = random.normal(size=(size, 2 * size, 3))
    ws = random.normal(size=(size, 2 * size, 3))
    total, part = ws.sum(0), slice(2 * rank, 2 * rank + 2)

    def check(what, function, weights, wanted):
        x = td.asarray(xs[rank].copy()).requires_grad_()
        (function(x) * td.asarray(np.ascontiguousarray(weights))).sum().backward()
        close(x.grad, wanted, what)

    check("sum", dist.all_reduce, ws[rank], total)
    check("mean", lambda x: dist.all_reduce(x, "mean"), ws[rank], total / size)
    is_max = xs[rank] == xs.max(0)
    check("max", lambda x: dist.all_reduce(x, "max"), ws[rank], total * is_max)
    others = np.prod(np.delete(xs, rank, 0), 0)
    check("product", lambda x: dist.all_reduce(x, "product"), ws[rank], total * others)
    for axis in (0, 1):
        wide = random.normal(
            size=(size, *(n * (1 + (k == axis) * (size - 1)) for k, n in enumerate(xs.shape[1:])))
        )
        wanted = np.split(wide.sum(0), size, axis)[rank]
        check("gather", lambda x, axis=axis: dist.all_gather(x, axis), wide[rank], wanted)
    scattered = ws[:, :2]
    check("scatter", dist.reduce_scatter, scattered[rank], np.concatenate(scattered, 0))
    for root in range(size):
        check(
            "broadcast",
            lambda x, root=root: dist.broadcast(x, root),
            ws[rank],
            total if rank == root else 0 * total,
        )
    exchanged = np.concatenate([w[part] for w in ws], 0)
    check("exchange", dist.all_to_all, ws[rank], exchanged)
    # Twice: the gradient of the sum of squares of a gradient.
    x = td.asarray(xs[rank].copy()).requires_grad_()
    (first,) = td.autograd.grad((dist.all_reduce(x**3) * x).sum(), [x], create_graph=True)
    first.sum().backward()
    # f = sum over ranks of S x_r, with S the sum of all x_s^3; g_r = S + 3 x_r^2 T, with T the sum
    # of all x_s; so the sum of all g is size S + 3 S2 T, with S2 the sum of squares.
    t, s2, mine = xs.sum(0), (xs**2).sum(0), xs[rank]
    close(x.grad, size * 3 * mine**2 + 3 * s2 + 6 * mine * t, "twice")


def compiled(seed):
    """Replays: new inputs, results that are not read, state from outside, several in flight."""
    rank, size = dist.rank(), dist.size()
    random = np.random.default_rng(seed)
    state = td.zeros(5, dtype=td.float64)

    @td.compile
    def step(x, y):
        dist.all_reduce(y)  # which nothing reads
        total = dist.all_reduce(x * 2)
        every = dist.all_gather(y)
        state[...] += dist.broadcast(x, 1) + total
        return total + 1, every * y.sum()

    wanted_state = np.zeros(5)
    for _ in range(5):
        xs, ys = random.normal(size=(size, 5)), random.normal(size=(size, 3))
        total, every = step(td.asarray(xs[rank]), td.asarray(ys[rank]))
        wanted_state += xs[1] + 2 * xs.sum(0)
        if random.random() < 0.7:
            close(total, 2 * xs.sum(0) + 1, "total")
            close(every, ys.reshape(-1) * ys[rank].sum(), "every")
    close(state, wanted_state, "state")

    # A training step: gradients within the replay.
    weight = td.asarray(np.ones((4, 2))).requires_grad_()

    @td.compile
    def trained(x):
        weight.grad = None
        loss = ((x @ weight) ** 2).sum()
        loss.backward()
        with td.no_grad():
            weight[...] -= dist.all_reduce(weight.grad, "mean") * 0.01
        return loss

    known = np.ones((4, 2))
    for _ in range(4):
        xs = random.normal(size=(size, 3, 4))
        trained(td.asarray(xs[rank]))
        known -= 0.01 * np.mean([2 * x.T @ (x @ known) for x in xs], 0)
    close(weight, known, "weight")

    graph, x = td.Graph(), td.zeros(3, dtype=td.float64)
    with graph.capture():
        x += dist.all_reduce(x + 1)
    known = np.zeros(3)
    for _ in range(3):
        graph.replay()
        known = known + size * (known + 1)
    close(x, known, "graph")


def uneven(seed):
    """A function that one rank replays and others run in Python: they count the same operations,
    and what they tell each other ends a recording."""
    rank, size = dist.rank(), dist.size()

    @td.compile
    def step(x):
        total = dist.all_reduce(x)
        if rank:
            total.tolist()
        dist.all_gather(total)
        return total + 1

    for k in range(4):
        close(step(td.full(3, float(k), dtype=td.float64)), size * k + 1.0, "uneven")
    group = dist.new_group([*range(size)])

    @td.compile
    def halved(x):
        half = dist.all_reduce(x, group=dist.new_group([[0], [*range(1, size)]])) / 2
        return dist.all_reduce(half, group=group)

    for k in range(3):
        close(halved(td.full(2, float(k), dtype=td.float64)), k * (1 + (size - 1) ** 2) / 2, "new")
    with contextlib.suppress(td.errors.LaunchError), td.Graph().capture():
        dist.new_group([0])
        raise AssertionError("what ranks tell each other was captured")


def traces(seed):
    """One trace of all ranks, in whose clock an operation ends on no rank before all have begun."""
    rank, size = dist.rank(), dist.size()
    with td.profile() as profile:
        for n in (3, 10000):
            dist.all_reduce(td.ones(n)).tolist()
            dist.barrier()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        dist.save_profile(profile, path)
        if rank:
            assert not path.exists()
            return
        events = json.loads(path.read_text())["traceEvents"]
    names = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    over_mpi = dist.backend() == "mpi"
    for each in range(size):
        kinds = ("host", td.default_device().id, *["communication"][:over_mpi])
        assert {f"rank {each}: {kind}" for kind in kinds} <= {*names.values()}, names
    spans = spans_of_mpi(events) if over_mpi else spans_of_nccl(events)
    assert len(spans) == 4
    assert {each["name"] for each in spans[min(spans)]} == {"all_reduce (sum) of float32[3]"}
    for found in spans.values():
        assert len(found) == size
        last_begin = max(each["ts"] for each in found)
        # Half the time of a question for the store's clock is long where the machine is busy.
        assert last_begin <= min(each["ts"] + each["dur"] for each in found) + 50e3  # microseconds


def spans_of_mpi(events):
    """What was under way, by the operations' numbers: tracks of their own."""
    spans = {}
    for each in events:
        if each["ph"] == "X" and each["cat"] == "communication" and "wait" not in each["name"]:
            spans.setdefault(each["args"]["number"], []).append(each)
    return spans


def spans_of_nccl(events):
    """The same: the work of a stream of each device, which does one operation after another."""
    named = [each for each in events if each["name"] == "thread_name"]
    tracks = [
        (each["pid"], each["tid"]) for each in named if each["args"]["name"] == "communication"
    ]
    assert len(tracks) == dist.size(), named
    spans = {}
    for track in tracks:
        own = [each for each in events if each["ph"] == "X" and (each["pid"], each["tid"]) == track]
        for number, each in enumerate(sorted(own, key=lambda each: each["ts"])):
            spans.setdefault(number, []).append(each)
    return spans


def unordered():
    """What one rank reads and another does not, and what is overwritten while it is under way."""
    rank, size = dist.rank(), dist.size()
    x = td.full((1000,), float(rank + 1))
    sums = []
    for _ in range(5):
        sums.append(dist.all_reduce(x))
        x += 1
    if rank == 0:
        base = size * (size + 1) / 2
        for number, each in enumerate(reversed(sums)):
            assert each[7].item() == base + size * (4 - number)
    del sums
    assert dist.all_reduce(td.asarray(1, dtype=td.int64)).item() == size


def local():
    """Copies of a single rank do not share memory with what they are given."""
    x = td.ones(3)
    y = dist.all_reduce(x)
    x += 1
    assert y.tolist() == [1.0] * 3 or dist.size() > 1


def refused():
    """Bad input is refused before anything starts, so that ranks go on."""
    size = dist.size()
    bad = [
        (ValueError, "from 0 to", lambda: dist.broadcast(td.ones(2), size)),
        (ValueError, "reductions of", lambda: dist.all_reduce(td.ones(2), "avg")),
        (TypeError, "takes a tensor", lambda: dist.all_reduce(1.0)),
        (TypeError, "fraction", lambda: dist.all_reduce(td.ones(2, dtype=td.int32), "mean")),
        (TypeError, "bool", lambda: dist.all_reduce(td.ones(2, dtype=td.bool))),
        (TypeError, "no order", lambda: dist.all_reduce(td.ones(2, dtype=td.complex64), "max")),
        (ValueError, "equal parts", lambda: dist.reduce_scatter(td.ones(2 * size + 1))),
        (ValueError, "along axis 3", lambda: dist.all_gather(td.ones((2, 2)), 3)),
        (ValueError, "is this one", lambda: dist.send(td.ones(2), dist.rank())),
        (ValueError, "td.vmap", lambda: td.vmap(dist.all_reduce)(td.ones((2, 2)))),
    ]  # fmt: skip
    for kind, words, call in bad:
        error = raised(call)
        assert isinstance(error, kind), error
        assert words in str(error), error


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None
