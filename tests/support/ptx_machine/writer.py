"""A basic block as a Python function over NumPy vectors.

`block(F, R, idx)` runs a block for the threads whose numbers are `idx` (None: all there are). `R`
holds a vector for each register, `F` is the frame: memories, warps, special registers. Inside, a
register is a local that is read from `R` at its first use; what later blocks need goes back into
`R` at the end. A value that is the same for all threads stays a scalar as long as nobody stores it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.support.ptx_machine import arithmetic, conversions
from tests.support.ptx_machine.program import BasicBlock, Program
from tests.support.ptx_machine.records import (
    Address,
    Instruction,
    Integer,
    Name,
    Not,
    Operand,
    Pair,
    PtxError,
    Real,
    Sink,
)
from tests.support.ptx_machine.types import TYPES, PtxType

Block = Callable[[Any, list[Any], Any], Any]
_CONSTANTS = {"WARP_SZ": 32}


class V(NamedTuple):
    """A value in the generated code: an expression, and whether it is one for all threads."""

    text: str
    scalar: bool = False


class Local(NamedTuple):
    """A register's current value. `own` is False for an array that something else holds too."""

    value: V
    own: bool


class Writer:
    """Collects the lines of one block."""

    def __init__(self, program: Program, block: BasicBlock, places: dict[str, int]) -> None:
        self.program = program
        self.places = places  # addresses of variables, each in its space
        self.scope: dict[str, Any] = {
            "np": np, **vars(arithmetic), **vars(conversions)
        }  # fmt: skip
        self.block = block
        self.before: list[tuple[str, int]] = []  # registers to read at the start
        self.lines: list[str] = []
        self.now: dict[str, Local] = {}
        self.written: dict[str, None] = {}
        self.defined = block.defined
        self.guard: V | None = None
        self.one: Instruction | None = None
        self._seen: dict[tuple[str, str], V] = {}  # views that were taken already
        self._count = 0

    # --- names ---

    def name(self, text: str) -> str:
        """A new local with this value."""
        self._count += 1
        self.lines.append(f"t{self._count} = {text}")
        return f"t{self._count}"

    def constant(self, value: Any) -> str:
        """An object as a name in the block's globals."""
        name = f"k{len(self.scope)}"
        self.scope[name] = value
        return name

    def make(self, form: str, *values: V) -> V:
        """A new local: a format string with the values put in."""
        scalar = all(value.scalar for value in values)
        return V(self.name(form.format(*(value.text for value in values))), scalar)

    def each(self, value: V) -> str:
        """The value as a vector of the active threads."""
        return f"np.broadcast_to({value.text}, (n,))" if value.scalar else value.text

    # --- reading ---

    def read(self, operand: Operand, type: PtxType, where: V | None = None) -> V:
        """An operand as `type` computes with it. Uses only threads `where` it is needed."""
        match operand:
            case Integer(value):
                return V(self.constant(_integer(value, type, self.one)), True)
            case Real(value, width, bits):
                return V(self.constant(_real(value, width, bits, type, self.one)), True)
            case Not(name):
                value = self.read(name, type, where)
                return self.make("~{0}", value)
            case Name(name) if name in self.program.registers:
                return self.viewed(self.register(name, where), TYPES[self.program.registers[name]],
                                   type)  # fmt: skip
            case Name(name):
                return self.special(name, type)
        raise PtxError(f"{self.one}: an operand of another kind is needed")

    def register(self, name: str, where: V | None = None) -> V:
        """A register's value, checked to be there if it might not be."""
        at = self.program.index[name]
        unsure = name in self.program.watched and not self.defined >> at & 1
        if unsure:
            conditions = [self.each(mask) for mask in (self.guard, where) if mask]
            mask = " & ".join(conditions) or "None"
            one = self.constant(self.one)
            self.lines.append(f"F.check({at}, T, {mask}, {one}, {name!r})")
        return self.old(name)

    def old(self, name: str) -> V:
        """A register's value as it is."""
        if name not in self.now:
            at = self.program.index[name]
            local = f"r{at}"
            self.before.append((name, at))
            self.now[name] = Local(V(local), False)
        return self.now[name].value

    def viewed(self, value: V, held: PtxType, type: PtxType) -> V:
        """A register's bits as another type; the low ones of a wider register."""
        if (held.kind == "p") != (type.kind == "p"):
            raise PtxError(f"{self.one}: a predicate stands where none can, or the other way round")
        if held.bits < type.bits:
            raise PtxError(f"{self.one}: a register of type .{held.name} is too narrow")
        wanted = _dtype(type)
        if held.bits == type.bits and held.stored == wanted:
            return value
        key = value.text, wanted
        if key not in self._seen:
            form = "{0}"
            if held.bits > type.bits:
                self.must_widen()
                form += f".astype('u{type.bytes}')"
            if form == "{0}" or wanted != f"u{type.bytes}":
                form += f".view('{wanted}')"
            self._seen[key] = self.make(form, value)
        return self._seen[key]

    def must_widen(self) -> None:
        if self.one and self.one.opcode not in ("ld", "st", "cvt"):
            raise PtxError(f"{self.one}: a register and the instruction's type differ in size")

    def special(self, name: str, type: PtxType) -> V:
        """A special register, or the address of a variable."""
        if name in self.places and self._in_cluster(name):
            place = self.constant(np.dtype(f"u{type.bytes}").type(self.places[name]))
            return V(self.name(f"F.ranked(idx, {place})"), False)
        if name in self.places:
            return V(self.constant(np.dtype(f"u{type.bytes}").type(self.places[name])), True)
        if name in _CONSTANTS:
            return V(self.constant(_integer(_CONSTANTS[name], type, self.one)), True)
        if not name.startswith("%"):
            raise PtxError(f"{self.one}: {name} is declared nowhere")
        value = V(self.name(f"F.special({name!r}, idx)"), False)
        held = TYPES["u64" if name in ("%clock64", "%globaltimer", "%gridid") else "u32"]
        return self.viewed(value, held, type)

    def _in_cluster(self, name: str) -> bool:
        """Whether a name is that of shared memory, whose addresses carry the block's rank."""
        variable = self.program.variables.get(name)
        shared = variable is not None and variable.space == "shared"
        return shared and self.program.function.cluster > 1

    def address(self, operand: Operand, space: str) -> str:
        """A vector of 64-bit addresses."""
        if not isinstance(operand, Address):
            raise PtxError(f"{self.one}: an address in brackets is needed")
        base, offset = operand.base, operand.offset
        if isinstance(base, Name) and base.name in self.program.registers:
            held = TYPES[self.program.registers[base.name]]
            if held.is_float or held.bits < 32 or (space in ("", "global") and held.bits != 64):
                raise PtxError(f"{self.one}: a register of type .{held.name} is no address")
            value = self.read(base, TYPES[f"u{held.bits}"])
            if offset:
                step = self.constant(_integer(offset, TYPES[f"u{held.bits}"], self.one))
                value = self.make(f"{{0}} + {step}", value)
            if held.bits == 32:
                value = self.make("{0}.astype('u8')", value)
            return self.each(value)
        if isinstance(base, Name):
            if base.name not in self.places:
                raise PtxError(f"{self.one}: {base.name} is declared nowhere")
            start = self.places[base.name]
            if self._in_cluster(base.name):
                place = self.constant(np.uint64((start + offset) % (1 << 64)))
                return self.each(V(self.name(f"F.ranked(idx, {place})"), False))
        else:
            start = base.value
        return self.each(V(self.constant(np.uint64((start + offset) % (1 << 64))), True))

    # --- writing ---

    def write(self, operand: Operand, type: PtxType, value: V, own: bool = True) -> None:
        """Give a register a value that is of `type`; under a guard only where that holds."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Name) or operand.name not in self.program.registers:
            raise PtxError(f"{self.one}: the result needs a register")
        name = operand.name
        held = TYPES[self.program.registers[name]]
        if (held.kind == "p") != (type.kind == "p"):
            raise PtxError(f"{self.one}: a predicate stands where none can, or the other way round")
        value = self.widened(value, held, type)
        if self.guard:
            old = self.old(name)
            if old.scalar and value.scalar and self.guard.scalar:
                form = "{1} if {0} else {2}"
            else:
                form = "np.where({0}, {1}, {2})"
                if self.guard.scalar:  # where a scalar decides, the result must not be one
                    form = "np.where(np.broadcast_to({0}, (n,)), {1}, {2})"
            text = self.name(form.format(self.guard.text, value.text, old.text))
            value = V(text, old.scalar and value.scalar and self.guard.scalar)
            own = True
        at = self.program.index[name]
        if name in self.program.watched:
            mask = self.each(self.guard) if self.guard else "None"
            self.lines.append(f"F.define({at}, T, {mask})")
        if not self.guard:
            self.defined |= 1 << at
        self.now[name] = Local(value, own)
        self.written[name] = None

    def widened(self, value: V, held: PtxType, type: PtxType) -> V:
        computed = _dtype(type)
        if held.bits < type.bits:
            raise PtxError(f"{self.one}: a register of type .{held.name} is too narrow")
        if held.bits > type.bits:
            self.must_widen()
            if type.kind == "f":
                raise PtxError(f"{self.one}: a float needs a register of its own size")
            wide = f"{'i' if type.kind == 's' else 'u'}{held.bytes}"
            value, computed = self.make(f"{{0}}.astype('{wide}')", value), wide
        if held.stored != computed:
            value = self.make(f"{{0}}.view('{held.stored}')", value)
        return value

    # --- the whole ---

    def function(self, result: str) -> Block:
        """The block, compiled; `result` is what it returns."""
        head = ["def block(F, R, idx):", " if idx is None:", "  n = F.lanes; T = F.all; W = F.rows"]
        head += [f"  r{at} = {self._start(name, at, '')}" for name, at in self.before]
        head += [" else:", "  n = len(idx); T = idx; W = F.rows[idx]"]
        head += [f"  r{at} = {self._start(name, at, '[idx]')}" for name, at in self.before]
        body = [f" {line}" for line in self.lines]
        kept = [name for name in self.written if self.block.live >> self.program.index[name] & 1]
        whole, some = ["  pass"], ["  pass"]
        for name in kept:
            at, (value, own) = self.program.index[name], self.now[name]
            dtype = TYPES[self.program.registers[name]].stored
            if value.scalar:
                whole.append(f"  R[{at}] = np.full(n, {value.text}, '{dtype}')")
            else:
                whole.append(f"  R[{at}] = {value.text}{'' if own else '.copy()'}")
            some.append(f"  F.put({at}, idx, {value.text}, '{dtype}')")
        tail = [" if idx is None:", *whole, " else:", *some, f" return {result}"]
        text = "\n".join([*head, *body, *tail])
        label = f"<{self.program.name}, block {self.block.number}>"
        exec(compile(text, label, "exec"), self.scope)
        block: Block = self.scope["block"]
        return block

    def _start(self, name: str, at: int, index: str) -> str:
        # A register that is surely written has a vector; others may have none yet.
        if self.block.defined >> at & 1:
            return f"R[{at}]{index}"
        return f"F.old({at}, idx, '{TYPES[self.program.registers[name]].stored}')"


def _dtype(type: PtxType) -> str:
    """What values of a type are in the generated code; bfloat16 is its bits."""
    return type.stored if type.kind in ("bf", "bf2", "f2") else type.computed


def _integer(value: int, type: PtxType, one: Instruction | None) -> Any:
    if type.kind == "p":
        return np.bool_(value)
    if type.kind == "f" and type.bits != 16:
        raise PtxError(f"{one}: an integer stands where a float is needed")
    if not -(1 << (type.bits - 1)) <= value < 1 << type.bits:
        raise PtxError(f"{one}: {value} does not fit .{type.name}")
    unsigned = np.dtype(f"u{type.bytes}").type(value % (1 << type.bits))
    return unsigned.view(_dtype(type))


def _real(value: float, width: int, bits: int, type: PtxType, one: Instruction | None) -> Any:
    if type.bits == width:
        return np.dtype(f"u{type.bytes}").type(bits).view(_dtype(type))
    if type.kind == "f" and type.bits == 32:
        return np.float32(value)
    raise PtxError(f"{one}: a literal of {width} bits stands where .{type.name} is needed")


def only(one: Instruction, *allowed: str) -> None:
    """PtxError for modifiers beside these."""
    unknown = [word for word in one.modifiers if word not in allowed]
    if unknown:
        raise PtxError(f"{one}: unknown modifier .{'.'.join(unknown)}")


def pair(operand: Operand) -> tuple[Operand, Operand]:
    """The results of `d|p`, or of `d` alone."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, Sink()
