"""Tint sees that barriers are reached by all, whatever the kernel and however its block is run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.flow_programs import draw
from tests.support.tint import tint_error
from treadle.codegen import pipeline
from treadle.codegen.records import Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.limits import Limits
from treadle.ir.parser import from_text

BLOCKS = [(7, 1, 1), (33, 1, 1), (64, 1, 1), (8, 4, 1), (4, 3, 2), (1, 40, 1)]


@pytest.mark.timeout(600)  # for all the examples together
@settings(max_examples=settings.default.max_examples // 4)
@given(
    data=st.data(),
    block=st.sampled_from(BLOCKS),
    lanes=st.sampled_from([4, 16, 256]),
    warps=st.booleans(),
    returns=st.booleans(),
)
def test_barriers_of_drawn_kernels(data, block, lanes, warps, returns) -> None:
    def pick(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    text = draw(pick, block, sync=True, warps=warps, returns=returns)
    kernel = from_text(text)
    limits = Limits(max_threads_per_block=lanes, max_block=Dim3(lanes, lanes, min(lanes, 64)))
    target = Target("wgsl", "tint", limits, frozenset())
    slots = tuple((buffer.name, slot) for slot, buffer in enumerate(kernel.buffers))
    options = Options(Dim3(*block), slots)
    try:
        lowered = pipeline.lower(kernel, options, target)
    except CompileError:  # what we do not find uniform ourselves is refused
        return
    source = pipeline.print_code(lowered, options, target).source
    assert tint_error(source) is None, f"{source}\n{text}"
