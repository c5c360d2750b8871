"""What a device is and can do: its identity, limits and features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from treadle.core.dim3 import Dim3
from treadle.core.traits import Traits

MOST_NARROW = (1 << 31) - (1 << 16)
"""Arrays of as many elements, or more, are indexed with 64 bits. It is less than 32 bits can count,
so that an index and a step beyond it (the threads of a block, a tile) still fit."""

MOST_SHARED_MEMORY = 227 << 10
"""Bytes of shared memory for a block that no device of today goes beyond (NVIDIA's sm_90)."""

CUDA_PARAMETER_BYTES = 4096
"""Bytes of a kernel's parameters, pointers and numbers, on every card and driver of NVIDIA's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits of a device. Sizes are in bytes.

    `subgroup_size` is the size that kernels see; 0 means the device has no subgroups of its own
    and they are emulated at width 32.
    """

    max_threads_per_block: int = 256
    max_block: Dim3 = Dim3(256, 256, 64)
    max_grid: Dim3 = Dim3(65535, 65535, 65535)
    max_shared_memory: int = 16384
    max_buffer_size: int = 1 << 27
    max_binding_size: int = 1 << 27
    max_buffers_per_kernel: int = 8
    subgroup_size: int = 0
    buffer_alignment: int = 256


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The identity of a device. `id` is what users type: "cpu", "webgpu:0"."""

    id: str
    name: str
    backend: str  # how it is reached, for people to read: "cuda", "webgpu", "cpu"
    kind: Literal["discrete", "integrated", "software", "cpu"]
    traits: Traits
    vendor: str = ""
    driver: str = ""
    api: str = ""  # "vulkan", "metal", "d3d12", "gl", "cuda", ""
    dialect: str = ""  # what its compiler takes: "naga" or "tint" (WGSL), "sm_90" (CUDA), ""
    limits: Limits = field(default_factory=Limits)
    # of "float16" "float64" "int64" "subgroups" "tensor_cores" "persistent" "timestamps"
    # "float_atomics" "int64_atomics" "device_fences" "unified_memory"
    features: frozenset[str] = frozenset()
