"""Bounds are tried on random integer programs full of guards: a check dropped wrongly would make
an access outside, which the evaluator refuses, or change a result."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.ir_evaluator import EvaluationError, run
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import binary, builtin, check, constant, intrinsic
from treadle.ir.passes.bounds import drop_provable_checks
from treadle.ir.passes.fold import fold
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

X = n.Buffer("x", t.I32)
SIZE = n.Variable("x.size", t.I32)
P, Q = n.Variable("p", t.I32), n.Variable("q", t.I32)
_SMALL = [0, 1, 2, 3, 4, 5, 7, 8, -1, -2]
_EDGES = [2**31 - 1, -(2**31), 2**30, 2**31 - 3]


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.readable = [SIZE, P, Q]
        self.writable: list[n.Variable] = []
        self.conditions: list[n.Variable] = []
        self.loops = 0

    def kernel(self) -> n.Kernel:
        body = self.block(self.random.randrange(4, 10), 3)
        parameters = (
            n.Parameter("x.size", t.I32, ("size", "x")),
            n.Parameter("p", t.I32, ("value", "p")),
            n.Parameter("q", t.I32, ("value", "q")),
        )
        return n.Kernel("k", (X,), parameters, body, block=Dim3(4))

    def variable(self, prefix: str, type: t.Scalar = t.I32) -> n.Variable:
        self.count += 1
        return n.Variable(f"{prefix}{self.count}", type)

    # --- statements ---

    def block(self, size: int, depth: int) -> n.Block:
        saved = list(self.readable), list(self.writable), list(self.conditions)
        statements: list[n.Statement] = []
        for _ in range(size):
            statements.extend(self.statement(depth))
        self.readable, self.writable, self.conditions = saved
        return tuple(statements)

    def statement(self, depth: int) -> list[n.Statement]:
        kinds = (
            [self.access] * 4 + [self.declare] * 3 + [self.assign] * 2 + [self.remember, self.leave]
        )
        if depth:
            kinds += [self.conditional] * 4 + [self.counted] * 2 + [self.repeated] * 2
        return self.random.choice(kinds)(depth)

    def access(self, depth: int) -> list[n.Statement]:
        index = self.index()
        bound = self.random.choice([SIZE, SIZE, constant(6, t.I32), P])
        # `p` is a bound for which the access must be inside as well: it is clamped to the size.
        if bound is P:
            bound = intrinsic("min", P, SIZE)
        if isinstance(bound, n.Constant):
            bound = intrinsic("min", bound, SIZE) if self.random.random() < 0.5 else bound
        guarded = n.Element("x", index, t.I32, (check(index, bound),))
        if isinstance(bound, n.Constant):
            guarded = n.Element("x", index, t.I32, (check(index, bound), check(index, SIZE)))
        more = binary("add", n.Load(guarded, t.I32), 1)
        return [n.Assign(guarded, more)]

    def declare(self, depth: int) -> list[n.Statement]:
        variable = self.variable("v")
        statement = n.Declare(variable, self.number(2))
        self.readable.append(variable)
        self.writable.append(variable)
        return [statement]

    def assign(self, depth: int) -> list[n.Statement]:
        if not self.writable:
            return self.declare(depth)
        variable = self.random.choice(self.writable)
        step = binary(self.random.choice(("add", "sub")), variable, self.random.choice((1, 2)))
        return [n.Assign(variable, step if self.random.random() < 0.5 else self.number(2))]

    def remember(self, depth: int) -> list[n.Statement]:
        variable = self.variable("b", t.BOOL)
        statement = n.Declare(variable, self.condition(2))
        self.conditions.append(variable)
        return [statement]

    def leave(self, depth: int) -> list[n.Statement]:
        options: list[n.Statement] = [n.Return()]
        if self.loops:
            options = [n.Break(), n.Continue()]
        return [n.If(self.condition(1), (self.random.choice(options),))]

    def conditional(self, depth: int) -> list[n.Statement]:
        condition = self.condition(2)
        then = self.block(self.random.randrange(1, 4), depth - 1)
        return [n.If(condition, then, self.block(self.random.randrange(2), depth - 1))]

    def counted(self, depth: int) -> list[n.Statement]:
        variable = self.variable("k")
        step = self.random.choice((1, 1, 1, 2, 3, -1, -2))
        bounds = [self.short(), self.short()]
        self.readable.append(variable)
        self.loops += 1
        body = self.block(self.random.randrange(1, 4), depth - 1)
        self.loops -= 1
        self.readable.remove(variable)
        return [n.For(variable, bounds[0], bounds[1], step, body)]

    def repeated(self, depth: int) -> list[n.Statement]:
        """A loop over a variable that the body may change too; `fuel` ends it."""
        variable, fuel = self.variable("w"), self.variable("fuel")
        start = self.short()
        self.readable.append(variable)
        self.writable.append(variable)
        condition = self.condition(1)
        self.loops += 1
        body = self.block(self.random.randrange(1, 4), depth - 1)
        self.loops -= 1
        self.readable.remove(variable)
        self.writable.remove(variable)
        kind = self.random.choice(("add", "sub", "floordiv", "shr", "mul"))
        next_value = binary(kind, variable, self.random.choice((1, 2)))
        empty = n.If(binary("gt", fuel, 5), (n.Break(),))
        burn = n.Assign(fuel, binary("add", fuel, 1))
        loop = n.While(condition, (burn, empty, *body), (n.Assign(variable, next_value),))
        return [n.Declare(variable, start), n.Declare(fuel), loop]

    # --- expressions ---

    def short(self) -> n.Expression:
        """A bound that keeps loops short (the arrays are)."""
        options = [constant(c, t.I32) for c in (0, 1, 3, 6, -1)] + [SIZE, binary("sub", SIZE, 1)]
        return self.random.choice(options)

    def index(self) -> n.Expression:
        if self.random.random() < 0.6:
            return self.random.choice(self.readable)
        return self.number(2)

    def number(self, depth: int) -> n.Expression:
        draw = self.random.random()
        if depth == 0 or draw < 0.35:
            if draw < 0.25:
                return self.random.choice(self.readable)
            if draw < 0.28:
                return builtin(self.random.choice(("thread_idx", "block_idx")))
            edge = self.random.random() < 0.1
            return constant(self.random.choice(_EDGES if edge else _SMALL), t.I32)
        left, right = self.number(depth - 1), self.number(depth - 1)
        if draw < 0.5:
            return intrinsic(self.random.choice(("min", "max")), left, right)
        if draw < 0.58:
            return n.Select(self.condition(1), left, right, t.I32)
        if draw < 0.64:
            middle = self.random.choice((t.I8, t.U32, t.U8, t.I64))
            return n.Cast(n.Cast(left, middle), t.I32)
        if draw < 0.7:
            wide = n.Cast(left, t.I64)
            return n.Cast(binary("add", wide, n.Cast(right, t.I64)), t.I32)
        op = self.random.choice(
            ("add", "sub", "add", "sub", "mul", "div", "rem", "floordiv", "mod", "mod", "and", "or",
             "xor", "shl", "shr")
        )  # fmt: skip
        return binary(op, left, right)

    def condition(self, depth: int) -> n.Expression:
        draw = self.random.random()
        if depth and draw < 0.25:
            op = self.random.choice((*n.LOGICAL, "and", "or"))
            return n.Binary(op, self.condition(depth - 1), self.condition(depth - 1), t.BOOL)
        if depth and draw < 0.32:
            return n.Unary("not", self.condition(depth - 1), t.BOOL)
        if draw < 0.4 and self.conditions:
            return self.random.choice(self.conditions)
        left = self.random.choice(self.readable) if draw < 0.8 else self.number(1)
        right = self.number(1) if draw < 0.7 else SIZE
        return binary(self.random.choice(n.COMPARISONS), left, right)


def results(kernel: n.Kernel) -> list[list[int]]:
    """What the kernel leaves for several arguments, in order."""
    found = []
    for size, p, q in ((5, 3, -2), (0, 0, 0), (6, -7, 2**31 - 1), (1, 9, -(2**31)), (8, 2, 5)):
        x = np.arange(size, dtype=np.int32)
        run(kernel, 2, {"x": x}, {"p": p, "q": q})
        found.append(x.tolist())
    return found


def count(kernel: n.Kernel) -> int:
    """The checks in a kernel."""
    return sum(isinstance(node, n.Check) for node in walk(kernel.body))


@pytest.mark.parametrize("seed", range(50))
def test_no_check_goes_that_could_fail(seed: int) -> None:
    kernel = _Maker(seed).kernel()
    verify(kernel)
    expected = results(kernel)
    assert results(drop_provable_checks(kernel)) == expected
    assert results(drop_provable_checks(fold(kernel))) == expected


def test_enough_checks_go_for_the_test_to_mean_something() -> None:
    kernels = [_Maker(seed).kernel() for seed in range(80)]
    before, after = sum(map(count, kernels)), sum(count(drop_provable_checks(k)) for k in kernels)
    assert before - after > before // 10


def test_a_wrong_drop_would_be_seen() -> None:
    bare = n.Assign(n.Element("x", n.Variable("p", t.I32), t.I32), constant(1, t.I32))
    kernel = n.Kernel("k", (X,), (n.Parameter("p", t.I32, ("value", "p")),), (bare,), block=Dim3(1))
    with pytest.raises(EvaluationError, match="unchecked access"):
        run(kernel, 1, {"x": np.zeros(2, dtype=np.int32)}, {"p": 2})
