"""What of a device decides how work is spread over it."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.runtime.devices import Device


@dataclass(frozen=True, slots=True)
class Machine:
    """What of a device decides how work is spread over it."""

    backend: str  # "cpu", "webgpu", "cuda"
    most_threads: int  # in a block
    shared_bytes: int
    subgroup: int  # threads of a subgroup that can be counted on; 0 if none
    software: bool = False  # a GPU's driver that runs on a CPU

    @property
    def slow_to_compile(self) -> bool:
        """Whether its driver takes more than linear time for long code, as software drivers do."""
        return self.software and self.backend == "webgpu"


def machine_of(device: Device) -> Machine:
    """A device's own."""
    limits = device.limits
    return Machine(
        device.backend,
        limits.max_threads_per_block,
        limits.max_shared_memory,
        limits.subgroup_size,
        device.kind == "software",
    )
