"""Unrolling, and local arrays that become variables: the same results in registers."""

from __future__ import annotations

import numpy as np

from tests.support.ir_evaluator import run
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import (
    Builder,
    add,
    builtin,
    cast,
    check,
    constant,
    element,
    equal,
    load,
    member,
    mul,
)  # fmt: skip
from treadle.ir.passes.fold import fold
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll
from treadle.ir.traverse import walk
from treadle.ir.verify import verify


def registers(kernel: n.Kernel) -> n.Kernel:
    result = scalarize(fold(unroll(kernel)))
    verify(result)
    return result


def assert_same(kernel: n.Kernel, changed: n.Kernel, size: int = 16) -> None:
    before = {"x": np.arange(1, size + 1, dtype=np.float32)}
    after = {"x": before["x"].copy()}
    run(kernel, 1, before)
    run(changed, 1, after)
    assert before["x"].tobytes() == after["x"].tobytes()
    assert before["x"].tolist() != list(range(1, size + 1))


def loops(kernel: n.Kernel) -> int:
    return sum(isinstance(node, n.For) for node in walk(kernel.body))


def test_nested_loops_and_arrays():
    b = Builder("tile", block=2)
    x = b.buffer("x", t.F32)
    acc = b.memory("local", "acc", t.F32, 6)
    i = b.let("i", builtin("thread_idx"))
    with b.loop("r", 0, 2, unroll=True) as r, b.loop("c", 2, -1, -1, unroll=True) as c:
        at = b.let("at", add(mul(r, 3), c))
        b.store(acc, at, mul(load(x, at), cast(at, t.F32)), (check(at, constant(6, t.I32)),))
    with b.loop("k", 0, 6) as k:
        b.store(x, add(mul(i, 6), k), load(acc, constant(4, t.I32)))
    changed = registers(b.kernel())
    assert changed.memories == ()
    assert loops(changed) == 1
    assert_same(b.kernel(), changed)


def test_loops_that_leave_stay_loops():
    b = Builder("search", block=1)
    x = b.buffer("x", t.F32)
    with b.loop("k", 0, 8, unroll=True) as k:
        with b.when(equal(k, 3)):
            b.emit(n.Break())
        with b.loop("j", 0, 4, unroll=True) as j:
            b.store(x, add(k, j), add(load(x, k), 1.0))
    changed = registers(b.kernel())
    assert loops(changed) == 1
    assert_same(b.kernel(), changed)


def test_a_break_of_an_inner_loop_does_not_keep_the_outer():
    b = Builder("search", block=1)
    x = b.buffer("x", t.F32)
    with b.loop("k", 0, 3, unroll=True) as k, b.loop("j", 0, 5) as j:
        with b.when(equal(j, k)):
            b.emit(n.Break())
        b.store(x, j, add(load(x, j), 1.0))
    changed = registers(b.kernel())
    assert loops(changed) == 3
    assert_same(b.kernel(), changed)


def test_loops_over_unknown_or_many_values_stay():
    b = Builder("long", block=1)
    x = b.buffer("x", t.F32)
    size = b.parameter("size", t.I32, "size", "x")
    with b.loop("k", 0, size, unroll=True) as k:
        b.store(x, k, mul(load(x, k), 2.0))
    with b.loop("many", 0, 5000, unroll=True) as k:
        b.store(x, 0, add(load(x, 0), cast(k, t.F32)))
    assert loops(unroll(b.kernel())) == 2


def test_vector_elements_and_their_components():
    vector = t.Vector(t.F32, 2)
    b = Builder("pairs", block=1)
    x = b.buffer("x", t.F32)
    pairs = b.memory("local", "pairs", vector, 2)
    with b.loop("k", 0, 2, unroll=True) as k:
        both = n.Construct((load(x, k), load(x, add(k, 2))), vector)
        b.store(pairs, k, both)
        b.assign(member(element(pairs, k), "y"), mul(load(member(element(pairs, k), "x")), 3.0))
    b.store(x, 0, load(member(element(pairs, 1), "y")))
    changed = registers(b.kernel())
    assert changed.memories == ()
    assert_same(b.kernel(), changed)


def test_what_is_indexed_by_a_variable_or_seen_as_another_type_stays():
    b = Builder("arrays", block=2)
    x = b.buffer("x", t.F32)
    moving, viewed = (b.memory("local", name, t.F32, 4) for name in ("moving", "viewed"))
    i = b.let("i", builtin("thread_idx"))
    b.store(moving, 1, load(x, 0))
    b.store(moving, i, load(x, i))
    b.assign(element(viewed, 0, type=t.U32), n.Bitcast(load(x, i), t.U32))
    b.store(x, i, add(load(moving, i), load(viewed, 0)))
    changed = registers(b.kernel())
    assert [memory.name for memory in changed.memories] == ["moving", "viewed"]
    assert_same(b.kernel(), changed)
