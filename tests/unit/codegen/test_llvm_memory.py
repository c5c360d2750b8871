"""Memory as the CPU sees it: atomics, layouts, shared bindings, grids, and Arm's machine code."""

from __future__ import annotations

from contextlib import closing

import ml_dtypes
import numpy as np
import pytest

from tests.support.cpu_kernels import compiled, run
from tests.support.printing import print_llvm
from treadle.codegen.llvm import VECTORIZED, LlvmOptions
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir.parser import from_text
from treadle.ir.printer import to_text

LANES = [1, 16]
ATOMIC_TYPES = {
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "u8": np.uint8,
    "i16": np.int16, "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


def atomic_kernel(op: str, name: str, space: str = "total") -> str:
    return f"""kernel test block(40, 1, 1) {{
      buffer x: {name}
      buffer total: {name}
      shared s: {name}[1]
      s[0] = total[0]
      for t: i32 in range(0, 40, 1) parallel {{
        atomic {op} {space}[0], x[t]
      }}
      if ({"true" if space == "s" else "false"}) {{
        total[0] = s[0]
      }}
    }}"""


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("space", ["total", "s"])
@pytest.mark.parametrize("name", list(ATOMIC_TYPES))
@pytest.mark.parametrize("op", ["add", "sub", "min", "max"])
def test_atomic_arithmetic(op, name, space, lanes):
    dtype = ATOMIC_TYPES[name]
    x = (np.arange(40) * 7 % 13).astype(dtype)
    total = np.array([100], dtype)
    result = run(atomic_kernel(op, name, space), [x, total], options=LlvmOptions(lanes=lanes))[1]
    wide = x.astype(np.float64)
    expected = {
        "add": 100 + wide.sum(), "sub": 100 - wide.sum(), "min": wide.min(), "max": 100.0,
    }[op]  # fmt: skip
    with np.errstate(all="ignore"):
        wanted = np.array(expected).astype(np.int64).astype(dtype)
    if name == "bf16" and op in ("add", "sub"):  # rounded at every step
        steps = total[0]
        for value in x:
            steps = steps + value if op == "add" else steps - value
        wanted = steps
    np.testing.assert_array_equal(result[0], wanted)


@pytest.mark.parametrize("name", ["i32", "u64", "u8"])
@pytest.mark.parametrize("op", ["and", "or", "xor", "exchange"])
def test_atomic_bits(op, name):
    dtype = ATOMIC_TYPES[name]
    x = (np.arange(40) * 5 + 3).astype(dtype)
    result = run(atomic_kernel(op, name), [x, np.array([0x55], dtype)])[1]
    expected = {
        "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
    }  # fmt: skip
    first = np.concatenate([np.array([0x55], dtype), x])
    assert result[0] == (x[-1] if op == "exchange" else expected[op](first))


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_atomic_extremes_keep_nan(op, name):
    x = np.linspace(-3, 3, 40).astype(ATOMIC_TYPES[name])
    x[17] = np.nan
    result = run(atomic_kernel(op, name), [x, np.array([0.5], ATOMIC_TYPES[name])])[1]
    assert np.isnan(result[0].astype(np.float64))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", ["i32", "u64", "f32", "bf16"])
def test_compare_and_swap(name, lanes):
    text = f"""kernel test block(32, 1, 1) {{
      buffer x: {name}
      buffer old: {name}
      for t: i32 in range(0, 32, 1) parallel {{
        var was: {name}
        was = atomic cas x[t], {name}(t % 3), {name}(50)
        old[t] = was
      }}
    }}"""
    x = (np.arange(32) % 4).astype(ATOMIC_TYPES[name])
    after, old = run(text, [x, np.zeros_like(x)], options=LlvmOptions(lanes=lanes))
    np.testing.assert_array_equal(old, x)
    hit = np.arange(32) % 3 == np.arange(32) % 4
    np.testing.assert_array_equal(after, np.where(hit, 50, x.astype(np.float64)).astype(x.dtype))


@pytest.mark.parametrize("lanes", LANES)
def test_checked_atomic(lanes):
    text = """kernel test block(32, 1, 1) {
      buffer x: i32
      buffer old: i32
      parameter n: i32 from ("size", "x")
      for t: i32 in range(0, 32, 1) parallel {
        var was: i32 = -5
        was = atomic add x[t; t in n], 10
        old[t] = was
      }
    }"""
    x = np.arange(1, 33, dtype=np.int32)
    after, old = run(text, [x, np.zeros_like(x)], [20], options=LlvmOptions(lanes=lanes))
    np.testing.assert_array_equal(after, np.where(np.arange(32) < 20, x + 10, x))
    np.testing.assert_array_equal(old, np.where(np.arange(32) < 20, x, 0))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(
    ("seen", "dtype"),
    [("u8", np.uint8), ("f32", np.float32), ("u64", np.uint64), ("bf16", ml_dtypes.bfloat16)],
)
def test_bytes_seen_as_another_type(seen, dtype, lanes):
    text = f"""kernel test block(32, 1, 1) {{
      buffer x: u32
      buffer y: {seen}
      for t: i32 in range(0, 32, 1) parallel {{
        y[t] = x@{seen}[t]
      }}
    }}"""
    x = np.random.default_rng(5).integers(0, 1 << 30, 64, dtype=np.uint32)
    result = run(text, [x, np.zeros(32, dtype)], options=LlvmOptions(lanes=lanes))[1]
    np.testing.assert_array_equal(result.view(np.uint8), x.view(dtype)[:32].view(np.uint8))


def test_two_parameters_may_be_one_array():
    text = """kernel test block(64, 1, 1) {
      buffer x: i32
      buffer y: i32
      for t: i32 in range(0, 64, 1) parallel {
        x[t] = x[t] + 1
        y[t] = y[t] * 2
      }
    }"""
    options = LlvmOptions(bindings=(("x", 0), ("y", 0)))
    code = print_llvm(from_text(text), options)
    assert [binding.buffers for binding in code.bindings] == [("x", "y")]
    assert code.bindings[0].writes
    x = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(run(text, [x], options=options)[0], (x + 1) * 2)


STREAMED = """kernel test block(80, 1, 1) {
  streamed buffer x: f64
  buffer y: f64
  for t: i32 in range(0, 77, 1) parallel {
    x[t + 3] = y[t] * 2.0
  }
}"""


def test_streamed_results_pass_the_caches_where_they_are_aligned():
    kernel = from_text(STREAMED)
    assert from_text(to_text(kernel)) == kernel
    assert kernel.buffers[0].streamed
    source = print_llvm(kernel).source
    assert source.count("!nontemporal") == 1  # of the whole vectors; the remainder has a mask
    assert source.count("align 64, !nontemporal") == 1
    assert "fence seq_cst\n  ret void" in source
    x, y = np.full(90, np.nan), np.random.default_rng().standard_normal(77)
    for shift in (3, 8):
        moved = from_text(STREAMED.replace("t + 3", f"t + {shift}"))
        wanted = x.copy()
        wanted[shift : shift + 77] = y * 2
        np.testing.assert_array_equal(run(moved, [x, y])[0], wanted)


def test_results_that_are_read_too_are_not_streamed():
    text = STREAMED.replace("t + 3", "t")
    source = print_llvm(from_text(text), LlvmOptions(bindings=(("x", 0), ("y", 0)))).source
    assert "!nontemporal" not in source
    assert "fence" not in source


@pytest.mark.parametrize("grid", [(3, 5, 4), (7, 1, 1), (1, 1, 6)])
def test_blocks_of_a_grid(grid):
    text = """kernel test block(2, 1, 1) {
      buffer x: i32
      var at: i32 = block_idx.x + (grid_dim.x * (block_idx.y + (grid_dim.y * block_idx.z)))
      x[at] = (block_idx.x + (block_idx.y * 100)) + ((block_idx.z + (block_dim.x * 100)) * 10000)
    }"""
    count = int(np.prod(grid))
    result = run(text, [np.full(count, -1, np.int32)], grid=grid)[0]
    x, y, z = grid
    expected = [
        i + j * 100 + k * 10000 + 2000000 for k in range(z) for j in range(y) for i in range(x)
    ]
    np.testing.assert_array_equal(result, expected)


def test_narrow_parameters_travel_widened():
    text = """kernel test block(1, 1, 1) {
      buffer x: f64
      parameter a: i8 from ("value", "a")
      parameter b: f16 from ("value", "b")
      parameter c: bool from ("value", "c")
      parameter d: u64 from ("value", "d")
      parameter e: bf16 from ("value", "e")
      x[0] = f64(a)
      x[1] = f64(b)
      x[2] = f64(c)
      x[3] = f64(d)
      x[4] = f64(e)
    }"""
    result = run(text, [np.zeros(5)], [-7, 1.5, True, 1 << 40, -0.25])[0]
    np.testing.assert_array_equal(result, [-7, 1.5, 1, 1 << 40, -0.25])


def test_dynamic_shared_memory():
    text = """kernel test block(4, 1, 1) {
      buffer x: i32
      shared s: i32[?]
      for t: i32 in range(0, 4, 1) parallel {
        s[t + 60] = t
      }
      for u: i32 in range(0, 4, 1) parallel {
        x[u] = s[63 - u]
      }
    }"""
    options = LlvmOptions(shared_bytes=256)
    code = print_llvm(from_text(text), options)
    assert code.shared_bytes == 256
    np.testing.assert_array_equal(
        run(text, [np.zeros(4, np.int32)], options=options)[0], [3, 2, 1, 0]
    )


def test_too_large_a_frame_is_refused():
    text = """kernel test block(1, 1, 1) {
      buffer x: i32
      local huge: i32[4000000]
      huge[0] = 1
      x[0] = huge[0]
    }"""
    with pytest.raises(UnsupportedOnTarget, match=r"16000000 bytes.*`huge`"):
        print_llvm(from_text(text))


def test_what_passes_should_have_replaced_is_refused():
    text = """kernel test block(4, 1, 1) {
      buffer x: i32
      x[thread_idx.x] = 1
      barrier block
    }"""
    with pytest.raises(CompileError, match="thread_idx"):
        print_llvm(from_text(text))


STENCIL = """kernel test block(64, 1, 1) {
      buffer x: f32
      buffer y: f16
      buffer z: i64
      buffer count: f32
      parameter n: i32 from ("size", "x")
      for t: i32 in range(0, 64, 1) parallel {
        var i: i32 = (block_idx.x * 64) + t
        var a: f32 = x[i; i in n] * 2.0
        while (a > 1.0) {
          a = a * 0.5
          z[i % 7] = i64(a) / i64(i + 1)
        }
        y[i; i in n] = f16(a)
        atomic add count[0], a
      }
    }"""


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-macosx14"])
def test_arm_machine_code(triple, lanes):
    assembly = arm_assembly(triple, STENCIL, lanes)
    assert ".4s" in assembly or lanes == 1  # vector registers of four floats
    assert ("stnp" in arm_assembly(triple, STREAMED, lanes)) == (lanes > 1)


def arm_assembly(triple: str, text: str, lanes: int) -> str:
    import llvmlite.binding as llvm

    from treadle.drivers.cpu.compiler import optimize
    from treadle.drivers.cpu.llvm_calls import Calls, Module

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic")
    code = print_llvm(from_text(text), LlvmOptions(lanes=lanes))
    assert code.source.startswith(VECTORIZED) == (lanes > 1)
    with closing(Module(Calls(), code.source)) as module:
        module.set_target(triple, str(machine.target_data))
        optimize(module, machine, code.source)
        image = module.emit(machine, as_object=True)
        assembly = module.emit(machine, as_object=False).decode()
    assert image[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")
    return assembly


def test_compile_errors_show_the_module():
    from dataclasses import replace

    from tests.support.cpu_kernels import device

    code = compiled(STENCIL).code
    broken = replace(code, source=code.source.replace("fmul", "fnul", 1))
    with pytest.raises(CompileError, match="LLVM refuses what kernel test became") as caught:
        device().compile(broken)
    assert "fnul" in (caught.value.generated or "")
