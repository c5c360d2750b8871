"""The size of blocks: what a device takes, and how a printed kernel says it."""

from __future__ import annotations

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.traverse import rewrite_kernel


def with_sizes(kernel: n.Kernel, workgroup: Dim3) -> n.Kernel:
    """The kernel with its block's size as constants. `workgroup` is what runs it, which counts
    `thread_idx`."""
    block = kernel.block
    if block is None:
        raise CompileError(f"{kernel.name} has no block yet: give one before printing", kernel.span)

    def change(node: object) -> object:
        if isinstance(node, n.Builtin):
            if node.name == "block_dim":
                return n.Constant(block[node.axis], node.type, node.span)
            if node.name == "thread_idx" and workgroup[node.axis] == 1:
                return n.Constant(0, node.type, node.span)
        return node

    return rewrite_kernel(kernel, change)


def title(kernel: n.Kernel, entry: str, block: Dim3) -> str:
    """The first line above a printed kernel: its own name, the one it has here if that is another,
    and its block."""
    name = kernel.name if entry == kernel.name else f"{kernel.name}, here {entry}"
    return f"{name}: blocks of {block.x} x {block.y} x {block.z} threads"


def check_threads(kernel: n.Kernel, workgroup: Dim3, limits: Limits) -> None:
    """CompileError if a device cannot run a block of so many threads."""
    most = limits.max_block
    fits = all(part <= limit for part, limit in zip(workgroup, most, strict=True))
    if not fits or workgroup.count > limits.max_threads_per_block:
        raise CompileError(
            f"{kernel.name}: a block of {workgroup.x} x {workgroup.y} x {workgroup.z} threads; "
            f"this device runs at most {limits.max_threads_per_block} threads a block and "
            f"{most.x} x {most.y} x {most.z} along the axes: choose a smaller block",
            kernel.span,
        )
