"""The door to WebGPU devices."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from treadle.core.environment import is_on
from treadle.core.errors import DeviceNotFound
from treadle.core.limits import DeviceInfo, Limits
from treadle.drivers.base import Backend
from treadle.drivers.webgpu_native import adapters
from treadle.drivers.webgpu_native.dawn import DAWN
from treadle.drivers.webgpu_native.provider import Provider
from treadle.drivers.webgpu_native.wgpu_native import WGPU_NATIVE

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

_log = logging.getLogger("treadle")
_LLVMPIPE = (
    "%s is Mesa's llvmpipe, which ends the loops of a thread after 65,535 rounds in all, without "
    'an error: results of longer loops are wrong there. The device "cpu" has no such limit.'
)


class WebgpuBackend(Backend):
    """WebGPU devices of this machine, through one of the libraries."""

    def __init__(self, provider: Provider = WGPU_NATIVE) -> None:
        self.provider = provider
        self.name = provider.name

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The devices, best first: one entry per physical device.

        With `api` ("vulkan", "metal", "d3d12", "gl"): all that this interface reaches. With
        `power` "low" integrated GPUs come before discrete ones. ValueError for other values.
        """
        try:
            found = adapters.list_adapters(
                self.provider, api=choice.get("api"), power=choice.get("power", "high")
            )
        except (ImportError, OSError):
            return []
        return [adapter.info for adapter in found]

    def why_none(self) -> str:
        """Why there are no devices, and what would make some appear."""
        try:
            adapters.list_adapters(self.provider)
        except (ImportError, OSError) as error:
            return (
                f"the {self.provider.package} package could not be loaded ({error}); "
                f"`{self.provider.install}` brings it for this platform"
            )
        return self.provider.no_driver()

    def open(
        self, info: DeviceInfo, *, limits: Limits | None = None, validate: bool | None = None
    ) -> WebgpuDevice:
        """Open a listed device.

        `limits` lowers what the device allows, to behave like a smaller one; a `subgroup_size`
        other than the device's own means none. `validate` (default: TREADLE_VALIDATE=1) turns on
        the driver's checks, shaders' own bounds checks, and labels for graphics debuggers.
        """
        # Here, so that where no device is opened the rest of the driver is not imported.
        from treadle.drivers.webgpu_native.device import WebgpuDevice

        if validate is None:
            validate = is_on("TREADLE_VALIDATE")
        for adapter in adapters.list_adapters(self.provider, api=info.api, validate=validate):
            if adapter.info.id == info.id:
                if "llvmpipe" in info.name:
                    _log.warning(_LLVMPIPE, info.id)
                device = WebgpuDevice(adapter, limits, validate=validate)
                if "tensor_cores" in device.info.features:
                    device.try_matrix_units(adapter.matrix_units)
                return device
        raise DeviceNotFound(
            f"there is no {info.id} ({info.name}) any more; list the devices again"
        )


def dawn_backend() -> WebgpuBackend:
    """The devices that Dawn reaches."""
    return WebgpuBackend(DAWN)
