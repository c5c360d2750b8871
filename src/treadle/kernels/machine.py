"""The properties of a device that decide how work is distributed to its threads."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from treadle.kernels.matrix_check import opaque_products, usable_groups, usable_products
from treadle.runtime import settings
from treadle.runtime.devices import Device
from treadle.tuning.choices import NO_CHOICES, Choices, choices_of


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of a device that decide how work is distributed to its threads."""

    most_threads: int  # in a block
    shared_bytes: int
    subgroup: int  # threads of a subgroup that can be counted on; 0 if none
    software: bool = False  # a GPU's driver that computes on a CPU
    slow_to_compile: bool = False  # more than linear time for long code
    double_buffers: bool = False  # two copies of a tile pay, one to fill while the other is used
    later_copies: bool = False  # to shared memory, while threads go on
    matrix_products: Set[str] = frozenset()  # what subgroups multiply by instructions
    opaque_products: bool = False  # the same of float16, with a layout that is hidden
    choices: Choices = NO_CHOICES  # what was measured there
    group_products: Set[str] = frozenset()  # and those that groups of 128 threads do
    clusters: bool = False  # of blocks that reach each other's shared memory
    multiprocessors: int = 0  # that run blocks side by side; 0 if that is not known


def machine_of(device: Device) -> Machine:
    """A device's own."""
    limits, traits = device.limits, device.traits
    return Machine(
        limits.max_threads_per_block,
        limits.max_shared_memory,
        limits.subgroup_size,
        traits.software,
        traits.slow_compiler,
        traits.double_buffers,
        traits.later_copies,
        usable_products(device),
        opaque_products(device),
        choices_of(device),
        usable_groups(device) if settings.cuda_language == "ptx" else frozenset(),
        traits.clusters and settings.cuda_language == "ptx",
        traits.multiprocessors,
    )
