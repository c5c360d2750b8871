"""What is special about small devices, on the smallest: a lane runs up to 64 threads of a block."""

from __future__ import annotations

from tests.device.kernels import test_blocks, test_control
from tests.device.launching import test_launch
from tests.limits.device_suite import device_suite

THREADS = 16

globals().update(
    device_suite(
        test_blocks,
        test_control,
        test_launch,
        without={
            "test_tiled_matmul": "the software driver unrolls 16 rounds of 16 steps for a minute",
        },
    )
)
