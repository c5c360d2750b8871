"""Metal as it is printed, run on the CPU as C++: it does what the IR says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support import cpp_programs as programs
from tests.support import ir_programs
from tests.support.cpp_kernels import Batch
from tests.support.operations import all_operations
from treadle.ir import types as t
from treadle.ir.parser import from_text

TYPES = [type for type in t.SCALARS.values() if type != t.F64]


@cache
def vectors():
    """Every operation on vectors, compiled."""
    codes = {}
    for name in ("i8", "u16", "i32", "u64", "f16", "bf16", "f32"):
        for count in (2, 3, 4):
            kernel = all_operations(t.SCALARS[name], count)
            codes[f"{name}x{count}"] = programs.printed(kernel, "msl")
    return Batch("msl", codes)


def test_every_operation_on_vectors_compiles():
    assert len(vectors().codes) == 21


# --- what the text does --------------------------------------------------------------------------


@cache
def operations():
    return programs.operation_batch("msl", TYPES)


@pytest.mark.parametrize("name", [type.name for type in TYPES])
def test_every_operation_gives_the_right_bits(name):
    batch, expressions = operations()
    wrong = programs.wrong_operations(batch, t.SCALARS[name], expressions[name])
    assert not wrong, "\n".join(wrong)


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


COUNT_BLOCKS = """
kernel count_blocks block(4, 1, 1) {
  buffer out: i32

  atomic add out[block_idx.x + (3 * (block_idx.y + (2 * block_idx.z)))], 1
}
"""


@pytest.mark.parametrize("launched", [(6, 1, 1), (4, 2, 1), (1, 3, 3)])
def test_a_folded_grid_has_every_block_once(launched):
    code = programs.printed(from_text(COUNT_BLOCKS), "msl", folded=True)
    out = np.zeros(6, np.int32)
    Batch("msl", {"k": code}).run("k", (3, 2, 1), {"out": out}, launched=launched)
    assert out.tolist() == [4] * 6
