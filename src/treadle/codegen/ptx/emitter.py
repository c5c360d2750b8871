"""The text of a module and of its functions, while they are being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from treadle.codegen.ptx.spelling import MOVES, PREFIXES, Names, is_literal, register_name

_REGISTER = re.compile(r"%[A-Za-z_][A-Za-z0-9_]*")
_WINDOW = 24  # lines that are searched backwards for the instruction that made a value
_LINE_LENGTH = 96


@dataclass(slots=True)
class Module:
    """What the functions of a module share: what they need of the machine, names, declarations."""

    architecture: int = 70  # of the device, 90 for sm_90
    fast: bool = False
    keeps_negations: bool = False  # whether `a - b` must not become `a + -b` (ptxas_workarounds)
    version: tuple[int, int] = (6, 0)
    target: int = 70
    exact: bool = False  # whether it uses what the target's architecture alone has
    names: Names = field(default_factory=Names)  # of entries, parameters, memories
    registers: Names = field(default_factory=Names)
    functions: list[str] = field(default_factory=list)

    def has(self, architecture: int, version: tuple[int, int] = (6, 0)) -> bool:
        """Whether the device has what came with an architecture; if so, it is taken as used."""
        if self.architecture < architecture:
            return False
        self.target = max(self.target, architecture)
        self.version = max(self.version, version)
        return True

    def has_exactly(self, architecture: int, version: tuple[int, int]) -> bool:
        """Whether the device is of an architecture whose own instructions are wanted, that newer
        ones lack; if so, they are taken as used."""
        if self.architecture != architecture:
            return False
        self.exact = True
        return self.has(architecture, version)


class Instruction:
    """One instruction: what it writes and what it reads."""

    __slots__ = ("guard", "opcode", "operands", "results")

    def __init__(
        self, guard: str, opcode: str, results: list[str], operands: Sequence[str]
    ) -> None:
        self.guard = guard
        self.opcode = opcode
        self.results = results
        self.operands = operands

    def text(self) -> str:
        """The line."""
        parts = list(self.operands)
        if len(self.results) == 1 and not self.opcode.startswith("ldmatrix"):
            parts.insert(0, self.results[0])
        elif self.results:
            pair = "|" if self.opcode.startswith(("shfl", "match")) else ""
            joined = "|".join(self.results) if pair else f"{{{', '.join(self.results)}}}"
            parts.insert(0, joined)
        return f"    {self.guard}{self.opcode}{' ' if parts else ''}{', '.join(parts)};"

    def mentions(self, register: str) -> bool:
        """Whether it reads or writes a register."""
        if not register:
            return False
        if register in self.results or register in self.guard:
            return True
        return any(register in _REGISTER.findall(operand) for operand in self.operands)


class Emitter:
    """One function's instructions, appended one after another."""

    __slots__ = ("_counts", "_kept", "_labels", "_named", "head", "lines", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.head: list[Instruction] = []  # printed before everything else
        self.lines: list[Instruction | str] = []
        self._counts = dict.fromkeys(PREFIXES, 0)
        self._named: dict[str, list[str]] = {}
        self._kept: set[str] = set()  # registers that something remembers by name
        self._labels = 0

    # --- registers --------------------------------------------------------------------------------

    def register(self, kind: str) -> str:
        """A new register of a type, numbered."""
        self._counts[kind] += 1
        return f"{PREFIXES[kind]}{self._counts[kind]}"

    def variable(self, name: str, kind: str) -> str:
        """A new register with a name."""
        register = f"%{self.module.registers.fresh(register_name(name))}"
        self._named.setdefault(kind, []).append(register)
        return register

    def keep(self, register: str) -> str:
        """Promise that a register keeps its name."""
        self._kept.add(register)
        return register

    def declarations(self) -> list[str]:
        """The lines that declare all registers."""
        lines = []
        for kind, prefix in PREFIXES.items():
            if self._counts[kind]:
                lines.append(f"    .reg .{kind} {prefix}<{self._counts[kind] + 1}>;")
        for kind, names in self._named.items():
            line = f"    .reg .{kind} {names[0]}"
            for name in names[1:]:
                if len(line) + len(name) > _LINE_LENGTH:
                    lines.append(f"{line};")
                    line = f"    .reg .{kind} {name}"
                else:
                    line += f", {name}"
            lines.append(f"{line};")
        return lines

    # --- instructions -----------------------------------------------------------------------------

    def op(self, kind: str, opcode: str, *operands: str, guard: str = "") -> str:
        """Append an instruction with one result, in a new register of a type; that register."""
        result = self.register(kind)
        self.lines.append(Instruction(guard, opcode, [result], operands))
        return result

    def ops(self, results: Sequence[str], opcode: str, *operands: str, guard: str = "") -> None:
        """Append an instruction that writes these registers."""
        self.lines.append(Instruction(guard, opcode, list(results), operands))

    def do(self, opcode: str, *operands: str, guard: str = "") -> None:
        """Append an instruction without a result."""
        self.lines.append(Instruction(guard, opcode, [], operands))

    def move(self, kind: str, target: str, operand: str, guard: str = "") -> None:
        """Copy an operand into a register."""
        if target != operand:
            self.lines.append(Instruction(guard, MOVES[kind], [target], (operand,)))

    def first(self, kind: str, opcode: str, *operands: str, name: str = "") -> str:
        """An instruction at the function's beginning, where everything sees its result."""
        result = self.variable(name, kind) if name else self.register(kind)
        self.head.append(Instruction("", opcode, [result], operands))
        return self.keep(result)

    def comment(self, text: str) -> None:
        """A remark for readers."""
        self.lines.append(f"    // {text}")

    # --- where results go -------------------------------------------------------------------------

    def settle(self, kind: str, target: str, operand: str, since: int) -> None:
        """Put an operand into a register. If the instruction that makes the operand was appended
        at line `since` or later, it writes there at once."""
        makers = self._makers(operand, target, since)
        if makers:
            _redirect(makers, operand, target)
        else:
            self.move(kind, target, operand)

    def named(self, kind: str, name: str, operand: str, since: int) -> str:
        """An operand under a readable name, if it was made at line `since` or later."""
        makers = self._makers(operand, "", since)
        if not makers:
            return operand
        target = self.variable(name, kind)
        _redirect(makers, operand, target)
        return target

    def _makers(self, register: str, target: str, since: int) -> list[Instruction]:
        """The instructions since a line that write a register, if they could as well write
        `target`: nothing else reads the register, or needs what the target holds."""
        if is_literal(register) or register in self._kept:
            return []
        found: list[Instruction] = []
        for position in range(len(self.lines) - 1, max(since, len(self.lines) - _WINDOW) - 1, -1):
            line = self.lines[position]
            if isinstance(line, str):
                if line.endswith(":"):
                    return []
            elif register in line.results:
                found.append(line)
                if target in line.results or (line.guard and line.mentions(target)):
                    return []
                if not line.guard:
                    # The move before it gives the value if the guard skips the instruction.
                    return [] if len(found) > 1 and line.mentions(target) else found
            elif line.opcode == "bra" or line.mentions(register) or line.mentions(target):
                return []
        return []

    # --- labels -----------------------------------------------------------------------------------

    def new_label(self, meaning: str = "L") -> str:
        """A label to place later."""
        self._labels += 1
        return self.module.names.fresh(f"{meaning}_{self._labels}")

    def place(self, label: str) -> None:
        """What follows can be reached by a jump. A jump that would only lead here goes."""
        last = self.lines[-1] if self.lines else None
        if isinstance(last, Instruction) and last.opcode == "bra" and last.operands == (label,):
            self.lines.pop()
        self.lines.append(f"{label}:")

    def jump(self, label: str, guard: str = "") -> None:
        """Go to a label, if the guard holds."""
        self.lines.append(Instruction(guard, "bra", [], (label,)))

    def text(self) -> list[str]:
        """All lines."""
        both = (*self.head, *self.lines)
        return [line if isinstance(line, str) else line.text() for line in both]


def _redirect(makers: list[Instruction], register: str, target: str) -> None:
    for line in makers:
        line.results[line.results.index(register)] = target


def when(predicate: str) -> str:
    """The guard of an instruction that is executed if a predicate holds."""
    return f"@{predicate} "


def unless(predicate: str) -> str:
    """The guard of an instruction that is executed if a predicate does not hold."""
    return f"@!{predicate} "
