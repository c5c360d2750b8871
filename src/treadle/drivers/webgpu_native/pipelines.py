"""Printed kernels made ready to run, and the bind groups that tie them to buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.codegen.records import KernelCode
from treadle.core.errors import LaunchError, refused_by_compiler
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.drivers.webgpu_native.memory import WebgpuBuffer
from treadle.drivers.webgpu_native.native import Handle
from treadle.drivers.webgpu_rules.kernels import (
    check_bindable,
    check_buffers,
    check_fits,
    explain,
    parameter_bucket,
)

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

Groups = dict[tuple[Buffer, ...], int]

_MAX_GROUPS = 4096  # cached bind groups of a device


class Layout:
    """A pipeline layout, shared by kernels that bind alike, with its cache of bind groups."""

    __slots__ = ("group_layout", "groups", "handle", "types")

    def __init__(self, device: WebgpuDevice, types: tuple[str, ...], *, parameters: bool) -> None:
        native = device.native
        self.types = types
        self.group_layout = native.create_bind_group_layout(device.handle, types)
        layouts = [self.group_layout] + [device.parameter_layout] * parameters
        self.handle = native.create_pipeline_layout(device.handle, layouts)
        self.groups: Groups = {}


class WebgpuKernel(CompiledKernel):
    """A compute pipeline and what a launch needs to know of it."""

    __slots__ = (
        "_handle", "bucket", "folded", "groups", "layout", "pipeline", "size", "stride", "threads",
    )  # fmt: skip

    def __init__(self, device: WebgpuDevice, code: KernelCode, layout: Layout, handle: Handle):
        self.device = device
        self.code = code
        self.layout = layout
        self.groups = layout.groups
        self.folded = code.folded
        self.threads = code.block.count
        self.pipeline = device.native.address(handle)
        self._handle = handle
        self.size = code.layout.size
        self.stride = -(-self.size // device.uniform_alignment) * device.uniform_alignment
        self.bucket = parameter_bucket(self.size)

    def __del__(self) -> None:
        # A kernel that failed to build has no handle.
        handle = getattr(self, "_handle", None)
        if handle is not None:
            device: WebgpuDevice = self.device  # type: ignore[assignment]
            device.release_later(device.native.release_pipeline, handle)


def compile_kernel(device: WebgpuDevice, code: KernelCode) -> WebgpuKernel:
    """Build printed WGSL. Raises CompileError with the compiler's words and the text,
    UnsupportedOnTarget if the device lacks what the code needs."""
    check_fits(device.info, code)
    native = device.native
    with device.compiling() as errors:  # without its lock: it works, and compiles others, meanwhile
        with device.lock:
            types = tuple("storage" if binding.writes else "read" for binding in code.bindings)
            layout = device.layout(types, parameters=code.layout.size > 0)
        module = native.create_shader(
            device.handle, code.source, trusted=not device.validate, label=code.name
        )
        if not errors:
            pipeline = native.create_pipeline(
                device.handle, layout.handle, module, code.entry, code.name
            )
            if errors:
                native.release_pipeline(pipeline)
        native.release_shader(module)
    if errors:
        device.check()
        reason = explain(errors[0][1], native.provider.error_line, code.source)
        raise refused_by_compiler(
            f"the WGSL compiler {native.provider.dialect}", code.name, reason, code.source
        )
    return WebgpuKernel(device, code, layout, pipeline)


# ---------------------------------------------------------------------- bind groups


def bind(device: WebgpuDevice, kernel: WebgpuKernel, buffers: Sequence[Buffer]) -> int:
    """The bind group of a kernel with these buffers, made now and cached.

    Raises LaunchError if the buffers do not fit the kernel."""
    key = _check_buffers(device, kernel, tuple(buffers))
    with device.lock:
        device.check()
        if device.group_count >= _MAX_GROUPS:
            forget_groups(device)
        ranges = [(buffer.handle, buffer.start, buffer.size) for buffer in key]
        handle = device.native.create_bind_group(device.handle, kernel.layout.group_layout, ranges)
        device.raise_errors(f"binding the arrays of kernel {kernel.code.name}")
        number = device.native.address(handle)
        kernel.groups[key] = number
        device.group_count += 1
        for buffer in key:
            buffer.groups.setdefault(key, []).append(kernel.groups)
    return number


def _check_buffers(
    device: WebgpuDevice, kernel: WebgpuKernel, buffers: tuple[Buffer, ...]
) -> tuple[WebgpuBuffer, ...]:
    name, bindings = kernel.code.name, kernel.code.bindings
    check_buffers(name, bindings, buffers)
    if kernel.device is not device:
        raise LaunchError(f"kernel {name} was compiled for another device")
    for buffer, binding in zip(buffers, bindings, strict=True):
        what = "/".join(binding.buffers)
        if not isinstance(buffer, WebgpuBuffer) or buffer.device is not device:
            if isinstance(buffer, WebgpuBuffer):
                buffer.device.check()
            raise LaunchError(f"{what} of kernel {name} is not memory of {device.info.id}")
        if buffer.freed:
            raise LaunchError(f"{what} of kernel {name} has been freed")
        check_bindable(device.info, name, what, buffer)
    return buffers  # type: ignore[return-value]  # all checked


def forget_buffer(device: WebgpuDevice, buffer: WebgpuBuffer) -> None:
    """Drop the cached bind groups that name a buffer."""
    for key, caches in buffer.groups.items():
        for cache in caches:
            _drop(device, cache, key)
        for other in key:
            if other is not buffer:
                other.groups.pop(key, None)  # type: ignore[attr-defined]
    buffer.groups.clear()


def forget_groups(device: WebgpuDevice) -> None:
    """Drop all cached bind groups; those still needed are made again."""
    for layout in device.layouts.values():
        for key in list(layout.groups):
            _drop(device, layout.groups, key)
            for buffer in key:
                buffer.groups.clear()  # type: ignore[attr-defined]


def _drop(device: WebgpuDevice, cache: Groups, key: tuple[Buffer, ...]) -> None:
    number = cache.pop(key, None)
    if number is not None:
        device.group_count -= 1
        handle = device.native.handle("WGPUBindGroup", number)
        device.release_later(device.native.release_bind_group, handle)
