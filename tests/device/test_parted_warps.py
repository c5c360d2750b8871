"""Subgroup operations with masks where the threads of a warp have parted, on every device: they
compute what the evaluator of the IR says."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.ir_evaluator import run
from tests.support.ir_kernels import ir_kernel
from tests.support.parted_warps import BLOCK, BODIES, NUMBER, arrays, text_of


@pytest.mark.parametrize("name", BODIES)
def test_parted_warps(device: td.Device, name: str) -> None:
    if name == "a loop of its own length" and device.id == "ptx:2":
        pytest.skip("NVIDIA's compiler makes two votes of one; cards wait for both, not so ours")
    kernel = ir_kernel(text_of(name))
    expected = arrays()
    run(kernel.kernel, 1, expected, {"n": NUMBER}, block=BLOCK)
    x, y = (td.asarray(array) for array in arrays().values())
    kernel[1, BLOCK](x, y, NUMBER)
    np.testing.assert_array_equal(y.numpy(), expected["y"])
