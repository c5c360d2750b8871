"""Sharded arrays: special values, refusals, compiled training, and what travels."""

import numpy as np
from derived import raised

import treadle as td
from treadle import distributed as dist


def same(found, wanted, tolerance=0.0):
    found = found.numpy() if hasattr(found, "numpy") else found
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


def values():
    """Extremes with NaN and ties, logic, places, integers, halves, pieces that are empty."""
    mesh = dist.Mesh({"data": -1})
    random = np.random.default_rng(3)
    host = random.integers(-2, 3, (5, 7)).astype(np.float64)
    host[3, 2] = np.nan
    tie = np.array([2.0, 1.0, 2.0, -3.0, 2.0])
    for spec, axes in ((("data",), (0, None)), ((None, "data"), (1,))):
        x = td.shard(host, mesh, spec)
        for axis in axes:
            same(x.max(axis), host.max(axis))
            same(x.argmax(axis), host.argmax(axis))
    x, flat = td.shard(host, mesh, ("data",)), host.reshape(-1)
    same(x.min(0, keepdims=True), host.min(0, keepdims=True))
    same((x > 0).any(0), (host > 0).any(0))
    same((x == x).all(), False)
    same((x > 0).count_nonzero(0), np.count_nonzero(host > 0, 0))
    same((x > 0).where(x < 0, False), np.where(host < 0, host > 0, False))
    same(x.clip(-1, 1).round(decimals=1), host.clip(-1, 1))
    same(td.shard(flat, mesh, ("data",)).argmin(), flat.argmin())
    bytes_ = td.shard(np.full((5, 7), 100, np.int8), mesh, (None, "data"))
    wrapped = bytes_ @ bytes_.T  # 70000 in 8 bits is 112
    assert wrapped.pending == ("data",)
    assert wrapped.sum(0).dtype == td.zeros(1, dtype=td.int8).sum().dtype
    same(wrapped.sum(0), np.full(5, 5 * 112))
    halves = td.shard(np.full((5, 7), 60000, np.float16), mesh, ("data",)).mean()
    assert halves.dtype == td.float16
    same(halves, 60000)
    z = td.shard(host[:2] + 1j * host[:2], mesh, ("data",))
    same((z * z.conj()).sum(0).real(), 2 * (host[:2] ** 2).sum(0), 1e-14)
    x = td.shard(tie, mesh, ("data",)).requires_grad_()
    x.max().backward()
    same(x.grad, np.array([1, 0, 1, 0, 1]) / 3, 1e-15)
    same(x.argmax(), 0)
    few = td.shard(np.array([-np.inf]), mesh, ("data",))  # all ranks but one have none
    same(few.max(), -np.inf)
    same(few.argmax(), 0)
    same(few.exp().prod(), 0.0)
    none = td.shard(np.zeros((0, 3)), mesh, (None, "data"))
    same(none.sum(), 0.0)
    same(none.sum(0), np.zeros(3))
    same(none.mean(0), np.full(3, np.nan))
    loss = (td.shard(tie, mesh, ("data",)) ** 2).sum()
    if dist.rank() == 0:  # one rank alone may read what all have
        same(loss, (tie**2).sum())


def functions():
    """The functions of `td` take sharded arrays."""
    mesh = dist.Mesh({"data": -1})
    host = np.random.default_rng(4).normal(size=(5, 4))
    x, whole = td.shard(host, mesh, ("data",)), td.asarray(host)
    f = td.nn.functional
    for function in (
        td.exp, lambda x: td.where(x > 0, x, 0), lambda x: td.where(True, x, 1.0),
        lambda x: td.clip(x, max=0.5), lambda x: td.maximum(0.1, x), lambda x: td.pow(2.0, x),
        lambda x: td.add(x, x), lambda x: td.round(x, decimals=1), lambda x: td.sum(x, axis=0),
        lambda x: td.max(x, dim=1), lambda x: td.std(x), td.logsumexp, td.argmax,
        lambda x: td.matmul(x, x.T), lambda x: td.einsum("ij,ij->i", x, x),
        lambda x: f.softmax(x, dim=0), lambda x: f.log_softmax(x, axis=1), f.relu,
        lambda x: f.gelu(x, approximate="tanh"), lambda x: f.leaky_relu(x, 0.2),
        lambda x: td.expand_dims(x, axis=0) - f.tanh(x), lambda x: td.abs(x) + abs(x)
    ):  # fmt: skip
        same(function(x), function(whole).numpy(), 1e-14)


