"""A launch for a little data of the host's, whose results it reads at once, made again and again.

An upload, a launch and a read through a stream cost more calls of the library and more copies than
the device needs to answer. Here all of it is prepared: parameter blocks lie in the device's memory,
commands are records that change in two numbers, and where the device's kernels reach memory that
the host maps, they read what is sent and write the answer there, so that nothing is copied. One
submission is all that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.core.dim3 import Dim3
from treadle.drivers.base import Buffer, CompiledKernel, Exchange
from treadle.drivers.webgpu_native import encode_loop as loop
from treadle.drivers.webgpu_native.exchange_code import WORDS, exchange_code
from treadle.drivers.webgpu_native.memory import Staging
from treadle.drivers.webgpu_native.native import COPY_DST, STORAGE, UNIFORM, Handle
from treadle.drivers.webgpu_native.pipelines import WebgpuKernel
from treadle.drivers.webgpu_rules.kernels import PARAMETER_SIZES, foldable

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

_RECORD = loop.RECORD
_WANTED = 8  # which word of a way says how many bytes of the result are wanted
_SMALLEST = 256  # bytes of a buffer: as many as a binding may have to start at


class _Way:
    """Memory for one launch that is under way: what goes in, what comes out, the commands."""

    def __init__(self, exchange: WebgpuExchange) -> None:
        device = exchange.device
        native = device.native
        shared = STORAGE if exchange.near else 0
        self.up = Staging(device, exchange.source_bytes, write=True, usage=shared)
        self.down = Staging(device, exchange.result_bytes, write=False, usage=shared)
        ranges = [(each.handle, each.start, each.size) for each in exchange.buffers]
        if exchange.near:
            ranges[exchange.source] = self.up.handle, 0, exchange.source_bytes
            ranges[exchange.result] = self.down.handle, 0, exchange.result_bytes
        kernel = exchange.kernel
        self.group: Handle = native.create_bind_group(
            device.handle, kernel.layout.group_layout, ranges
        )
        device.raise_errors(f"binding the arrays of kernel {kernel.code.name}")
        self.group_number = native.address(self.group)
        self.records = bytearray((1 if exchange.near else 3) * _RECORD)
        self.dispatch = 0 if exchange.near else _RECORD  # where its record is
        self._pointer = native.ffi.from_buffer(self.records)
        count = len(self.records) // _RECORD
        self.words = native.ffi.new(
            "uint64_t[]",
            [
                self.up.number, self.up.size, native.address(self.up.info),
                self.down.number, self.down.size, native.address(self.down.info),
                native.address(self._pointer), count, 0, 0, 0,
            ],
        )  # fmt: skip
        assert len(self.words) == WORDS
        self.address = native.address(self.words)

    def release(self, device: WebgpuDevice) -> None:
        """Give all of it back, whatever state it is in."""
        device.release_later(device.native.release_bind_group, self.group)
        for staging in (self.up, self.down):
            device.dropped.append(staging)  # a late callback may still write to its flag
            device.release_later(device.native.release_buffer, staging.handle)


class WebgpuExchange(Exchange):
    """The exchange of one kernel with one set of buffers."""

    def __init__(
        self,
        device: WebgpuDevice,
        kernel: CompiledKernel,
        buffers: Sequence[Buffer],
        source: tuple[int, int],
        result: tuple[int, int],
        launches: Sequence[tuple[Dim3, bytes]],
        near: bool,
    ) -> None:
        assert type(kernel) is WebgpuKernel
        self.device = device
        self.near = near and device.mappable  # whether kernels use memory that the host maps
        native = device.native
        self.kernel = kernel
        self.buffers = device.own_for(kernel, buffers)
        self.source, self.result = source[0], result[0]
        self.source_bytes, self.result_bytes = (
            max(-(-size // 4) * 4, _SMALLEST if self.near else 4) for size in (source[1], result[1])
        )
        largest = device.info.limits.max_grid.x
        self._grids = [
            grid if max(grid) <= largest else foldable(kernel.code, grid, largest)
            for grid, _ in launches
        ]
        self._code = exchange_code(native, device.loop)
        self._free: list[_Way] = []
        self._ways: list[_Way] = []
        self._parameters: Handle | None = None
        self._parameter_group: Handle | None = None
        self._group_number = 0
        with device.lock:
            device.check()
            if kernel.size:
                self._make_parameters([block for _, block in launches])
            self._free.append(self._new_way())

    def _make_parameters(self, blocks: Sequence[bytes]) -> None:
        """The parameter blocks, one after the other, in memory of the device."""
        device, kernel, native = self.device, self.kernel, self.device.native
        bound = PARAMETER_SIZES[kernel.bucket]
        size = (len(blocks) - 1) * kernel.stride + bound
        handle = native.create_buffer(device.handle, size, UNIFORM | COPY_DST, mapped=True)
        device.raise_errors("a buffer for parameters")
        pointer = native.mapped_range(handle, size, write=True)
        view = memoryview(native.ffi.buffer(pointer, size)).cast("B")
        for number, block in enumerate(blocks):
            view[number * kernel.stride : number * kernel.stride + len(block)] = block
        view.release()
        native.unmap(handle)
        self._parameters = handle
        self._parameter_group = native.create_bind_group(
            device.handle, device.parameter_layout, [(handle, 0, bound)]
        )
        device.raise_errors("a buffer for parameters")
        self._group_number = native.address(self._parameter_group)

    def _new_way(self) -> _Way:
        made = _Way(self)
        self._ways.append(made)
        return made

    def begin(self, which: int, data: int, size: int, wanted: int) -> _Way:
        """Submit the launch of this number."""
        device, kernel, code = self.device, self.kernel, self._code
        with device.lock:
            way = self._free.pop() if self._free else self._new_way()
            up = way.up
            if up.flag[0] != 1:
                device.wait(up.flag, 1)
            x, y, z = self._grids[which]
            group = self._group_number
            loop.pack_dispatch(
                way.records, way.dispatch, loop.DISPATCH, x, y, z, kernel.pipeline,
                way.group_number, group, which * kernel.stride if group else 0, 0,
            )  # fmt: skip
            way.words[_WANTED] = wanted
            if not self.near:
                self._pack_copies(way, size, wanted)
            device.check()
            before = device.appending()
            if before is not None:  # what was appended before, to any stream
                before._submit()
            if not code.prepare(device.handle, way.address, data, size):
                device.check()
                raise device.lose("memory for what is sent could not be mapped")
            if device.has_errors:
                code.abandon(way.address)
                # A submission that the library would refuse ends the process.
                device.raise_errors(f"a launch of {kernel.code.name}")
            code.submit(device.queue, way.address)
        return way

    def _pack_copies(self, way: _Way, size: int, wanted: int) -> None:
        """Copies of what is sent to where the kernel reads it, and of the result from there."""
        source, result = self.buffers[self.source], self.buffers[self.result]
        loop.pack_copy(
            way.records, 0, loop.COPY, 0, way.up.number, 0, source.number, 0, -(-size // 4) * 4
        )
        loop.pack_copy(
            way.records, 2 * _RECORD, loop.COPY, 0,
            result.number, 0, way.down.number, 0, max(-(-wanted // 4) * 4, 4),
        )  # fmt: skip

    def wait(self, way: _Way, target: int, until: float | None = None) -> bool:
        """Wait for the result, and copy it to host memory."""
        device, flag = self.device, way.down.flag
        if not device.wait(flag, 1, until):
            return False
        if flag[0] != 1 or not self._code.fetch(way.address, target):
            device.raise_errors("a read")
            raise device.lose("a read was abandoned")
        self._free.append(way)
        return True

    def release(self) -> None:
        """Give the memory back."""
        device, native = self.device, self.device.native
        ways, self._ways, self._free = self._ways, [], []
        for way in ways:
            way.release(device)
        if self._parameters is not None:
            device.release_later(native.release_bind_group, self._parameter_group)
            device.release_later(native.release_buffer, self._parameters)
            self._parameters = None

    def __del__(self) -> None:
        if getattr(self, "_ways", None):
            self.release()
