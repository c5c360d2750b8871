"""A kernel whose block runs on few lanes does what it did with a thread for everyone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.flow_programs import draw
from tests.support.ir_evaluator import run
from treadle.ir.parser import from_text
from treadle.ir.passes.fission import FissionOptions, fission
from treadle.ir.passes.predicate import predicate_returns
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

BLOCKS = [
    (1, 1, 1),
    (7, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (64, 1, 1),
    (8, 4, 1),
    (4, 3, 2),
    (1, 40, 1),
]
LANES = [1, 16, 64]


def results(kernel, count, *, invocations=None, reverse=False, grid=2):
    rng = np.random.default_rng(5)
    buffers = {
        "x": rng.integers(-50, 50, count * grid + 64).astype(np.int32),
        "few": np.array([3, 0, 2, 1, -1, 5, 2, 4], np.int32),
        "out": np.zeros(count * grid, np.int32),
        "fout": np.zeros(count * grid, np.float32),
        "counts": np.zeros(4, np.int32),
    }
    run(kernel, grid, buffers, {"n": 3, "k": 2}, invocations=invocations, reverse=reverse)
    return {name: array.tobytes() for name, array in buffers.items()}


@settings(max_examples=settings.default.max_examples // 4)
@given(
    data=st.data(),
    block=st.sampled_from(BLOCKS),
    lanes=st.sampled_from(LANES),
    sync=st.booleans(),
    warps=st.booleans(),
    returns=st.booleans(),
)
def test_drawn_kernels_do_the_same_on_fewer_lanes(data, block, lanes, sync, warps, returns) -> None:
    def pick(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    text = draw(pick, block, sync=sync, warps=warps, returns=returns)
    kernel = from_text(text)
    verify(kernel)
    count = kernel.block.count
    expected = results(kernel, count)
    predicated = predicate_returns(kernel)
    verify(predicated)
    check_barriers(predicated)
    assert results(predicated, count) == expected, text
    split = fission(predicated, FissionOptions(lanes))
    verify(split.kernel)
    assert split.workgroup.count <= max(lanes, 1)
    for reverse in (False, True):
        got = results(split.kernel, count, invocations=split.workgroup, reverse=reverse)
        assert got == expected, text + to_text(split.kernel)
