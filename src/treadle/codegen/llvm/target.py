"""LLVM IR for a CPU, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.llvm.printer import LlvmOptions, print_kernel
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.passes.fission import fission
from treadle.ir.passes.fold import fold
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll_around_views


def _arrange(kernel: n.Kernel, target: Target) -> Lowered:
    """A CPU runs a block as loops over its threads."""
    del target
    # A local array becomes a row of the block's array for each thread; variables are contiguous.
    result = fission(scalarize(fold(unroll_around_views(kernel))))
    return Lowered(fold(result.kernel), result.workgroup, private=result.private)


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset({"f16_fma", "bf16_fma"})  # LLVM rounds them twice


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    del job
    options = LlvmOptions(tuple(slots.items()), private=lowered.private)
    return print_kernel(lowered.kernel, options)


TARGET = TargetRecord(
    generic=Target(
        "llvm",
        limits=Limits(
            1024, Dim3(1024, 1024, 1024), max_shared_memory=1 << 16, subgroup_size=32
        ),
        features=frozenset({
            "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics",
        }),
    ),
    arrange=_arrange,
    missing=_missing,
    print=_print,
    serial_threads=True,
    has_volatile=True,
    folds_grids=False,  # the driver counts blocks, and has room for all that a launch allows
)  # fmt: skip
