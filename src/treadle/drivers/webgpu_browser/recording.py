"""Captured launches and copies: commands that JavaScript keeps, replayed by one command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.base import CompiledKernel, Recording, Stream
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_browser.commands import Batch
from treadle.drivers.webgpu_browser.memory import BrowserBuffer

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice
    from treadle.drivers.webgpu_browser.kernels import BrowserKernel
    from treadle.drivers.webgpu_browser.stream import BrowserStream


class Capture(Batch):
    """What a captured stream appends to. Its room stays 0, so that the stream calls `hold` after
    each command."""

    __slots__ = ("owned", "used")

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[BrowserBuffer, None] = {}
        self.owned: list[BrowserBuffer] = []  # data written while capturing

    def hold(self, buffers: Iterable[BrowserBuffer], kept: object) -> None:
        """Keep what the last command uses."""
        if kept is not None:
            self.kept.append(kept)
        for each in buffers:
            buffer = each.parent or each
            if buffer not in self.used:
                self.used[buffer] = None
                buffer.holds += 1


class Change(NamedTuple):
    """A launch that is not as it was recorded: the word where it begins, its kernel, its grid and
    its parameter block."""

    place: int
    kernel: BrowserKernel
    grid: Dim3
    parameters: bytes


class BrowserRecording(Recording):
    """A list of commands that JavaScript has, with what they name."""

    def __init__(self, device: BrowserDevice, capture: Capture) -> None:
        self._device = device
        self._capture = capture
        self.number = device.next_number()
        self._changes: dict[int, Change] = {}
        self._released = False
        device.flush()  # what the commands name is there
        device.helper.record(self.number, capture.block([]))
        device.captures -= 1

    def replay(self, stream: Stream) -> None:
        """Append the list to a stream of the same device."""
        if self._released:
            raise LaunchError("this recording has been released")
        if stream.device is not self._device:
            raise LaunchError(f"this recording was made on another device than {stream.device}")
        target: BrowserStream = stream  # type: ignore[assignment]
        target.append_replay(self)

    def change(self, place: int, kernel: CompiledKernel, grid: Dim3, parameters: bytes) -> None:
        """Give a launch another grid and another parameter block."""
        assert self._capture.words[place] == commands.DISPATCH
        self._changes[place] = Change(place, kernel, grid, parameters)  # type: ignore[arg-type]

    @property
    def changes(self) -> list[Change]:
        """The launches that are not as they were recorded."""
        return list(self._changes.values())

    def release(self) -> None:
        """Give back what the recording holds; work that was replayed and is pending still runs."""
        if self._released:
            return
        self._released = True
        device, capture = self._device, self._capture
        device.forget(commands.FORGET_RECORDING, self.number)
        for buffer in capture.used:
            device.unhold(buffer)
        for owned in capture.owned:
            device.free(owned)
        capture.kept.clear()

    def __del__(self) -> None:
        if not getattr(self, "_released", True):
            self.release()
