"""Printed kernels made ready to run, and the bind groups that tie them to buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.codegen.records import KernelCode
from treadle.core.errors import LaunchError, TreadleError, refused_by_compiler
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_browser.memory import BrowserBuffer
from treadle.drivers.webgpu_rules.kernels import (
    ERROR_LINE,
    check_bindable,
    check_buffers,
    check_fits,
    explain,
    parameter_bucket,
)

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice

Groups = dict[tuple[Buffer, ...], int]

_MOST_GROUPS = 4096  # cached bind groups of a device


class Layout:
    """A pipeline layout, shared by kernels that bind alike, with its cache of bind groups."""

    __slots__ = ("groups", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.groups: Groups = {}


class BrowserKernel(CompiledKernel):
    """A compute pipeline, which may still be made, and what a launch needs to know of it."""

    __slots__ = (
        "__weakref__", "_wrong", "bucket", "groups", "layout", "number", "size", "threads",
    )  # fmt: skip

    def __init__(self, device: BrowserDevice, code: KernelCode, layout: Layout, number: int):
        self.device = device
        self.code = code
        self.layout = layout
        self.groups = layout.groups
        self.threads = code.block.count
        self.number = number
        self.size = code.layout.size
        self.bucket = parameter_bucket(self.size) + 1 if self.size else 0
        self._wrong = ""

    def failed(self, message: str) -> TreadleError:
        """The pipeline could not be made: the error to raise."""
        self._wrong = message
        self.groups = {}  # so that each launch looks at `check`
        return self._error()

    def check(self) -> None:
        """Raise what is wrong with the kernel, if something is."""
        if self._wrong:
            raise self._error()

    def _error(self) -> TreadleError:
        source = self.code.source
        reason = explain(self._wrong, ERROR_LINE, source)
        return refused_by_compiler("the browser's WGSL compiler", self.code.name, reason, source)

    def __del__(self) -> None:
        device: BrowserDevice = self.device  # type: ignore[assignment]
        device.forget(commands.FORGET_PIPELINE, self.number)


def compile_kernel(device: BrowserDevice, code: KernelCode) -> BrowserKernel:
    """Begin to build printed WGSL. What is wrong with it is raised when it is next used or waited
    for, since only the browser's event loop brings it."""
    check_fits(device.info, code)
    types = "".join("w" if binding.writes else "r" for binding in code.bindings)
    layout = device.layout(types)
    kernel = BrowserKernel(device, code, layout, device.next_number())
    device.compiling(kernel)
    device.helper.compile(
        kernel.number, layout.number, kernel.size > 0, code.source, code.entry, code.name
    )
    return kernel


# ---------------------------------------------------------------------- bind groups


def bind(device: BrowserDevice, kernel: BrowserKernel, buffers: Sequence[Buffer]) -> int:
    """The bind group of a kernel with these buffers, made now and cached.

    Raises LaunchError if the buffers do not fit the kernel, and what is wrong with that."""
    kernel.check()
    key = _check_buffers(device, kernel, tuple(buffers))
    device.check()
    if device.group_count >= _MOST_GROUPS:
        forget_groups(device)
    number = device.next_number()
    words = device.batch.words
    words += (commands.BIND, number, kernel.layout.number, len(key))
    for buffer in key:
        words += (buffer.number, buffer.start, buffer.size)
    kernel.groups[key] = number
    device.group_count += 1
    for buffer in key:
        buffer.groups.setdefault(key, []).append(kernel.groups)
    return number


def _check_buffers(
    device: BrowserDevice, kernel: BrowserKernel, buffers: tuple[Buffer, ...]
) -> tuple[BrowserBuffer, ...]:
    name, bindings = kernel.code.name, kernel.code.bindings
    check_buffers(name, bindings, buffers)
    if kernel.device is not device:
        raise LaunchError(f"kernel {name} was compiled for another device")
    for buffer, binding in zip(buffers, bindings, strict=True):
        what = "/".join(binding.buffers)
        if not isinstance(buffer, BrowserBuffer) or buffer.device is not device:
            if isinstance(buffer, BrowserBuffer):
                buffer.device.check()
            raise LaunchError(f"{what} of kernel {name} is not memory of {device.info.id}")
        if buffer.freed:
            raise LaunchError(f"{what} of kernel {name} has been freed")
        check_bindable(device.info, name, what, buffer)
    return buffers  # type: ignore[return-value]  # all checked


def forget_buffer(device: BrowserDevice, buffer: BrowserBuffer) -> None:
    """Drop the cached bind groups that name a buffer."""
    for key, caches in buffer.groups.items():
        for cache in caches:
            _drop(device, cache, key)
        for other in key:
            if other is not buffer:
                other.groups.pop(key, None)  # type: ignore[attr-defined]
    buffer.groups.clear()


def forget_groups(device: BrowserDevice) -> None:
    """Drop all cached bind groups; those still needed are made again."""
    for layout in device.layouts.values():
        for key in list(layout.groups):
            _drop(device, layout.groups, key)
            for buffer in key:
                buffer.groups.clear()  # type: ignore[attr-defined]


def _drop(device: BrowserDevice, cache: Groups, key: tuple[Buffer, ...]) -> None:
    number = cache.pop(key, None)
    if number is not None:
        device.group_count -= 1
        device.forget(commands.FORGET_GROUP, number)
