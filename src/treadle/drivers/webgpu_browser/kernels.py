"""Printed kernels made ready to run, and the bind groups that tie them to buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.codegen.records import KernelCode
from treadle.core.errors import TreadleError, refused_by_compiler
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_rules.kernels import (
    ERROR_LINE,
    check_fits,
    explain,
    parameter_bucket,
)
from treadle.drivers.webgpu_rules.memory import Groups

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice


class Layout:
    """A pipeline layout, shared by kernels that bind alike, with its cache of bind groups."""

    __slots__ = ("groups", "number")

    def __init__(self, number: int, groups: Groups) -> None:
        self.number = number
        self.groups = groups


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
    key = device.own_for(kernel, buffers)
    device.check()
    device.bind_groups.make_room()
    number = device.next_number()
    words = device.batch.words
    words += (commands.BIND, number, kernel.layout.number, len(key))
    for buffer in key:
        words += (buffer.number, buffer.start, buffer.size)
    device.bind_groups.add(kernel.groups, key, number)
    return number
