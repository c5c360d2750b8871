"""What CUDA C++ asks of the IR, on every device: kernels written as IR."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.ir_kernels import ir_kernel
from treadle.runtime import settings

WILD = """
kernel wild trusting {
  buffer x: i32
  parameter x.size: i32 from ("size", "x")
  var i: i32 = thread_idx.x
  x[i; i in x.size] = x[i + 1; (i + 1) in x.size] + 1
}
"""


def test_a_trusting_kernel_reports_in_check_mode(
    device: td.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "check", True)
    x = td.asarray(np.arange(5, dtype=np.int32))
    with pytest.raises(td.errors.LaunchError, match="index 5 is outside x of extent 5"):
        ir_kernel(WILD)[1, 5](x)


def test_a_trusting_kernel_is_right_within_its_arrays(device: td.Device) -> None:
    x = td.asarray(np.arange(33, dtype=np.int32))
    ir_kernel(WILD.replace("i + 1; (i + 1) in", "i ^ 0; (i ^ 0) in"))[1, 33](x)
    np.testing.assert_array_equal(x.numpy(), np.arange(1, 34))
