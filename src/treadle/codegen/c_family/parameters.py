"""Parameters as their types have them in a variable."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.scope import COMPARISON, PRIMARY, UNARY
from treadle.codegen.records import Slot


def parameter_text(module: Module, slot: Slot, names: Mapping[str, str]) -> tuple[str, int]:
    """A parameter, which travels in the type that the layout says, in its own type."""
    text = names[slot.parameter.name]
    type = slot.parameter.type
    if type.kind == "bool":
        return f"{text} != 0", COMPARISON
    if type.name in module.language.structs:
        return f"{module.helper(f'to_{module.scalar(type)}')}({text})", PRIMARY
    if type.is_float and type.bits == 16:
        return f"{module.scalar(type)}({text})", PRIMARY
    if type.bits < 32 and not type.is_signed:  # else C++ would compute with it as unsigned int
        return f"({module.scalar(type)}){text}", UNARY
    return text, PRIMARY
