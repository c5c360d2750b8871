"""How WGSL's invocations run the threads of a block."""

from __future__ import annotations

from dataclasses import replace

from treadle.codegen.records import Target
from treadle.codegen.target import Lowered
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.barriers import has_subgroup_barriers, with_wider_barriers
from treadle.ir.passes.fission import FissionOptions, fission
from treadle.ir.passes.fold import fold
from treadle.ir.passes.masks import without_groups
from treadle.ir.passes.matrices import without_matrices
from treadle.ir.passes.opaque import without_opaque
from treadle.ir.passes.private_atomics import plain_private_atomics
from treadle.ir.traverse import Node, rewrite_kernel, walk
from treadle.ir.types import I32


def arrange(kernel: n.Kernel, target: Target) -> Lowered:
    """One invocation for each thread; an invocation runs several threads where the device allows
    too few invocations, or lacks subgroups."""
    asked = kernel.block
    kernel = without_leading_one(plain_private_atomics(kernel))
    block = kernel.block or Dim3()
    most = target.limits.max_threads_per_block
    fits = block.count <= most and all(
        part <= limit for part, limit in zip(block, target.limits.max_block, strict=True)
    )
    own = "subgroups" in target.features and target.limits.subgroup_size
    if own:
        kernel = with_wider_barriers(kernel)
        own = not has_subgroup_barriers(kernel)
    if fits and own:
        if uses_subgroups(kernel):
            kernel = flattened(without_groups(without_matrices(kernel, lambda _: True)))
            block = kernel.block or block
        return Lowered(replace(kernel, block=asked), block)
    kernel = without_opaque(kernel)
    # A block that is only too long along y or z must be rearranged too.
    lanes = most if fits or block.count > most else block.count - 1
    result = fission(kernel, FissionOptions(lanes))
    return Lowered(replace(fold(result.kernel), block=asked), result.workgroup)


def without_leading_one(kernel: n.Kernel) -> n.Kernel:
    """The kernel with its block's axes rotated so that x has more than one thread, if any has.

    A software Vulkan driver (lavapipe, Mesa 22) runs only the first thread along y of a workgroup
    whose x is 1. Threads keep their order, since an axis of one thread does not count in it.
    """
    block = kernel.block or Dim3()
    if block.x > 1 or block.count == 1:
        return kernel
    shift = 1 if block.y > 1 else 2

    def change(node: Node) -> Node:
        if isinstance(node, n.Builtin) and node.name == "thread_idx":
            if node.axis < shift:
                return n.Constant(0, node.type, node.span)
            return replace(node, axis=node.axis - shift)
        return node

    rotated = Dim3(block.y, block.z, 1) if shift == 1 else Dim3(block.z, 1, 1)
    return replace(rewrite_kernel(kernel, change), block=rotated)


def uses_subgroups(kernel: n.Kernel) -> bool:
    """Whether anything in a kernel depends on which threads form a subgroup."""
    return any(
        isinstance(node, n.Subgroup)
        or (isinstance(node, n.Barrier) and node.scope == "subgroup")
        or (isinstance(node, n.Builtin) and node.name in ("lane", "subgroup_size"))
        for node in walk(kernel.body)
    )


def flattened(kernel: n.Kernel) -> n.Kernel:
    """The kernel with its threads in one row, x fastest, and `thread_idx` worked out from there.

    Subgroups are then 32 threads that follow each other, as in CUDA; and naga knows lanes only in
    workgroups of one dimension.
    """
    block = kernel.block or Dim3()
    if block.count == block.x:
        return kernel
    row = n.Builtin("thread_idx", 0)

    def part(op: str, left: n.Expression, extent: int) -> n.Expression:
        return n.Binary(op, left, n.Constant(extent, I32), I32)

    places = (
        part("mod", row, block.x),
        part("mod", part("floordiv", row, block.x), block.y),
        part("floordiv", row, block.x * block.y),
    )

    def change(node: Node) -> Node:
        if isinstance(node, n.Builtin) and node.name == "thread_idx":
            return places[node.axis]
        return node

    return replace(fold(rewrite_kernel(kernel, change)), block=Dim3(block.count))
