"""What `treadle devices` says of a device."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

from treadle.runtime.devices import Device, missing
from treadle.runtime.devices import hints as known_hints


def describe(device: Device) -> dict[str, Any]:
    """A device as plain data, for JSON."""
    facts = dataclasses.asdict(device.info)
    del facts["traits"]  # what treadle decides by, of no use to others
    facts["features"] = sorted(device.features)
    facts["through"] = f"{device.info.api} {device.driver}".strip() or device.info.backend
    return facts


def hints(found: list[Device]) -> list[str]:
    """One line each for what would make the list longer."""
    lines = known_hints()
    lines += [f"No {name} device: {why}." for name, why in missing().items()]
    nvidia = any("nvidia" in device.vendor.lower() for device in found)
    if shutil.which("nvidia-smi") and not nvidia:
        lines.append(
            "This machine seems to have an NVIDIA GPU, but not its Vulkan driver, which WebGPU "
            "needs (on Debian and Ubuntu: the libnvidia-gl package of your driver's version)."
        )
    return lines
