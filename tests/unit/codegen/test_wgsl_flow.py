"""Control flow, functions, atomics, subgroups and grids, against the evaluator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.ir_evaluator import run as evaluate
from tests.support.printing import print_wgsl
from tests.support.tint import tint_error
from tests.support.wgsl import LIMITS, options, run
from treadle.codegen.wgsl import WgslOptions
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.core.folding import fold_grid
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import (
    Builder,
    add,
    binary,
    both,
    builtin,
    cast,
    check,
    constant,
    element,
    equal,
    global_index,
    intrinsic,
    less,
    load,
    mul,
    select,
    sub,
)


def compare(
    kernel: n.Kernel, grid: Any, buffers: dict[str, np.ndarray[Any, Any]], **parameters: Any
) -> str:
    """Run a kernel on the device and in the evaluator; the buffers must agree, and Tint too."""
    expected = {name: array.copy() for name, array in buffers.items()}
    evaluate(kernel, grid, expected, parameters)
    code = print_wgsl(kernel, options())
    run(code, grid, buffers, parameters)
    for name, array in buffers.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    if not code.requires - {"float16", "subgroups"}:
        tint = WgslOptions("tint", code.requires, LIMITS)
        assert tint_error(print_wgsl(kernel, tint).source) is None
    return code.source


def counter(name: str = "count", block: int = 1) -> tuple[Builder, n.Buffer]:
    b = Builder(name, block=block)
    return b, b.buffer("out", t.I32)


def put(b: Builder, out: n.Buffer, value: Any) -> None:
    """Append a value: out[0] counts, the values follow."""
    b.store(out, 0, add(load(out, 0), 1))
    b.store(out, load(out, 0), value)


TOP = 2**31 - 1
LOOPS = [
    (0, 5, 1), (5, 0, 1), (0, 10, 3), (-4, 4, 2), (5, -1, -1), (10, 0, -4), (0, 0, 1),
    (TOP - 5, TOP, 2), (TOP - 5, TOP, 3), (-TOP, -TOP - 1, -2), (-TOP + 3, -TOP - 1, -3),
    (TOP - 1, TOP, 1000), (-TOP - 1, TOP, TOP),
]  # fmt: skip


@pytest.mark.parametrize("fixed", [True, False], ids=["constant bounds", "parameters"])
@pytest.mark.parametrize(("start", "stop", "step"), LOOPS)
def test_for_loops_run_exactly(start, stop, step, fixed):
    b, out = counter()
    first, last = b.parameter("first", t.I32), b.parameter("last", t.I32)
    bounds = (start, stop) if fixed else (first, last)
    with b.loop("k", *bounds, step) as k:
        put(b, out, k)
    array = np.zeros(16, dtype=np.int32)
    compare(b.kernel(), 1, {"out": array}, first=start, last=stop)
    assert array[1 : array[0] + 1].tolist() == list(range(start, stop, step))


def test_loops_over_an_array_are_plain():
    b = Builder("strided", block=1)
    x, y = b.buffer("x", t.F32), b.buffer("y", t.U8)
    x_size = b.parameter("x.size", t.I32, "size", "x")
    y_size = b.parameter("y.size", t.I32, "size", "y")
    with b.loop("k", 0, x_size, 4) as k:
        b.store(x, k, cast(k, t.F32))
    with b.loop("j", 1, y_size, 4) as j:
        b.store(y, j, constant(1, t.U8))
    arrays = {"x": np.zeros(11, dtype=np.float32), "y": np.zeros(12, dtype=np.uint8)}
    source = compare(b.kernel(), 1, arrays)
    assert "for (var k: i32 = 0; k < parameters.x_size; k += 4)" in source
    assert "trips" in source  # 2**31 - 1 bytes are possible
    assert arrays["y"].tolist() == [0, 1, 0, 0] * 3


def test_unsigned_loops_end_at_the_top():
    b, out = counter()
    last = b.parameter("last", t.U32)
    with b.loop("k", constant(2**32 - 7, t.U32), last, 3, type=t.U32) as k:
        put(b, out, cast(k, t.I32))
    array = np.zeros(8, dtype=np.int32)
    compare(b.kernel(), 1, {"out": array}, last=2**32 - 1)
    assert array[:3].tolist() == [2, -7, -4]


def test_a_loops_bound_is_evaluated_once():
    b, out = counter()
    limit = b.let("limit", constant(3, t.I32))
    with b.loop("k", 0, add(limit, 1)) as k:
        b.assign(limit, add(limit, 5))
        put(b, out, k)
    array = np.zeros(16, dtype=np.int32)
    compare(b.kernel(), 1, {"out": array})
    assert array[0] == 4


def test_continue_runs_the_update_and_break_leaves_one_loop():
    b, out = counter()
    i = b.let("i", constant(0, t.I32))
    step = n.Assign(i, add(i, 1))
    with b.repeat(less(i, 9), [step]):
        with b.when(equal(i, 2)):
            b.emit(n.Continue())
        with b.loop("k", 0, 5) as k:
            with b.when(equal(k, i)):
                b.emit(n.Break())
            with b.when(equal(k, 1)):
                b.emit(n.Continue())
            put(b, out, add(mul(i, 10), k))
        with b.when(less(5, i)):
            b.emit(n.Break())
    with b.repeat(less(0, i)):
        b.assign(i, sub(i, 3))
        put(b, out, i)
    compare(b.kernel(), 1, {"out": np.zeros(64, dtype=np.int32)})


def test_an_update_of_several_statements():
    b, out = counter()
    i, j = b.let("i", constant(0, t.I32)), b.let("j", constant(100, t.I32))
    update = [
        n.Assign(i, add(i, 1)),
        n.If(less(i, 3), (n.Assign(j, sub(j, 10)),), (n.Assign(j, sub(j, 1)),)),
    ]
    with b.repeat(less(i, 6), update):
        with b.when(equal(i, 4)):
            b.emit(n.Continue())
        put(b, out, j)
    compare(b.kernel(), 1, {"out": np.zeros(16, dtype=np.int32)})


def test_code_after_a_return_is_not_printed():
    b, out = counter(block=4)
    i = b.let("i", builtin("thread_idx"))
    with b.when(less(i, 2)):
        b.store(out, i, constant(5, t.I32))
        b.emit(n.Return())
        b.store(out, i, constant(6, t.I32))
    with b.otherwise():
        b.store(out, i, constant(7, t.I32))
    source = compare(b.kernel(), 1, {"out": np.zeros(4, dtype=np.int32)})
    assert "= 6;" not in source


def test_functions_with_loops_and_early_returns():
    f = Builder("first_multiple")
    start, divisor = f.argument("start", t.I32), f.argument("divisor", t.I32)
    with f.loop("k", 0, 100) as k, f.when(equal(binary("mod", add(start, k), divisor), 0)):
        f.emit(n.Return(add(start, k)))
    g = Builder("sign")
    x = g.argument("x", t.I32)
    with g.when(less(x, 0)):
        g.emit(n.Return(constant(-1, t.I32)))
    with g.otherwise():
        g.emit(n.Return(constant(1, t.I32)))
    b, out = counter(block=8)
    b.functions = [f.function(t.I32), g.function(t.I32)]
    i = b.let("i", builtin("thread_idx"))
    inner = n.Call("first_multiple", (sub(i, 3), constant(5, t.I32)), t.I32)
    b.store(out, i, mul(inner, n.Call("sign", (sub(i, 4),), t.I32)))
    compare(b.kernel(), 1, {"out": np.zeros(8, dtype=np.int32)})


def test_functions_that_ask_where_the_thread_is():
    f = Builder("here")
    f.emit(n.Return(add(mul(builtin("block_idx"), builtin("block_dim")), builtin("thread_idx"))))
    b, out = counter(block=4)
    b.functions = [f.function(t.I32)]
    i = b.let("i", global_index())
    b.store(out, i, add(n.Call("here", (), t.I32), builtin("grid_dim")))
    compare(b.kernel(), 3, {"out": np.zeros(12, dtype=np.int32)})


def test_unrolled_loops_keep_arrays_in_registers():
    b = Builder("registers", block=4)
    x = b.buffer("x", t.F32)
    acc = b.memory("local", "acc", t.F32, 6)
    i = b.let("i", builtin("thread_idx"))
    with b.loop("r", 0, 2, unroll=True) as r, b.loop("c", 0, 3, unroll=True) as c:
        at = add(mul(r, 3), c)
        b.store(acc, at, mul(load(x, i), cast(at, t.F32)))
        twice = b.let("twice", load(acc, at, (check(at, constant(6, t.I32)),)))
        b.store(acc, at, add(twice, 1.0))
    with b.loop("k", 0, 6, unroll=True) as k:
        b.store(x, i, add(load(x, i), load(acc, k)))
    source = compare(b.kernel(), 1, {"x": np.arange(4, dtype=np.float32)})
    assert "var acc_5: f32" in source
    assert "array<f32, 6>" not in source
    assert "for (" not in source


def test_arrays_indexed_by_variables_stay_arrays():
    b = Builder("arrays", block=4)
    x = b.buffer("x", t.F32)
    acc = b.memory("local", "acc", t.F32, 6)
    i = b.let("i", builtin("thread_idx"))
    with b.loop("k", 0, 6) as k:
        b.store(acc, k, cast(mul(k, i), t.F32))
    b.store(x, i, load(acc, i))
    source = compare(b.kernel(), 1, {"x": np.zeros(4, dtype=np.float32)})
    assert "acc: array<f32, 6>" in source


def test_constants_that_are_no_literals():
    b = Builder("constants", block=1)
    x = b.buffer("x", t.F32)
    numbers = [math.inf, -math.inf, math.nan, -0.0, 3.4028234663852886e38, 1e-45, 1.17549435e-38]
    for k, number in enumerate(numbers):
        b.store(x, k, constant(number, t.F32))
    b.store(x, 7, mul(constant(math.inf, t.F32), 5.0))
    array = np.zeros(8, dtype=np.float32)
    compare(b.kernel(), 1, {"x": array})
    assert math.isinf(array[7])
    assert np.signbit(array[3])


def test_constants_alone_do_not_trouble_a_compiler():
    """What folding would have computed: compilers refuse constant expressions that overflow."""
    b = Builder("unfolded", block=1)
    x, y = b.buffer("x", t.I32), b.buffer("y", t.F32)
    top = constant(TOP, t.I32)
    b.store(x, 0, n.Binary("add", top, top, t.I32))
    b.store(x, 1, n.Binary("div", top, constant(0, t.I32), t.I32))
    b.store(x, 2, n.Cast(constant(1e20, t.F32), t.I32))
    b.store(x, 3, n.Unary("neg", constant(-TOP - 1, t.I32), t.I32))
    b.store(y, 0, n.Binary("rem", constant(1.0, t.F32), constant(0.0, t.F32), t.F32))
    b.store(y, 1, n.Intrinsic("sqrt", (constant(-1.0, t.F32),), t.F32))
    arrays = {"x": np.zeros(4, dtype=np.int32), "y": np.zeros(2, dtype=np.float32)}
    compare(b.kernel(), 1, arrays)


def test_vectors():
    v4, i2 = t.Vector(t.F32, 4), t.Vector(t.I32, 2)
    b = Builder("vectors", block=4)
    x, y = b.buffer("x", v4), b.buffer("y", i2)
    i = b.let("i", builtin("thread_idx"))
    a = b.let("a", load(x, i))
    c = add(mul(a, 2.0), a)
    b.store(x, i, select(less(i, 2), c, n.Unary("neg", a, v4)))
    b.assign(n.Member(a, "y", t.F32), n.Intrinsic("dot", (a, a), t.F32))
    b.store(x, i, add(load(x, i), a))
    q = b.let("q", load(y, i))
    seven = n.Construct((constant(7, t.I32), constant(0, t.I32)), i2)
    for op in ("div", "mod", "floordiv", "shl", "shr"):
        b.assign(q, add(binary(op, q, seven), q))
    b.assign(q, add(q, n.Cast(n.Cast(q, t.Vector(t.F32, 2)), i2)))
    b.assign(q, intrinsic("min", q, n.Cast(n.Cast(q, t.Vector(t.U8, 2)), i2)))
    b.store(y, i, q)
    arrays = {
        "x": np.arange(16, dtype=np.float32).reshape(4, 4),
        "y": np.array([[5, -3], [2**31 - 1, 8], [-77, 1], [-1, 0]], dtype=np.int32),
    }
    compare(b.kernel(), 1, arrays)


def test_fast_functions_compile_everywhere():
    b = Builder("fast", block=4)
    x = b.buffer("x", t.F32)
    i = b.let("i", builtin("thread_idx"))
    value = b.let("value", load(x, i))
    for op, operands in n.INTRINSICS.items():
        if op.startswith("fast_"):
            b.assign(value, n.Intrinsic(op, (value, value)[:operands], t.F32))
    b.store(x, i, value)
    kernel = b.kernel(fastmath=True)
    for dialect in ("naga", "tint"):
        code = print_wgsl(kernel, WgslOptions(dialect, limits=LIMITS))
        assert tint_error(code.source) is None
    array = np.full(4, 0.5, dtype=np.float32)
    run(print_wgsl(kernel, options()), 1, {"x": array})
    assert np.isfinite(array).all()


def test_logic_does_not_evaluate_what_it_need_not():
    b, out = counter(block=4)
    size = b.parameter("out.size", t.I32, "size", "out")
    i = b.let("i", builtin("thread_idx"))
    inside = both(less(i, size), less(0, load(out, i)))
    with b.when(inside):
        b.store(out, i, constant(9, t.I32))
    compare(b.kernel(), 1, {"out": np.array([1, 0, 3, -1], dtype=np.int32)})


# --- atomics -------------------------------------------------------------------------------------

ATOMICS = [
    (type, op)
    for type in (t.I32, t.U32, t.F32, t.U8, t.I16, t.F16, t.BF16)
    for op in n.ATOMICS
    if not (type.is_float and op in ("and", "or", "xor"))
    if type == t.U32 or op not in ("inc", "dec")
]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("type", "op"), ATOMICS, ids=str)
def test_atomics_by_one_thread(type, op, space):
    """Old values and new ones, one after the other."""
    b = Builder("atomics", block=1)
    x, old = b.buffer("x", type), b.buffer("old", type)
    place_in: Any = x if space == "global" else b.memory("shared", "tile", type, 4)
    if space == "shared":
        with b.loop("j", 0, 4) as j:
            b.store(place_in, j, load(x, j))
    result = b.variable("result", type)
    for k, value in enumerate([3, 100, 7]):
        operands = [constant(value, type)]
        if op == "cas":
            operands.insert(0, constant(5 if k else 2, type))
        place = element(place_in, k, (check(k, 4),))
        b.emit(n.Atomic(op, place, tuple(operands), result))
        b.store(old, k, result)
    b.emit(n.Atomic(op, element(place_in, 9, (check(9, 4),)), tuple(operands), result))
    b.store(old, 3, result)
    if space == "shared":
        with b.loop("j2", 0, 4) as j:
            b.store(x, j, load(place_in, j))
    kernel = b.kernel()
    from tests.unit.codegen.test_wgsl_operations import NUMPY

    dtype = NUMPY[type.name]
    buffers = {"x": np.array([2, 5, 9, 4], dtype=dtype), "old": np.ones(4, dtype=dtype)}
    compare(kernel, 1, buffers)


@pytest.mark.parametrize("features", [("float_atomics",), ("none",)], ids=["native", "emulated"])
def test_float_additions_by_many_threads(features):
    b = Builder("total", block=64)
    x = b.buffer("x", t.F32)
    b.emit(n.Atomic("add", element(x, 0), (constant(1.0, t.F32),)))
    b.emit(n.Atomic("max", element(x, 1), (cast(global_index(), t.F32),)))
    array = np.zeros(2, dtype=np.float32)
    run(print_wgsl(b.kernel(), options(*features)), 4, {"x": array})
    assert array.tolist() == [256.0, 255.0]


def test_native_float_atomics_are_used():
    b = Builder("total", block=64)
    x = b.buffer("x", t.F32)
    b.emit(n.Atomic("add", element(x, 0), (constant(1.0, t.F32),)))
    code = print_wgsl(b.kernel(), options())
    assert "atomicAdd(&x[0], 1.0)" in code.source
    assert "float_atomics" in code.requires
    array = np.zeros(1, dtype=np.float32)
    run(code, 4, {"x": array})
    assert array[0] == 256


def test_64_bit_atomics_by_feature():
    b = Builder("wide", block=8)
    x = b.buffer("x", t.I64)
    b.emit(n.Atomic("add", element(x, 0), (cast(builtin("thread_idx"), t.I64),)))
    compare(b.kernel(), 2, {"x": np.array([2**40], dtype=np.int64)})
    with pytest.raises(UnsupportedOnTarget, match="int64_atomics"):
        print_wgsl(b.kernel(), options("int64"))


# --- barriers, fences, subgroups -----------------------------------------------------------------


def test_barriers_name_the_memory_in_use():
    b, out = counter(block=8)
    tile = b.memory("shared", "tile", t.I32, 8)
    i = b.let("i", builtin("thread_idx"))
    b.store(tile, i, load(out, i))
    b.emit(n.Barrier())
    b.store(out, i, load(tile, sub(7, i)))
    source = compare(b.kernel(), 1, {"out": np.arange(8, dtype=np.int32)})
    assert "workgroupBarrier();" in source


@pytest.mark.parametrize("guarded", [False, True])
def test_a_barrier_that_hangs_on_a_shared_value(guarded):
    b, out = counter(block=8)
    going = b.memory("shared", "going", t.I32, 1)
    i = b.let("i", builtin("thread_idx"))
    checks = (check(0, constant(1, t.I32)),) if guarded else ()
    more = b.let("more", constant(1, t.I32))
    with b.repeat(less(0, more)):
        with b.when(equal(i, 0)):
            b.store(going, 0, select(less(load(out, 7), 3), constant(1, t.I32), 0))
        b.emit(n.Barrier())
        b.assign(more, load(going, 0, checks))
        b.emit(n.Barrier())
        b.store(out, i, add(load(out, i), 1))
        b.emit(n.Barrier())
    array = np.zeros(8, dtype=np.int32)
    source = compare(b.kernel(), 1, {"out": array})
    assert array.tolist() == [4] * 8
    assert "workgroupUniformLoad" not in source  # naga's; `compare` shows Tint its own


def test_only_barriers_need_uniform_loads():
    b, out = counter(block=8)
    tile = b.memory("shared", "tile", t.I32, 8)
    b.store(tile, builtin("thread_idx"), constant(2, t.I32))
    b.emit(n.Barrier())
    b.let("first", load(tile, 0))
    second = b.let("second", load(tile, 1))
    with b.when(less(second, 5)):
        b.emit(n.Barrier())
    b.store(out, builtin("thread_idx"), second)
    source = print_wgsl(b.kernel(), WgslOptions("tint")).source
    assert source.count("workgroupUniformLoad") == 1
    assert tint_error(source) is None


def test_a_device_wide_fence_is_refused():
    b, _ = counter()
    b.emit(n.Fence())
    with pytest.raises(UnsupportedOnTarget, match="no memory fence for the device"):
        print_wgsl(b.kernel(), options())


def test_subgroups_are_refused_without_the_feature():
    b, out = counter(block=8)
    result = b.variable("result", t.I32)
    b.emit(n.Subgroup("sum", (builtin("thread_idx"),), result))
    b.store(out, 0, result)
    with pytest.raises(UnsupportedOnTarget, match="'subgroups'"):
        print_wgsl(b.kernel(), options("none"))


SUBGROUP_CASES = [
    (op, type)
    for op in n.SUBGROUP_OPERATIONS
    if op not in ("active", "match_any", "match_all")  # are made of others before
    for type in (t.I32, t.F32, t.U8, t.F16, t.F64, t.BOOL, t.Vector(t.F32, 2))
    if (type == t.BOOL) == (op in ("vote_all", "vote_any", "ballot"))
    and not (type == t.F64 and not op.startswith("shuffle"))
    and not (op in ("and", "or", "xor") and type not in (t.I32, t.U8))
]


@pytest.mark.parametrize(("op", "type"), SUBGROUP_CASES, ids=str)
def test_subgroup_operations(op, type):
    """The software adapter's subgroups have 8 lanes; a block of 20 leaves a part of one."""
    scalar = type.element if isinstance(type, t.Vector) else type
    b = Builder("exchange", block=20)
    kind = t.U32 if op == "ballot" else type
    out = b.buffer("out", kind)
    i = b.let("i", builtin("thread_idx"))
    number = binary("mod", mul(add(i, 3), 5), 7)
    single = less(number, 4) if type == t.BOOL else cast(number, scalar)
    value = n.Construct((single, single), type) if isinstance(type, t.Vector) else single
    amount = binary("mod", i, 5) if op == "shuffle" else constant(3, t.I32)
    operands = (value, amount) if n.SUBGROUP_OPERATIONS[op] == 2 else (value,)
    result = b.variable("result", kind)
    b.emit(n.Subgroup(op, operands, result))
    b.store(out, i, result)
    kernel = b.kernel()
    from tests.unit.codegen.test_wgsl_operations import NUMPY

    shape = (20, 2) if isinstance(type, t.Vector) else (20,)
    dtype = np.uint32 if op == "ballot" else NUMPY[scalar.name]
    expected = {"out": np.zeros(shape, dtype=dtype)}
    evaluate(kernel, 1, expected, subgroup_size=8)
    got = {"out": np.zeros(shape, dtype=dtype)}
    code = print_wgsl(kernel, options())
    run(code, 1, got)
    np.testing.assert_array_equal(got["out"], expected["out"])
    if scalar != t.F64:
        tint = WgslOptions("tint", frozenset({"subgroups", "float16"}), LIMITS)
        assert tint_error(print_wgsl(kernel, tint).source) is None


