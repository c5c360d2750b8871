"""`torch.accelerator`: the best device that is not the CPU, whatever its kind: an NVIDIA card, or
a GPU through WebGPU. A renderer in software is none."""

from __future__ import annotations

from typing import Any

from treadle.runtime.devices import Device
from treadle.runtime.devices import devices as find_all
from treadle.torch.devices import device as Shown
from treadle.torch.devices import place, stand_in


def _best() -> Device | None:
    # Devices are listed best first, and what is no faster than the CPU stands behind it.
    instead = stand_in()
    best = find_all()[0] if instead is None else instead
    return None if best.traits.host_memory else best


def _place(device: Any) -> Device:
    if device is None:
        shown = current_accelerator()
        return place("cpu" if shown is None else shown)
    if isinstance(device, int):
        best = _best()
        return place("cpu" if best is None else Shown(best.backend, device))
    return place(device)


def is_available() -> bool:
    """Whether there is a device faster than the CPU.

    >>> import treadle.torch as torch
    >>> torch.accelerator.is_available() == (torch.accelerator.device_count() > 0)
    True
    """
    return _best() is not None


def device_count() -> int:
    """The number of devices of the accelerator's kind."""
    best = _best()
    if best is None:
        return 0
    kind = Shown(best).type
    return 1 if stand_in() is not None else sum(Shown(each).type == kind for each in find_all())


def current_accelerator(check_available: bool = False) -> Shown | None:
    """The accelerator's device, without a number, or None if there is none."""
    best = _best()
    if best is None:
        return None
    return Shown("cuda" if stand_in() is not None else best.backend)


def current_device_index() -> int:
    """The number of the device that the accelerator is. RuntimeError if there is none."""
    best = _best()
    if best is None:
        raise RuntimeError("no accelerator is available: torch.accelerator.is_available() says so")
    return int(best.id.partition(":")[2] or 0)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done everything."""
    _place(device).synchronize()


def empty_cache() -> None:
    """Give memory that is kept for the next tensors back."""
    best = _best()
    if best is not None:
        best.pool.trim()
