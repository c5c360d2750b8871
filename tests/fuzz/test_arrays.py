"""Drawn array programs must do on every device what NumPy does: lazily, and one by one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.arrays import Instruction, NumPy, Sizes, Treadle, outputs
from treadle.runtime import settings

# In CI the same programs are drawn each time: half of the usual number compiles for long enough.
_EXAMPLES = drawing.default.max_examples * 2 // 5
_numbers = st.integers(0, 9999)
_programs = st.lists(
    st.builds(Instruction, st.integers(0, 30), _numbers, _numbers, _numbers), max_size=40
)


@cache
def _devices() -> tuple[td.Device, ...]:
    others = [td.device(name) for name in ("cuda", "dawn") if td.is_available(name)]
    return td.device("cpu"), td.device("webgpu"), *others


@pytest.mark.timeout(3000)  # for all the examples together
@drawing(max_examples=_EXAMPLES)
@given(_numbers, _programs)
def test_tensors_do_what_numpy_does(seed: int, program: list[Instruction]) -> None:
    with np.errstate(over="ignore"):
        expected = outputs(NumPy(), seed, program)
    for device in _devices():
        for eager in (False, True):
            settings.eager = eager
            try:
                found = outputs(Treadle(device), seed, program)
            finally:
                settings.eager = False
            for number, (one, other) in enumerate(zip(expected, found, strict=True)):
                what = f"output {number} on {device.id}, {'one by one' if eager else 'fused'}"
                assert other.dtype == one.dtype, what
                np.testing.assert_array_equal(other, one, err_msg=what)


_sizes = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 9))


@pytest.mark.timeout(3000)
@drawing(max_examples=_EXAMPLES)
@given(_numbers, _programs, st.lists(_sizes, min_size=2, max_size=5))
def test_sizes_may_change(seed: int, program: list[Instruction], sizes: list[Sizes]) -> None:
    """Plans are shared by the same program with other sizes, and the same ones again."""
    for each in (*sizes, sizes[0]):
        with np.errstate(over="ignore"):
            expected = outputs(NumPy(), seed, program, each)
        for device in _devices():
            found = outputs(Treadle(device), seed, program, each)
            for number, (one, other) in enumerate(zip(expected, found, strict=True)):
                what = f"output {number} on {device.id} for sizes {each} of {sizes}"
                assert other.dtype == one.dtype, what
                np.testing.assert_array_equal(other, one, err_msg=what)