def test_lanes_and_a_pinned_size():
    b, out = counter(block=16)
    i = b.let("i", builtin("thread_idx"))
    b.store(out, i, add(mul(builtin("lane"), 100), builtin("subgroup_size")))
    limits = Limits(subgroup_size=8, max_shared_memory=32768)
    code = print_wgsl(b.kernel(), options(limits=limits))
    array = np.zeros(16, dtype=np.int32)
    run(code, 1, {"out": array})
    assert array.tolist() == [lane * 100 + 8 for lane in [*range(8), *range(8)]]


# --- grids and blocks ----------------------------------------------------------------------------


def test_blocks_of_three_axes():
    b = Builder("axes", block=(2, 3, 2))
    out = b.buffer("out", t.I32)
    gx, gy, gz = (global_index(axis) for axis in range(3))
    width, height = mul(builtin("grid_dim"), 2), mul(builtin("grid_dim", 1), 3)
    at = add(gx, mul(width, add(gy, mul(height, gz))))
    b.store(out, at, add(mul(gz, 100), add(mul(gy, 10), gx)))
    compare(b.kernel(), (2, 2, 1), {"out": np.zeros(48, dtype=np.int32)})


@pytest.mark.parametrize("dispatch", [(4, 3, 1), (4, 1, 5), (2, 3, 2), (3, 7, 1), (1, 1, 13)])
def test_folded_grids(dispatch):
    b = Builder("folded", block=2)
    out = b.buffer("out", t.I32)
    block = add(builtin("block_idx"), mul(builtin("grid_dim"), builtin("block_idx", 1)))
    at = add(mul(block, 2), builtin("thread_idx"))
    b.store(
        out, at, add(load(out, at), add(mul(builtin("block_idx", 1), 10), builtin("block_idx")))
    )
    expected = {"out": np.zeros(24, dtype=np.int32)}
    evaluate(b.kernel(), (4, 3), expected)
    code = print_wgsl(b.kernel(), options(folded=True))
    assert code.folded
    assert [slot.parameter.origin for slot in code.layout.slots] == [("grid", k) for k in range(3)]
    got = {"out": np.zeros(24, dtype=np.int32)}
    run(code, (4, 3), got, dispatch=dispatch)
    assert got["out"].tolist() == expected["out"].tolist()


