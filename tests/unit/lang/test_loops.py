"""Loops, lowered and run on the reference evaluator."""

from __future__ import annotations

import numpy as np

from tests.support import ir_evaluator
from treadle.core import dtypes as td
from treadle.ir.signature import ArrayArgument, Signature
from treadle.ir.types import I32
from treadle.ir.verify import verify
from treadle.lang.decorators import kernel
from treadle.lang.types import Array


@kernel
def leave_early(out: Array[td.i32]):
    for k in range(10):
        if out[k] > 3:
            break
        out[k] = k + 1


def test_a_loop_over_a_range_whose_variable_is_used_inside_only():
    lowered = leave_early.lower(Signature((ArrayArgument(I32, 1),))).kernel
    verify(lowered)
    out = np.array([0, 1, 2, 9, 0], np.int32)
    ir_evaluator.run(lowered, buffers={"out": out})
    assert out.tolist() == [1, 2, 3, 9, 0]
