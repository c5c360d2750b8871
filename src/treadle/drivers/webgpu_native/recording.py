"""Captured launches and copies, replayed by one record of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.base import CompiledKernel, Recording, Stream
from treadle.drivers.webgpu_native import encode_loop as loop
from treadle.drivers.webgpu_native.batch import CaptureBatch

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice
    from treadle.drivers.webgpu_native.pipelines import WebgpuKernel
    from treadle.drivers.webgpu_native.stream import WebgpuStream


class Change(NamedTuple):
    """A launch that is not as it was recorded: where its record is, its kernel and bind group, and
    its grid and parameter block."""

    at: int
    kernel: WebgpuKernel
    group: int
    grid: Dim3
    parameters: bytes


class WebgpuRecording(Recording):
    """Prepared records, with references to every object they name."""

    def __init__(self, device: WebgpuDevice, batch: CaptureBatch) -> None:
        native = device.native
        self._device = device
        self._batch = batch
        self.records = bytes(batch.records[: batch.at])
        self.pointer = native.ffi.from_buffer(self.records)
        self.address = native.address(self.pointer)
        self.count = batch.count
        self.dispatches = batch.dispatches + self.count
        self._changes: dict[int, Change] = {}  # of launches, by the numbers of their records
        self._in_order: list[Change] | None = []
        self._released = False
        # Cached bind groups may be dropped at any time, so the recording has references of its own.
        self._groups = [native.handle("WGPUBindGroup", n) for n in self._numbers(24)]
        self._pipelines = [native.handle("WGPUComputePipeline", n) for n in self._numbers(16)]
        for group in self._groups:
            native.retain_bind_group(group)
        for pipeline in self._pipelines:
            native.retain_pipeline(pipeline)
        batch.settle()

    def _numbers(self, place: int) -> set[int]:
        """The distinct handles at a place of the dispatch records."""
        records = memoryview(self.records)
        return {
            int.from_bytes(records[at + place : at + place + 8], "little")
            for at in range(0, len(records), loop.RECORD)
            if records[at] == loop.DISPATCH
        }

    def replay(self, stream: Stream) -> None:
        """Append the list to a stream of the same device."""
        if self._released:
            raise LaunchError("this recording has been released")
        if stream.device is not self._device:
            raise LaunchError(f"this recording was made on another device than {stream.device}")
        target: WebgpuStream = stream  # type: ignore[assignment]
        target.append_replay(self)

    def change(self, place: int, kernel: CompiledKernel, grid: Dim3, parameters: bytes) -> None:
        """Give a launch another grid and another parameter block."""
        old = self._changes.get(place)
        if old is None:
            at = place * loop.RECORD
            assert self.records[at] == loop.DISPATCH
            group = int.from_bytes(self.records[at + 24 : at + 32], "little")
        else:
            at, group = old.at, old.group
        self._changes[place] = Change(at, kernel, group, grid, parameters)  # type: ignore[arg-type]
        self._in_order = None

    @property
    def changes(self) -> list[Change]:
        """The launches that are not as they were recorded, in the order of their records."""
        if self._in_order is None:
            self._in_order = [self._changes[place] for place in sorted(self._changes)]
        return self._in_order

    def release(self) -> None:
        """Give back what the recording holds; work that was replayed and is pending still runs."""
        if self._released:
            return
        self._released = True
        device, native = self._device, self._device.native
        for group in self._groups:
            device.release_later(native.release_bind_group, group)
        for pipeline in self._pipelines:
            device.release_later(native.release_pipeline, pipeline)
        for parameters in self._batch.parameters:
            parameters.release(device)
        for buffer in self._batch.used_buffers:
            device.unhold(buffer)
        for owned in self._batch.owned:
            device.free(owned)
        self._batch.kept.clear()

    def __del__(self) -> None:
        if not getattr(self, "_released", True):
            self.release()
