"""CUDA C++, as the pipeline has to know it."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen import nvidia
from treadle.codegen.c_family.passes import after, before
from treadle.codegen.cuda.printer import print_kernel
from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import Job, Lowered, TargetRecord


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset({"narrow_bits"})


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    return print_kernel(lowered.kernel, slots, job.target, folded=job.options.folded)


TARGET = TargetRecord(
    generic=nvidia.generic("cuda"),
    arrange=nvidia.arrange,
    before=before,
    missing=_missing,
    after=after,
    print=_print,
    is_cuda=True,
    has_later_copies=True,
)
