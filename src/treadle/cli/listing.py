"""What `treadle devices` says of a device."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
from typing import Any

from treadle.runtime.devices import Device


def describe(device: Device) -> dict[str, Any]:
    """A device as plain data, for JSON."""
    facts = dataclasses.asdict(device.info)
    facts["features"] = sorted(device.features)
    facts["through"] = f"{device.info.api or 'LLVM'} {device.driver}".strip()
    return facts


def hints(found: list[Device]) -> list[str]:
    """One line each for what would make the list longer."""
    lines = []
    if not any(device.backend == "webgpu" for device in found):
        from treadle.runtime.devices import _backend

        lines.append(f"No WebGPU device: {_backend('webgpu').why_none()}")
    nvidia = any("nvidia" in device.vendor.lower() for device in found) or shutil.which(
        "nvidia-smi"
    )
    if nvidia and not importlib.util.find_spec("cuda"):
        lines.append(
            "An NVIDIA card is here. WebGPU runs on it; CUDA needs `pip install treadle[cuda]`."
        )
    return lines
