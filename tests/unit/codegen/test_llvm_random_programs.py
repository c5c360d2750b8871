"""Random kernels full of loops, branches and early exits: lanes must agree with the evaluator."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support import ir_evaluator
from tests.support.cpu_kernels import run
from treadle.codegen.llvm import LlvmOptions
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t

COUNT = 21
OPERATIONS = ["add", "sub", "mul", "div", "rem", "mod", "floordiv", "and", "xor"]
THREAD = n.Variable("thread", t.I32)
VARIABLES = [n.Variable(name, t.I32) for name in "abc"]


def number(value: int) -> n.Constant:
    return n.Constant(value, t.I32)


class Writer:
    """Writes random statements. Every loop has at most five turns, so that programs end."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counters = 0
        self.readable: list[n.Variable] = [THREAD, *VARIABLES]

    def expression(self, depth: int = 2) -> n.Expression:
        choice = self.random.randrange(8 if depth else 3)
        if choice == 0:
            return number(self.random.randrange(-4, 9))
        if choice < 3:
            return self.random.choice(self.readable)
        if choice == 3:
            index = self.expression(depth - 1)
            check = n.Check(index, number(COUNT))
            return n.Load(n.Element("x", index, t.I32, (check,)), t.I32)
        if choice == 4:
            condition = self.condition(depth - 1)
            return n.Select(
                condition, self.expression(depth - 1), self.expression(depth - 1), t.I32
            )
        op = self.random.choice(
            ["add", "sub", "mul", "div", "rem", "mod", "floordiv", "and", "xor"]
        )
        return n.Binary(op, self.expression(depth - 1), self.expression(depth - 1), t.I32)

    def condition(self, depth: int = 2) -> n.Expression:
        if depth and self.random.random() < 0.25:
            op = self.random.choice(["logical_and", "logical_or"])
            return n.Binary(op, self.condition(depth - 1), self.condition(depth - 1), t.BOOL)
        op = self.random.choice(["lt", "eq", "ne", "ge"])
        return n.Binary(op, self.expression(depth), self.expression(depth), t.BOOL)

    def block(self, depth: int, in_loop: bool) -> n.Block:
        known = len(self.readable)
        count = self.random.randrange(1, 4)
        body = tuple(s for _ in range(count) for s in self.statement(depth, in_loop))
        del self.readable[known:]
        return body

    def statement(self, depth: int, in_loop: bool) -> n.Block:
        choice = self.random.randrange(10)
        if choice < 4 or not depth:
            return (n.Assign(self.random.choice(VARIABLES), self.expression()),)
        if choice == 4:
            return (n.Assign(n.Element("y", THREAD, t.I32), self.expression()),)
        if choice < 7:
            otherwise = self.block(depth - 1, in_loop) if self.random.random() < 0.5 else ()
            return (n.If(self.condition(), self.block(depth - 1, in_loop), otherwise),)
        if choice == 7:
            jumps: list[n.Statement] = [n.Return()]
            if in_loop:
                jumps += [n.Break(), n.Continue()] * 2
            return (n.If(self.condition(), (self.random.choice(jumps),)),)
        return self.loop(depth)

    def loop(self, depth: int) -> n.Block:
        self.counters += 1
        counter = n.Variable(f"i{self.counters}", t.I32)
        if self.random.random() < 0.5:
            start = n.Binary("and", self.expression(1), number(3), t.I32)
            step = self.random.choice([1, 1, 2, -1])
            distance = n.Binary("and", self.expression(1), number(3), t.I32)
            op = "add" if step > 0 else "sub"
            stop = n.Binary(op, start, distance, t.I32)
            self.readable.append(counter)
            body = self.block(depth - 1, True)
            self.readable.remove(counter)
            return (n.For(counter, start, stop, step, body),)
        self.readable.append(counter)
        limit = n.Binary("lt", counter, number(5), t.BOOL)
        condition = n.Binary("logical_and", limit, self.condition(1), t.BOOL)
        update = (n.Assign(counter, n.Binary("add", counter, number(1), t.I32)),)
        body = self.block(depth - 1, True)
        self.readable.remove(counter)
        return (n.Declare(counter), n.While(condition, body, update))

    def kernel(self, as_loop: bool) -> n.Kernel:
        declares = tuple(
            n.Declare(variable, n.Binary("mul", THREAD, number(i), t.I32) if i else None)
            for i, variable in enumerate(VARIABLES)
        )
        ends = tuple(
            n.Assign(n.Element("z", n.Binary("add", THREAD, number(i * COUNT), t.I32), t.I32), v)
            for i, v in enumerate(VARIABLES)
        )
        body = (*declares, *self.block(4, False), *self.block(4, False), *ends)
        if as_loop:
            body = (n.For(THREAD, number(0), number(COUNT), 1, body, parallel=True),)
        else:
            body = (n.Declare(THREAD, n.Builtin("thread_idx")), *body)
        buffers = tuple(n.Buffer(name, t.I32) for name in "xyz")
        return n.Kernel("random", buffers, (), body, block=Dim3(COUNT))


@pytest.mark.parametrize("seed", [*range(36), 99, 347, 396])
def test_random_program(seed):
    values = np.random.default_rng(seed).integers(-5, 12, COUNT, dtype=np.int32)
    arrays = {
        "x": values, "y": np.zeros(COUNT, np.int32), "z": np.zeros(3 * COUNT, np.int32),
    }  # fmt: skip
    expected = {name: array.copy() for name, array in arrays.items()}
    ir_evaluator.run(Writer(seed).kernel(False), 1, expected)
    kernel = Writer(seed).kernel(True)
    for lanes in (16, 4, 1):
        results = run(kernel, list(arrays.values()), options=LlvmOptions(lanes=lanes))
        for name, result in zip("xyz", results, strict=True):
            np.testing.assert_array_equal(result, expected[name], f"{name} in {lanes} lanes")
