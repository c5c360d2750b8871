"""Dawn, the library of the `wgpudawn` package and of Chrome: Vulkan, Metal and Direct3D 12.

It reaches tensor cores, through subgroup matrices. Its compiler Tint is stricter than naga; an
error in a submission goes to the error callback, and the process goes on.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treadle.drivers.webgpu_native.native import Handle, Native
from treadle.drivers.webgpu_native.provider import Element, Library, MatrixUnit, Poll, Provider

_log = logging.getLogger("treadle")
# WGPUInstanceFeatureName: an adapter gives more than one device only by request.
_SEVERAL_DEVICES = 3
# Toggles are chosen where they take effect: for the instance, for adapters, for a device.
_INSTANCE = ("allow_unsafe_apis",)  # timestamps outside a pass, subgroup matrices
_ADAPTER = ("vulkan_enable_f16_on_nvidia",)
# Errors are reported within the call that made them; by default they come at the next poll.
_DEVICE = ("enable_immediate_error_handling",)
_UNCHECKED = ("disable_robustness", "disable_workgroup_init")  # kernels guard memory themselves
_CHECKED = ("use_user_defined_labels_in_backend",)  # for graphics debuggers
_DEVICE_WITHOUT = ("timestamp_quantization",)
_PARTIAL = 1  # Dawn's level of validation by the interface itself, where its layers are installed
_TIMESTAMP_NANOSECONDS = 1.0
# WGPUSubgroupMatrixComponentType
_ELEMENTS: dict[int, Element] = {1: "f32", 2: "f16", 3: "u32", 4: "i32", 5: "u8", 6: "i8"}
_MATRIX_FEATURE = "chromium-experimental-subgroup-matrix"


def _load() -> Library:
    from wgpudawn._lib import dawn_version, ffi, lib

    return Library(ffi, lib, dawn_version)


def _toggles(native: Native, on: Sequence[str], off: Sequence[str] = ()) -> tuple[Any, object]:
    """A WGPUDawnTogglesDescriptor to chain, and what it points to."""
    ffi = native.ffi
    descriptor = ffi.new("WGPUDawnTogglesDescriptor *")
    descriptor.chain.sType = native.lib.WGPUSType_DawnTogglesDescriptor
    texts = [[ffi.new("char[]", name.encode()) for name in names] for names in (on, off)]
    arrays = [ffi.new("char *[]", names) for names in texts]
    descriptor.enabledToggleCount, descriptor.enabledToggles = len(on), arrays[0]
    descriptor.disabledToggleCount, descriptor.disabledToggles = len(off), arrays[1]
    return ffi.cast("WGPUChainedStruct *", descriptor), (descriptor, texts, arrays)


@contextmanager
def _stderr_to_log() -> Iterator[None]:
    """Dawn prints why it cannot use a driver, each time it looks: that goes to the log."""
    try:
        kept = os.dup(2)
    except OSError:  # closed
        yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            said.seek(0)
            text = said.read().decode("utf-8", "replace").strip()
            if text:
                _log.info("Dawn, looking for devices: %s", text)


def _create_instance(native: Native, validate: bool) -> Handle:
    chain, kept = _toggles(native, _INSTANCE)
    descriptor = native.ffi.new("WGPUInstanceDescriptor *")
    descriptor.nextInChain = chain
    features = native.ffi.new("WGPUInstanceFeatureName[]", [_SEVERAL_DEVICES])
    descriptor.requiredFeatureCount, descriptor.requiredFeatures = 1, features
    # WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const * descriptor)
    instance = native.lib.wgpuCreateInstance(descriptor)
    if validate:
        # void wgpu_dawn_set_backend_validation_level(WGPUInstance instance, int level)
        native.lib.wgpu_dawn_set_backend_validation_level(instance, _PARTIAL)
    del kept
    return instance


def _enumerate_adapters(native: Native, instance: Handle) -> list[Handle]:
    options = native.ffi.new("WGPURequestAdapterOptions *")
    options.nextInChain, kept = _toggles(native, _ADAPTER)
    # size_t wgpu_dawn_enumerate_adapters(WGPUInstance instance,
    #     WGPURequestAdapterOptions const *options, WGPUAdapter *adapters, size_t most)
    enumerate_adapters = native.lib.wgpu_dawn_enumerate_adapters
    with _stderr_to_log():
        count = enumerate_adapters(instance, options, native.null, 0)
        adapters = native.ffi.new("WGPUAdapter[]", count)
        count = min(count, enumerate_adapters(instance, options, adapters, count))
    del kept
    return [adapters[i] for i in range(count)]


def _device_extras(native: Native, validate: bool) -> tuple[Any, object]:
    return _toggles(native, _DEVICE + (_CHECKED if validate else _UNCHECKED), _DEVICE_WITHOUT)


def _create_shader(native: Native, device: Handle, descriptor: Any, trusted: bool) -> Handle:
    return native.create_shader_module(device, descriptor)  # checked or not by the device's toggles


def _timestamp_period(native: Native, queue: Handle) -> float:
    return _TIMESTAMP_NANOSECONDS


def _matrix_units(native: Native, adapter: Handle, subgroup: int) -> list[MatrixUnit]:
    # WGPUBool wgpuAdapterHasFeature(WGPUAdapter adapter, WGPUFeatureName feature)
    if not native.lib.wgpuAdapterHasFeature(adapter, DAWN.features[_MATRIX_FEATURE]):
        return []
    found = native.ffi.new("WGPUAdapterPropertiesSubgroupMatrixConfigs *")
    found.chain.sType = native.lib.WGPUSType_AdapterPropertiesSubgroupMatrixConfigs
    info = native.ffi.new("WGPUAdapterInfo *")
    info.nextInChain = native.ffi.cast("WGPUChainedStruct *", found)
    # WGPUStatus wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo * info)
    native.lib.wgpuAdapterGetInfo(adapter, info)
    units = [
        MatrixUnit(
            unit.M,
            unit.N,
            unit.K,
            _ELEMENTS[unit.componentType],
            _ELEMENTS[unit.resultComponentType],
        )
        for unit in (found.configs[i] for i in range(found.configCount))
        if unit.minSubgroupSize <= subgroup <= unit.maxSubgroupSize
        and {unit.componentType, unit.resultComponentType} <= _ELEMENTS.keys()
    ]
    # void wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers(
    #     WGPUAdapterPropertiesSubgroupMatrixConfigs value)
    native.lib.wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers(found[0])
    # void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo adapterInfo)
    native.lib.wgpuAdapterInfoFreeMembers(info[0])
    return list(dict.fromkeys(units))


def _live_objects(native: Native, instance: Handle, device: Handle) -> dict[str, int]:
    usage = native.ffi.new("uint64_t[7]")
    # void wgpu_dawn_memory_usage(WGPUDevice device, uint64_t * out7)
    native.lib.wgpu_dawn_memory_usage(device, usage)
    return {"bytes": usage[0], "buffer bytes": usage[6]}


# Where browsers have the file by which Vulkan's loader finds their software driver.
_SWIFTSHADER = "vk_swiftshader_icd.json"
_BROWSERS = (
    "/usr/lib/chromium", "/usr/lib/chromium-browser", "/usr/lib64/chromium-browser",
    "/opt/google/chrome", "/usr/lib/electron",
)  # fmt: skip


def swiftshader() -> Path | None:
    """The file that selects SwiftShader in `VK_DRIVER_FILES`, if a browser here has it."""
    found = (Path(folder, _SWIFTSHADER) for folder in _BROWSERS)
    return next((path for path in found if path.exists()), None)


def _no_driver() -> str:
    found = swiftshader()
    how = f"VK_DRIVER_FILES={found or f'/path/to/{_SWIFTSHADER}'}"
    here = "" if found is None else ", which is installed here,"
    return (
        "no Vulkan, Metal or Direct3D 12 driver was found that is new enough for Dawn; install the "
        "GPU's driver. Of software ones, Mesa 25's lavapipe and Chromium's SwiftShader will do: "
        f"{how} in the environment selects SwiftShader{here} for this process"
    )


DAWN = Provider(
    name="dawn",
    library="Dawn",
    package="wgpudawn",
    install='pip install "treadle[dawn]"',
    no_driver=_no_driver,
    dialect="tint",
    # WGPUFeatureName
    features={
        "timestamp-query": 0x9,
        "shader-f16": 0xB,
        "subgroups": 0x12,
        "implicit-device-synchronization": 0x50004,
        "buffer-map-extended-usages": 0x50013,
        _MATRIX_FEATURE: 0x50034,
    },
    needs={
        "float16": ("shader-f16",),
        "subgroups": ("subgroups",),
        "tensor_cores": ("subgroups", _MATRIX_FEATURE),
        "timestamps": ("timestamp-query",),
        "unified_memory": ("buffer-map-extended-usages",),
    },
    poll=Poll("wgpuInstanceProcessEvents", of_device=False),
    error_line=r":(\d+):\d+ error",
    driver_name=lambda vendor, description: description or vendor,
    load=_load,
    create_instance=_create_instance,
    enumerate_adapters=_enumerate_adapters,
    device_extras=_device_extras,
    create_shader=_create_shader,
    timestamp_period=_timestamp_period,
    matrix_units=_matrix_units,
    live_objects=_live_objects,
)
