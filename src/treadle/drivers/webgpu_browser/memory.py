"""Buffers of a browser's device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.drivers.base import Buffer

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice


class BrowserBuffer(Buffer):
    """Device memory. `number` is JavaScript's name for it; windows have their buffer's."""

    __slots__ = ("freed", "groups", "holds", "number", "parent", "start", "windows")
    device: BrowserDevice

    def __init__(
        self,
        device: BrowserDevice,
        identity: int,
        size: int,
        number: int,
        start: int = 0,
        parent: BrowserBuffer | None = None,
    ) -> None:
        self.device = device
        self.identity = identity
        self.size = size
        self.number = number
        self.start = start  # for a window of a larger buffer: where it starts there
        self.parent = parent  # and that buffer
        self.windows: dict[tuple[int, int], BrowserBuffer] = {}  # that were asked for
        self.freed = False
        self.holds = 0  # recordings that use it
        # The cached bind groups that name this buffer: key to the caches that hold it.
        self.groups: dict[tuple[Buffer, ...], list[dict[tuple[Buffer, ...], int]]] = {}

    def address(self) -> int:
        """TypeError: the host has no address for this memory."""
        raise TypeError("memory of a WebGPU device has no host address; read it with Stream.read")

    def gpu_buffer(self) -> Any:
        """The buffer as JavaScript has it, a GPUBuffer, for render pipelines of a page's own. Work
        appended here is on the queue after `await device.handed_over()`."""
        return self.device.helper.buffers.get(self.number)
