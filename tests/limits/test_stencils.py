"""Stencils on devices that run 16 threads of a block: their blocks become smaller."""

from __future__ import annotations

from tests.device.stencils import test_stencils
from tests.limits.device_suite import device_suite

THREADS = 16

globals().update(device_suite(test_stencils))
