"""The Metal Shading Language, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.blocks import check_threads
from treadle.codegen.c_family.passes import after, before
from treadle.codegen.msl.opaque import has_opaque
from treadle.codegen.msl.printer import print_kernel
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.passes.masks import without_groups
from treadle.ir.passes.matrices import without_matrices


def _arrange(kernel: n.Kernel, target: Target) -> Lowered:
    """Metal runs a block as it is: its threads, its SIMD groups of 32, its barriers."""
    block = kernel.block or Dim3()
    check_threads(kernel, block, target.limits)
    return Lowered(without_groups(without_matrices(kernel, lambda _: True)), block)


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset({"narrow_bits", "wide_bits", "wide_mul_high", "dot4"})


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    return print_kernel(lowered.kernel, slots, job.target, folded=job.options.folded)


TARGET = TargetRecord(
    # What every Mac with Apple's own GPU has.
    generic=Target(
        "msl",
        limits=Limits(1024, Dim3(1024, 1024, 1024), max_shared_memory=1 << 15, subgroup_size=32),
        features=frozenset({"float16", "int64", "subgroups", "float_atomics"}),
    ),
    arrange=_arrange,
    before=before,
    missing=_missing,
    after=after,
    print=_print,
    has_fences=False,
    has_opaque=has_opaque,
)