def test_blocks_behind_the_first_2_to_the_32():
    """One workgroup that is placed there: launching all before it takes too long."""
    b = Builder("far", block=1)
    out = b.buffer("out", t.I32)
    for axis in range(3):
        b.store(out, axis, add(builtin("block_idx", axis), load(out, axis)))
    code = print_wgsl(b.kernel(), options(folded=True))
    grid = Dim3(70_000, 70_000)
    device = fold_grid(grid, LIMITS.max_grid)
    assert device is not None
    for place, block in [
        ((34_999, 46_665, 2), [69_999, 69_999, 0]), ((1, 46_666, 1), [35_001, 46_666, 0]),
        ((17, 46_666, 2), [-1, -1, -1]),
    ]:  # fmt: skip
        head, start, body = code.source.partition("    let block_idx")
        body = body.replace("workgroup_id", "here").replace("num_workgroups", "device")
        here = f"    let here = vec3<u32>{place};\n    let device = vec3<u32>{tuple(device)};\n"
        source = head + here + start + body
        got = {"out": np.zeros(3, np.int32)}
        run(replace(code, source=source), grid, got, dispatch=(1, 1, 1))
        assert got["out"].tolist() == [max(part, 0) for part in block]


def test_too_many_threads_and_buffers_are_refused_with_numbers():
    b, out = counter(block=512)
    b.store(out, 0, constant(1, t.I32))
    with pytest.raises(CompileError, match=r"512 x 1 x 1 threads.*at most 256"):
        print_wgsl(b.kernel(), WgslOptions())
    b = Builder("many", block=1)
    for k in range(9):
        b.store(b.buffer(f"x{k}", t.I32), 0, constant(1, t.I32))
    with pytest.raises(CompileError, match=r"takes 9 arrays.*at most 8"):
        print_wgsl(b.kernel(), WgslOptions())


