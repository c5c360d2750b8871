"""Drawn programs of sharded arrays beside NumPy, and their gradients
beside those of the same program of whole tensors."""

from math import prod

import numpy as np

import treadle as td
from treadle import distributed as dist

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 13]
UNARY = {
    "tanh": np.tanh, "sin": np.sin, "negative": np.negative, "square": np.square, "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0), "exp": lambda x: np.exp(x),
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "atan2": np.arctan2,
}  # fmt: skip
REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "var": np.var,
    "logsumexp": lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
}  # fmt: skip
MESHES = {1: [(1,)], 2: [(2,), (1, 2)], 3: [(3,)], 4: [(4,), (2, 2), (2, 1, 2)]}


class Program:
    """A value computed three times: by NumPy, by whole tensors, and by sharded arrays."""

    def __init__(self, random, mesh):
        self.random, self.mesh = random, mesh
        self.leaves, self.text = [], []
        self.value = self.leaf(self.shape())

    def shape(self, least=0):
        count = int(self.random.integers(least, 4))
        shape = [int(self.random.choice(EXTENTS)) for _ in range(count)]
        if shape and self.random.random() < 0.05:
            shape[int(self.random.integers(count))] = 0
        return tuple(shape)

    def spec(self, axes):
        names = [*self.random.permutation([*self.mesh.axes])]
        spec = []
        for _ in range(axes):
            kind = self.random.random()
            if kind < 0.5 and names:
                spec.append(str(names.pop()))
            elif kind < 0.6 and len(names) > 1:
                spec.append((str(names.pop()), str(names.pop())))
            else:
                spec.append(None)
        self.random.shuffle(spec)
        return tuple(spec)

    def leaf(self, shape, scale=1.0):
        host = self.random.normal(size=shape) * scale
        spec = self.spec(len(shape))
        whole = td.asarray(host).requires_grad_()
        if self.random.random() < 0.2:  # a tensor that all ranks have, and its gradient
            base = td.asarray(host).requires_grad_()
            sharded = td.shard(base, self.mesh, spec)
        else:
            base = sharded = td.shard(host, self.mesh, spec).requires_grad_()
        self.leaves.append((whole, base))
        self.text.append(f"leaf {shape} {spec}")
        return host, whole, sharded

    def step(self):
        kinds = [self.unary, self.binary, self.number, self.reduction, self.product, self.permute,
                 self.reshape, self.index, self.reshard, self.softmax, self.take]  # fmt: skip
        weights = np.array([2, 3, 1.5, 3, 3, 1, 1, 1, 1.5, 0.7, 0.7])
        kinds[self.random.choice(len(kinds), p=weights / weights.sum())]()

    def apply(self, text, of_host, of_arrays, *others):
        host, whole, sharded = self.value
        self.text.append(text)
        self.value = (
            of_host(host, *[each[0] for each in others]),
            of_arrays(whole, *[each[1] for each in others]),
            of_arrays(sharded, *[each[2] for each in others]),
        )

    def unary(self):
        name = str(self.random.choice([*UNARY]))
        if name in ("exp", "square"):
            self.apply("tanh", np.tanh, lambda x: x.tanh())
        self.apply(name, UNARY[name], lambda x: getattr(x, name)())

    def binary(self):
        name = str(self.random.choice([*BINARY]))
        own = self.value[0].shape
        front = int(self.random.integers(len(own) + 1))
        shape = [1 if self.random.random() < 0.25 else n for n in own[front:]]
        if self.random.random() < 0.1 and len(own) < 4:
            shape = [int(self.random.choice(EXTENTS)), *own]
        other = self.leaf(tuple(shape))
        if self.random.random() < 0.5:
            self.apply(name, BINARY[name], lambda x, y: getattr(x, name)(y), other)
        else:
            self.apply(
                name + " reflected", lambda x, y: BINARY[name](y, x),
                lambda x, y: getattr(y, name)(x), other,
            )  # fmt: skip

    def number(self):
        n = float(self.random.normal()) or 1.0
        kinds = [
            lambda x: n * x,
            lambda x: x / n,
            lambda x: n - x,
            lambda x: x + x,
            lambda x: x - n,
        ]
        kind = kinds[int(self.random.integers(len(kinds)))]
        self.apply(f"number {n}", kind, kind)

    def axes(self):
        own = self.value[0].shape
        count = int(self.random.integers(len(own) + 1))
        axes = tuple(int(at) for at in self.random.permutation(len(own))[:count])
        return None if self.random.random() < 0.2 else axes

    def reduction(self):
        name, axes = str(self.random.choice([*REDUCTIONS])), self.axes()
        extent = prod(n for at, n in enumerate(self.value[0].shape) if axes is None or at in axes)
        if not extent and name not in ("sum", "prod"):
            name = "sum"
        if name == "var" and extent < 2:
            name = "max"
        kept = bool(self.random.random() < 0.4)
        if name in ("prod", "logsumexp"):
            self.apply("tanh", np.tanh, lambda x: x.tanh())
        self.apply(
            f"{name} {axes} {kept}", lambda x: REDUCTIONS[name](x, axis=axes, keepdims=kept),
            lambda x: getattr(x, name)(axis=axes, keepdims=kept),
        )  # fmt: skip

    def softmax(self):
        own = self.value[0].shape
        if not own or 0 in own:
            return
        axis = int(self.random.integers(len(own)))

        def of_host(x):
            powers = np.exp(x - x.max(axis, keepdims=True))
            return powers / powers.sum(axis, keepdims=True)

        self.apply(f"softmax {axis}", of_host, lambda x: x.softmax(axis))

    def product(self):
        own = self.value[0].shape
        if not own or len(own) > 3:
            return
        kind, n = self.random.random(), int(self.random.choice(EXTENTS))
        if kind < 0.6:
            shape = (own[-1], n) if self.random.random() < 0.7 else (own[-1],)
            if len(own) == 3 and self.random.random() < 0.5:
                shape = (own[0], own[-1], n)
            self.apply(f"matmul {shape}", np.matmul, lambda x, y: x @ y, self.leaf(shape, 0.5))
        else:
            names = "abc"[: len(own)]
            summed = str(self.random.choice([*names]))
            out = [*names.replace(summed, ""), "z"]
            if self.random.random() < 0.3:
                out.append(summed)
            self.random.shuffle(out)
            text = f"{names},{summed}z->{''.join(out)}"
            other = self.leaf((own[names.index(summed)], n), 0.5)
            self.apply(
                text, lambda x, y: np.einsum(text, x, y), lambda x, y: einsum(text, x, y), other
            )

    def permute(self):
        axes = [int(at) for at in self.random.permutation(self.value[0].ndim)]
        self.apply(f"permute {axes}", lambda x: x.transpose(axes), lambda x: x.permute(*axes))

    def reshape(self):
        own = self.value[0].shape
        if len(own) < 2:
            self.apply("expand", lambda x: x[None], lambda x: x.expand_dims(0))
            return
        at = int(self.random.integers(len(own) - 1))
        shape = (*own[:at], own[at] * own[at + 1], *own[at + 2 :])
        for wanted in (shape, own):
            try:
                self.value[2].reshape(wanted)
                words = ""
            except ValueError as error:
                words = str(error)  # says what to do
            if words:
                assert "x.reshard" in words
                return
            self.apply(
                f"reshape {wanted}", lambda x, wanted=wanted: x.reshape(wanted),
                lambda x, wanted=wanted: x.reshape(wanted),
            )  # fmt: skip

    def index(self):
        value, spec = self.value[0], self.value[2].spec
        key = []
        for extent, entry in zip(value.shape, spec, strict=True):
            kind = self.random.random()
            if kind < 0.2:
                key.append(None)
            if entry is not None or kind < 0.5 or not extent:
                key.append(slice(None))
            elif kind < 0.7:
                key.append(int(self.random.integers(-extent, extent)))
            else:
                start = int(self.random.integers(extent))
                key.append(slice(start, None, int(self.random.integers(1, 3))))
        if value.ndim + sum(each is None for each in key) < 5:
            self.apply(f"index {key}", lambda x: x[tuple(key)], lambda x: x[tuple(key)])

    def take(self):
        value, spec = self.value[0], self.value[2].spec
        if not spec or spec[0] is not None or not value.shape[0] or value.ndim > 3:
            return
        host = self.random.integers(0, value.shape[0], int(self.random.choice(EXTENTS)))
        indices = host, td.asarray(host), td.shard(host, self.mesh, self.spec(1))
        self.apply("take", lambda x, at: x[at], lambda x, at: x.take(at, axis=0), indices)

    def reshard(self):
        host, whole, sharded = self.value
        spec = self.spec(host.ndim)
        self.text.append(f"reshard {spec}")
        self.value = host, whole, sharded.reshard(spec)

    def check(self):
        host, whole, sharded = self.value
        assert sharded.shape == host.shape, (sharded, host.shape)
        np.testing.assert_allclose(sharded.numpy(), host, 1e-9, 1e-9)
        weights = self.random.normal(size=host.shape)
        spec = self.spec(host.ndim)
        (whole * td.asarray(weights)).sum().backward()
        if self.random.random() < 0.5:
            (sharded * td.shard(weights, self.mesh, spec)).sum().backward()
        else:
            sharded.backward(td.shard(weights, self.mesh, spec))
        for number, (own, base) in enumerate(self.leaves):
            wanted = None if own.grad is None else own.grad.numpy()
            found = None if base.grad is None else base.grad.numpy()
            if wanted is None or found is None:
                assert not np.any(wanted), (number, wanted)
                assert not np.any(found), (number, found)
                continue
            np.testing.assert_allclose(found, wanted, 1e-7, 1e-8, err_msg=f"gradient of {number}")


def einsum(text, *arrays):
    function = td.einsum if isinstance(arrays[0], td.Tensor) else arrays[0].einsum
    return function(text, *arrays) if function is td.einsum else function(text, *arrays[1:])


def programs(seed, count=3):
    """So many programs."""
    meshes = [dist.Mesh(dict(zip("abc", sizes, strict=False))) for sizes in MESHES[dist.size()]]
    for number in range(count):
        random = np.random.default_rng((seed, number))
        program = Program(random, meshes[number % len(meshes)])
        try:
            for _ in range(int(random.integers(1, 6))):
                program.step()
            program.check()
        except Exception:
            print(f"program {number} of seed {seed} on {program.mesh}:", *program.text, sep="\n  ")
            raise
