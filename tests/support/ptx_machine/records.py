"""What PTX text says, as records: operands, instructions, functions, modules. Names stay names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


class PtxError(Exception):
    """Text that is no PTX, or PTX that does what hardware would punish or leave undefined."""


# --- operands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A register, special register, variable, label or function."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer:
    value: int


@dataclass(frozen=True, slots=True)
class Real:
    """A floating point literal. `bits` is set for the exact forms 0f… and 0d…"""

    value: float
    width: int
    bits: int


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`, or `[base + offset, {a, b}]` with places in a tensor."""

    base: Name | Integer
    offset: int
    at: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """`{a, b}` or the `(a, b)` of a call."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    name: Name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: the result is not wanted."""


Operand: TypeAlias = Name | Integer | Real | Address | Group | Pair | Not | Sink


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instruction:
    """`modifiers` are the words behind the opcode's dots."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Name | Not | None = None
    line: int = 0

    def __str__(self) -> str:
        word = ".".join((self.opcode, *self.modifiers))
        guard = f"@{spell(self.guard)} " if self.guard else ""
        return f"line {self.line}: {guard}{word} {', '.join(map(spell, self.operands))};"


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """Memory that has a name: of a module, a function, or a parameter."""

    name: str
    space: str
    type: str
    size: int  # bytes
    align: int
    initial: bytes = b""


@dataclass(slots=True)
class Function:
    """`.entry` or `.func`. Registers are given by name; `<n>` families are spelled out."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...] = ()
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] = field(default_factory=list)
    block: tuple[int, ...] = ()  # .reqntid, or the most that .maxntid allows
    exact_block: bool = False
    cluster: int = 1  # blocks, along x


@dataclass(slots=True)
class Module:
    version: tuple[int, int] = (0, 0)
    target: str = ""
    variables: list[Variable] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)


def spell(operand: Operand) -> str:
    """An operand as it would be written."""
    match operand:
        case Name(name):
            return name
        case Integer(value):
            return str(value)
        case Real(_, width, bits):
            return f"0{'f' if width == 32 else 'd'}{bits:0{width // 4}X}"
        case Address(base, offset):
            return f"[{spell(base)}{f'+{offset}' if offset else ''}]"
        case Group(parts):
            return "{" + ", ".join(map(spell, parts)) + "}"
        case Pair(first, second):
            return f"{spell(first)}|{spell(second)}"
        case Not(name):
            return f"!{name.name}"
    return "_"
