"""Memories, and the instructions that load from them and store to them.

An address is a register (or a memory's name) and a number of bytes, which the instruction adds for
free. Neighbours of one type are one access, two or four at a time and 16 bytes at most, where
they are known to be aligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from treadle.codegen.ptx.casts import from_stored, to_stored
from treadle.codegen.ptx.emitter import Emitter, when
from treadle.codegen.ptx.spelling import LOADED, MOVES, RAW, STORED, ZEROS
from treadle.codegen.ptx.values import Value
from treadle.ir.types import Scalar, Type, leaves, size_of

_LARGEST_ACCESS = 16  # bytes
_LARGEST_OFFSET = 1 << 31


@dataclass(frozen=True, slots=True)
class Storage:
    """A memory: the space it is in, and where it starts.

    `base` is a register with an address, or the name of a memory whose address is known when the
    kernel is loaded, and `start` is where the memory starts from there. `constant`: the
    kernel does not write it, nor does anything else while it runs. `volatile`: something does.
    `acquired`: what follows a load sees what was written before.
    """

    space: str  # "global", "shared", "local"
    base: str
    constant: bool = False
    start: int = 0
    volatile: bool = False
    acquired: bool = False

    @property
    def accessed(self) -> str:
        """How loads and stores name the space."""
        return f"volatile.{self.space}" if self.volatile else self.space

    @property
    def pointer(self) -> str:
        """The type of register that addresses it."""
        return "b64" if self.space == "global" else "b32"


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a memory, `offset` bytes from its base. What lies at a multiple of `alignment`
    from there is aligned to that."""

    storage: Storage
    base: str
    offset: int
    alignment: int

    def moved(self, bytes: int) -> Address:
        """The place that many bytes on."""
        return replace(self, offset=self.offset + bytes)


def operand(e: Emitter, address: Address, offset: int = 0) -> str:
    """An address, `offset` bytes on, as an instruction takes it."""
    offset += address.offset
    base = address.base
    if not -_LARGEST_OFFSET <= offset < _LARGEST_OFFSET:
        base, offset = e.op("b64", "add.s64", base, str(offset)), 0
    return f"[{base}+{offset}]" if offset else f"[{base}]"


@cache
def _accesses(type: Type, alignment: int, offset: int) -> tuple[tuple[int, int, int], ...]:
    """How a type at an offset from an alignment is reached: the first scalar, how many, and the
    byte where they start."""
    return tuple(_grouped(leaves(type), alignment, offset))


def _grouped(
    scalars: tuple[tuple[int, Scalar], ...], alignment: int, offset: int
) -> Iterator[tuple[int, int, int]]:
    first = 0
    while first < len(scalars):
        at, scalar = scalars[first]
        size = size_of(scalar)
        for count in (4, 2, 1):
            following = scalars[first : first + count]
            together = len(following) == count and all(
                (place, other) == (at + i * size, scalar)
                for i, (place, other) in enumerate(following)
            )
            bytes = count * size
            aligned = alignment % bytes == 0 and (offset + at) % bytes == 0
            if count == 1 or (together and aligned and bytes <= _LARGEST_ACCESS):
                yield first, count, at
                first += count
                break


def load(e: Emitter, address: Address, type: Type, predicate: str = "") -> Value:
    """The value of `type` at a place; zero if a predicate does not hold."""
    space = address.storage.accessed
    if address.storage.constant:
        space = "global.nc"
    elif address.storage.acquired:
        space = "acquire.sys.global"
    scalars = [scalar for _, scalar in leaves(type)]
    raw: list[str] = []
    for first, count, at in _accesses(type, address.alignment, address.offset):
        scalar = scalars[first]
        kind = RAW[scalar.name]
        results = [e.register(kind) for _ in range(count)]
        if predicate:
            for result in results:
                e.move(kind, result, ZEROS[kind])
        width = f".v{count}" if count > 1 else ""
        opcode = f"ld.{space}{width}.{LOADED[scalar.name]}"
        e.ops(results, opcode, operand(e, address, at), guard=when(predicate) if predicate else "")
        raw += results
    return Value(
        tuple(from_stored(e, scalar, one) for scalar, one in zip(scalars, raw, strict=True))
    )


def store(e: Emitter, address: Address, type: Type, value: Value, predicate: str = "") -> None:
    """Put a value of `type` at a place, if a predicate holds."""
    scalars = [scalar for _, scalar in leaves(type)]
    raw = [to_stored(e, scalar, leaf) for scalar, leaf in zip(scalars, value.leaves, strict=True)]
    for first, count, at in _accesses(type, address.alignment, address.offset):
        group = raw[first : first + count]
        width = f".v{count}" if count > 1 else ""
        opcode = f"st.{address.storage.accessed}{width}.{STORED[scalars[first].name]}"
        what = f"{{{', '.join(group)}}}" if count > 1 else group[0]
        e.do(opcode, operand(e, address, at), what, guard=when(predicate) if predicate else "")


def copy_of(e: Emitter, kind: str, register: str) -> str:
    """A new register with what another one holds."""
    return e.op(kind, MOVES[kind], register)
