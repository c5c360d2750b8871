"""Which registers an instruction writes and reads."""

from __future__ import annotations

import re

from treadle.ptx_analysis.text import Instruction

_WORD = re.compile(r"%?[A-Za-z_$%][\w$@.%]*")
_NO_RESULT = {
    "st", "red", "bar", "barrier", "bra", "brx", "ret", "exit", "trap", "brkpt", "membar", "fence",
    "cp", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "pmevent", "stmatrix",
    "setmaxnreg", "griddepcontrol", ".branchtargets",
}  # fmt: skip


def written(instruction: Instruction) -> tuple[str, ...]:
    """The registers that it writes."""
    if not instruction.operands or not _has_result(instruction):
        return ()
    if instruction.parts[0] == "call":
        first = instruction.operands[0]
        return _words(first) if first.startswith("(") else ()
    return _words(instruction.operands[0])


def read(instruction: Instruction) -> tuple[str, ...]:
    """The names that it reads: registers, special registers, variables; its guard, too."""
    first = 1 if written(instruction) else 0
    found = [word for operand in instruction.operands[first:] for word in _words(operand)]
    if instruction.guard:
        found.append(instruction.guard)
    return tuple(found)


def address(instruction: Instruction) -> tuple[str, ...]:
    """Its addresses as written, without the brackets: of a copy both, first the target's."""
    return tuple(each[1:-1].strip() for each in instruction.operands if each.startswith("["))


def address_names(instruction: Instruction) -> tuple[str, ...]:
    """The names in its addresses."""
    return tuple(word for each in address(instruction) for word in _words(each))


def _has_result(instruction: Instruction) -> bool:
    parts = instruction.parts
    if parts[0] in ("bar", "barrier"):
        return "red" in parts
    if parts[0] == "mbarrier":
        return not instruction.operands[0].startswith("[")
    return parts[0] not in _NO_RESULT


def _words(operand: str) -> tuple[str, ...]:
    """The names in an operand. `p|q` and `{a, b}` are two; `_` is none; `%tid.x` is one."""
    found = _WORD.findall(operand)
    return tuple(word for word in found if word != "_" and not re.fullmatch(r"0[fFdDxX]\w*", word))