def test_fewer_invocations_after_fission():
    b, out = counter(block=64)
    with b.loop("item", 0, 64, parallel=True) as k:
        b.store(out, k, mul(k, 2))
    code = print_wgsl(b.kernel(), options(workgroup=Dim3(1, 1, 1)))
    assert (code.block, code.workgroup) == (Dim3(64, 1, 1), Dim3(1, 1, 1))
    assert "@workgroup_size(1, 1, 1)" in code.source


def test_invocations_along_another_axis_than_the_block():
    b = Builder("lanes", block=(1, 64))
    out = b.buffer("out", t.I32)
    with b.loop("item", 0, 8, parallel=True) as k:
        b.store(out, add(mul(builtin("thread_idx"), 8), k), add(builtin("block_dim", 1), k))
    code = print_wgsl(b.kernel(), options(workgroup=Dim3(8, 1, 1)))
    array = np.zeros(64, dtype=np.int32)
    run(code, 1, {"out": array})
    assert array.tolist() == [64 + k for k in range(8)] * 8


def test_scalars_of_every_kind_travel_in_the_parameter_block():
    b = Builder("scalars", block=1)
    values = {
        "bool": True, "i8": -7, "u8": 200, "i16": -300, "u16": 60000, "i32": -5, "u32": 2**31,
        "i64": -(2**40), "u64": 2**50, "f16": 0.5, "bf16": 1.5, "f32": 0.25, "f64": 1e100,
    }  # fmt: skip
    out = b.buffer("out", t.F64)
    for k, (name, type) in enumerate(t.SCALARS.items()):
        b.store(out, k, cast(b.parameter(f"p.{name}", type), t.F64))
    array = np.zeros(13)
    given = {f"p.{name}": values[name] for name in t.SCALARS}
    compare(b.kernel(), 1, {"out": array}, **given)
    assert array.tolist() == [float(values[name]) for name in t.SCALARS]
