"""How a card does: NVIDIA's management library (NVML), where it is installed.

It is nobody's duty to have it: whatever it cannot tell is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.once import once


@once
def _library() -> Any:
    """The `pynvml` module, initialized, or None."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def driver_version() -> str:
    """The driver's version, "580.95.05", or ""."""
    nvml = _library()
    if nvml is None:
        return ""
    try:
        return _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return ""


def figures(bus: str) -> dict[str, Any]:
    """What is known now of the card at a place on the bus: `utilization` (of 1), `temperature`
    (°C), `power` (W), `used` (bytes, all processes), `processes` (bytes of each process)."""
    nvml = _library()
    if nvml is None:
        return {}
    try:
        card = nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
    except nvml.NVMLError:
        return {}
    questions: dict[str, Callable[[], Any]] = {
        "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100,
        "temperature": lambda: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU),
        "power": lambda: nvml.nvmlDeviceGetPowerUsage(card) / 1000,
        "used": lambda: nvml.nvmlDeviceGetMemoryInfo(card).used,
        "processes": lambda: {
            process.pid: process.usedGpuMemory
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(card)
        },
    }
    known: dict[str, Any] = {}
    for name, question in questions.items():
        try:
            known[name] = question()
        except nvml.NVMLError:  # a virtual machine or a container may not be told
            continue
    return known


def _text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw
