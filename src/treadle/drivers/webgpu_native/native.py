"""Every call into a WebGPU library in C that all of them share, one thin method each, its C
signature beside it. What a library does in its own way is its `Provider`'s (`provider`).
"""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treadle.core import forks

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.provider import Library, Provider

Handle = Any  # an object of the C library, as cffi sees it

# WGPUBufferUsage
MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST = 0x1, 0x2, 0x4, 0x8
UNIFORM, STORAGE, QUERY_RESOLVE = 0x40, 0x80, 0x200
# WGPUBackendType
API_NAMES = {4: "d3d12", 5: "metal", 6: "vulkan", 7: "gl", 8: "gl"}
# WGPUErrorType
VALIDATION_ERROR, OUT_OF_MEMORY_ERROR = 2, 3
_CALLBACK_SPONTANEOUS = 3  # WGPUCallbackMode_AllowSpontaneous
_MAP_MODE_READ, _MAP_MODE_WRITE = 1, 2
_WHOLE = 2**64 - 1  # WGPU_WHOLE_SIZE


@functools.cache
def load(provider: Provider) -> Native:
    """A provider's library. Raises ImportError or OSError if it is not usable."""
    return Native(provider, provider.load())


@contextmanager
def _quiet_runtime_directory() -> Iterator[None]:
    """Keep Mesa from printing a complaint per adapter where no desktop session exists."""
    if "XDG_RUNTIME_DIR" in os.environ or os.name != "posix":
        yield
        return
    os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        os.environ.pop("XDG_RUNTIME_DIR", None)


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks for a device's errors, (WGPUErrorType, message), and for its loss."""

    on_error: Callable[[int, str], None]
    on_lost: Callable[[str], None]


