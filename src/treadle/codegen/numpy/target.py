"""Python with NumPy, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.blocks import check_threads
from treadle.codegen.numpy.printer import print_kernel
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.passes.fold import fold
from treadle.ir.passes.nesting import unnest
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll_around_views


def _arrange(kernel: n.Kernel, target: Target) -> Lowered:
    """All threads of many blocks go through a kernel together."""
    block = kernel.block or Dim3()
    check_threads(kernel, block, target.limits)
    return Lowered(fold(scalarize(fold(unroll_around_views(kernel)))), block)


def _after(kernel: n.Kernel, job: Job) -> n.Kernel:
    """Nested no deeper than Python takes."""
    del job
    return unnest(kernel, switches=False)


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset()


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    del job
    return print_kernel(lowered.kernel, slots, lowered.workgroup)


TARGET = TargetRecord(
    generic=Target(
        "numpy",
        limits=Limits(
            1024, Dim3(1024, 1024, 1024), max_shared_memory=1 << 16, subgroup_size=32
        ),
        features=frozenset({
            "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics",
        }),
    ),
    arrange=_arrange,
    missing=_missing,
    after=_after,
    print=_print,
    folds_grids=False,  # the driver goes through the blocks of any grid
)  # fmt: skip
