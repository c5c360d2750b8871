"""From a front end's kernel to printed code: the passes, in order, for one target."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace

from treadle.codegen.blocks import check_threads
from treadle.codegen.origins import origin_of
from treadle.codegen.records import KernelCode, Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, UnsupportedOnTarget
from treadle.core.limits import MOST_SHARED_MEMORY, Limits
from treadle.ir import nodes as n
from treadle.ir.passes.access import buffer_access
from treadle.ir.passes.array_variables import resolve_items
from treadle.ir.passes.barriers import (
    has_subgroup_barriers,
    with_fences_as_barriers,
    with_wider_barriers,
)
from treadle.ir.passes.bounds import drop_provable_checks
from treadle.ir.passes.converge import converge, has_masks
from treadle.ir.passes.fission import FissionOptions, fission
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.passes.inline import inline
from treadle.ir.passes.instrument import ReportSite, instrument
from treadle.ir.passes.masks import without_groups, without_masked_reductions
from treadle.ir.passes.own_updates import plain_own_updates
from treadle.ir.passes.predicate import predicate_returns, returns_before_barrier
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.steps import count_turns, has_open_steps
from treadle.ir.passes.told import meeting_at_barriers
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.passes.unroll import unroll_around_views
from treadle.ir.traverse import Node, rewrite_kernel, statements_in, walk
from treadle.ir.types import I32, size_of
from treadle.ir.verify import verify

_MOST_LOCAL = 1 << 20  # bytes
_BARRIERS_ALONE = ("wgsl", "msl")  # languages that order memory by barriers and nothing else
_CUDA_LANGUAGES = ("ptx", "cuda")  # a kernel that trusts its accesses is as CUDA has it in these


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel ready to be printed: `workgroup` is what the device runs for a block, `private` the
    local memories that belong to one turn of a parallel loop."""

    kernel: n.Kernel
    workgroup: Dim3
    sites: tuple[ReportSite, ...] = ()
    private: frozenset[str] = frozenset()


def lower(kernel: n.Kernel, options: Options, target: Target) -> Lowered:
    """Every pass before printing. CompileError and UnsupportedOnTarget point at the user's line;
    LaunchError for a launch that asks for too much shared memory."""
    verify(kernel)
    kernel = for_block(kernel, options.block, options.shared_bytes, target.limits)
    try:
        kernel, sites = _meeting(kernel, options, target, stops=True)
    except CompileError:
        if not _asserts_always(kernel):
            raise
        # A thread whose assertion failed then goes on, where the others could not without it.
        kernel, sites = _meeting(kernel, options, target, stops=False)
    kernel = fold(drop_provable_checks(kernel))
    return replace(_LANGUAGES[target.language].arrange(kernel, target), sites=sites)


def for_block(kernel: n.Kernel, block: Dim3, shared_bytes: int, limits: Limits) -> n.Kernel:
    """The kernel for blocks of a size, its functions inlined. LaunchError or UnsupportedOnTarget
    where its memory is more than a device with such limits has."""
    kernel = specialize(resolve_items(kernel), block)
    kernel = inline(fold(with_dynamic_memory(kernel, shared_bytes)))
    if has_open_steps(kernel):
        kernel = count_turns(fold(kernel))
    check_shared_memory(kernel, limits)
    check_local_memory(kernel)
    return kernel


def _meeting(
    kernel: n.Kernel, options: Options, target: Target, *, stops: bool
) -> tuple[n.Kernel, tuple[ReportSite, ...]]:
    """The kernel with its reports, and with threads that surely meet at its barriers."""
    kernel, sites = instrument(kernel, options.check, stops=stops)
    as_cuda = kernel.trusting and target.language in _CUDA_LANGUAGES
    if as_cuda and not options.check:
        kernel = without_checks(kernel)
    kernel = fold(kernel)
    if as_cuda:  # whose barriers count the threads that are left
        return kernel, sites
    on_cuda = target.language in _CUDA_LANGUAGES
    if has_masks(kernel) and (not on_cuda or returns_before_barrier(kernel)):
        kernel = fold(converge(kernel))
    if target.language in _BARRIERS_ALONE:
        kernel = with_fences_as_barriers(kernel)
    kernel = predicate_returns(kernel)
    also_written = _written_under_other_names(kernel, options)
    if kernel.trusting:
        return meeting_at_barriers(kernel, also_written), sites
    check_barriers(kernel, also_written=also_written)
    return kernel, sites


def _asserts_always(kernel: n.Kernel) -> bool:
    return any(isinstance(node, n.Assert) and node.always for node in statements_in(kernel.body))


