"""The passes before a kernel is printed as a dialect of C++."""

from __future__ import annotations

from treadle.codegen.blocks import with_sizes
from treadle.codegen.target import Job
from treadle.ir import nodes as n
from treadle.ir.passes.fold import fold
from treadle.ir.passes.nesting import unnest


def before(kernel: n.Kernel, job: Job) -> n.Kernel:
    """The block's size in place."""
    return fold(with_sizes(kernel, job.workgroup))


def after(kernel: n.Kernel, job: Job) -> n.Kernel:
    """Nested no deeper than compilers take."""
    del job
    return unnest(kernel, switches=True)
