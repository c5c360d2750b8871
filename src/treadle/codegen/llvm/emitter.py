"""The text of a module and of its functions, while they are being written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from treadle.codegen.llvm.spelling import suffix

VECTORIZED = "; all parallel loops are vectors"
# Functions are inlined unless all calls together would become more lines than this limit: LLVM
# takes seconds for a hundred sines.
INLINED = "alwaysinline"
_MOST_INLINED = 10000
_CALL = re.compile(r"call [^@\n]*(@\"?treadle\.function\.[^(\"]*\"?)\(")
_DEFINED = re.compile(r"define internal [^@\n]*(@\"?treadle\.function\.[^(\"]*\"?)\(")


@dataclass(slots=True)
class Module:
    """What the functions of a module share: declarations and metadata, each written once."""

    fast: bool = False
    loops: set[str] = field(default_factory=set)  # how parallel loops are printed: lanes, plain
    functions: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)  # small functions, by name
    declarations: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)

    def node(self, text: str, *, distinct: bool = False) -> str:
        """A new metadata node, as `!7`; `{self}` in the text is the node itself."""
        name = f"!{len(self.metadata)}"
        body = text.replace("{self}", name)
        self.metadata.append(f"{name} = {'distinct ' if distinct else ''}!{{{body}}}")
        return name

    def declare(self, name: str, signature: str) -> None:
        """Declare an external function or intrinsic once."""
        self.declarations.setdefault(name, signature)

    def text(self) -> str:
        """The whole module. Its first line says so if nothing is left to vectorize."""
        head = VECTORIZED if self.loops == {"lanes"} else ""
        functions = _called_or_inlined(self.functions)
        parts = [
            head,
            *self.helpers.values(),
            *functions,
            *self.declarations.values(),
            "\n".join(self.metadata),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def _called_or_inlined(functions: list[str]) -> list[str]:
    """Functions, callees first; those whose calls would become too much code are not inlined."""
    calls = [Counter(_CALL.findall(text)) for text in functions]
    total = sum(calls, Counter[str]())
    lines: dict[str, int] = {}  # that a call becomes
    found: list[str] = []
    for text, inside in zip(functions, calls, strict=True):
        defined = _DEFINED.match(text)
        if defined is not None:
            name = defined[1]
            size = text.count("\n") + sum(lines[each] * count for each, count in inside.items())
            if total[name] > 1 and total[name] * size > _MOST_INLINED:
                text = text.replace(f" {INLINED} ", " noinline ", 1)
                size = 1
            lines[name] = size
        found.append(text)
    return found


class Emitter:
    """One function's instructions. Instructions are appended at its current block."""

    __slots__ = (
        "_labels", "_start", "_temporaries", "_true", "allocas", "current", "float_flags", "lines",
        "module", "open",
    )  # fmt: skip

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.current = "entry"  # the label of the block that instructions go to
        self.open = True  # whether that block still lacks its end
        self.float_flags = "contract afn arcp " if module.fast else "contract "
        self._temporaries = 0
        self._labels = 0
        self._start = 0  # the line at which the basic block begins
        self._true = ""  # the frame's memory that holds a true

    def op(self, text: str) -> str:
        """Append an instruction with a result; its name."""
        name = f"%t{self._temporaries}"
        self._temporaries += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def alloca(self, type: str, alignment: int = 0) -> str:
        """Space in the function's frame; its name."""
        name = f"%m{len(self.allocas)}"
        aligned = f", align {alignment}" if alignment else ""
        self.allocas.append(f"  {name} = alloca {type}{aligned}")
        return name

    def true(self) -> str:
        """A bool that is true, of which LLVM does not know it."""
        if not self._true:
            self._true = self.alloca("i1")
            self.allocas.append(f"  store volatile i1 true, ptr {self._true}")
        return self.op(f"load volatile i1, ptr {self._true}")

    @property
    def length(self) -> int:
        """The instructions in the basic block so far."""
        return len(self.lines) - self._start

    def new_label(self) -> str:
        """A label to place later."""
        self._labels += 1
        return f"b{self._labels}"

    def place(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self._start = len(self.lines)
        self.current = label
        self.open = True

    def jump(self, label: str, marks: str = "") -> None:
        """End the basic block: go to a label."""
        self.lines.append(f"  br label %{label}{marks}")
        self.open = False

    def branch(self, condition: str, if_true: str, if_false: str) -> None:
        """End the basic block: go to one of two labels."""
        self.lines.append(f"  br i1 {condition}, label %{if_true}, label %{if_false}")
        self.open = False

    def switch(self, value: str, default: str, cases: Iterable[tuple[str, str]]) -> None:
        """End the basic block: go to the label of a value, each with its type."""
        listed = " ".join(f"{number}, label %{label}" for number, label in cases)
        self.lines.append(f"  switch {value}, label %{default} [ {listed} ]")
        self.open = False

    def intrinsic(
        self, name: str, type: str, operands: Iterable[tuple[str, str]], overloads: Iterable[str]
    ) -> str:
        """Append a call of `llvm.<name>` with a result of an LLVM type; its name."""
        operands = tuple(operands)
        full = ".".join((f"@llvm.{name}", *map(suffix, overloads)))
        types = ", ".join(operand_type for operand_type, _ in operands)
        self.module.declare(full, f"declare {type} {full}({types})")
        arguments = ", ".join(f"{operand_type} {operand}" for operand_type, operand in operands)
        flags = self.float_flags if name in _FLAGGED else ""
        if name == "vector.reduce.fadd":
            flags = "reassoc "
        return self.op(f"call {flags}{type} {full}({arguments})")


# Intrinsics that computing with less accuracy, or contraction, may concern.
_FLAGGED = frozenset({"sqrt", "fma"})
