"""What flows from printers to drivers: frozen records, the same for every target."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir.nodes import Parameter
from treadle.ir.types import Scalar

# How each scalar travels in a parameter block: its struct format, and the bytes it takes. Narrow
# types are widened to 32 bits, so that a block is made of words on every target.
_FORMATS: dict[str, tuple[str, int]] = {
    "bool": ("I", 4), "i8": ("i", 4), "u8": ("I", 4), "i16": ("i", 4), "u16": ("I", 4),
    "i32": ("i", 4), "u32": ("I", 4), "i64": ("q", 8), "u64": ("Q", 8),
    "f16": ("f", 4), "bf16": ("f", 4), "f32": ("f", 4), "f64": ("d", 8),
}  # fmt: skip
_WIDENED: dict[str, str] = {
    "bool": "u32", "i8": "i32", "u8": "u32", "i16": "i32", "u16": "u32",
    "f16": "f32", "bf16": "f32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """One scalar of a parameter block: `stored` is the name of the type it is widened to."""

    parameter: Parameter
    offset: int
    stored: str


@dataclass(frozen=True, slots=True)
class ParameterLayout:
    """A kernel's scalars as one block of bytes: each aligned to its size, in order."""

    slots: tuple[Slot, ...]
    size: int  # bytes, a multiple of 8; 0 if there are no scalars
    format: str  # for struct.Struct: little-endian, with its padding spelled out

    @classmethod
    def of(cls, parameters: tuple[Parameter, ...]) -> ParameterLayout:
        """The layout of these parameters."""
        slots: list[Slot] = []
        form = "<"
        end = 0
        for parameter in parameters:
            code, size = _FORMATS[parameter.type.name]
            padding = -end % size
            form += "x" * padding + code
            slots.append(Slot(parameter, end + padding, stored_name(parameter.type)))
            end += padding + size
        form += "x" * (-end % 8)
        return cls(tuple(slots), struct.calcsize(form), form)


def stored_name(type: Scalar) -> str:
    """The name of the scalar type that a parameter of `type` travels as."""
    return _WIDENED.get(type.name, type.name)


@dataclass(frozen=True, slots=True)
class Binding:
    """One device buffer that the code expects; several kernel parameters may share it."""

    buffers: tuple[str, ...]  # names of the kernel's buffer parameters
    writes: bool  # stores or atomics reach it


MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""Of a tensor map as a kernel's parameter."""

# A number that is known when a kernel is launched: the sum of factors times what the parameter
# block has at an offset, stored as a type ("" at -1 for the number 1).
Terms = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A matrix that a kernel copies boxes of, which the driver describes at each launch: elements
    of a binding, from `start` on, with extents along its axes (three to five), the nearest first,
    and steps along the others, all counted in elements. A box has so many elements of the first two
    axes."""

    binding: int
    element: str  # one of `ir.stages.SUMS`; "f32" is rounded to TF32 as it is copied
    start: Terms
    extents: tuple[Terms, ...]
    steps: tuple[Terms, ...]
    box: tuple[int, int]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel printed for one target."""

    target: str  # "wgsl", "llvm", "ptx", "cuda", "msl"
    dialect: str  # "naga" | "tint" for wgsl, "sm_90" for ptx and cuda; "" elsewhere
    name: str  # the user's name, for labels and messages
    entry: str  # the entry point in `source`
    source: str
    block: Dim3  # threads in a block, as the kernel sees it
    workgroup: Dim3  # invocations the device runs for a block (smaller after fission)
    bindings: tuple[Binding, ...]  # in binding order; empty slots do not exist
    layout: ParameterLayout
    shared_bytes: int = 0
    dynamic_shared: int = 0  # of these, the bytes that a launch must ask for (CUDA over 48 KiB)
    folded: bool = False  # block_idx is recovered from a folded grid ("grid" parameters say how)
    checked: bool = True  # False: the driver may build without its own bounds checks anyway
    requires: frozenset[str] = frozenset()  # features, as in Device.features
    maps: tuple[TensorMap, ...] = ()  # parameters behind the block, at their alignment


@dataclass(frozen=True, slots=True)
class Target:
    """What code is printed for: a language, its dialect, and a device's limits and features."""

    language: str
    dialect: str = ""
    limits: Limits = field(default_factory=Limits)
    features: frozenset[str] = frozenset()
    matrix_units: tuple[tuple[int, int, int], ...] = ()  # as in `Traits`

    def key(self) -> str:
        """The target as text, the same in every process (a set's own order is not)."""
        return repr(replace(self, features=frozenset())) + " ".join(sorted(self.features))


@dataclass(frozen=True, slots=True)
class Options:
    """One way of launching a kernel. `slots` maps each buffer parameter to a binding: two that
    get the same array share one. `shared_bytes` is the launch's dynamic shared memory."""

    block: Dim3
    slots: tuple[tuple[str, int], ...]
    folded: bool = False
    shared_bytes: int = 0
    check: bool = False
