"""wgpu-native, the library of the `wgpu` package: Vulkan, Metal, Direct3D 12 and OpenGL.

This driver guards against two of its traps: an error inside `wgpuQueueSubmit` is a Rust panic
that ends the process, so nothing may be submitted whose `wgpuCommandEncoderFinish` reported an
error; and only the lowest byte of a returned boolean is defined.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from treadle.drivers.webgpu_native.native import Handle, Native
from treadle.drivers.webgpu_native.provider import Library, MatrixUnit, Poll, Provider

_LIBRARIES = {"win32": "wgpu_native-release.dll", "darwin": "libwgpu_native-release.dylib"}
# WGPUInstanceBackend: Vulkan, OpenGL, Metal, Direct3D 12
_BACKENDS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3
# WGPUInstanceFlag
_DEBUG, _VALIDATION, _DISCARD_LABELS = 1 << 0, 1 << 1, 1 << 2


def resources() -> Path:
    """The folder of the package that has the library and its header. The package is not imported,
    which takes it a while. ImportError if it is not installed."""
    spec = find_spec("wgpu")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("No module named 'wgpu'", name="wgpu")
    return Path(spec.submodule_search_locations[0], "resources")


def header_of(folder: Path) -> str:
    """The header, as the package has it for cffi."""
    return (folder / "combined_header.h").read_text(encoding="utf-8")


def digest_of(header: str) -> str:
    """What tells one header from another."""
    return hashlib.sha256(header.encode()).hexdigest()


def _from_tables() -> tuple[Any, Any] | None:
    """The two objects of cffi, made of the tables that we have of the header. None where the
    package has another header, or its variables ask for another library."""
    from treadle.drivers.webgpu_native import wgpu_header  # large, and not there in a browser

    if any(os.environ.get(name, "").strip() for name in ("WGPU_LIB_PATH", "WGPU_DEBUG")):
        return None
    library = resources() / _LIBRARIES.get(sys.platform, "libwgpu_native-release.so")
    try:
        if not library.exists() or digest_of(header_of(library.parent)) != wgpu_header.SHA256:
            return None
    except OSError:
        return None
    return wgpu_header.ffi, wgpu_header.ffi.dlopen(str(library))


def _load() -> Library:
    found = _from_tables()
    if found is None:
        from wgpu.backends.wgpu_native import ffi, lib

        found = ffi, lib
    ffi, lib = found
    number = lib.wgpuGetVersion()  # uint32_t wgpuGetVersion(void)
    return Library(ffi, lib, ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0)))


def _create_instance(native: Native, validate: bool) -> Handle:
    extras = native.ffi.new("WGPUInstanceExtras *")
    extras.chain.sType = native.lib.WGPUSType_InstanceExtras
    extras.backends = _BACKENDS
    extras.flags = _DEBUG | _VALIDATION if validate else _DISCARD_LABELS
    descriptor = native.ffi.new("WGPUInstanceDescriptor *")
    descriptor.nextInChain = native.ffi.cast("WGPUChainedStruct *", extras)
    # WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const * descriptor)
    return native.lib.wgpuCreateInstance(descriptor)


def _enumerate_adapters(native: Native, instance: Handle) -> list[Handle]:
    # size_t wgpuInstanceEnumerateAdapters(WGPUInstance instance,
    #     WGPUInstanceEnumerateAdapterOptions const *options, WGPUAdapter *adapters)
    enumerate_adapters = native.lib.wgpuInstanceEnumerateAdapters
    count = enumerate_adapters(instance, native.null, native.null)
    if not count:
        return []
    adapters = native.ffi.new("WGPUAdapter[]", count)
    found = enumerate_adapters(instance, native.null, adapters)
    return [adapters[i] for i in range(min(count, found))]


def _device_extras(native: Native, validate: bool) -> tuple[Any, object]:
    return native.null, None


def _create_shader(native: Native, device: Handle, descriptor: Any, trusted: bool) -> Handle:
    if trusted:
        # WGPUShaderModule wgpuDeviceCreateShaderModuleTrusted(WGPUDevice device,
        #     WGPUShaderModuleDescriptor const * descriptor,
        #     WGPUShaderRuntimeChecks runtimeChecks)
        return native.lib.wgpuDeviceCreateShaderModuleTrusted(device, descriptor, 0)
    return native.create_shader_module(device, descriptor)


def _timestamp_period(native: Native, queue: Handle) -> float:
    # float wgpuQueueGetTimestampPeriod(WGPUQueue queue)
    return float(native.lib.wgpuQueueGetTimestampPeriod(queue))


def _matrix_units(native: Native, adapter: Handle, subgroup: int) -> list[MatrixUnit]:
    return []


def _live_objects(native: Native, instance: Handle, device: Handle) -> dict[str, int]:
    report = native.ffi.new("WGPUGlobalReport *")
    # void wgpuGenerateReport(WGPUInstance instance, WGPUGlobalReport *report)
    native.lib.wgpuGenerateReport(instance, report)
    hub = report.hub
    kinds = ("devices", "buffers", "bindGroups", "bindGroupLayouts", "pipelineLayouts",
             "computePipelines", "shaderModules", "commandBuffers", "querySets")  # fmt: skip
    return {kind: getattr(hub, kind).numKeptFromUser for kind in kinds}


WGPU_NATIVE = Provider(
    name="webgpu",
    library="wgpu-native",
    package="wgpu",
    install="pip install wgpu",
    no_driver=lambda: (
        "no Vulkan, Metal, Direct3D 12 or OpenGL driver was found; install the GPU's driver, "
        "or a software one (on Debian and Ubuntu: mesa-vulkan-drivers)"
    ),
    dialect="naga",
    # WGPUFeatureName and WGPUNativeFeature
    features={
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
        "memory-decoration-coherent": 0x3003F,
    },
    needs={
        "float16": ("shader-f16",),
        "float64": ("shader-f64",),
        "int64": ("shader-int64",),
        "float_atomics": ("shader-float32-atomic",),
        "int64_atomics": ("shader-int64-atomic-min-max", "shader-int64-atomic-all-ops"),
        "device_fences": ("memory-decoration-coherent",),
        "subgroups": ("subgroup",),
        "timestamps": ("timestamp-query", "timestamp-query-inside-encoders"),
        "unified_memory": ("mappable-primary-buffers",),
    },
    poll=Poll("wgpuDevicePoll", of_device=True),
    error_line=r"wgsl:(\d+):",
    driver_name=lambda vendor, description: f"{vendor} {description}".strip(),
    load=_load,
    create_instance=_create_instance,
    enumerate_adapters=_enumerate_adapters,
    device_extras=_device_extras,
    create_shader=_create_shader,
    timestamp_period=_timestamp_period,
    matrix_units=_matrix_units,
    live_objects=_live_objects,
)
