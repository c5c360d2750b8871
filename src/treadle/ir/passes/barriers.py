"""Barriers of the block in the place of what a language lacks: they wait, and order memory, too."""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.passes.uniformity import Level, analyze
from treadle.ir.traverse import Node, rewrite_kernel, statements_in


def with_fences_as_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel with fences for the block made barriers where the whole block comes by: these
    order memory, too. The other fences stay, and are refused."""
    if not any(isinstance(node, n.Fence) for node in statements_in(kernel.body)):
        return kernel
    flows = analyze(kernel, ignore_returns=True)
    together = {
        id(node)
        for node in statements_in(kernel.body)
        if isinstance(node, n.Fence)
        and node.scope == "block"
        and flows.flow(node).level == Level.BLOCK
    }

    def change(node: Node) -> Node:
        return n.Barrier("block", None, node.span) if id(node) in together else node

    return rewrite_kernel(kernel, change)


def has_subgroup_barriers(kernel: n.Kernel) -> bool:
    """Whether the threads of a subgroup wait for each other alone."""
    return any(
        isinstance(node, n.Barrier) and node.scope == "subgroup"
        for node in statements_in(kernel.body)
    )


def with_wider_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel with barriers of subgroups that the whole block reaches made the block's, for
    WGSL, which lacks the former. (naga has a `subgroupBarrier`, but in the SPIR-V that it makes of
    it shared memory is not ordered, and NVIDIA's compiler moves loads across it.)"""
    if not has_subgroup_barriers(kernel):
        return kernel
    flows = analyze(kernel)
    for node in statements_in(kernel.body):
        narrow = isinstance(node, n.Barrier) and node.scope == "subgroup"
        if narrow and flows.flow(node).level > Level.BLOCK:
            return kernel

    def change(node: Node) -> Node:
        return n.Barrier("block", None, node.span) if isinstance(node, n.Barrier) else node

    return rewrite_kernel(kernel, change)
