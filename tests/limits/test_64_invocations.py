"""The device suite, but for the values of single operations, with 64 invocations a workgroup."""

from __future__ import annotations

from tests.device.kernels import test_blocks, test_control
from tests.device.launching import test_launch, test_memory, test_streams
from tests.limits.device_suite import device_suite

THREADS = 64

globals().update(
    device_suite(
        test_blocks,
        test_control,
        test_launch,
        test_memory,
        test_streams,
        without={
            "test_round_trip": "copies at scale know nothing of these limits",
        },
    )
)
