"""What drivers of graphics cards are free to do, and software drivers do not."""

from __future__ import annotations

import treadle as td


def may_rearrange(device: td.Device) -> bool:
    """Whether a device's driver may take sums apart, and one zero for the other."""
    return device.backend == "webgpu" and device.kind in ("discrete", "integrated")