def without_checks(kernel: n.Kernel) -> n.Kernel:
    """The kernel with every access taken at its word."""

    def change(node: Node) -> Node:
        if isinstance(node, (n.Element, n.Item)) and node.checks:
            return replace(node, checks=())
        return node

    return rewrite_kernel(kernel, change)


def print_code(lowered: Lowered, options: Options, target: Target) -> KernelCode:
    """The text for a lowered kernel. Buffers beyond `options.slots` (a report) get slots of their
    own behind the others."""
    slots = dict(options.slots)
    for buffer in lowered.kernel.buffers:
        slots.setdefault(buffer.name, max(slots.values(), default=-1) + 1)
    try:
        return _LANGUAGES[target.language].print(lowered, slots, options, target)
    except CompileError as error:
        if isinstance(error, UnsupportedOnTarget) and error.missing:
            error.span = origin_of(error.missing, lowered.kernel) or error.span
        raise


def writes_of(kernel: n.Kernel) -> frozenset[str]:
    """The buffers that a kernel stores to."""
    return frozenset(name for name, access in buffer_access(kernel).items() if access.writes)


def reads_of(kernel: n.Kernel) -> frozenset[str]:
    """The buffers that a kernel loads from."""
    return frozenset(name for name, access in buffer_access(kernel).items() if access.reads)


def _written_under_other_names(kernel: n.Kernel, options: Options) -> frozenset[str]:
    """The buffers that are one array with a buffer that the kernel stores to."""
    slots = dict(options.slots)
    written = {slots[name] for name in writes_of(kernel) if name in slots}
    return frozenset(name for name, slot in slots.items() if slot in written)


def with_dynamic_memory(kernel: n.Kernel, shared_bytes: int) -> n.Kernel:
    """The kernel with the length of its dynamic shared memory known, from a launch's bytes."""
    dynamic = [memory for memory in kernel.memories if memory.length is None]
    if not dynamic:
        if shared_bytes and not kernel.trusting:  # CUDA gives them to any kernel
            raise LaunchError(
                f"kernel {kernel.name} has no dynamic shared memory (td.shared(None, dtype)), but "
                f"the launch gives {shared_bytes} bytes for it"
            )
        return kernel
    if len(dynamic) > 1:
        raise CompileError(
            "a kernel has one dynamic shared memory at most; give the others a length",
            dynamic[1].span,
        )
    length = shared_bytes // size_of(dynamic[0].element)
    if length == 0:
        raise LaunchError(
            f"kernel {kernel.name} uses dynamic shared memory, and needs to know of how many bytes "
            f"({size_of(dynamic[0].element)} at least): launch it with "
            f"{kernel.name}[grid, block, bytes](…), print it with "
            f"{kernel.name}.source(…, shared_bytes=bytes), or treadle transpile --shared BYTES"
        )
    memories = tuple(
        replace(memory, length=length) if memory.length is None else memory
        for memory in kernel.memories
    )
    known = {p.name for p in kernel.parameters if p.origin[:1] == ("length",)}

    def change(node: Node) -> Node:
        if isinstance(node, n.Variable) and node.name in known:
            return n.Constant(length, I32, node.span)
        return node

    parameters = tuple(p for p in kernel.parameters if p.name not in known)
    return rewrite_kernel(replace(kernel, memories=memories, parameters=parameters), change)


def check_shared_memory(kernel: n.Kernel, limits: Limits) -> None:
    """LaunchError if the kernel's shared memory, with that of inlined functions, is more than the
    device has (a driver may take too much without a word, and corrupt data)."""
    shared = [m for m in kernel.memories if m.space == "shared"]
    asked = sum(size_of(m.element) * (m.length or 0) for m in shared)
    if asked > limits.max_shared_memory:
        has = "no device has more than"
        if limits.max_shared_memory < MOST_SHARED_MEMORY:
            has = "the device has"
        raise LaunchError(
            f"kernel {kernel.name} asks for {asked} bytes of shared memory; {has} "
            f"{limits.max_shared_memory} for a block: use less, and load more often"
        )


def check_local_memory(kernel: n.Kernel) -> None:
    """UnsupportedOnTarget for local arrays that no device takes: each thread has its own."""
    local = [m for m in kernel.memories if m.space == "local"]
    asked = sum(size_of(m.element) * (m.length or 0) for m in local)
    if asked > _MOST_LOCAL:
        largest = max(local, key=lambda m: size_of(m.element) * (m.length or 0))
        raise UnsupportedOnTarget(
            f"the local arrays of kernel {kernel.name} take {asked} bytes in every thread; at most "
            f"{_MOST_LOCAL} are possible: use an array parameter, with a part for each thread",
            largest.span,
        )


