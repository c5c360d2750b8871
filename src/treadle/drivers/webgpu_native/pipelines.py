"""Printed kernels made ready to run, and the bind groups that tie them to buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.codegen.records import KernelCode
from treadle.core.errors import refused_by_compiler
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.drivers.webgpu_native.native import Handle
from treadle.drivers.webgpu_rules.kernels import (
    check_fits,
    explain,
    parameter_bucket,
)

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice


class Layout:
    """A pipeline layout, shared by kernels that bind alike, with its cache of bind groups."""

    __slots__ = ("group_layout", "groups", "handle", "types")

    def __init__(self, device: WebgpuDevice, types: tuple[str, ...], *, parameters: bool) -> None:
        native = device.native
        self.types = types
        self.group_layout = native.create_bind_group_layout(device.handle, types)
        layouts = [self.group_layout] + [device.parameter_layout] * parameters
        self.handle = native.create_pipeline_layout(device.handle, layouts)
        self.groups = device.bind_groups.new_cache()


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
    key = device.own_for(kernel, buffers)
    with device.lock:
        device.check()
        device.bind_groups.make_room()
        ranges = [(buffer.handle, buffer.start, buffer.size) for buffer in key]
        handle = device.native.create_bind_group(device.handle, kernel.layout.group_layout, ranges)
        device.raise_errors(f"binding the arrays of kernel {kernel.code.name}")
        number = device.native.address(handle)
        device.bind_groups.add(kernel.groups, key, number)
    return number
