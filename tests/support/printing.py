"""A kernel in IR as a target prints it, without what the pipeline does before: for tests of
printers, whose kernels are written as the printer gets them."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen import llvm, ptx, wgsl
from treadle.codegen.cuda import printer as cuda
from treadle.codegen.pipeline import prepared
from treadle.codegen.records import KernelCode, Options, Target
from treadle.codegen.target import Job, Lowered, find_target
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n


def _ready(kernel: n.Kernel, target: Target, folded: bool, workgroup: Dim3 | None) -> Lowered:
    workgroup = workgroup or kernel.block or Dim3()
    job = Job(target, Options(kernel.block or Dim3(), (), folded), workgroup)
    return prepared(Lowered(kernel, workgroup), find_target(target.language), job)


def print_wgsl(kernel: n.Kernel, options: wgsl.WgslOptions | None = None) -> KernelCode:
    """A kernel as WGSL."""
    options = options or wgsl.WgslOptions()
    target = Target("wgsl", options.dialect, options.limits, options.features)
    ready = _ready(kernel, target, options.folded, options.workgroup)
    return wgsl.print_kernel(ready.kernel, options)


def print_llvm(kernel: n.Kernel, options: llvm.LlvmOptions | None = None) -> KernelCode:
    """A kernel as LLVM IR; its threads are loops already."""
    ready = _ready(kernel, Target("llvm"), False, None)
    return llvm.print_kernel(ready.kernel, options or llvm.LlvmOptions())


def print_ptx(
    kernel: n.Kernel, slots: Mapping[str, int], target: Target, *, folded: bool = False
) -> KernelCode:
    """A kernel as PTX."""
    ready = _ready(kernel, target, folded, None)
    return ptx.print_kernel(ready.kernel, slots, target, folded=folded, ranges=ready.ranges)


def print_cuda(
    kernel: n.Kernel, slots: Mapping[str, int], target: Target, *, folded: bool = False
) -> KernelCode:
    """A kernel as CUDA C++."""
    ready = _ready(kernel, target, folded, None)
    return cuda.print_kernel(ready.kernel, slots, target, folded=folded)