# --- what differs between languages --------------------------------------------------------------


class _Wgsl:
    """WGSL runs threads as invocations; a lane runs several where the device allows too few, or
    has no subgroups of its own."""

    @staticmethod
    def arrange(kernel: n.Kernel, target: Target) -> Lowered:
        asked = kernel.block
        kernel = without_leading_one(plain_own_updates(kernel))
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
                kernel = flattened(without_groups(kernel))
                block = kernel.block or block
            return Lowered(replace(kernel, block=asked), block)
        # A block that is only too long along y or z must be rearranged too.
        lanes = most if fits or block.count > most else block.count - 1
        result = fission(kernel, FissionOptions(lanes))
        return Lowered(replace(fold(result.kernel), block=asked), result.workgroup)

    @staticmethod
    def print(
        lowered: Lowered, slots: dict[str, int], options: Options, target: Target
    ) -> KernelCode:
        from treadle.codegen import wgsl  # here, so that nobody waits for a printer unasked

        return wgsl.print_kernel(
            lowered.kernel,
            wgsl.WgslOptions(
                target.dialect,  # type: ignore[arg-type]
                target.features,
                target.limits,
                slots,
                folded=options.folded,
                workgroup=lowered.workgroup,
            ),
        )


def without_leading_one(kernel: n.Kernel) -> n.Kernel:
    """The kernel with its block's axes turned so that x has more than one thread, if any has.

    A software Vulkan driver (lavapipe, Mesa 22) runs only the first thread along y of a workgroup
    whose x is 1. Threads keep their order, since an axis of one thread does not count in it.
    """
    block = kernel.block or Dim3()
    if block.x > 1 or block.count == 1:
        return kernel
    turn = 1 if block.y > 1 else 2

    def change(node: Node) -> Node:
        if isinstance(node, n.Builtin) and node.name == "thread_idx":
            if node.axis < turn:
                return n.Constant(0, node.type, node.span)
            return replace(node, axis=node.axis - turn)
        return node

    turned = Dim3(block.y, block.z, 1) if turn == 1 else Dim3(block.z, 1, 1)
    return replace(rewrite_kernel(kernel, change), block=turned)


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


class _Llvm:
    """The CPU runs a block as loops over its threads."""

    @staticmethod
    def arrange(kernel: n.Kernel, target: Target) -> Lowered:
        # An array of a thread becomes rows of a block's in memory; variables lie side by side.
        result = fission(scalarize(fold(unroll_around_views(kernel))))
        return Lowered(fold(result.kernel), result.workgroup, private=result.private)

    @staticmethod
    def print(
        lowered: Lowered, slots: dict[str, int], options: Options, target: Target
    ) -> KernelCode:
        from treadle.codegen import llvm

        return llvm.print_kernel(
            lowered.kernel, llvm.LlvmOptions(tuple(slots.items()), private=lowered.private)
        )


class _Gpu:
    """CUDA and Metal run a block as it is: its threads, its warps of 32, its barriers."""

    @staticmethod
    def arrange(kernel: n.Kernel, target: Target) -> Lowered:
        block = kernel.block or Dim3()
        check_threads(kernel, block, target.limits)
        if target.language == "msl":
            kernel = without_groups(kernel)
        else:
            kernel = without_masked_reductions(kernel, has_reductions(target))
        return Lowered(kernel, block)

    @staticmethod
    def print(
        lowered: Lowered, slots: dict[str, int], options: Options, target: Target
    ) -> KernelCode:
        printer = importlib.import_module(_GPU_PRINTERS[target.language])
        code: KernelCode = printer.print_kernel(
            lowered.kernel, slots, target, folded=options.folded
        )
        return code


def has_reductions(target: Target) -> bool:
    """Whether a card of NVIDIA's reduces numbers of a warp by an instruction."""
    return target.dialect.startswith("sm_") and int(target.dialect[3:].rstrip("af")) >= 80


_GPU_PRINTERS = {
    "ptx": "treadle.codegen.ptx",
    "cuda": "treadle.codegen.cuda",
    "msl": "treadle.codegen.msl",
}
_LANGUAGES: dict[str, type[_Wgsl] | type[_Llvm] | type[_Gpu]] = {
    "wgsl": _Wgsl,
    "llvm": _Llvm,
    **dict.fromkeys(_GPU_PRINTERS, _Gpu),
}