def refused():
    """What is refused before anything travels, in words that say what to do."""
    mesh = dist.Mesh({"data": -1})
    x = td.shard(np.ones((4, 6)), mesh, ("data",))
    whole = td.shard(np.ones((4, 6)), mesh)
    count = dist.size()
    bad = [
        (TypeError, "td.shard(y, mesh, spec) says", lambda: x + np.ones((4, 6))),
        (TypeError, "td.shard(y, mesh, spec) says", lambda: td.ones((4, 6)) * x),
        (TypeError, "td.shard(y, mesh, spec) says", lambda: x @ td.ones(6)),
        (ValueError, "do not broadcast", lambda: x + whole[:, :5]),
        (ValueError, "they must be equal", lambda: x @ x),
        (TypeError, "sort takes no sharded arrays: x.gather()", lambda: td.sort(x)),
        (TypeError, "td.shard(y, mesh, spec) says", lambda: td.maximum(td.ones(6), x)),
        (AttributeError, "x.gather().sort", lambda: x.sort()),
        (AttributeError, "no attribute 'nothing'", lambda: x.nothing),
        (ValueError, "no axis 'model'", lambda: td.shard(np.ones(3), mesh, ("model",))),
        (ValueError, "used once", lambda: td.shard(np.ones((3, 3)), mesh, ("data", "data"))),
        (ValueError, "3 entries for 2", lambda: td.shard(np.ones((3, 3)), mesh, (None,) * 3)),
        (td.errors.DistributedError, f"there are {count}", lambda: dist.Mesh({"data": count + 1})),
        (ValueError, "x.reshard((None, None))", lambda: x[0]),
        (ValueError, "x.reshard((None, None))", lambda: x.reshape(3, 8)),
        (ValueError, "x.reshard((None, None))", lambda: x.take([0, 1], axis=0)),
        (IndexError, "has 6 elements", lambda: x[:, 6]),
        (TypeError, "not written into", lambda: x.__setitem__(0, 1)),
        (TypeError, "x.gather() is a tensor", lambda: [*x]),
        (ValueError, "item is of one element", lambda: x.item()),
        (td.errors.AutogradError, "takes its gradient", lambda: x.backward()),
        (ValueError, "this rank's part", lambda: dist.from_pieces(
            td.ones((3, 5)), mesh, ("data",), (3 * count + 5, 5))),
    ]  # fmt: skip
    for kind, words, call in bad:
        error = raised(call)
        assert isinstance(error, kind), (words, error)
        assert words in str(error), error


