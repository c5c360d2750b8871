"""WGSL, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from treadle.codegen.blocks import with_sizes
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.codegen.wgsl.arrange import arrange
from treadle.codegen.wgsl.dialects import DIALECTS
from treadle.codegen.wgsl.opaque import has_opaque, has_operations
from treadle.codegen.wgsl.options import WgslOptions
from treadle.codegen.wgsl.printer import print_kernel
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.opaque import unit_of
from treadle.ir.passes.fold import fold
from treadle.ir.passes.nesting import unnest
from treadle.ir.passes.returns import with_one_return
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll, unroll_around_views
from treadle.ir.passes.wide import pair_words
from treadle.ir.passes.wide_atomics import with_wide_atomics
from treadle.ir.traverse import statements_in

_MISSING = frozenset({
    "floordiv", "mod", "div", "rem", "whole_words", "half_div", "f16_fma", "bf16_fma", "float_rem",
    "shift", "float_to_int", "float_min_max",
    "wide_mul_high", "wide_bits", "narrow_bits",
})  # fmt: skip


def _has_int64(target: Target) -> bool:
    """Whether the device has integers of 64 bits and the dialect can name them."""
    return "int64" in target.features & DIALECTS[target.dialect].features


def _has_device_barriers(target: Target) -> bool:
    """Whether storage can be coherent, and storageBarrier() orders it for the device."""
    return "device_fences" in target.features & DIALECTS[target.dialect].features


def _before(kernel: n.Kernel, job: Job) -> n.Kernel:
    """Loops that asked for it unrolled, constant arrays in registers, the block's size in place,
    and pairs of words where there are no integers of 64 bits."""
    for node in statements_in(kernel.body):
        if isinstance(node, n.Clock):  # before the 64 bits of its result are missed
            raise UnsupportedOnTarget(
                "a kernel in WGSL cannot read a clock: time whole launches from the host",
                node.span,
            )
    kernel = with_sizes(kernel, job.workgroup)
    kernel = scalarize(fold(unroll_around_views(unroll(kernel))))
    if not _has_int64(job.target):
        return fold(pair_words(kernel, job.workgroup))
    if "int64_atomics" in job.target.features & DIALECTS[job.target.dialect].features:
        return with_wide_atomics(kernel, dict(job.options.slots))
    return kernel


def _missing(target: Target) -> frozenset[str]:
    """Without 64-bit integers "mul_high" is missing too. With them, "wide_order" is: Mesa's
    llvmpipe, which sees through variables, is wrong about signed ones that were widened from fewer
    bits and are compared with constants. And "wide_div": NVIDIA's Vulkan compiler gets the lowest
    bit of some quotients wrong."""
    return _MISSING | ({"wide_order", "wide_div"} if _has_int64(target) else {"mul_high"})


def _after(kernel: n.Kernel, job: Job) -> n.Kernel:
    del job
    kernel = replace(kernel, functions=tuple(map(with_one_return, kernel.functions)))
    return unnest(kernel, switches=False)


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    target = job.target
    options = WgslOptions(
        target.dialect,  # type: ignore[arg-type]
        target.features,
        target.limits,
        slots,
        folded=job.options.folded,
        workgroup=lowered.workgroup,
        matrix_unit=unit_of(target.matrix_units) if has_operations(lowered.kernel) else None,
    )
    return print_kernel(lowered.kernel, options)


# Text for no device in particular may use more shared memory than every device has, and says so.
_LIMITS = Limits(subgroup_size=32, max_shared_memory=1 << 16)

TARGET = TargetRecord(
    generic=Target("wgsl", "tint", _LIMITS, frozenset({"float16", "subgroups"})),
    arrange=arrange,
    before=_before,
    missing=_missing,
    after=_after,
    print=_print,
    has_fences=False,
    has_device_barriers=_has_device_barriers,
    has_opaque=has_opaque,
)
