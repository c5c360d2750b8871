"""What the launch path needs to know of a kernel, whichever front end it came from.

A front end (`lang`, `cuda_cpp`, the fuser) hands the runtime a `KernelDefinition`; the runtime
classifies the arguments of a call into a `Signature`, and asks the definition to lower itself for a
signature it has not seen with the constants it captures now.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from treadle.core.dim3 import Dim3
from treadle.ir.nodes import Kernel
from treadle.ir.signature import DeclaredParameter, Signature


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """What a kernel's decorator asked for. `block` None leaves the block to the launch."""

    block: Dim3 | None = None
    checked: bool = True
    fastmath: bool = False


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel in IR for one signature.

    `kernel.block` is None: the pipeline sets it. The order of `kernel.buffers` is the order of the
    array arguments; `kernel.parameters` say by their origin where a launch takes them from.
    `captured` is the definition's `captured()` that this lowering was made for.
    """

    kernel: Kernel
    captured: Hashable
    sources: Mapping[str, str] = field(default_factory=dict)
    """The texts of the user's files by name, for messages about the IR's spans."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does, as far as its definition knows: the bytes it must read and write at
    least, and its arithmetic operations (a fused multiply and add is two)."""

    bytes: int | None = None
    operations: int | None = None


def label_of(parameters: Sequence[DeclaredParameter], position: int) -> str:
    """How messages name an argument: "argument 2 (x)"."""
    parameter = parameters[position]
    name = f" ({parameter.name})" if parameter.name else ""
    return parameter.label or f"argument {position + 1}{name}"


class KernelDefinition(Protocol):
    """A kernel before it is compiled for a call.

    A definition may also have a method `work(values)`, which gives the `Work` of a launch with
    these values (see `runtime.launch_records`). Profiles call it, and estimate the bytes where it
    does not give them. And it may have `identity()`: a text that says in any process, together with
    a signature, what `lower` gives, or None. Such a kernel is found on disk without being lowered.
    """

    @property
    def name(self) -> str:
        """The user's name for it."""

    @property
    def options(self) -> KernelOptions:
        """What its decorator asked for."""

    @property
    def parameters(self) -> tuple[DeclaredParameter, ...]:
        """Its parameters, in order."""

    def captured(self) -> Hashable:
        """The constants from outside that the kernel uses, as they are now.

        They are a part of the key of compiled code; asking is cheap enough for every launch.
        """

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR for arguments of these types. CompileError points at what is wrong."""