def training():
    """A network whose layers and batches are split: the same losses as of one process, by eager and
    compiled steps; what is repeated has equal gradients everywhere."""
    mesh = dist.Mesh({"data": -1})
    random = np.random.default_rng(5)
    x, y = random.normal(size=(6, 4)), random.normal(size=(6, 3))
    first, second = random.normal(size=(4, 5)), random.normal(size=(5, 3))

    def trained(compiles, batch, weights, tensors):
        optimizer = td.optim.AdamW(tensors, lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            out = (x @ weights[0]).tanh() @ weights[1] + weights[2]
            loss = ((out - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        step = td.compile(step) if compiles else step
        return [step(*batch).item() for _ in range(4)]

    alone = [td.asarray(each).requires_grad_() for each in (first, second, np.zeros(3))]
    wanted = trained(False, (td.asarray(x), td.asarray(y)), alone, alone)
    specs = [((None, None), (None, None), ("data",)), ((None, "data"), ("data", None), (None,))]
    for compiles in (False, True):
        for own in specs if not compiles else specs[:1]:
            weights = [
                td.shard(each, mesh, spec).requires_grad_()
                for each, spec in zip((first, second, np.zeros(3)), own, strict=True)
            ]
            batch = td.shard(x, mesh, ("data",)), td.shard(y, mesh, ("data",))
            found = trained(compiles, batch, weights, [each.piece for each in weights])
            same(found, wanted, 1e-12)
            for each, one in zip(weights, alone, strict=True):
                same(each, one.numpy(), 1e-12)


def norms():
    """The norm of gradients of pieces is that of the arrays, those that all ranks have once."""
    mesh = dist.Mesh({"data": -1, "model": 2 - dist.size() % 2})
    random = np.random.default_rng(5)
    hosts = [random.normal(size=(5, 7)) for _ in range(4)]
    specs = [("data", "model"), (None, "model"), ("data", None), (None, None)]
    arrays = [
        td.shard(x, mesh, spec).requires_grad_() for x, spec in zip(hosts, specs, strict=True)
    ]
    sum((x * x).sum() / 2 for x in arrays).backward()
    for p, wanted in ((2.0, np.sqrt(np.sum(np.square(hosts)))), (np.inf, np.max(np.abs(hosts)))):
        same(td.nn.utils.clip_grad_norm_([x.piece for x in arrays], 1e9, p), wanted, 1e-12)


def out_of_the_mesh():
    """Gradients through `gather`, through what is sharded from whole tensors, and from pieces."""
    mesh, rank, size = dist.Mesh({"data": -1}), dist.rank(), dist.size()
    host = np.random.default_rng(8).normal(size=(size, 3))
    base = td.asarray(host).requires_grad_()
    x = td.shard(base, mesh, ("data",))
    (x.gather() ** 3).sum().backward()
    same(base.grad, 3 * host**2, 1e-14)
    own = td.asarray(host[rank : rank + 1].copy()).requires_grad_()
    (dist.from_pieces(own, mesh, ("data",)) ** 2).sum().backward()
    same(own.grad, 2 * host[rank : rank + 1], 1e-14)
    one = td.asarray(host[0].copy()).requires_grad_()
    (dist.from_pieces(one, mesh, (None,)) * x.detach()).sum().backward()
    same(one.grad, host.sum(0), 1e-13)


def travels():
    """What a product sends, by lines and bytes, forward and backward."""
    size = dist.size()
    mesh = dist.Mesh({"model": -1})
    x = td.shard(np.ones((size * 2, size * 4), np.float32), mesh)
    w1 = td.shard(np.ones((size * 4, size * 8), np.float32), mesh, (None, "model"))
    w2 = td.shard(np.ones((size * 8, size * 4), np.float32), mesh, ("model", None))
    for each in (w1, w2):
        each.requires_grad_()
    with dist.explain() as traffic:
        y = (x @ w1).relu() @ w2
        assert not traffic.sent
        assert str(traffic) == "nothing travels"
        assert y.pending == ("model",)
        loss = (y * y).sum()
        loss.backward()
    # Of a pair of layers split by columns and rows, one sum of the results, and one of gradients.
    whole = size * 2 * size * 4 * 4
    found = [(each.operation, each.collective, each.bytes) for each in traffic.sent]
    sent = 2 * whole * (size - 1) // size
    assert found == [
        ("multiply", "all_reduce", sent), ("gradient of multiply", "all_reduce", sent)
    ], found  # fmt: skip
    assert all(each.line.startswith("sharded_cases.py:") for each in traffic.sent)
    assert "all_reduce" in str(traffic)
    assert "ShardedTensor(float32" in str(td.explain(y))


def run(seed):
    """All of them."""
    for case in (values, functions, refused, training, norms, out_of_the_mesh, travels):
        case()
