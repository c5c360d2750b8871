"""Records of a build and of a launch. They are apart from `built_kernel`, whose imports only a
build needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.ir.definition import KernelDefinition

if TYPE_CHECKING:  # loaded where something is built
    from treadle.runtime.built_kernel import BuiltKernel


@dataclass(frozen=True, slots=True)
class BuildVariant:
    """What a build depends on apart from definition, signature and device. `same` has, for each
    array argument, the position of the first one with the same memory (its own if there is none);
    None where all are different."""

    block: Dim3
    same: tuple[int, ...] | None = None
    folded: bool = False
    shared_bytes: int = 0
    check: bool = False


class LaunchRecord(NamedTuple):
    """A launch, for captures and profiles. The values are numbers, `DeviceArray`s and packed
    structs, in the order of the parameters."""

    definition: KernelDefinition
    built: BuiltKernel
    values: Sequence[Any]
