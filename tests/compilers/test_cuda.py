"""CUDA C++ as it is printed: NVRTC takes it, and run on the CPU it does what the IR says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import treadle as td
from tests.support import cpp_programs as programs
from tests.support import ir_programs
from tests.support.cpp_drawn import drawn_batch, wrong_drawn
from tests.support.cpp_kernels import Batch
from tests.support.cpp_math import REFERENCES, math_batch, wrong_math
from tests.support.cut_kernels import LIFE, UNTIL
from tests.support.memory_kernels import CASES
from tests.support.nvrtc import nvrtc_error
from tests.support.operations import all_operations
from tests.support.printing import print_cuda
from treadle.codegen.pipeline import lower, print_code
from treadle.codegen.records import Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import types as t
from treadle.ir.parser import from_text

ARCHITECTURES = ["sm_75", "sm_80", "sm_90"]
TARGET = Target("cuda", "sm_75")


@pytest.mark.parametrize("name", list(t.SCALARS))
def test_nvrtc_takes_every_operation(name):
    code = print_cuda(all_operations(t.SCALARS[name]), {}, TARGET, folded=False)
    architecture = ARCHITECTURES[list(t.SCALARS).index(name) % 3]
    assert nvrtc_error(code.source, architecture) is None


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (name, 2 + (number + turn) % 3)  # each type of two lengths, each length of many types
        for number, name in enumerate(["i8", "u16", "i32", "u64", "f16", "bf16", "f32", "f64"])
        for turn in (0, 1)
    ],
)
def test_nvrtc_takes_every_operation_on_vectors(name, count):
    code = print_cuda(all_operations(t.SCALARS[name], count), {}, TARGET, folded=False)
    assert nvrtc_error(code.source, ARCHITECTURES[count - 2]) is None


def test_nvrtc_takes_a_kernel_that_is_cut_at_barriers_of_the_grid():
    cut = (td.cuda_module(LIFE).life, td.cuda_module(UNTIL).kernel("until", td.f32))
    for kernel, count in zip(cut, (3, 4), strict=True):
        text = kernel.source("cuda", block=64)
        assert text.count("__global__") == count
        assert nvrtc_error(text, "sm_75") is None


def test_nvrtc_takes_tables_and_matrices():
    """Items of a local memory of arrays, and structs of vectors."""

    @td.kernel
    def read(ms: td.Array[td.mat3x2[td.f32]], out: td.Array[td.f32]):
        i = td.grid(1)
        found = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)[i % 9] + ms[i][i % 3, i % 2]
        out[i] = found + (ms[i].T @ ms[0]).inverse()[0, 1]

    assert nvrtc_error(read.source("cuda", block=64), "sm_75") is None
    assert "table[0][8] = 9.0f" in read.source("msl", block=64)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("block", [64, 40])
def test_nvrtc_takes_operations_with_masks(architecture, block):
    lines = [f"kernel masked block({block}, 1, 1) {{"]
    lines += [f"  buffer x_{name}: {name}" for name in t.SCALARS]
    lines += ["  var m: u32", "  var p: bool", "  m = subgroup active"]
    for name, type in t.SCALARS.items():
        value, result = f"x_{name}[thread_idx.x]", f"r_{name}"
        lines += [f"  var {result}: {name} = {value}"]
        for op in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor"):
            lines += [f"  {result} = subgroup {op} {result}, 3 mask m"]
        if type == t.BOOL:
            lines += [f"  p = subgroup {op} {value} mask m" for op in ("vote_all", "vote_any")]
            lines += [f"  m = subgroup ballot {value} mask m"]
        else:
            lines += [f"  m = subgroup {op} {value} mask m" for op in ("match_any", "match_all")]
        reductions = (
            ("sum", "min", "max", "and", "or", "xor") if type.is_integer else ("sum", "max")
        )
        for op in () if type == t.BOOL else reductions:
            lines += [f"  {result} = subgroup {op} {result} mask m"]
        lines += [f"  x_{name}[thread_idx.x] = {result}"]
    kernel = from_text("\n".join([*lines, "  barrier subgroup mask m", "}"]))
    target = Target("cuda", architecture, Limits(1024, Dim3(1024, 1024, 64)))
    options = Options(Dim3(block), tuple((b.name, k) for k, b in enumerate(kernel.buffers)))
    source = print_code(lower(kernel, options, target), options, target).source
    assert nvrtc_error(source, architecture) is None
    assert ("__reduce_add_sync" in source) == (architecture == "sm_90")


@pytest.mark.parametrize("seed", range(9))
def test_nvrtc_takes_random_kernels(seed):
    if seed % 3:
        kernel = ir_programs.random_kernel(100 + seed)
    else:
        kernel = next(iter(programs.flow_kernels(range(100 + seed, 101 + seed)).values()))
    code = programs.printed(kernel, "cuda", folded=seed % 2 > 0)
    assert nvrtc_error(code.source, ARCHITECTURES[seed % 3]) is None


@pytest.mark.parametrize("name", ["norm", "erff", "max", "printf", "y0", "threadIdx", "double"])
def test_kernels_may_have_names_that_cuda_has(name):
    code = print_cuda(
        from_text(f"kernel {name} block(1, 1, 1) {{\n  buffer y0: i32\n\n  y0[0] = 1\n}}"),
        {}, TARGET, folded=False,
    )  # fmt: skip
    assert "    y0[0] = 1;" in code.source  # a parameter's name may be a function's
    assert nvrtc_error(code.source, "sm_75") is None


# --- what the text does --------------------------------------------------------------------------


@cache
def operations():
    return programs.operation_batch("cuda", list(t.SCALARS.values()))


@pytest.mark.parametrize("name", list(t.SCALARS))
def test_every_operation_gives_the_right_bits(name):
    batch, expressions = operations()
    wrong = programs.wrong_operations(batch, t.SCALARS[name], expressions[name])
    assert not wrong, "\n".join(wrong)


VECTOR_TYPES = [type for type in list(t.SCALARS.values()) if type != t.BOOL]


@cache
def vector_operations():
    return programs.vector_batch("cuda", VECTOR_TYPES)


@pytest.mark.parametrize("name", [type.name for type in VECTOR_TYPES])
def test_every_operation_on_vectors_gives_the_right_bits(name):
    batch, expressions = vector_operations()
    count = 2 + VECTOR_TYPES.index(t.SCALARS[name]) % 3
    wrong = programs.wrong_operations(batch, t.SCALARS[name], expressions[name], count)
    assert not wrong, "\n".join(wrong)


@cache
def memory():
    return programs.memory_batch("cuda")


@pytest.mark.parametrize("name", list(CASES))
def test_memory_is_bytes_with_the_layout_of_c(name):
    assert not programs.wrong_memory(memory(), name), memory().codes[name].source


def test_random_kernels_do_what_the_ir_says():
    batch, kernels = programs.random_batch("cuda", range(25))
    for name, kernel in kernels.items():
        found = programs.random_outputs(batch, name)
        assert found == ir_programs.outputs(kernel), batch.codes[name].source


def test_threads_that_meet_do_what_the_ir_says():
    batch, kernels = programs.flow_batch("cuda", range(25))
    for name, kernel in kernels.items():
        wrong = programs.wrong_flow(batch, name, kernel)
        assert not wrong, f"{wrong}\n{batch.codes[name].source}"


def test_the_library_of_mathematics_keeps_its_bounds():
    batch = math_batch("cuda")
    wrong = [text for name in REFERENCES for text in wrong_math(batch, name)]
    assert not wrong, "\n".join(wrong)


def test_drawn_kernels_do_what_they_do_as_plain_python():
    batch, drawn = drawn_batch("cuda", range(14))
    for name, one in drawn.items():
        assert not wrong_drawn(batch, name, one), f"{one.program}\n{one.code.source}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_more_drawn_kernels(first):
    batch, drawn = drawn_batch("cuda", range(first, first + 100))
    for name, one in drawn.items():
        assert not wrong_drawn(batch, name, one), f"{one.program}\n{one.code.source}"


COUNT_BLOCKS = """
kernel count_blocks block(4, 1, 1) {
  buffer out: i32

  atomic add out[block_idx.x + (3 * (block_idx.y + (2 * block_idx.z)))], 1
}
"""


@pytest.mark.parametrize("launched", [(3, 2, 1), (3, 1, 2), (3, 3, 1)])
def test_a_folded_grid_has_every_block_once(launched):
    code = programs.printed(from_text(COUNT_BLOCKS), "cuda", folded=True)
    out = np.zeros(6, np.int32)
    Batch("cuda", {"k": code}).run("k", (3, 2, 1), {"out": out}, launched=launched)
    assert out.tolist() == [4] * 6
