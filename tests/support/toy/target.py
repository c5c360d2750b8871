"""The IR's text as a target."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.blocks import check_threads
from treadle.codegen.records import Binding, KernelCode, ParameterLayout, Target
from treadle.codegen.target import Job, Lowered, TargetRecord
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.passes.access import buffer_access
from treadle.ir.printer import to_text
from treadle.ir.types import size_of

LIMITS = Limits(64, Dim3(64, 64, 64), max_shared_memory=1 << 14)
FEATURES = frozenset({"float16", "float64", "int64", "float_atomics", "int64_atomics"})


def _arrange(kernel: n.Kernel, target: Target) -> Lowered:
    block = kernel.block or Dim3()
    check_threads(kernel, block, target.limits)
    return Lowered(kernel, block)


def _missing(target: Target) -> frozenset[str]:
    del target
    return frozenset({"mul_high"})  # as an example: an evaluator has everything


def _print(lowered: Lowered, slots: Mapping[str, int], job: Job) -> KernelCode:
    kernel, access = lowered.kernel, buffer_access(lowered.kernel)
    bindings = []
    for slot in sorted({slots[buffer.name] for buffer in kernel.buffers}):
        names = tuple(buffer.name for buffer in kernel.buffers if slots[buffer.name] == slot)
        bindings.append(Binding(names, any(access[name].writes for name in names)))
    shared = [memory for memory in kernel.memories if memory.space == "shared"]
    return KernelCode(
        target="toy",
        dialect="",
        name=kernel.name,
        entry=kernel.name,
        source=to_text(kernel),
        block=kernel.block or Dim3(),
        workgroup=lowered.workgroup,
        bindings=tuple(bindings),
        layout=ParameterLayout.of(kernel.parameters),
        shared_bytes=sum(size_of(memory.element) * (memory.length or 0) for memory in shared),
        folded=job.options.folded,
    )


TARGET = TargetRecord(
    generic=Target("toy", "", LIMITS, FEATURES),
    arrange=_arrange,
    missing=_missing,
    print=_print,
)
