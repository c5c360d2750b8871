"""Memories, and the instructions that load from them and store to them."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.codegen.llvm import casts
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import stored_type
from treadle.codegen.llvm.values import Value
from treadle.ir.types import Scalar, Type, leaves, size_of


@dataclass(frozen=True, slots=True)
class Storage:
    """A memory: where it starts, and what its accesses are marked with.

    `grouped` accesses may be promised independent in a parallel loop. Those to memories of one
    thread may not: all iterations use the same one.
    """

    pointer: str
    marks: str = ""
    grouped: bool = True
    atomic: bool = True  # other threads may reach it at the same time
    copies: int = 1  # lanes, where each of them has a copy of everything
    volatile: bool = False  # the host writes it meanwhile
    acquired: bool = False  # what follows a load sees what was written before
    streamed: bool = False  # whole vectors are stored past the caches


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a memory: a scalar pointer, and what its accesses are marked with."""

    pointer: str
    storage: Storage
    offset: int = 0  # bytes from the pointer to the place

    def moved(self, bytes: int) -> Address:
        """The place that many bytes on."""
        return Address(self.pointer, self.storage, self.offset + bytes)


def element_pointer(e: Emitter, base: str, index: str, type: Type) -> str:
    """The pointer to element `index` (an i64) of a sequence of `type`."""
    shape = stored_type(type) if isinstance(type, Scalar) else f"[{size_of(type)} x i8]"
    return e.op(f"getelementptr inbounds {shape}, ptr {base}, i64 {index}")


def byte_pointer(e: Emitter, address: Address, offset: int = 0) -> str:
    """The pointer to the place, `offset` bytes on."""
    offset += address.offset
    if not offset:
        return address.pointer
    return e.op(f"getelementptr inbounds i8, ptr {address.pointer}, i64 {offset}")


def load(e: Emitter, address: Address, type: Type, marks: str) -> Value:
    """The value of `type` at a place."""
    value = Value(
        tuple(
            load_leaf(e, byte_pointer(e, address, offset), scalar, marks, address.storage.volatile)
            for offset, scalar in leaves(type)
        )
    )
    if address.storage.acquired:
        e.do("fence acquire")
    return value


def load_leaf(e: Emitter, pointer: str, scalar: Scalar, marks: str, volatile: bool = False) -> str:
    """One scalar from memory."""
    stored = stored_type(scalar)
    word = "load volatile" if volatile else "load"
    loaded = e.op(f"{word} {stored}, ptr {pointer}, align {size_of(scalar)}{marks}")
    return casts.from_stored(e, scalar, loaded, stored, 1)


def store(e: Emitter, address: Address, type: Type, value: Value, marks: str) -> None:
    """Put a value of `type` at a place."""
    for (offset, scalar), leaf in zip(leaves(type), value.leaves, strict=True):
        stored = casts.to_stored(e, scalar, leaf, 1)
        pointer = byte_pointer(e, address, offset)
        word = "store volatile" if address.storage.volatile else "store"
        e.do(
            f"{word} {stored_type(scalar)} {stored}, ptr {pointer}, align {size_of(scalar)}{marks}"
        )