class Native:
    """The C library behind thin methods. Methods that make something return a new reference."""

    def __init__(self, provider: Provider, library: Library) -> None:
        self.provider = provider
        self.name = provider.library
        self.version = library.version
        self.ffi = library.ffi
        if (lock := getattr(library.ffi, "_lock", None)) is not None:
            forks.adopt(lock)  # of cffi's: taken where it reads a type for the first time
        lib = self.lib = library.lib
        self.null = library.ffi.NULL
        self._listeners: dict[int, Listener] = {}  # of devices, by the number their callbacks get
        self._numbers = itertools.count(1)

        # The hot ones, looked up once.
        # void wgpuBufferUnmap(WGPUBuffer buffer)
        self.unmap: Callable[[Handle], None] = lib.wgpuBufferUnmap
        # WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder commandEncoder,
        #     WGPUCommandBufferDescriptor const * descriptor)
        self._finish = lib.wgpuCommandEncoderFinish
        # WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice device,
        #     WGPUCommandEncoderDescriptor const * descriptor)
        self._create_encoder = lib.wgpuDeviceCreateCommandEncoder
        # void wgpuQueueSubmit(WGPUQueue queue, size_t commandCount,
        #     WGPUCommandBuffer const * commands)
        self._submit = lib.wgpuQueueSubmit
        # WGPUBool wgpuDevicePoll(WGPUDevice device, WGPUBool wait,
        #     WGPUSubmissionIndex const * submissionIndex)
        # void wgpuInstanceProcessEvents(WGPUInstance instance)
        self._poll = getattr(lib, provider.poll.function)
        self._poll_more = (False, self.null) if provider.poll.of_device else ()
        self._callbacks = self._device_callbacks()

    # ------------------------------------------------------------------ small conversions

    def address(self, handle: Handle) -> int:
        """The handle as a number, as records hold it."""
        return int(self.ffi.cast("uintptr_t", handle))

    def function_address(self, name: str) -> int:
        """The address of a C function of the library, for compiled code to call."""
        return self.address(self.ffi.addressof(self.lib, name))

    def handle(self, type: str, address: int) -> Handle:
        """The handle back from its number."""
        return self.ffi.cast(type, address)

    def text(self, view: Any) -> str:
        """A WGPUStringView as text."""
        if view.data == self.null:
            return ""
        length = view.length
        raw = self.ffi.string(view.data) if length == _WHOLE else self.ffi.unpack(view.data, length)
        return bytes(raw).decode("utf-8", "replace")

    def _fill_text(self, view: Any, text: str) -> Any:
        """Point a WGPUStringView at `text`. Keep the result until the call is over."""
        raw = text.encode()
        kept = self.ffi.from_buffer(raw)
        view.data = kept
        view.length = len(raw)
        return kept

    def flag(self) -> Any:
        """A new 64-bit counter that compiled callbacks write to; starts at 0."""
        return self.ffi.new("int64_t *")

    # ------------------------------------------------------------------ instance and adapters

    def create_instance(self, *, validate: bool) -> Handle:
        """An instance, which sees the adapters of all interfaces."""
        return self.provider.create_instance(self, validate)

    def enumerate_adapters(self, instance: Handle) -> list[Handle]:
        """All adapters of an instance."""
        with _quiet_runtime_directory():
            return self.provider.enumerate_adapters(self, instance)

    def adapter_info(self, adapter: Handle) -> dict[str, Any]:
        """Name, driver, kind and interface of an adapter, as the library words them."""
        info = self.ffi.new("WGPUAdapterInfo *")
        # WGPUStatus wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo * info)
        self.lib.wgpuAdapterGetInfo(adapter, info)
        result = {
            "vendor": self.text(info.vendor),
            "description": self.text(info.description),
            "name": self.text(info.device),
            "api": API_NAMES.get(info.backendType, ""),
            "type": info.adapterType,
            "vendor_id": info.vendorID,
            "device_id": info.deviceID,
            "subgroup_min": info.subgroupMinSize,
            "subgroup_max": info.subgroupMaxSize,
        }
        # void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo adapterInfo)
        self.lib.wgpuAdapterInfoFreeMembers(info[0])
        return result

    def adapter_limits(self, adapter: Handle) -> Any:
        """The adapter's limits, a `WGPULimits *`."""
        limits = self.ffi.new("WGPULimits *")
        # WGPUStatus wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits * limits)
        self.lib.wgpuAdapterGetLimits(adapter, limits)
        return limits

    def adapter_features(self, adapter: Handle) -> set[str]:
        """Which of the provider's features the adapter has."""
        # WGPUBool wgpuAdapterHasFeature(WGPUAdapter adapter, WGPUFeatureName feature)
        has = self.lib.wgpuAdapterHasFeature
        return {
            name for name, number in self.provider.features.items() if has(adapter, number) & 0xFF
        }

    # ------------------------------------------------------------------ device and queue

    def request_device(
        self,
        instance: Handle,
        adapter: Handle,
        limits: Any,
        features: Sequence[str],
        listener: Listener,
        *,
        validate: bool,
    ) -> tuple[Handle, int | str]:
        """A device and the number of its listener, for `release_device`; or None and the reason."""
        ffi, answer = self.ffi, []

        @ffi.callback("WGPURequestDeviceCallback")  # type: ignore[untyped-decorator]
        def device_callback(_status: int, device: Any, message: Any, _1: Any, _2: Any) -> None:
            answer.append((device, self.text(message)))

        number = next(self._numbers)
        self._listeners[number] = listener
        descriptor = ffi.new("WGPUDeviceDescriptor *")
        descriptor.nextInChain, kept = self.provider.device_extras(self, validate)
        descriptor.requiredLimits = limits
        numbers = [self.provider.features[name] for name in features]
        required = ffi.new("WGPUFeatureName[]", numbers)
        descriptor.requiredFeatureCount = len(features)
        descriptor.requiredFeatures = required
        lost, error = descriptor.deviceLostCallbackInfo, descriptor.uncapturedErrorCallbackInfo
        lost.mode = _CALLBACK_SPONTANEOUS
        error.callback, lost.callback = self._callbacks
        error.userdata1 = lost.userdata1 = ffi.cast("void *", number)
        info = ffi.new("WGPURequestDeviceCallbackInfo *")
        info.mode = _CALLBACK_SPONTANEOUS
        info.callback = device_callback
        # WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter adapter,
        #     WGPUDeviceDescriptor const * descriptor, WGPURequestDeviceCallbackInfo callbackInfo)
        self.lib.wgpuAdapterRequestDevice(adapter, descriptor, info[0])
        self.lib.wgpuInstanceProcessEvents(instance)  # void f(WGPUInstance instance)
        del kept
        device, message = answer[0] if answer else (self.null, "the request was not answered")
        if device == self.null:
            del self._listeners[number]
            return None, message
        return device, number

    def _device_callbacks(self) -> tuple[Any, Any]:
        """What the library calls for errors and lost devices: the same two functions for all
        devices, so that a late call finds no listener and does no harm."""

        @self.ffi.callback("WGPUUncapturedErrorCallback")  # type: ignore[untyped-decorator]
        def error_callback(_device: Any, type: int, message: Any, number: Any, _2: Any) -> None:
            listener = self._listeners.get(self.address(number))
            if listener is not None:
                listener.on_error(type, self.text(message))

        @self.ffi.callback("WGPUDeviceLostCallback")  # type: ignore[untyped-decorator]
        def lost_callback(_device: Any, _why: int, message: Any, number: Any, _2: Any) -> None:
            listener = self._listeners.get(self.address(number))
            if listener is not None:
                listener.on_lost(self.text(message))

        return error_callback, lost_callback

    def queue(self, device: Handle) -> Handle:
        """The device's queue."""
        return self.lib.wgpuDeviceGetQueue(device)  # WGPUQueue wgpuDeviceGetQueue(WGPUDevice)

    def timestamp_period(self, queue: Handle) -> float:
        """Nanoseconds a tick of the device's clock."""
        return self.provider.timestamp_period(self, queue)

    def destroy_device(self, device: Handle) -> None:
        """Make the device unusable and free its memory."""
        self.lib.wgpuDeviceDestroy(device)  # void wgpuDeviceDestroy(WGPUDevice device)

    def release_device(self, device: Handle, queue: Handle, number: int) -> None:
        """Drop the references, and the listener."""
        self._listeners.pop(number, None)
        self.lib.wgpuQueueRelease(queue)  # void wgpuQueueRelease(WGPUQueue queue)
        self.lib.wgpuDeviceRelease(device)  # void wgpuDeviceRelease(WGPUDevice device)

    def poll(self, poller: Handle) -> None:
        """Run due callbacks; `poller` is the device or its instance, by `Poll.of_device`."""
        self._poll(poller, *self._poll_more)

    # ------------------------------------------------------------------ buffers

    def create_buffer(
        self, device: Handle, size: int, usage: int, *, mapped: bool = False, label: str = ""
    ) -> Handle:
        """A buffer; an error goes to the device's error callback."""
        descriptor = self.ffi.new("WGPUBufferDescriptor *")
        descriptor.size = size
        descriptor.usage = usage
        descriptor.mappedAtCreation = mapped
        kept = self._fill_text(descriptor.label, label)
        # WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice device,
        #     WGPUBufferDescriptor const * descriptor)
        buffer = self.lib.wgpuDeviceCreateBuffer(device, descriptor)
        del kept
        return buffer

    def release_buffer(self, buffer: Handle) -> None:
        """Drop a reference; the memory goes when submitted work is done with it."""
        self.lib.wgpuBufferRelease(buffer)  # void wgpuBufferRelease(WGPUBuffer buffer)

    def map_info(self, callback: Any, flag: Any) -> Any:
        """Where to report that a map request is answered: `callback` sets `flag` to its status."""
        info = self.ffi.new("WGPUBufferMapCallbackInfo *")
        info.mode = _CALLBACK_SPONTANEOUS
        info.callback = self.ffi.cast("WGPUBufferMapCallback", callback)
        info.userdata1 = flag
        return info

    def map_async(self, buffer: Handle, size: int, info: Any, *, write: bool) -> None:
        """Ask for host access once submitted work is done with the buffer."""
        mode = _MAP_MODE_WRITE if write else _MAP_MODE_READ
        # WGPUFuture wgpuBufferMapAsync(WGPUBuffer buffer, WGPUMapMode mode, size_t offset,
        #     size_t size, WGPUBufferMapCallbackInfo callbackInfo)
        self.lib.wgpuBufferMapAsync(buffer, mode, 0, size, info[0])

    def mapped_range(self, buffer: Handle, size: int, *, write: bool) -> Any:
        """The host address of a mapped buffer, valid until `unmap`."""
        if write:
            # void * wgpuBufferGetMappedRange(WGPUBuffer buffer, size_t offset, size_t size)
            return self.lib.wgpuBufferGetMappedRange(buffer, 0, size)
        # void const * wgpuBufferGetConstMappedRange(WGPUBuffer buffer, size_t offset, size_t size)
        return self.lib.wgpuBufferGetConstMappedRange(buffer, 0, size)

    # ------------------------------------------------------------------ pipelines and bind groups

    def create_shader(self, device: Handle, source: str, *, trusted: bool, label: str) -> Handle:
        """A shader module; `trusted` leaves out the compiler's bounds checks and loop guards."""
        code = self.ffi.new("WGPUShaderSourceWGSL *")
        code.chain.sType = self.lib.WGPUSType_ShaderSourceWGSL
        descriptor = self.ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = self.ffi.cast("WGPUChainedStruct *", code)
        kept = self._fill_text(code.code, source), self._fill_text(descriptor.label, label)
        module = self.provider.create_shader(self, device, descriptor, trusted)
        del kept
        return module

    def create_shader_module(self, device: Handle, descriptor: Any) -> Handle:
        """The plain call, for providers."""
        # WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice device,
        #     WGPUShaderModuleDescriptor const * descriptor)
        return self.lib.wgpuDeviceCreateShaderModule(device, descriptor)

    def release_shader(self, module: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuShaderModuleRelease(module)  # void f(WGPUShaderModule shaderModule)

    def create_bind_group_layout(
        self, device: Handle, types: Sequence[str], *, dynamic: bool = False
    ) -> Handle:
        """A layout of buffers: each "uniform", "storage" or "read"."""
        numbers = {"uniform": 2, "storage": 3, "read": 4}  # WGPUBufferBindingType
        entries = self.ffi.new("WGPUBindGroupLayoutEntry[]", len(types))
        for i, type in enumerate(types):
            entries[i].binding = i
            entries[i].visibility = 0x4  # WGPUShaderStage_Compute
            entries[i].buffer.type = numbers[type]
            entries[i].buffer.hasDynamicOffset = dynamic
        descriptor = self.ffi.new("WGPUBindGroupLayoutDescriptor *")
        descriptor.entryCount = len(types)
        descriptor.entries = entries
        # WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice device,
        #     WGPUBindGroupLayoutDescriptor const * descriptor)
        return self.lib.wgpuDeviceCreateBindGroupLayout(device, descriptor)

    def release_bind_group_layout(self, layout: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuBindGroupLayoutRelease(layout)  # void f(WGPUBindGroupLayout bindGroupLayout)

    def create_pipeline_layout(self, device: Handle, groups: Sequence[Handle]) -> Handle:
        """A pipeline layout of bind group layouts."""
        layouts = self.ffi.new("WGPUBindGroupLayout[]", list(groups))
        descriptor = self.ffi.new("WGPUPipelineLayoutDescriptor *")
        descriptor.bindGroupLayoutCount = len(groups)
        descriptor.bindGroupLayouts = layouts
        # WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice device,
        #     WGPUPipelineLayoutDescriptor const * descriptor)
        return self.lib.wgpuDeviceCreatePipelineLayout(device, descriptor)

    def release_pipeline_layout(self, layout: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuPipelineLayoutRelease(layout)  # void f(WGPUPipelineLayout pipelineLayout)

    def create_pipeline(
        self, device: Handle, layout: Handle, module: Handle, entry: str, label: str
    ) -> Handle:
        """A compute pipeline; an error goes to the device's error callback."""
        descriptor = self.ffi.new("WGPUComputePipelineDescriptor *")
        descriptor.layout = layout
        descriptor.compute.module = module
        kept = (
            self._fill_text(descriptor.compute.entryPoint, entry),
            self._fill_text(descriptor.label, label),
        )
        # WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice device,
        #     WGPUComputePipelineDescriptor const * descriptor)
        pipeline = self.lib.wgpuDeviceCreateComputePipeline(device, descriptor)
        del kept
        return pipeline

    def retain_pipeline(self, pipeline: Handle) -> None:
        """Take another reference."""
        self.lib.wgpuComputePipelineAddRef(pipeline)  # void f(WGPUComputePipeline computePipeline)

    def release_pipeline(self, pipeline: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuComputePipelineRelease(pipeline)  # void f(WGPUComputePipeline computePipeline)

    def create_bind_group(
        self, device: Handle, layout: Handle, ranges: Sequence[tuple[Handle, int, int]]
    ) -> Handle:
        """A bind group of (buffer, offset, size), in binding order."""
        entries = self.ffi.new("WGPUBindGroupEntry[]", len(ranges))
        for i, (buffer, offset, size) in enumerate(ranges):
            entries[i].binding = i
            entries[i].buffer = buffer
            entries[i].offset = offset
            entries[i].size = size
        descriptor = self.ffi.new("WGPUBindGroupDescriptor *")
        descriptor.layout = layout
        descriptor.entryCount = len(ranges)
        descriptor.entries = entries
        # WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice device,
        #     WGPUBindGroupDescriptor const * descriptor)
        return self.lib.wgpuDeviceCreateBindGroup(device, descriptor)

    def retain_bind_group(self, group: Handle) -> None:
        """Take another reference."""
        self.lib.wgpuBindGroupAddRef(group)  # void wgpuBindGroupAddRef(WGPUBindGroup bindGroup)

    def release_bind_group(self, group: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuBindGroupRelease(group)  # void wgpuBindGroupRelease(WGPUBindGroup bindGroup)

    # ------------------------------------------------------------------ timestamps

    def create_timestamps(self, device: Handle, count: int) -> Handle:
        """A set of timestamp queries."""
        descriptor = self.ffi.new("WGPUQuerySetDescriptor *")
        descriptor.type = self.lib.WGPUQueryType_Timestamp
        descriptor.count = count
        # WGPUQuerySet wgpuDeviceCreateQuerySet(WGPUDevice device,
        #     WGPUQuerySetDescriptor const * descriptor)
        return self.lib.wgpuDeviceCreateQuerySet(device, descriptor)

    def release_timestamps(self, queries: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuQuerySetRelease(queries)  # void wgpuQuerySetRelease(WGPUQuerySet querySet)

    # ------------------------------------------------------------------ encoding and submission

    def create_encoder(self, device: Handle) -> Handle:
        """A command encoder."""
        return self._create_encoder(device, self.null)

    def copy(
        self,
        encoder: Handle,
        source: Handle,
        source_offset: int,
        target: Handle,
        target_offset: int,
        size: int,
    ) -> None:
        """Append a copy; everything is a multiple of 4, and the buffers differ."""
        # void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder commandEncoder,
        #     WGPUBuffer source, uint64_t sourceOffset, WGPUBuffer destination,
        #     uint64_t destinationOffset, uint64_t size)
        self.lib.wgpuCommandEncoderCopyBufferToBuffer(
            encoder, source, source_offset, target, target_offset, size
        )

    def finish(self, encoder: Handle) -> Handle:
        """The command buffer of an encoder. Look at the errors before submitting it."""
        return self._finish(encoder, self.null)

    def submit(self, queue: Handle, commands: Any) -> None:
        """Submit one command buffer, the first of the C array `commands`."""
        self._submit(queue, 1, commands)

    def write_buffer(self, queue: Handle, handle: Handle, data: Any, size: int) -> None:
        """Copy bytes of the host's into a buffer, after all that was submitted before."""
        # void f(WGPUQueue queue, WGPUBuffer buffer, uint64_t bufferOffset, void const * data,
        # size_t size)
        self.lib.wgpuQueueWriteBuffer(queue, handle, 0, data, size)

    def release_encoder(self, encoder: Handle, command: Handle) -> None:
        """Drop both references."""
        self.lib.wgpuCommandBufferRelease(command)  # void f(WGPUCommandBuffer commandBuffer)
        self.lib.wgpuCommandEncoderRelease(encoder)  # void f(WGPUCommandEncoder commandEncoder)

    def done_info(self, callback: Any, flag: Any) -> Any:
        """Where to report finished submissions: `callback` sets `flag` to the serial number."""
        info = self.ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        info.mode = _CALLBACK_SPONTANEOUS
        info.callback = self.ffi.cast("WGPUQueueWorkDoneCallback", callback)
        info.userdata1 = flag
        return info

    def on_done(self, queue: Handle, info: Any, serial: int) -> None:
        """Report `serial` through `info` when everything submitted so far is done."""
        info.userdata2 = self.ffi.cast("void *", serial)
        # WGPUFuture wgpuQueueOnSubmittedWorkDone(WGPUQueue queue,
        #     WGPUQueueWorkDoneCallbackInfo callbackInfo)
        self.lib.wgpuQueueOnSubmittedWorkDone(queue, info[0])
