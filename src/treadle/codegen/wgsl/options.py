"""What a kernel is printed for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir.opaque import Unit


@dataclass(frozen=True, slots=True)
class WgslOptions:
    """The compiler, the device's features and limits, and how the launch will bind.

    `bindings` says which slot each buffer takes; buffers that are the same array share one. Empty,
    every buffer has its own. `folded` says that the kernel finds its block in a folded grid
    (`ir.passes.unfold`). `workgroup` is given when fission made fewer invocations run a block.
    """

    dialect: Literal["naga", "tint"] = "naga"
    features: frozenset[str] = frozenset()  # as in DeviceInfo.features
    limits: Limits = field(default_factory=Limits)
    bindings: Mapping[str, int] = field(default_factory=dict)
    folded: bool = False
    workgroup: Dim3 | None = None
    dynamic_shared_bytes: int = 0
    checked: bool = True
    matrix_unit: Unit | None = None  # what opaque matrices are made of, where there are any
