"""From a front end's kernel to printed code: the passes, in order, for every target.

    verify -> for_block -> instrument -> uniform barriers -> drop provable checks
           -> the target's arrangement of threads                              `lower`
           -> the target's passes -> missing operations -> the target's passes
           -> unfold the grid -> its printer                                   `print_code`

What differs between targets is in their records (`codegen.target`).
"""

from __future__ import annotations

from dataclasses import replace

from treadle.codegen.legalize import legalize
from treadle.codegen.origins import origin_of
from treadle.codegen.records import KernelCode, Options, Target
from treadle.codegen.target import Job, Lowered, TargetRecord, find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, UnsupportedOnTarget
from treadle.core.limits import MOST_SHARED_MEMORY, Limits
from treadle.ir import nodes as n
from treadle.ir.intervals import LARGEST_EXTENT
from treadle.ir.passes import whole_subgroups
from treadle.ir.passes.access import buffer_access
from treadle.ir.passes.array_variables import resolve_items
from treadle.ir.passes.barriers import (
    has_fences,
    refusal_of_waits,
    waits_of,
    with_fences_as_barriers,
    with_waits_as_barriers,
)
from treadle.ir.passes.bounds import drop_provable_checks
from treadle.ir.passes.converge import converge, has_masks
from treadle.ir.passes.final_returns import with_final_breaks
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.passes.inline import inline
from treadle.ir.passes.instrument import ReportSite, instrument
from treadle.ir.passes.masked_barriers import masked_barriers, with_masked_barriers
from treadle.ir.passes.named_barriers import has_named_barriers, without_named_barriers
from treadle.ir.passes.opaque import without_opaque
from treadle.ir.passes.predicate import predicate_returns, returns_before_barrier
from treadle.ir.passes.stages import has_stages, without_stages
from treadle.ir.passes.trip_counts import has_runtime_steps, with_trip_counts
from treadle.ir.passes.unfold import unfold
from treadle.ir.passes.uniform_loads import with_uniform_loads
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.stages import GROUP
from treadle.ir.traverse import Node, rewrite_kernel, statements_in
from treadle.ir.types import BOOL, F32, I32, size_of
from treadle.ir.verify import verify

_MOST_LOCAL = 1 << 20  # bytes


def lower(kernel: n.Kernel, options: Options, target: Target) -> Lowered:
    """Every pass before those that only printing needs. CompileError and UnsupportedOnTarget point
    at the user's line; LaunchError for a launch that asks for too much shared memory."""
    record = find_target(target.language)
    verify(kernel)
    kernel = with_near_functions(kernel, record.has_near_functions)
    if not record.has_later_copies:
        kernel = with_copies_at_once(kernel)
    kernel = for_block(
        kernel, options.block, options.shared_bytes, target.limits, check=options.check
    )
    if not kernel.trusting:  # CUDA C++ promises it
        whole_subgroups.check_lanes(kernel, _written_under_other_names(kernel, options))
    if not record.has_opaque(kernel, target):
        kernel = without_opaque(kernel)
    if not record.has_stages:
        kernel = without_stages(kernel)
    try:
        kernel, sites = _with_uniform_barriers(kernel, options, record, target, stops=True)
    except CompileError:
        if not _asserts_always(kernel):
            raise
        # A failed assertion then does not stop its thread: the others could not pass a barrier.
        kernel, sites = _with_uniform_barriers(kernel, options, record, target, stops=False)
    kernel = fold(drop_provable_checks(kernel))
    return replace(record.arrange(kernel, target), sites=sites)


def with_near_functions(kernel: n.Kernel, there: bool) -> n.Kernel:
    """The kernel with the question answered whether the target has near functions. For float64 it
    has none."""

    def change(node: Node) -> Node:
        if isinstance(node, n.Intrinsic) and node.op == "has_near_functions":
            return n.Constant(there and node.operands[0].type == F32, BOOL, node.span)
        return node

    return rewrite_kernel(kernel, change)


def with_copies_at_once(kernel: n.Kernel) -> n.Kernel:
    """The kernel with later copies as plain assignments, for which nothing has to be waited."""

    def change(node: Node) -> Node:
        if isinstance(node, n.Copies):
            return ()
        if isinstance(node, n.Assign) and node.later:
            return replace(node, later=False)
        return node

    return rewrite_kernel(kernel, change)


def for_block(
    kernel: n.Kernel, block: Dim3, shared_bytes: int, limits: Limits, *, check: bool = False
) -> n.Kernel:
    """The kernel for blocks of a size, its functions inlined. LaunchError or UnsupportedOnTarget
    where its memory is more than a device with such limits has. With `check`, accesses that always
    fail stay in it, to be reported."""
    kernel = specialize(resolve_items(kernel), block)
    kernel = inline(fold(with_dynamic_memory(kernel, shared_bytes), keeps_failing=check))
    if has_runtime_steps(kernel):
        kernel = with_trip_counts(fold(kernel, keeps_failing=check))
    check_shared_memory(kernel, limits)
    check_local_memory(kernel)
    whole_subgroups.check_block(kernel)
    check_whole_groups(kernel)
    return kernel


