"""The door to CUDA devices."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from treadle.core.errors import DeviceLost, DeviceNotFound
from treadle.core.limits import DeviceInfo, Limits
from treadle.drivers.base import FORKED, Backend
from treadle.drivers.cuda import library as driver
from treadle.drivers.cuda import properties

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_log = logging.getLogger("treadle")


class CudaBackend(Backend):
    """NVIDIA's cards of this machine, through their driver."""

    name = "cuda"

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The cards, in the driver's order."""
        library = driver.load()
        if isinstance(library, str):
            return []
        try:
            cards = properties.list_cards(library)
            return [properties.describe(library, card) for card in cards if card.supported]
        except driver.Unavailable as reason:
            _log.warning("no CUDA device can be used: %s", reason)
            return []

    def why_none(self) -> str:
        """Why there are no devices, and what would make some appear."""
        library = driver.load()
        if isinstance(library, str):
            return library
        try:
            cards = properties.list_cards(library)
        except driver.Unavailable as reason:
            return str(reason)
        if not cards:
            return driver.no_device_reason()
        oldest = properties.OLDEST_ARCHITECTURE
        found = ", ".join(f"{card.name} (sm_{card.architecture})" for card in cards)
        return (
            f"the NVIDIA cards here are too old: {found}; CUDA kernels need sm_{oldest} (Volta) or "
            'newer. WebGPU may reach them: td.device("webgpu")'
        )

    def hint(self) -> str | None:
        """One line if a card is here and only packages are missing."""
        return driver.missing_package_hint()

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> CudaDevice:
        """Open a listed device; with `limits` it says that it has those."""
        # Here, so that where no card is opened the rest of the driver is not imported.
        from treadle.drivers.cuda.device import AFTER_A_FAULT, CudaDevice

        library = driver.load()
        if isinstance(library, str):
            raise DeviceNotFound(f"{info.id} cannot be opened: {library}")
        try:
            for card in properties.list_cards(library):
                if info.id == f"cuda:{card.ordinal}":
                    if fault := library.faults.get(card.ordinal):
                        after = "" if fault == FORKED else f". {AFTER_A_FAULT}"
                        raise DeviceLost(f"{info.id} cannot be opened: {fault}{after}")
                    return CudaDevice(
                        library, card, info if limits is None else replace(info, limits=limits)
                    )
        except driver.Unavailable as reason:
            raise DeviceNotFound(f"{info.id} cannot be opened: {reason}") from None
        raise DeviceNotFound(
            f"there is no {info.id} ({info.name}) any more; list the devices again"
        )
