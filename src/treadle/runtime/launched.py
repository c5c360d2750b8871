"""What a kernel is built for, and what was launched, as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.ir.definition import KernelDefinition

if TYPE_CHECKING:  # loaded where something is built
    from treadle.runtime.built import Built


@dataclass(frozen=True, slots=True)
class Variant:
    """What a build depends on beside definition, signature and device. `same` says for each array
    argument which earlier one it shares its memory with (its own position if none), or is None
    where all are different."""

    block: Dim3
    same: tuple[int, ...] | None = None
    folded: bool = False
    shared_bytes: int = 0
    check: bool = False


class Launched(NamedTuple):
    """A launch as it is reported to a profile: the values are numbers, `DeviceArray`s and packed
    structs, in the order of the parameters."""

    definition: KernelDefinition
    built: Built
    values: Sequence[Any]
