"""PTX, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen import nvidia
from treadle.codegen.ptx.printer import print_kernel
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.ir import nodes as n
from treadle.ir.passes.exact_indices import with_exact_indices
from treadle.ir.passes.fold import fold
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll
from treadle.ir.passes.unroll_short import unroll_short


def _before(kernel: n.Kernel, job: Job) -> n.Kernel:
    """Short loops and those that asked for it unrolled, and constant arrays in registers."""
    del job
    return with_exact_indices(scalarize(fold(unroll(unroll_short(fold(kernel))))))


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset({"float_floordiv", "float_mod", "float_rem", "bf16_fma"})


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    return print_kernel(
        lowered.kernel, slots, job.target, folded=job.options.folded, ranges=lowered.ranges
    )


TARGET = TargetRecord(
    generic=nvidia.generic("ptx"),
    arrange=nvidia.arrange,
    before=_before,
    missing=_missing,
    print=_print,
    is_cuda=True,
    has_later_copies=True,
    has_stages=True,
    has_volatile=True,
    has_near_functions=True,
)
