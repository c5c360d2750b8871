"""The size of blocks and of parameters: what a device takes, and how a printed kernel says it."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.codegen.records import Binding, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.core.limits import Limits
from treadle.ir import nodes as n

CUDA_PARAMETER_BYTES = 4096  # of a kernel, on every card and driver: pointers and numbers


def check_parameters(
    kernel: n.Kernel, bindings: Sequence[Binding], layout: ParameterLayout
) -> None:
    """UnsupportedOnTarget if a kernel's parameters are more than CUDA hands over."""
    size = 8 * len(bindings) + layout.size
    if size > CUDA_PARAMETER_BYTES:
        raise UnsupportedOnTarget(
            f"{kernel.name} takes {len(bindings)} arrays and {len(layout.slots)} "
            f"numbers, {size} bytes of parameters; CUDA hands at most {CUDA_PARAMETER_BYTES} to a "
            "kernel: pass fewer arrays, or several as one",
            kernel.span,
        )


def title(kernel: n.Kernel, entry: str, block: Dim3) -> str:
    """The first line above a printed kernel: its own name, the one it has here if that is another,
    and its block."""
    name = kernel.name if entry == kernel.name else f"{kernel.name}, here {entry}"
    return f"{name}: blocks of {block.x} x {block.y} x {block.z} threads"


def check_threads(kernel: n.Kernel, workgroup: Dim3, limits: Limits) -> None:
    """CompileError if a device cannot run so many threads together."""
    most = limits.max_block
    fits = all(part <= limit for part, limit in zip(workgroup, most, strict=True))
    if not fits or workgroup.count > limits.max_threads_per_block:
        raise CompileError(
            f"{kernel.name}: a block of {workgroup.x} x {workgroup.y} x {workgroup.z} threads; "
            f"this device runs at most {limits.max_threads_per_block} threads a block and "
            f"{most.x} x {most.y} x {most.z} along the axes: choose a smaller block",
            kernel.span,
        )
