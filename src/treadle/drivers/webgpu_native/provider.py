"""What a library of WebGPU in C does in its own way, as a record.

The driver speaks to `native.Native`, whose methods are the calls that all libraries share, and to
the `Provider` behind it for what differs:

| what                 | wgpu-native                           | Dawn                            |
|----------------------|---------------------------------------|---------------------------------|
| listing adapters     | `wgpuInstanceEnumerateAdapters`       | an extension of `wgpudawn`      |
| making progress      | `wgpuDevicePoll(device, …)`           | `wgpuInstanceProcessEvents`     |
| unchecked shaders    | `wgpuDeviceCreateShaderModuleTrusted` | the toggle `disable_robustness` |
| zeroed shared memory | always                                | `disable_workgroup_init`        |
| subgroups            | feature `Subgroup`, no `enable` line  | `Subgroups`, `enable subgroups` |
| 64 bits, f32 atomics | native features                       | do not exist                    |
| tensor cores         | do not exist                          | subgroup matrices               |
| time outside a pass  | `TimestampQueryInsideEncoders`        | `TimestampQuery` and a toggle   |
| unit of timestamps   | ticks: `wgpuQueueGetTimestampPeriod`  | nanoseconds                     |
| invalid submission   | ends the process                      | an error in the callback        |
| callbacks of errors  | within the call                       | so too, by a toggle             |
| several threads      | may call at any time                  | by a feature                    |
| OpenGL               | yes                                   | no                              |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.native import Handle, Native

Element = Literal["f32", "f16", "u32", "i32", "u8", "i8"]


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """A product that a subgroup computes in one step: `result` (m × n) += left (m × k) @ right
    (k × n), whose numbers are `input`. Types are WGSL's words."""

    m: int
    n: int
    k: int
    input: Element
    result: Element


@dataclass(frozen=True, slots=True)
class Poll:
    """The function that calls due callbacks: of the device (with whether to wait, and for which
    submission, behind it), or of the instance (alone)."""

    function: str
    of_device: bool


@dataclass(frozen=True, slots=True)
class Library:
    """The loaded library: cffi's two objects, and its version."""

    ffi: Any
    lib: Any
    version: str


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """One library. `needs` are our features, each with those of the library that it takes; a
    device is asked for everything in `features`, which numbers them."""

    name: str  # of the backend; ids begin with it
    library: str
    package: str
    install: str  # the command that brings it
    no_driver: Callable[[], str]  # why it may find nothing
    dialect: str  # of WGSL
    features: Mapping[str, int]
    needs: Mapping[str, tuple[str, ...]]
    poll: Poll
    error_line: str  # a pattern that finds the line number in a compiler's message
    driver_name: Callable[[str, str], str]  # from an adapter's vendor and description
    load: Callable[[], Library]  # ImportError or OSError if it is not usable
    create_instance: Callable[[Native, bool], Handle]  # (native, validate)
    enumerate_adapters: Callable[[Native, Handle], list[Handle]]
    # What a device descriptor has chained to it (or NULL), and what must live until it was used.
    device_extras: Callable[[Native, bool], tuple[Any, object]]
    create_shader: Callable[[Native, Handle, Any, bool], Handle]  # (…, descriptor, trusted)
    timestamp_period: Callable[[Native, Handle], float]  # (native, queue), nanoseconds a tick
    matrix_units: Callable[[Native, Handle, int], list[MatrixUnit]]  # (…, subgroup size), claimed
    # (native, instance, device): how much the library holds; tests find leaks with it.
    live_objects: Callable[[Native, Handle, Handle], dict[str, int]]
