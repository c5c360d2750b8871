"""Which GPUs WebGPU reaches here: one entry per physical device.

The same card is often reachable through several interfaces (Vulkan, Metal, Direct3D 12, OpenGL).
The first in that order is listed; the others have ids after all listed ones and are found by
asking for their interface.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.limits import DeviceInfo, Limits
from treadle.drivers.webgpu_native import native as native_module
from treadle.drivers.webgpu_native.native import Handle, Native
from treadle.drivers.webgpu_native.provider import MatrixUnit, Provider
from treadle.drivers.webgpu_rules.traits import (
    MOST_BOUND,
    Kind,
    subgroup_size,
    traits_of,
    whole_vectors,
)

_API_ORDER = ("vulkan", "metal", "d3d12", "gl")
# WGPUAdapterType. OpenGL often cannot tell ("unknown"); the vendor then decides.
_KINDS: dict[int, Kind] = {1: "discrete", 2: "integrated", 3: "software"}
_VENDORS = {
    0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel", 0x106B: "Apple", 0x13B5: "Arm",
    0x5143: "Qualcomm", 0x14E4: "Broadcom", 0x1010: "Imagination", 0x1414: "Microsoft",
    0x1AE0: "Google", 0x10005: "Mesa",
}  # fmt: skip
# Vendors all of whose GPUs have one subgroup size, for when the driver does not say.
_SUBGROUPS = {"NVIDIA": 32, "Apple": 32}
# Better devices come first, by the user's preference of power.
_PREFERENCE: dict[str, dict[str, int]] = {
    "high": {"discrete": 0, "integrated": 1, "software": 2},
    "low": {"integrated": 0, "discrete": 1, "software": 2},
}


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter of the library and what it says of itself."""

    native: Native
    info: DeviceInfo
    handle: Handle
    instance: Handle
    features: frozenset[str]  # the library's names
    matrix_units: tuple[MatrixUnit, ...]  # as the library claims
    vendor_id: int
    device_id: int
    hidden: bool  # another interface to the same physical device is listed instead


def list_adapters(
    provider: Provider, *, api: str | None = None, power: str = "high", validate: bool = False
) -> list[Adapter]:
    """The adapters, best first; with `api`, all those of that interface."""
    if api not in (None, *_API_ORDER):
        raise ValueError(f"api is one of {', '.join(_API_ORDER)}; not {api!r}")
    if power not in _PREFERENCE:
        raise ValueError(f"power is one of {', '.join(_PREFERENCE)}; not {power!r}")
    found = _all_adapters(provider, validate, os.getpid())
    chosen = [a for a in found if (a.info.api == api if api else not a.hidden)]
    order = _PREFERENCE[power]
    return sorted(chosen, key=lambda adapter: order.get(adapter.info.kind, 1))


@functools.cache
def _all_adapters(provider: Provider, validate: bool, _process: int) -> tuple[Adapter, ...]:
    # By process: after a fork the parent's adapters are unusable, and the child finds its own.
    native = native_module.load(provider)
    instance = native.create_instance(validate=validate)
    handles = native.enumerate_adapters(instance)
    found = [a for a in (_describe(native, instance, handle) for handle in handles) if a]
    found.sort(key=lambda a: (_API_ORDER.index(a.info.api), _PREFERENCE["high"][a.info.kind]))
    found = [replace(a, hidden=hidden) for a, hidden in zip(found, _hidden(found), strict=True)]
    found.sort(key=lambda adapter: (adapter.hidden, _PREFERENCE["high"][adapter.info.kind]))
    return tuple(
        replace(adapter, info=replace(adapter.info, id=f"{provider.name}:{number}"))
        for number, adapter in enumerate(found)
    )


def _hidden(found: list[Adapter]) -> list[bool]:
    """For adapters in the order of preference: is the same device listed through another API?

    The n-th card of a model in one interface is taken for the n-th in another. OpenGL does not
    know model numbers, so there the vendor must do.
    """
    seen: dict[tuple[int, int], int] = {}  # how many of a model are listed
    vendors: set[int] = set()
    count: Counter[tuple[str, int, int]] = Counter()
    hidden = []
    for adapter in found:
        model = (adapter.vendor_id, adapter.device_id)
        count[(adapter.info.api, *model)] += 1
        if adapter.info.api == "gl":
            duplicate = adapter.vendor_id in vendors
        else:
            duplicate = count[(adapter.info.api, *model)] <= seen.get(model, 0)
            vendors.add(adapter.vendor_id)
        if not duplicate:
            seen[model] = seen.get(model, 0) + 1
        hidden.append(duplicate)
    return hidden


