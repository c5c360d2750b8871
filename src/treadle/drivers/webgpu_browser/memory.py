"""Buffers of a browser's device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.drivers.webgpu_rules.memory import WebgpuMemory

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice


class BrowserBuffer(WebgpuMemory):
    """Device memory. `number` is JavaScript's name for it."""

    __slots__ = ()
    device: BrowserDevice

    def gpu_buffer(self) -> Any:
        """The buffer as JavaScript has it, a GPUBuffer, for render pipelines of a page's own. Work
        appended here is on the queue after `await device.handed_over()`."""
        return self.device.helper.buffers.get(self.number)
