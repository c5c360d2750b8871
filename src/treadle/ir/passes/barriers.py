"""Block barriers in place of fences and subgroup barriers, for languages that lack those."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.passes.uniformity import Level, analyze
from treadle.ir.traverse import Node, rewrite_kernel, statements_in


def has_fences(kernel: n.Kernel) -> bool:
    """Whether a kernel has fences."""
    return any(isinstance(node, n.Fence) for node in statements_in(kernel.body))


def with_fences_as_barriers(
    kernel: n.Kernel, *, of_device: bool = False, divided: bool = False
) -> n.Kernel:
    """The kernel with block fences as block barriers, where the whole block reaches them, or also
    where threads are `divided`: barriers order memory as well. So are fences of the device, if its
    barriers order memory that blocks exchange (`of_device`). The other fences stay, and the printer
    refuses them."""
    if not has_fences(kernel):
        return kernel
    scopes = ("block", "device") if of_device else ("block",)
    flows = analyze(kernel, ignore_returns=True)
    chosen = {
        id(node): node.scope
        for node in statements_in(kernel.body)
        if isinstance(node, n.Fence)
        and node.scope in scopes
        and not node.sequential
        and (divided or flows.flow(node).level == Level.BLOCK)
    }

    def change(node: Node) -> Node:
        return n.Barrier("block", None, node.span) if id(node) in chosen else node

    if "device" in chosen.values():
        buffers = tuple(replace(buffer, coherent=True) for buffer in kernel.buffers)
        kernel = replace(kernel, buffers=buffers)
    return rewrite_kernel(kernel, change)


def waits_of(kernel: n.Kernel) -> tuple[Span, ...]:
    """The places at which threads wait in loops until others have written."""
    return tuple(
        node.span
        for node in statements_in(kernel.body)
        if isinstance(node, n.Fence) and node.role == "wait"
    )


def refusal_of_waits(refusal: CompileError, waits: tuple[Span, ...]) -> CompileError:
    """The error for a barrier that not all threads reach, if it was such a wait."""
    if refusal.span not in waits:
        return refusal
    return CompileError(
        "some threads of the block wait here for a barrier that counts arrivals, and other threads "
        "wait elsewhere. This device runs the threads of a block together from one wait to the "
        "next: give all threads the same loop, in which `if` selects who copies and who computes, "
        "and wait outside of the `if`; or run on CUDA, where warps go on by themselves",
        refusal.span,
    )


def with_waits_as_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel whose threads meet at fences that wait for others."""

    def change(node: Node) -> Node:
        if not isinstance(node, n.Fence) or not node.role:
            return node
        return n.Barrier("block", None, node.span) if node.role == "wait" else ()

    return rewrite_kernel(kernel, change)


def has_subgroup_barriers(kernel: n.Kernel) -> bool:
    """Whether a kernel holds barriers of subgroups."""
    return any(
        isinstance(node, n.Barrier) and node.scope == "subgroup"
        for node in statements_in(kernel.body)
    )


def with_wider_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel with subgroup barriers as block barriers, if the whole block reaches all of them,
    for WGSL, which lacks the former. (naga has a `subgroupBarrier`, but the SPIR-V that it prints
    for it does not order shared memory, and NVIDIA's compiler moves loads across it.)"""
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