def gl_computes(version: str) -> bool:
    """Whether an OpenGL of this version has compute shaders: 4.3, or 3.1 of OpenGL ES.

    >>> gl_computes("4.5 (Core Profile) Mesa 22.3.6"), gl_computes("OpenGL ES 3.2 Mesa 22.3.6")
    (True, True)
    >>> gl_computes("3.3.0 NVIDIA 580.159.04")
    False
    """
    found = re.search(r"(\d+)\.(\d+)", version)
    needed = (3, 1) if "OpenGL ES" in version else (4, 3)
    return found is not None and (int(found[1]), int(found[2])) >= needed


def _describe(native: Native, instance: Handle, handle: Handle) -> Adapter | None:
    """What there is to know of an adapter; None if it cannot compute."""
    raw = native.adapter_info(handle)
    if raw["api"] not in _API_ORDER:
        return None  # a layer on top of another interface, or one that only pretends
    provider, features = native.provider, native.adapter_features(handle)
    driver = provider.driver_name(raw["vendor"], raw["description"])
    if raw["api"] == "gl" and not gl_computes(driver):
        return None
    vendor = _VENDORS.get(raw["vendor_id"], "")
    kind: Kind = _KINDS.get(raw["type"], "discrete" if vendor == "NVIDIA" else "integrated")
    assured = _SUBGROUPS.get(vendor, 0)
    sizes = (raw["subgroup_min"] or assured, raw["subgroup_max"] or assured)
    has_subgroups = features.issuperset(provider.needs["subgroups"])
    limits = read_limits(native.adapter_limits(handle), subgroup_size(sizes) * has_subgroups)
    units = tuple(provider.matrix_units(native, handle, limits.subgroup_size))
    info = DeviceInfo(
        id=provider.name,
        name=raw["name"],
        backend="webgpu",
        kind=kind,
        traits=traits_of(kind),
        vendor=vendor,
        driver=driver,
        api=raw["api"],
        dialect=provider.dialect,
        limits=limits,
        features=_features(provider, kind, raw["api"], features, limits, units),
    )
    return Adapter(
        native, info, handle, instance, frozenset(features), units,
        raw["vendor_id"], raw["device_id"], hidden=False,
    )  # fmt: skip


def _features(
    provider: Provider,
    kind: Kind,
    api: str,
    given: set[str],
    limits: Limits,
    units: tuple[MatrixUnit, ...],
) -> frozenset[str]:
    """Our names for what an adapter has."""
    missing = set() if limits.subgroup_size else {"subgroups"}
    if kind == "discrete":  # kernels would reach across the bus
        missing.add("unified_memory")
    if api != "vulkan":  # whose barriers order storage for the device, if it is coherent
        missing.add("device_fences")
    if not units:
        missing.add("tensor_cores")
    names = {name for name, needed in provider.needs.items() if given.issuperset(needed)}
    return frozenset(names - missing)


def read_limits(raw: Any, subgroup: int) -> Limits:
    """A `WGPULimits *` in our words."""
    largest_grid = raw.maxComputeWorkgroupsPerDimension
    return Limits(
        max_threads_per_block=raw.maxComputeInvocationsPerWorkgroup,
        max_block=Dim3(
            raw.maxComputeWorkgroupSizeX, raw.maxComputeWorkgroupSizeY, raw.maxComputeWorkgroupSizeZ
        ),
        max_grid=Dim3(largest_grid, largest_grid, largest_grid),
        max_shared_memory=raw.maxComputeWorkgroupStorageSize,
        max_buffer_size=whole_vectors(raw.maxBufferSize),
        max_binding_size=min(
            whole_vectors(raw.maxStorageBufferBindingSize),
            whole_vectors(raw.maxBufferSize),
            MOST_BOUND,
        ),
        max_buffers_per_kernel=min(
            raw.maxStorageBuffersPerShaderStage, raw.maxBindingsPerBindGroup
        ),
        subgroup_size=subgroup,
        buffer_alignment=raw.minStorageBufferOffsetAlignment,
    )


def reduce_limits(raw: Any, wanted: Limits) -> None:
    """Lower a `WGPULimits *` to `wanted` where that asks for less."""
    for name, value in {
        "maxComputeInvocationsPerWorkgroup": wanted.max_threads_per_block,
        "maxComputeWorkgroupSizeX": wanted.max_block.x,
        "maxComputeWorkgroupSizeY": wanted.max_block.y,
        "maxComputeWorkgroupSizeZ": wanted.max_block.z,
        "maxComputeWorkgroupsPerDimension": wanted.max_grid.x,
        "maxComputeWorkgroupStorageSize": wanted.max_shared_memory,
        "maxBufferSize": wanted.max_buffer_size,
        "maxStorageBufferBindingSize": wanted.max_binding_size,
        "maxStorageBuffersPerShaderStage": wanted.max_buffers_per_kernel,
    }.items():
        setattr(raw, name, min(getattr(raw, name), value))
