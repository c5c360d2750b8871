"""Memory in its many shapes, run on the software adapter and compared with the evaluator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.ir_evaluator import run as evaluate
from tests.support.printing import print_wgsl
from tests.support.tint import tint_error
from tests.support.wgsl import naga_error, options, run
from treadle.codegen.wgsl import WgslOptions
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import (
    Builder,
    add,
    builtin,
    check,
    constant,
    element,
    extract,
    global_index,
    item,
    less,
    load,
    member,
    mul,
)
from treadle.ir.parser import from_text

VEC2, VEC3, VEC4 = (t.Vector(t.F32, count) for count in (2, 3, 4))
PARTICLE = t.Struct(
    "Particle",
    (
        t.Field("position", VEC3),
        t.Field("kind", t.U8),
        t.Field("mass", t.F16),
        t.Field("tags", t.Array(t.I16, 3)),
        t.Field("velocity", VEC2),
    ),
)
TIGHT = t.Struct("Tight", (t.Field("a", t.U16), t.Field("b", t.U8)))  # 4 bytes, aligned to 2
LONG = t.Struct(
    "Long", (t.Field("a", t.U16), t.Field("b", t.Vector(t.U64, 2)), t.Field("c", t.I64))
)
MIXED = t.Struct("Mixed", (t.Field("count", t.I32), t.Field("total", t.F64)))


def compare(
    kernel: n.Kernel,
    grid: int,
    buffers: dict[str, np.ndarray[Any, Any]],
    parameters: dict[str, Any] | None = None,
    *features: str,
    **more: Any,
) -> str:
    """Run a kernel on the device and in the evaluator; the bytes of every buffer must agree."""
    expected = {name: array.copy() for name, array in buffers.items()}
    evaluate(kernel, grid, expected, parameters)
    code = print_wgsl(kernel, options(*features, **more))
    run(code, grid, buffers, parameters)
    for name, array in buffers.items():
        assert array.tobytes() == expected[name].tobytes(), (name, array, expected[name])
    if not code.requires - {"float16", "subgroups"}:
        tint = WgslOptions("tint", code.requires, more.get("limits", options().limits))
        assert tint_error(print_wgsl(kernel, tint).source) is None
    return code.source


def bytes_of(type: t.Type, count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Memory for `count` values: every scalar a small number, padding 0."""
    drawn = np.random.default_rng(seed)
    data = bytearray(t.size_of(type) * count)
    for i in range(count):
        for at, leaf in t.leaves(type):
            value = drawn.integers(0, 100)
            number = np.array(value, dtype=_numpy(leaf))
            start = t.size_of(type) * i + at
            data[start : start + leaf.bits // 8] = number.tobytes()
    return np.frombuffer(data, np.uint8).copy()


def _numpy(type: t.Scalar) -> Any:
    special = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "bool": np.bool_}
    kind = {"int": "i", "uint": "u", "float": "f"}
    return special.get(type.name) or np.dtype(f"{kind[type.kind]}{type.bits // 8}")


def copier(type: t.Type, guarded: bool) -> n.Kernel:
    """y[n - 1 - i] = x[i], whole values."""
    b = Builder("copy", block=8)
    x, y = b.buffer("x", type), b.buffer("y", type)
    count = b.parameter("count", t.I32)
    i = b.let("i", global_index())
    checks = (check(i, count),) if guarded else ()
    back = n.Binary("sub", n.Binary("sub", count, constant(1, t.I32), t.I32), i, t.I32)
    checks_back = (check(back, count),) if guarded else ()
    if guarded:
        b.store(y, back, load(x, i, checks), checks_back)
    else:
        with b.when(less(i, count)):
            b.store(y, back, load(x, i))
    return b.kernel()


TYPES = [
    *t.SCALARS.values(),
    VEC2, VEC3, VEC4, t.Vector(t.U8, 4), t.Vector(t.U8, 3), t.Vector(t.I16, 2), t.Vector(t.F16, 4),
    t.Vector(t.BF16, 4), t.Vector(t.I16, 4), t.Vector(t.F16, 3), t.Vector(t.F64, 2),
    t.Vector(t.I64, 3), t.Vector(t.BOOL, 2),
    PARTICLE, TIGHT, MIXED,
]  # fmt: skip


@pytest.mark.parametrize("guarded", [False, True], ids=["trusted", "guarded"])
@pytest.mark.parametrize("type", TYPES, ids=str)
def test_copies_of_every_type(type, guarded):
    x, y = bytes_of(type, 13), bytes_of(type, 13, seed=1)
    compare(copier(type, guarded), 2, {"x": x, "y": y}, {"count": 13})


