"""Metal as it is printed, run on the CPU as C++: it does what the IR says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support import cpp_programs as programs
from tests.support import ir_programs
from tests.support.cpp_drawn import drawn_batch, wrong_drawn
from tests.support.cpp_kernels import Batch
from tests.support.cpp_math import REFERENCES, math_batch, wrong_math
from tests.support.diverged_warps import BODIES, NUMBER, arrays, text_of
from tests.support.ir_evaluator import run
from tests.support.memory_kernels import CASES
from treadle.ir import types as t
from treadle.ir.parser import from_text

TYPES = [type for type in t.SCALARS.values() if type != t.F64]


LACKING = frozenset({"i64", "u64", "f64"})  # of atomics

# --- what the text does --------------------------------------------------------------------------


@cache
def operations():
    return programs.operation_batch("msl", TYPES)


@pytest.mark.parametrize("name", [type.name for type in TYPES])
def test_every_operation_gives_the_right_bits(name):
    batch, expressions = operations()
    wrong = programs.wrong_operations(batch, t.SCALARS[name], expressions[name])
    assert not wrong, "\n".join(wrong)


VECTOR_TYPES = [type for type in TYPES if type != t.BOOL]


@cache
def vector_operations():
    return programs.vector_batch("msl", VECTOR_TYPES)


@pytest.mark.parametrize("name", [type.name for type in VECTOR_TYPES])
def test_every_operation_on_vectors_gives_the_right_bits(name):
    batch, expressions = vector_operations()
    count = 2 + VECTOR_TYPES.index(t.SCALARS[name]) % 3
    wrong = programs.wrong_operations(batch, t.SCALARS[name], expressions[name], count)
    assert not wrong, "\n".join(wrong)


@cache
def memory():
    return programs.memory_batch("msl", LACKING)


@pytest.mark.parametrize("name", [k for k in CASES if not CASES[k].needs & LACKING])
def test_memory_is_bytes_with_the_layout_of_c(name):
    assert not programs.wrong_memory(memory(), name), memory().codes[name].source


def test_random_kernels_do_what_the_ir_says():
    batch, kernels = programs.random_batch("msl", range(25))
    for name, kernel in kernels.items():
        found = programs.random_outputs(batch, name)
        assert found == ir_programs.outputs(kernel), batch.codes[name].source


def test_threads_that_meet_do_what_the_ir_says():
    batch, kernels = programs.flow_batch("msl", range(25))
    for name, kernel in kernels.items():
        wrong = programs.wrong_flow(batch, name, kernel)
        assert not wrong, f"{wrong}\n{batch.codes[name].source}"


def test_the_library_of_mathematics_keeps_its_bounds():
    batch = math_batch("msl")
    wrong = [text for name in REFERENCES for text in wrong_math(batch, name)]
    assert not wrong, "\n".join(wrong)


def test_drawn_kernels_do_what_they_do_as_plain_python():
    batch, drawn = drawn_batch("msl", range(14))
    for name, one in drawn.items():
        assert not wrong_drawn(batch, name, one), f"{one.program}\n{one.code.source}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_more_drawn_kernels(first):
    batch, drawn = drawn_batch("msl", range(first, first + 100))
    for name, one in drawn.items():
        assert not wrong_drawn(batch, name, one), f"{one.program}\n{one.code.source}"


COUNT_BLOCKS = """
kernel count_blocks block(4, 1, 1) {
  buffer out: i32

  atomic add out[block_idx.x + (3 * (block_idx.y + (2 * block_idx.z)))], 1
}
"""


@pytest.mark.parametrize("launched", [(3, 2, 1), (2, 2, 2), (1, 3, 3)])
def test_a_folded_grid_has_every_block_once(launched):
    code = programs.printed(from_text(COUNT_BLOCKS), "msl", folded=True)
    out = np.zeros(6, np.int32)
    Batch("msl", {"k": code}).run("k", (3, 2, 1), {"out": out}, launched=launched)
    assert out.tolist() == [4] * 6


@cache
def parted():
    kernels = {name: from_text(text_of(name, block=True)) for name in BODIES}
    return Batch("msl", {k: programs.printed(one, "msl") for k, one in kernels.items()}), kernels


@pytest.mark.parametrize("name", BODIES)
def test_warps_that_part(name):
    batch, kernels = parted()
    expected, found = arrays(), arrays()
    run(kernels[name], 1, expected, {"n": NUMBER})
    batch.run(name, 1, found, {"n": NUMBER})
    np.testing.assert_array_equal(found["y"], expected["y"])
