"""Drawn collectives, the same ones on all ranks, each beside NumPy's for all ranks' inputs."""

import ml_dtypes
import numpy as np

import treadle as td
from treadle import distributed as dist

SHAPES = [(), (0,), (1,), (7,), (13, 3), (4, 0, 3), (2, 5, 3), (257,), (64, 65), (40000,)]
DTYPES = [
    "float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "bool", "complex64", "complex128",
]  # fmt: skip
REDUCE = {
    "sum": lambda xs: np.sum(xs, 0), "mean": lambda xs: np.mean(xs, 0),
    "min": lambda xs: np.min(xs, 0), "max": lambda xs: np.max(xs, 0),
    "product": lambda xs: np.prod(xs, 0),
}  # fmt: skip


def drawn(random, shape, dtype, size):
    """All ranks' inputs."""
    if dtype == "bool":
        return random.random((size, *shape)) < 0.5
    if dtype.startswith("complex"):
        made = random.normal(size=(size, *shape)) + 1j * random.normal(size=(size, *shape))
        return made.astype(dtype)
    if "int" in dtype:
        return random.integers(0, 100, (size, *shape)).astype(dtype)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return random.normal(size=(size, *shape)).astype(kind)


def wide(x):
    return x.astype(np.float64) if x.dtype.name in ("float16", "bfloat16", "float32") else x


def same(found, wanted, what, exact=True):
    found = found.numpy()
    assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
    if exact or found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted.astype(found.dtype), err_msg=str(what))
        return
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "complex64": 2e-6}
    close = tolerance.get(found.dtype.name, 1e-14)
    np.testing.assert_allclose(wide(found), wide(wanted), close, close * 8, err_msg=str(what))


def allowed(op, dtype):
    if dtype == "bool":
        return op in ("min", "max")
    if dtype.startswith("complex"):
        return op in ("sum", "mean") or (op == "product" and dist.backend() == "mpi")
    return op != "mean" or "float" in dtype


def reference(op, xs):
    exact = xs if xs.dtype.kind in "iubc" else xs.astype(np.float64)
    return REDUCE[op](exact)


def all_reduce(random, shape, dtype, rank, size):
    op = random.choice([op for op in REDUCE if allowed(op, dtype)])
    xs = drawn(random, shape, dtype, size)
    found = dist.all_reduce(given(xs[rank]), str(op))
    return lambda: same(found, reference(op, xs), ("all_reduce", op, shape, dtype), False)


def all_gather(random, shape, dtype, rank, size):
    xs = drawn(random, shape, dtype, size)
    axis = int(random.integers(-len(shape), len(shape))) if shape else 0
    found = dist.all_gather(given(xs[rank]), axis)
    wanted = np.concatenate([x.reshape(shape or (1,)) for x in xs], axis)
    return lambda: same(found, wanted, ("all_gather", shape, dtype, axis))


def divisible(random, shape, size):
    axis = int(random.integers(-len(shape), len(shape)))
    return axis, tuple(n * size if k == axis % len(shape) else n for k, n in enumerate(shape))


def reduce_scatter(random, shape, dtype, rank, size):
    axis, shape = divisible(random, shape or (3,), size)
    op = random.choice([op for op in REDUCE if allowed(op, dtype)])
    xs = drawn(random, shape, dtype, size)
    found = dist.reduce_scatter(given(xs[rank]), axis, str(op))
    wanted = np.split(reference(op, xs), size, axis)[rank]
    return lambda: same(found, wanted, ("reduce_scatter", op, shape, dtype, axis), False)


def broadcast(random, shape, dtype, rank, size):
    xs, root = drawn(random, shape, dtype, size), int(random.integers(size))
    found = dist.broadcast(given(xs[rank]), root)
    return lambda: same(found, xs[root], ("broadcast", shape, dtype, root))


def all_to_all(random, shape, dtype, rank, size):
    axis, shape = divisible(random, shape or (3,), size)
    xs = drawn(random, shape, dtype, size)
    found = dist.all_to_all(given(xs[rank]), axis)
    wanted = np.concatenate([np.split(x, size, axis)[rank] for x in xs], axis)
    return lambda: same(found, wanted, ("all_to_all", shape, dtype, axis))


def ring(random, shape, dtype, rank, size):
    xs = drawn(random, shape, dtype, size)
    tag = int(random.integers(3)) if dist.backend() == "mpi" else 0
    after, before = (rank + 1) % size, (rank - 1) % size
    like = given(xs[rank])
    if rank % 2:  # a send by NCCL waits for its receive
        dist.send(like, after, tag)
    found = dist.recv(like if tag == 2 else shape, before, dtype=like.dtype, tag=tag)
    if not rank % 2:
        dist.send(like, after, tag)
    return lambda: same(found, xs[before], ("ring", shape, dtype))


def given(x):
    """A tensor, sometimes a view that is not contiguous, sometimes pending."""
    tensor = td.asarray(x.copy())
    if x.ndim > 1 and x.size % 2:
        return td.asarray(np.ascontiguousarray(x.T)).T
    if x.size % 3 == 1 and x.dtype.kind in "iuf":
        return (tensor + 1) - 1 if x.dtype.kind in "iu" else 0 - (0 - tensor)
    return tensor


def special():
    """A NaN of one rank is in the extremes of all, and a sum of halves beyond their range has a
    mean within it."""
    rank, size = dist.rank(), dist.size()
    xs = np.array([[np.nan, k, -k, np.inf] if k == 1 else [k, k, -k, np.nan] for k in range(size)])
    for name in filter(supported, ("float32", "float64", "float16", "bfloat16")):
        x = td.asarray(xs[rank].copy()).to(getattr(td, name))
        parts = td.stack([x] * size)
        for op, wanted in (("max", np.max(xs, 0)), ("min", np.min(xs, 0))):
            for found in (dist.all_reduce(x, op), dist.reduce_scatter(parts, 0, op)[0]):
                np.testing.assert_array_equal(found.to(td.float32).numpy(), wanted, f"{op} {name}")
    if supported("float16"):
        x = td.full((size, 3), 60000.0, dtype=td.float16)
        for found in (dist.all_reduce(x, "mean"), dist.reduce_scatter(x, 0, "mean")):
            np.testing.assert_allclose(found.numpy(), 60000.0, 1e-3)


def run(seed, count):
    """Draw so many."""
    special()
    rank, size = dist.rank(), dist.size()
    random = np.random.default_rng(seed)
    pending = []
    kinds = [all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, ring]
    dtypes = [each for each in DTYPES if supported(each)]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        shape = SHAPES[int(random.integers(len(SHAPES)))]
        dtype = dtypes[int(random.integers(len(dtypes)))]
        pending.append(kind(random, shape, dtype, rank, size))
        if random.random() < 0.3:  # read in another order than started
            order = np.random.default_rng(number + 7 * rank).permutation(len(pending))
            for each in order:
                pending[each]()
            pending.clear()
    for check in pending:
        check()


def supported(dtype):
    try:
        td.zeros(1, dtype=getattr(td, dtype)).realize()
    except td.errors.TreadleError:
        return False
    return True