@pytest.mark.parametrize("type", [t.F16, t.Vector(t.F16, 4), PARTICLE, TIGHT], ids=str)
def test_copies_without_native_halves(type):
    x, y = bytes_of(type, 13), bytes_of(type, 13, seed=1)
    source = compare(copier(type, True), 2, {"x": x, "y": y}, {"count": 13}, "none")
    assert "enable f16" not in source
    assert ("array<vec2<u32>>" in source) == (type == t.Vector(t.F16, 4))


def test_a_guarded_load_gives_zero_and_a_guarded_store_is_dropped():
    b = Builder("edges", block=8)
    x, y = b.buffer("x", t.F32), b.buffer("y", t.F32)
    size = b.parameter("x.size", t.I32, "size", "x")
    i = b.let("i", n.Binary("sub", global_index(), constant(3, t.I32), t.I32))
    b.store(y, add(i, 3), load(x, i, (check(i, size),)))
    b.store(x, i, constant(7.0, t.F32), (check(i, constant(2, t.I32)),))
    x_array = np.arange(1, 5, dtype=np.float32)
    y_array = np.full(16, 9, dtype=np.float32)
    compare(b.kernel(), 2, {"x": x_array, "y": y_array})
    assert y_array.tolist() == [0, 0, 0, 1, 2, 3, 4, *[0] * 9]
    assert x_array.tolist() == [7, 7, 3, 4]


def test_parts_of_structs():
    b = Builder("parts", block=4)
    x = b.buffer("x", PARTICLE)
    i = b.let("i", global_index())
    place = element(x, i)
    b.assign(
        member(member(place, "position"), "y"),
        add(load(member(member(place, "position"), "x")), 1.0),
    )
    b.assign(member(place, "kind"), n.Cast(i, t.U8))
    tags = member(place, "tags")
    three = constant(3, t.I32)
    last = item(
        tags, n.Binary("mod", i, three, t.I32), (check(n.Binary("mod", i, three, t.I32), three),)
    )
    b.assign(last, add(load(item(tags, 0)), load(item(tags, i, (check(i, three),)))))
    b.assign(member(place, "mass"), add(load(member(place, "mass")), constant(0.5, t.F16)))
    compare(b.kernel(), 2, {"x": bytes_of(PARTICLE, 8)})


def test_struct_values_in_variables():
    b = Builder("values", block=4)
    x = b.buffer("x", TIGHT)
    i = b.let("i", global_index())
    value = b.let("value", load(x, i))
    b.assign(member(value, "a"), add(extract(value, "a"), constant(65535, t.U16)))
    b.assign(member(value, "b"), extract(load(x, 0), "b"))
    chosen = n.Select(less(i, constant(3, t.I32)), value, load(x, i), TIGHT)
    b.store(x, i, chosen)
    b.store(x, i, n.Construct((extract(load(x, i), "a"), n.Cast(i, t.U8)), TIGHT))
    compare(b.kernel(), 1, {"x": bytes_of(TIGHT, 4)})


def test_reinterpreted_buffers():
    """float4 loads of a float buffer, bytes of a word, words of bytes."""
    b = Builder("reinterpret", block=4)
    x, y = b.buffer("x", t.F32), b.buffer("y", t.U8)
    i = b.let("i", global_index())
    four = load(element(x, i, type=VEC4))
    b.assign(element(x, i, type=VEC4), n.Binary("mul", four, four, VEC4))
    first = load(element(x, mul(i, 4)))
    b.assign(element(y, i, type=t.F32), add(first, 1.0))
    b.assign(element(y, add(mul(i, 4), 3), type=t.U8), n.Cast(i, t.U8))
    compare(b.kernel(), 1, {"x": bytes_of(t.F32, 16), "y": bytes_of(t.U8, 16)})


def test_vectors_bind_as_vectors():
    b = Builder("wide", block=4)
    x, y = b.buffer("x", VEC4), b.buffer("y", VEC4)
    i = b.let("i", global_index())
    b.store(y, i, load(x, i))
    b.assign(member(element(y, i), "z"), load(member(element(x, i), "w")))
    source = compare(b.kernel(), 1, {"x": bytes_of(VEC4, 4), "y": bytes_of(VEC4, 4)})
    assert "var<storage, read> x: array<vec4<f32>>;" in source
    assert "y[i] = x[i];" in source


