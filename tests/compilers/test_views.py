"""Memory seen as other types, as printed in CUDA C++ and Metal, run on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import cpp_programs as programs
from tests.support.cpp_kernels import Batch
from tests.support.ir_evaluator import run as evaluate
from tests.support.view_kernels import PACKED, SPACES, view_buffers, view_kernel
from treadle.ir import types as t

PAIRS = [
    (t.F32, t.Vector(t.F32, 4)), (t.Vector(t.F32, 4), t.F32), (t.U32, t.U8), (t.U8, t.U32),
    (t.F16, t.Vector(t.U32, 4)), (t.I64, t.U32), (t.BOOL, t.Vector(t.F32, 3)), (PACKED, t.I16),
]  # fmt: skip


@pytest.mark.parametrize("language", ["cuda", "msl"])
def test_views(language):
    kernels = {
        f"{own} as {other} in {space}": (view_kernel(own, other, space), own, other)
        for number, (own, other) in enumerate(PAIRS)
        for space in (SPACES[number % 3],)
    }
    codes = {name: programs.printed(one[0], language) for name, one in kernels.items()}
    batch = Batch(language, codes)
    for name, (kernel, own, other) in kernels.items():
        buffers = view_buffers(own, other, 2)
        wanted = {key: array.copy() for key, array in buffers.items()}
        evaluate(kernel, 2, wanted)
        batch.run(name, 2, buffers)
        for key, array in buffers.items():
            np.testing.assert_array_equal(array, wanted[key], f"{name}: {key}")
