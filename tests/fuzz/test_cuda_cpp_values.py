"""Drawn kernels in CUDA C++ compute on every device what C says, to the last bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.cuda_expressions import LANES, drawing_from

# What is drawn compares unsigned numbers with 0, and has statements without effect.
pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")


@cache
def devices() -> tuple[td.Device, ...]:
    others = [td.device(name) for name in ("cuda", "dawn") if td.is_available(name)]
    return td.device("cpu"), td.device("webgpu"), *others


# A kernel has a dozen statements and is compiled for each device.
@settings(max_examples=settings.default.max_examples // 5)
@pytest.mark.timeout(3000)  # for all the examples together
@given(st.binary(min_size=200, max_size=900))
@example(b"")
def test_devices_agree_with_c(tape: bytes) -> None:
    drawing = drawing_from(tape)
    try:
        kernel = td.cuda_module(drawing.text).drawn
        for device in devices():
            out = td.zeros(drawing.words.shape, dtype=td.int32, device=device)
            given_ = [td.asarray(one, device=device) for one in (drawing.integers, drawing.floats)]
            kernel[1, LANES](*given_, out)
            np.testing.assert_array_equal(out.numpy(), drawing.words, device.id)
    except Exception as error:
        error.add_note(drawing.text)
        raise