def test_one_array_given_twice():
    b = Builder("twice", block=8)
    x, y = b.buffer("x", t.F32), b.buffer("y", t.F32)
    i = b.let("i", global_index())
    b.store(y, i, add(load(x, i), load(y, i)))
    code = print_wgsl(b.kernel(), options(bindings={"x": 0, "y": 0}))
    (binding,) = code.bindings
    assert binding.buffers == ("x", "y")
    assert binding.writes
    data = np.arange(8, dtype=np.float32)
    run(code, 1, {"x": data})
    assert data.tolist() == [2.0 * k for k in range(8)]


@pytest.mark.parametrize("type", [t.F32, t.U8, VEC3], ids=str)
def test_indices_of_64_bits(type):
    b = Builder("long", block=8)
    x, y = b.buffer("x", type), b.buffer("y", type)
    size = b.parameter("size", t.I64)
    i = b.let("i", n.Cast(global_index(), t.I64))
    back = n.Binary("sub", n.Binary("sub", size, constant(1, t.I64), t.I64), i, t.I64)
    b.store(y, back, load(x, i, (check(i, size),)), (check(back, size),))
    compare(b.kernel(), 2, {"x": bytes_of(type, 13), "y": bytes_of(type, 13, 1)}, {"size": 13})


def test_bytes_that_neighbours_write():
    b = Builder("neighbours", block=64)
    x = b.buffer("x", t.U8)
    i = b.let("i", global_index())
    b.store(x, i, n.Cast(mul(i, 3), t.U8))
    x_array = np.zeros(256, dtype=np.uint8)
    source = compare(b.kernel(), 4, {"x": x_array})
    assert "array<atomic<u32>>" in source


@pytest.mark.parametrize("type", [t.F32, t.I8, t.F16, t.BOOL, VEC3, PARTICLE, t.I64], ids=str)
@pytest.mark.parametrize("space", ["shared", "local"])
def test_memories_of_the_kernel_itself(space, type):
    b = Builder("own", block=8)
    x = b.buffer("x", type)
    tile = b.memory(space, "tile", type, 8)
    i = b.let("i", builtin("thread_idx"))
    seven = constant(7, t.I32)
    back = n.Binary("sub", seven, i, t.I32) if space == "shared" else i
    b.store(tile, i, load(x, i))
    b.emit(n.Barrier())
    b.store(x, i, load(tile, back, (check(back, constant(8, t.I32)),)))
    compare(b.kernel(), 1, {"x": bytes_of(type, 8)})


def test_shared_memory_seen_as_other_types():
    b = Builder("views", block=8)
    x = b.buffer("x", t.U32)
    tile = b.memory("shared", "tile", t.U8, 32)
    i = b.let("i", builtin("thread_idx"))
    with b.loop("k", 0, 4) as k:
        at = add(mul(i, 4), k)
        b.store(tile, at, n.Cast(at, t.U8))
    b.emit(n.Barrier())
    b.store(x, i, load(element(tile, n.Binary("sub", constant(7, t.I32), i, t.I32), type=t.U32)))
    compare(b.kernel(), 1, {"x": np.zeros(8, dtype=np.uint32)})


def test_shared_memory_is_packed_when_it_would_not_fit():
    b = Builder("packed", block=8)
    x = b.buffer("x", t.U8)
    tile = b.memory("shared", "tile", t.U8, 16000)
    i = b.let("i", builtin("thread_idx"))
    b.store(tile, add(i, 15992), load(x, i))
    b.emit(n.Barrier())
    b.store(x, i, load(tile, n.Binary("sub", constant(15999, t.I32), i, t.I32)))
    limits = Limits(max_shared_memory=16384)
    source = compare(b.kernel(), 1, {"x": bytes_of(t.U8, 8)}, limits=limits)
    assert "var<workgroup> tile: array<atomic<u32>, 4000>;" in source


def test_too_much_shared_memory_is_refused_with_numbers():
    b = Builder("large", block=8)
    x = b.buffer("x", t.F32)
    tile = b.memory("shared", "tile", t.F32, 8193)
    b.store(tile, 0, load(x, 0))
    with pytest.raises(CompileError, match=r"takes 32784 bytes; this device has 32768"):
        print_wgsl(b.kernel(), options())


def test_dynamic_shared_memory():
    b = Builder("dynamic", block=8)
    x = b.buffer("x", t.F32)
    tile = b.memory("shared", "tile", t.F32, None)
    i = b.let("i", builtin("thread_idx"))
    b.store(tile, i, load(x, i))
    b.store(x, i, mul(load(tile, i), 2.0))
    code = print_wgsl(b.kernel(), options(dynamic_shared_bytes=64))
    assert "var<workgroup> tile: array<f32, 16>;" in code.source
    assert code.shared_bytes == 64
    with pytest.raises(CompileError, match="gives it 0 bytes"):
        print_wgsl(b.kernel(), options())


