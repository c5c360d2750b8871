"""The size of blocks, held against what a device runs."""

from __future__ import annotations

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.limits import Limits
from treadle.ir import nodes as n


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
