"""What a target is: one record, from which the pipeline and the runtime read everything.

`codegen/<name>/target.py` has the record, as `TARGET`. A new target is such a folder and a line in
`TARGETS` of `codegen/__init__.py`. No other code decides by a target's name; docstrings and pages
list the names for readers, and `tests/unit/codegen/test_every_target.py` says where one is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from treadle.codegen import TARGETS
from treadle.codegen.records import KernelCode, Options, Target
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval
from treadle.ir.passes.instrument import ReportSite


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel that every pass of the IR is done with. `workgroup` is what the device runs for a
    block, `sites` the places that may report, `private` the local memories that belong to one
    iteration of a parallel loop, `ranges` what is known of parameters and variables that passes
    added."""

    kernel: n.Kernel
    workgroup: Dim3
    sites: tuple[ReportSite, ...] = ()
    private: frozenset[str] = frozenset()
    ranges: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """What a kernel is printed for: a target, a way of launching, what the device runs."""

    target: Target
    options: Options
    workgroup: Dim3


def unchanged(kernel: n.Kernel, job: Job) -> n.Kernel:
    """No pass at all."""
    del job
    return kernel


def never(kernel: n.Kernel, target: Target) -> bool:
    """For no kernel."""
    del kernel, target
    return False


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """A language that kernels are printed in, as the pipeline has to know it."""

    generic: Target
    """The target that `source` prints for without a device."""

    arrange: Callable[[n.Kernel, Target], Lowered]
    """Gives the threads of a block to what the device runs for it."""

    missing: Callable[[Target], frozenset[str]]
    """The operations that are replaced by functions, as `legalize` names them."""

    print: Callable[[Lowered, Mapping[str, int], Job], KernelCode]
    """Prints the kernel. The mapping gives each buffer its binding."""

    before: Callable[[n.Kernel, Job], n.Kernel] = unchanged
    """The target's own passes before missing operations are replaced."""

    after: Callable[[n.Kernel, Job], n.Kernel] = unchanged
    """And those behind that."""

    serial_threads: bool = False
    """Whether the threads of a block are loops (`Traits.serial_threads`)."""

    is_cuda: bool = False
    """Whether threads behave as CUDA says: a barrier counts the threads that are left, masks choose
    threads of a warp, and a kernel that trusts its accesses has them unchecked."""

    has_fences: bool = True
    """Whether memory is ordered by fences; if not, only barriers do, and replace them."""

    has_device_barriers: Callable[[Target], bool] = lambda target: False
    """Whether barriers order memory that blocks exchange, on devices with certain features: then
    they may replace fences of the device, too."""

    has_later_copies: bool = False
    """Whether copies to shared memory may happen later (`nodes.Copies`)."""

    has_opaque: Callable[[n.Kernel, Target], bool] = never
    """Whether matrices of subgroups stay opaque in a kernel, and are printed as the target's own
    (`ir.opaque`)."""

    has_stages: bool = False
    """Whether work on tiles in stages (`nodes.Staged`) is printed, and goes on beside threads."""

    has_volatile: bool = False
    """Whether kernels may use memory that the host writes meanwhile (`nodes.Buffer.volatile`)."""

    has_near_functions: bool = False
    """Whether it has the intrinsics that begin with "near_", for float32."""

    folds_grids: bool = True
    """Whether a grid has limits, beyond which it is folded (`core.folding`)."""


def find_target(name: str) -> TargetRecord:
    """A target's record. Its printer is loaded at this moment, and not before."""
    record: TargetRecord = importlib.import_module(TARGETS[name]).TARGET
    return record