def test_types_that_the_device_lacks_are_refused_by_name():
    with pytest.raises(UnsupportedOnTarget, match="the feature 'float64'"):
        print_wgsl(copier(t.F64, True), options("none"))


@pytest.mark.parametrize("type", [t.I64, t.U64, t.Vector(t.I64, 2), LONG], ids=str)
def test_copies_without_64_bit_integers(type):
    """What lies in padding may be lost."""
    x, y = bytes_of(type, 13), bytes_of(type, 13, seed=1)
    source = compare(copier(type, True), 2, {"x": x, "y": y}, {"count": 13}, "none")
    assert "i64" not in source
    assert ("array<vec2<u32>>" in source) == isinstance(type, t.Scalar)


def test_every_compiler_accepts_names_of_all_kinds():
    b = Builder("main", block=4)
    x, y = b.buffer("array", t.F32), b.buffer("f32", t.F32)
    i = b.let("let", global_index())
    v = b.let("__v.1", load(x, i))
    w = b.let("_", load(y, i))
    b.let("is_nan", v)
    u = b.let("load_array", load(x, i, (check(i, constant(4, t.I32)),)))
    b.store(y, i, add(add(v, w), u))
    kernel = b.kernel()
    source = compare(kernel, 1, {"array": bytes_of(t.F32, 4), "f32": bytes_of(t.F32, 4)})
    assert naga_error(source, "main") is None


# --- seen as vectors and as less -----------------------------------------------------------------


def seen(body: str, **more: Any) -> str:
    """The text of a kernel over f32 arrays x and y of 32 elements, and a shared `part`."""
    kernel = from_text(f"""
kernel seen block(8) {{
  buffer x: f32
  buffer y: f32
  shared part: f32[32]
  var t: i32 = thread_idx.x
{body}
}}
""")
    return compare(kernel, 1, {"x": bytes_of(t.F32, 32), "y": bytes_of(t.F32, 32, 1)}, **more)


def test_loads_of_vectors_and_of_numbers_come_from_vectors():
    source = seen("""
  y@vec4<f32>[t] = x@vec4<f32>[t]
  y@vec4<f32>[t; t in 4] = x@vec4<f32>[7 - t; t in 6]
  y@vec4<f32>[t] = vec4<f32>{x[t * 3], y[t * 4], x[t; t in 5], (x@vec2<f32>[t])->y}
""")
    assert "var<storage, read> x: array<vec4<f32>>;" in source
    assert "var<storage, read_write> y: array<vec4<f32>>;" in source
    assert "y[t] = x[t];" in source


def test_numbers_of_other_types_come_from_vectors_too():
    source = seen("""
  part@vec4<u32>[t] = x@vec4<u32>[t]
  barrier block
  var bytes: u8 = part@u8[(t * 5) + 3]
  var half: f16 = part@f16[t + 9]
  y@vec2<f32>[t] = vec2<f32>{f32(bytes), f32(half)}
  y@vec4<i32>[t + 4; t in 4] = vec4<i32>{bitcast<i32>(part[t]), t, part@i32[t + 1], 7}
  y@vec2<f32>[t] = vec2<f32>{(y@vec2<f32>[t])->y, y[t * 2]}
""")
    assert "var<workgroup> part: array<vec4<u32>, 8>;" in source
    assert "array<vec2<u32>>" in source  # y: stores of eight bytes


def test_a_stored_number_keeps_words():
    """A vector's part is not stored to: that may store all of it, over what others stored."""
    source = seen("  y@vec4<f32>[t] = x@vec4<f32>[t]\n  y[t * 4] = x[t]")
    assert "x: array<vec4<f32>>" in source
    assert "y: array<f32>" in source


def test_a_barrier_may_hang_on_a_part_of_a_vector():
    kernel = from_text("""
kernel waits block(8) {
  buffer x: u32
  buffer y: u32
  shared part: u32[32]
  var t: i32 = thread_idx.x
  part@vec4<u32>[t] = x@vec4<u32>[t]
  barrier block
  var many: u32 = part[5]
  if (many > 2:u32) {
    barrier block
    y[t] = (part@vec4<u32>[7 - t])->z
  }
}
""")
    compare(kernel, 1, {"x": bytes_of(t.U32, 32), "y": bytes_of(t.U32, 32, 1)})


def test_a_memory_seen_as_another_type_alone_is_as_long_in_bytes():
    source = seen("""
  part@vec4<f32>[t] = x@vec4<f32>[t]
  barrier block
  y@vec4<f32>[t] = part@vec4<f32>[7 - t]
""")
    assert "var<workgroup> part: array<vec4<f32>, 8>;" in source