def _with_uniform_barriers(
    kernel: n.Kernel, options: Options, record: TargetRecord, target: Target, *, stops: bool
) -> tuple[n.Kernel, tuple[ReportSite, ...]]:
    """The kernel with its reports, and with barriers that all threads provably reach."""
    kernel, sites = instrument(kernel, options.check, stops=stops)
    as_cuda = kernel.trusting and record.is_cuda
    if as_cuda and not options.check:
        kernel = without_checks(kernel)
    kernel = fold(kernel)
    if as_cuda:  # its barriers do not wait for threads that have exited
        return kernel, sites
    waits = waits_of(kernel)
    try:
        kernel = _with_barriers_of_all(with_waits_as_barriers(kernel), options, record, target)
    except CompileError as refusal:
        raise refusal_of_waits(refusal, waits) from None
    return kernel, sites


def _with_barriers_of_all(
    kernel: n.Kernel, options: Options, record: TargetRecord, target: Target
) -> n.Kernel:
    """The kernel with the barriers that a target has, which all threads provably reach."""
    if has_named_barriers(kernel):
        kernel = fold(without_named_barriers(kernel))
    if has_masks(kernel) and (not record.is_cuda or returns_before_barrier(kernel)):
        kernel = fold(_converged(kernel, options))
    if not record.has_fences:
        of_device = record.has_device_barriers(target)
        kernel = with_fences_as_barriers(kernel, of_device=of_device)
        if kernel.trusting and has_fences(kernel):
            masked = with_fences_as_barriers(kernel, of_device=of_device, divided=True)
            try:
                return _reached_by_all(masked, options)
            except CompileError:
                pass  # the printer refuses the fence
    return _reached_by_all(kernel, options)


def _reached_by_all(kernel: n.Kernel, options: Options) -> n.Kernel:
    """The kernel with barriers that all threads of a block provably reach."""
    if kernel.trusting and returns_before_barrier(kernel):
        kernel = with_final_breaks(kernel)
    kernel = predicate_returns(kernel)
    also_written = _written_under_other_names(kernel, options)
    if kernel.trusting:
        try:
            return with_uniform_loads(kernel, also_written)
        except CompileError as refusal:
            return with_masked_barriers(kernel, also_written, refusal)
    check_barriers(kernel, also_written=also_written)
    return kernel


def _converged(kernel: n.Kernel, options: Options) -> n.Kernel:
    """The kernel with its warps together where they exchange values, also in loops with barriers
    that divide a block."""
    try:
        return converge(kernel)
    except CompileError as refusal:
        if not kernel.trusting:
            raise
        written = _written_under_other_names(kernel, options)
        return converge(fold(masked_barriers(kernel, written, refusal)))


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
    record = find_target(target.language)
    for buffer in lowered.kernel.buffers:
        if buffer.volatile and not record.has_volatile:
            raise UnsupportedOnTarget(
                f"the host writes `{buffer.name}` while the kernel runs, which {target.language} "
                "has no loads for",
                buffer.span,
            )
    job = Job(target, options, lowered.workgroup)
    slots = dict(options.slots)
    for buffer in lowered.kernel.buffers:
        slots.setdefault(buffer.name, max(slots.values(), default=-1) + 1)
    try:
        return record.print(prepared(lowered, record, job), slots, job)
    except CompileError as error:
        if isinstance(error, UnsupportedOnTarget) and error.missing:
            error.span = origin_of(error.missing, lowered.kernel) or error.span
        raise


def prepared(lowered: Lowered, record: TargetRecord, job: Job) -> Lowered:
    """A lowered kernel as its target can print it."""
    kernel = legalize(record.before(lowered.kernel, job), record.missing(job.target))
    kernel = record.after(kernel, job)
    if not (job.options.folded and record.folds_grids):
        return replace(lowered, kernel=kernel)
    unfolded = unfold(kernel, cuts_rows=job.target.limits.max_grid.x < LARGEST_EXTENT)
    return replace(lowered, kernel=unfolded.kernel, ranges=unfolded.ranges)


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
        few = f", not {shared_bytes}" if shared_bytes else ""
        raise LaunchError(
            f"kernel {kernel.name} uses dynamic shared memory, and needs to know of how many bytes "
            f"({size_of(dynamic[0].element)} at least{few}): launch it with "
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


def check_whole_groups(kernel: n.Kernel) -> None:
    """LaunchError where a group that multiplies tiles would lack threads."""
    count = kernel.block.count if kernel.block else GROUP
    if count % GROUP and has_stages(kernel):
        raise LaunchError(
            f"kernel {kernel.name} multiplies tiles by groups of {GROUP} threads: launch it with a "
            f"multiple of {GROUP} threads in a block, not {count}"
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
