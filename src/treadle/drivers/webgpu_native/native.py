"""Every call into a WebGPU library in C, one thin method each, its C signature beside it.

The rest of the driver speaks to a `Native` and never to the library, so that a second provider of
the same C interface can stand beside wgpu-native. What will differ for Dawn (`wgpudawn`):

| what                 | wgpu-native                           | Dawn                            |
|----------------------|---------------------------------------|---------------------------------|
| listing adapters     | `wgpuInstanceEnumerateAdapters`       | an extension of its own         |
| making progress      | `wgpuDevicePoll(device, …)`           | `wgpuInstanceProcessEvents`     |
| unchecked shaders    | `wgpuDeviceCreateShaderModuleTrusted` | the toggle `disable_robustness` |
| zeroed shared memory | always                                | `disable_workgroup_init`        |
| subgroups            | feature `Subgroup`, no `enable` line  | `Subgroups`, `enable subgroups` |
| 64 bits, f32 atomics | native features                       | do not exist                    |
| time outside a pass  | `TimestampQueryInsideEncoders`        | `TimestampQuery` and a toggle   |
| unit of timestamps   | ticks: `wgpuQueueGetTimestampPeriod`  | nanoseconds                     |
| invalid submission   | ends the process                      | an error in the callback        |

Two traps of wgpu-native that this file and its callers answer for: an error inside
`wgpuQueueSubmit` is a Rust panic that ends the process, so nothing may be submitted whose
`wgpuCommandEncoderFinish` reported an error; and the truth values it returns have only their
lowest byte set, the rest is noise.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Handle = Any  # an object of the C library, as cffi sees it

# WGPUBufferUsage
MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST = 0x1, 0x2, 0x4, 0x8
UNIFORM, STORAGE, QUERY_RESOLVE = 0x40, 0x80, 0x200
# WGPUInstanceBackend, by the name of the interface
APIS = {"vulkan": 1 << 0, "gl": 1 << 1, "metal": 1 << 2, "d3d12": 1 << 3}
# WGPUBackendType
API_NAMES = {4: "d3d12", 5: "metal", 6: "vulkan", 7: "gl", 8: "gl"}
# WGPUInstanceFlag
_DEBUG, _VALIDATION, _DISCARD_LABELS = 1 << 0, 1 << 1, 1 << 2
# WGPUErrorType
VALIDATION_ERROR, OUT_OF_MEMORY_ERROR = 2, 3
# WGPUFeatureName and WGPUNativeFeature: those that compute kernels have a use for
FEATURES: dict[str, int] = {
    "timestamp-query": 0x9,
    "shader-f16": 0xB,
    "mappable-primary-buffers": 0x3000E,
    "shader-f64": 0x3001D,
    "subgroup": 0x30021,
    "subgroup-barrier": 0x30023,
    "timestamp-query-inside-encoders": 0x30024,
    "shader-int64": 0x30026,
    "shader-float32-atomic": 0x30027,
    "shader-int64-atomic-min-max": 0x3002C,
    "shader-int64-atomic-all-ops": 0x3002D,
}
_CALLBACK_SPONTANEOUS = 3  # WGPUCallbackMode_AllowSpontaneous
_MAP_MODE_READ, _MAP_MODE_WRITE = 1, 2
_WHOLE = 2**64 - 1  # WGPU_WHOLE_SIZE


@functools.cache
def load() -> Native:
    """The library of the `wgpu` package. Raises ImportError or OSError if it is not usable."""
    from wgpu.backends.wgpu_native import ffi, lib

    return Native(ffi, lib)


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


class Native:
    """The C library behind thin methods. Methods that make something return a new reference."""

    name = "wgpu-native"

    def __init__(self, ffi: Any, lib: Any) -> None:
        self.ffi = ffi
        self.lib = lib
        self.null = ffi.NULL
        number = lib.wgpuGetVersion()  # uint32_t wgpuGetVersion(void)
        self.version = ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))

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
        self._poll = lib.wgpuDevicePoll

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

    def create_instance(self, apis: Sequence[str], *, validate: bool) -> Handle:
        """An instance that sees the adapters of these interfaces."""
        extras = self.ffi.new("WGPUInstanceExtras *")
        extras.chain.sType = self.lib.WGPUSType_InstanceExtras
        extras.backends = sum(APIS[api] for api in apis)
        extras.flags = _DEBUG | _VALIDATION if validate else _DISCARD_LABELS
        descriptor = self.ffi.new("WGPUInstanceDescriptor *")
        descriptor.nextInChain = self.ffi.cast("WGPUChainedStruct *", extras)
        # WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const * descriptor)
        return self.lib.wgpuCreateInstance(descriptor)

    def release_instance(self, instance: Handle) -> None:
        """Drop the reference."""
        self.lib.wgpuInstanceRelease(instance)  # void wgpuInstanceRelease(WGPUInstance instance)

    def enumerate_adapters(self, instance: Handle) -> list[Handle]:
        """All adapters of an instance."""
        with _quiet_runtime_directory():
            # size_t wgpuInstanceEnumerateAdapters(WGPUInstance instance,
            #     WGPUInstanceEnumerateAdapterOptions const *options, WGPUAdapter *adapters)
            enumerate_adapters = self.lib.wgpuInstanceEnumerateAdapters
            count = enumerate_adapters(instance, self.null, self.null)
            if not count:
                return []
            adapters = self.ffi.new("WGPUAdapter[]", count)
            found = enumerate_adapters(instance, self.null, adapters)
        return [adapters[i] for i in range(min(count, found))]

    def adapter_info(self, adapter: Handle) -> dict[str, Any]:
        """Name, driver, kind and interface of an adapter, as the library words them."""
        info = self.ffi.new("WGPUAdapterInfo *")
        # WGPUStatus wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo * info)
        self.lib.wgpuAdapterGetInfo(adapter, info)
        result = {
            "driver": f"{self.text(info.vendor)} {self.text(info.description)}".strip(),
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
        """Which of `FEATURES` the adapter has."""
        # WGPUBool wgpuAdapterHasFeature(WGPUAdapter adapter, WGPUFeatureName feature)
        has = self.lib.wgpuAdapterHasFeature
        return {name for name, number in FEATURES.items() if has(adapter, number) & 0xFF}

    # ------------------------------------------------------------------ device and queue

    def request_device(
        self,
        instance: Handle,
        adapter: Handle,
        limits: Any,
        features: Sequence[str],
        on_error: Callable[[int, str], None],
        on_lost: Callable[[str], None],
    ) -> tuple[Handle, Any]:
        """A device, or None with the reason; and what must be kept as long as the device lives."""
        ffi, answer = self.ffi, []

        @ffi.callback("WGPUUncapturedErrorCallback")  # type: ignore[untyped-decorator]
        def error_callback(_device: Any, type: int, message: Any, _1: Any, _2: Any) -> None:
            on_error(type, self.text(message))

        @ffi.callback("WGPUDeviceLostCallback")  # type: ignore[untyped-decorator]
        def lost_callback(_device: Any, _reason: int, message: Any, _1: Any, _2: Any) -> None:
            on_lost(self.text(message))

        @ffi.callback("WGPURequestDeviceCallback")  # type: ignore[untyped-decorator]
        def device_callback(_status: int, device: Any, message: Any, _1: Any, _2: Any) -> None:
            answer.append((device, self.text(message)))

        descriptor = ffi.new("WGPUDeviceDescriptor *")
        descriptor.requiredLimits = limits
        numbers = ffi.new("WGPUFeatureName[]", [FEATURES[name] for name in features])
        descriptor.requiredFeatureCount = len(features)
        descriptor.requiredFeatures = numbers
        descriptor.deviceLostCallbackInfo.mode = _CALLBACK_SPONTANEOUS
        descriptor.deviceLostCallbackInfo.callback = lost_callback
        descriptor.uncapturedErrorCallbackInfo.callback = error_callback
        info = ffi.new("WGPURequestDeviceCallbackInfo *")
        info.mode = _CALLBACK_SPONTANEOUS
        info.callback = device_callback
        # WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter adapter,
        #     WGPUDeviceDescriptor const * descriptor, WGPURequestDeviceCallbackInfo callbackInfo)
        self.lib.wgpuAdapterRequestDevice(adapter, descriptor, info[0])
        self.lib.wgpuInstanceProcessEvents(instance)  # void f(WGPUInstance instance)
        if not answer:
            return None, "the request was not answered"
        device, message = answer[0]
        if device == self.null:
            return None, message
        return device, (error_callback, lost_callback, device_callback)

    def queue(self, device: Handle) -> Handle:
        """The device's queue."""
        return self.lib.wgpuDeviceGetQueue(device)  # WGPUQueue wgpuDeviceGetQueue(WGPUDevice)

    def timestamp_period(self, queue: Handle) -> float:
        """Nanoseconds a tick of the device's clock."""
        # float wgpuQueueGetTimestampPeriod(WGPUQueue queue)
        return float(self.lib.wgpuQueueGetTimestampPeriod(queue))

    def destroy_device(self, device: Handle) -> None:
        """Make the device unusable and free its memory."""
        self.lib.wgpuDeviceDestroy(device)  # void wgpuDeviceDestroy(WGPUDevice device)

    def release_device(self, device: Handle, queue: Handle) -> None:
        """Drop the references."""
        self.lib.wgpuQueueRelease(queue)  # void wgpuQueueRelease(WGPUQueue queue)
        self.lib.wgpuDeviceRelease(device)  # void wgpuDeviceRelease(WGPUDevice device)

    def poll(self, device: Handle, *, wait: bool = False) -> bool:
        """Run due callbacks; True if nothing is in flight."""
        return bool(self._poll(device, wait, self.null) & 0xFF)

    # ------------------------------------------------------------------ buffers

    def create_buffer(
        self, device: Handle, size: int, usage: int, *, mapped: bool = False, label: str = ""
    ) -> Handle:
        """A buffer; an error is told to the device's error callback."""
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

    def retain_buffer(self, buffer: Handle) -> None:
        """Take another reference."""
        self.lib.wgpuBufferAddRef(buffer)  # void wgpuBufferAddRef(WGPUBuffer buffer)

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
        """A shader module; `trusted` leaves out naga's own bounds checks and loop guards."""
        code = self.ffi.new("WGPUShaderSourceWGSL *")
        code.chain.sType = self.lib.WGPUSType_ShaderSourceWGSL
        descriptor = self.ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = self.ffi.cast("WGPUChainedStruct *", code)
        kept = self._fill_text(code.code, source), self._fill_text(descriptor.label, label)
        if trusted:
            # WGPUShaderModule wgpuDeviceCreateShaderModuleTrusted(WGPUDevice device,
            #     WGPUShaderModuleDescriptor const * descriptor,
            #     WGPUShaderRuntimeChecks runtimeChecks)
            module = self.lib.wgpuDeviceCreateShaderModuleTrusted(device, descriptor, 0)
        else:
            # WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice device,
            #     WGPUShaderModuleDescriptor const * descriptor)
            module = self.lib.wgpuDeviceCreateShaderModule(device, descriptor)
        del kept
        return module

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
        """A compute pipeline; an error is told to the device's error callback."""
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

    # ------------------------------------------------------------------ counting

    def live_objects(self, instance: Handle) -> dict[str, int]:
        """How many objects of each kind the library holds; tests count leaks with it."""
        report = self.ffi.new("WGPUGlobalReport *")
        # void wgpuGenerateReport(WGPUInstance instance, WGPUGlobalReport *report)
        self.lib.wgpuGenerateReport(instance, report)
        hub = report.hub
        kinds = ("devices", "buffers", "bindGroups", "bindGroupLayouts", "pipelineLayouts",
                 "computePipelines", "shaderModules", "commandBuffers", "querySets")  # fmt: skip
        return {kind: getattr(hub, kind).numKeptFromUser for kind in kinds}
