"""Printed kernels and their arrays: what is checked before WebGPU sees them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, UnsupportedOnTarget
from treadle.core.folding import fit_grid
from treadle.drivers.base import ArrayTooLarge

if TYPE_CHECKING:
    from treadle.codegen.records import Binding, KernelCode
    from treadle.core.limits import DeviceInfo
    from treadle.drivers.base import Buffer

PARAMETER_BYTES = 1 << 16
"""Bytes of parameter blocks in a batch."""

PARAMETER_SIZES = (256, 4096, 16384)
"""A parameter block is bound with one of these sizes, so that few bind groups serve all kernels."""

ERROR_LINE = r":(\d+):\d+ error"
"""Finds the line number in a message of Tint's."""


def parameter_bucket(size: int) -> int:
    """Which of `PARAMETER_SIZES` a block of `size` bytes is bound with."""
    return next(i for i, limit in enumerate(PARAMETER_SIZES) if size <= limit)


def check_fits(info: DeviceInfo, code: KernelCode) -> None:
    """CompileError for code in another language or dialect, UnsupportedOnTarget if the device lacks
    what it needs."""
    limits, name = info.limits, code.name
    if code.target != "wgsl" or code.dialect not in ("", info.dialect):
        raise CompileError(
            f"kernel {name} is printed for {code.target} {code.dialect}".rstrip()
            + f"; this device compiles WGSL in {info.dialect}'s dialect"
        )
    missing = sorted(code.requires - info.features)
    if missing:
        raise UnsupportedOnTarget(
            f"kernel {name} needs {', '.join(missing)}, which {info.name} does not have"
        )
    workgroup = code.workgroup
    asked = [
        ("threads in a block", workgroup.count, limits.max_threads_per_block),
        ("bytes of shared memory", code.shared_bytes, limits.max_shared_memory),
        ("different arrays", len(code.bindings), limits.max_buffers_per_kernel),
        ("bytes of parameters", code.layout.size, PARAMETER_SIZES[-1]),
        *zip(
            ("threads in x", "threads in y", "threads in z"), workgroup, limits.max_block,
            strict=True,
        ),
    ]  # fmt: skip
    for what, wanted, possible in asked:
        if wanted > possible:
            raise UnsupportedOnTarget(
                f"kernel {name} asks for {wanted} {what}; {info.name} has at most {possible}"
            )


def check_buffers(name: str, bindings: tuple[Binding, ...], buffers: tuple[Buffer, ...]) -> None:
    """LaunchError unless there is one buffer for each binding, and none of them twice."""
    if len(buffers) != len(bindings):
        raise LaunchError(f"kernel {name} binds {len(bindings)} buffers, not {len(buffers)}")
    if len(set(buffers)) != len(buffers):
        raise LaunchError(
            f"kernel {name} is given one buffer for two bindings; WebGPU refuses that, so compile "
            "the kernel for arguments that are the same array"
        )


def check_bindable(info: DeviceInfo, name: str, what: str, buffer: Buffer) -> None:
    """ArrayTooLarge for a buffer of which a kernel sees a part only."""
    largest = info.limits.max_binding_size
    if buffer.size > largest:
        raise ArrayTooLarge(
            f"{what} of kernel {name} has {buffer.size:,} bytes; on {info.name} a "
            f"kernel sees at most {largest:,} bytes of one array: launch it on slices of the "
            "array, one after the other"
        )


def foldable(code: KernelCode, grid: Dim3, largest: int) -> tuple[int, int, int]:
    """A grid over the limit in a shape that the device takes; LaunchError if there is none."""
    if code.folded and min(grid) > 0:
        fitting = fit_grid(grid, Dim3(largest, largest, largest), True)
        if fitting is not None:
            return fitting
        raise LaunchError(
            f"a grid of {tuple(grid)} blocks is not possible for kernel {code.name}: the "
            f"device runs up to {largest} x {largest} rows of {largest} blocks. Launch it in parts"
        )
    raise LaunchError(
        f"a grid of {tuple(grid)} blocks is over the device's {largest} blocks in a dimension, and "
        f"kernel {code.name} is not compiled for a folded grid"
    )


def explain(message: str, pattern: str, source: str) -> str:
    """The compiler's message in short, and the generated line it speaks of by `pattern`."""
    place = re.search(pattern, message)
    lines = source.splitlines()
    shown = ""
    if place is not None and 0 < int(place.group(1)) <= len(lines):
        shown = f" (generated line {place.group(1)}: {lines[int(place.group(1)) - 1].strip()})"
    return _reason(message, source) + shown


def _reason(message: str, source: str) -> str:
    """What is wrong, without which call found it and the excerpts that compilers draw below."""
    said = [line.strip() for line in message.splitlines()]
    words = [line for line in said if line and line not in source and not _EXCERPT.match(line)]
    return "; ".join(dict.fromkeys(words[:_MOST_LINES]))


_EXCERPT = re.compile(r"[\d\s]*[│┌╰╭|^=]|[\^~]+$|Caused by:|In wgpu|- While calling")
_MOST_LINES = 6
