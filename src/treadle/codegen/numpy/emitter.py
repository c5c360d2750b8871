"""Lines of Python, with the names of what a function declares."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.ir import nodes as n
from treadle.ir.types import Scalar, leaves

_DEEPEST = 60  # levels of indentation; Python takes 100


class Constants:
    """The numbers of a module, each a global variable."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, value: bool | int | float, type: Scalar) -> str:
        """The variable of a number."""
        return self._names.setdefault(_spelled(value, type), f"k{len(self._names)}")

    def lines(self) -> list[str]:
        """What defines them."""
        return [f"{name} = {text}" for text, name in self._names.items()]


def register(type: Scalar) -> str:
    """The NumPy type that numbers of a type are computed in: bfloat16 is a rounded float32."""
    return "f32" if type.name == "bf16" else type.name


def stored(type: Scalar) -> str:
    """The NumPy type of their elements in memory."""
    return {"bool": "u8", "bf16": "u16"}.get(type.name, type.name)


def _spelled(value: bool | int | float, type: Scalar) -> str:
    if type.kind == "bool":
        return f"bool_({bool(value)})"
    if not type.is_float:
        return f"{register(type)}({int(value)})"
    if math.isnan(value):
        return f"{register(type)}('nan')"
    if math.isinf(value):
        return f"{register(type)}('{'inf' if value > 0 else '-inf'}')"
    return f"{register(type)}({float(value)!r})"


class Emitter:
    """The lines of one function. `mask` is the variable that says which threads run what is
    printed next."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.lines: list[str] = []
        self.depth = 1
        self.mask = "m"
        self._names: dict[str, tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._count = 0
        self._computed: dict[str, str] = {}

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str = "t") -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}_{self._count}"

    def temporary(self, text: str) -> str:
        """A variable with the value of an expression."""
        if text.isidentifier() and not keyword.iskeyword(text):
            return text
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def once(self, text: str) -> str:
        """A variable with the value of an expression, the same one for the same text as long as
        nothing changes what it reads."""
        found = self._computed.get(text)
        if found is None:
            found = self._computed[text] = self.temporary(text)
        return found

    def forget(self) -> None:
        """Variables or memory may change here."""
        self._computed.clear()

    def parts(self, variable: n.Variable) -> tuple[str, ...]:
        """The Python variables of a variable of the IR, one for each scalar in it."""
        found = self._names.get(variable.name)
        if found is None:
            stem = "v_" + re.sub(r"\W", "_", variable.name, flags=re.ASCII)
            while stem in self._taken:
                stem += "_"
            self._taken.add(stem)
            count = len(leaves(variable.type))
            found = (stem,) if count == 1 else tuple(f"{stem}_{i}_" for i in range(count))
            self._names[variable.name] = found
        return found

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        """A block behind a line."""
        self.line(header)
        self.forget()
        self.depth += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1
        self.forget()

    @property
    def is_deep(self) -> bool:
        """Whether Python takes few more levels."""
        return self.depth > _DEEPEST
