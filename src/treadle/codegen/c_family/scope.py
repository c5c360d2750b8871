"""The body of one function while it is printed: its names, its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.codegen.c_family.comments import Comments
from treadle.codegen.c_family.facts import Facts
from treadle.codegen.c_family.layout import fitted
from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.names import Names
from treadle.ir import nodes as n
from treadle.ir.types import Type

# How tightly an expression's text binds. An operand is parenthesized if it binds less than asked.
PRIMARY, UNARY, PRODUCT, SUM, SHIFT, COMPARISON, BITS, AND, OR, ANY = range(10)


@dataclass(frozen=True, slots=True)
class MemoryText:
    """A memory as the text has it: `element` is what its array or pointer holds."""

    name: str
    element: Type
    space: str  # "global", "shared", "local"
    writes: bool = True


@dataclass
class Scope:
    """Prints one function. `render` gives an expression's text and how tightly it binds."""

    module: Module
    memories: Mapping[str, MemoryText]
    functions: Mapping[str, str]  # the names of device functions in the text
    parameters: Mapping[str, tuple[str, int]]  # texts of the kernel's scalar parameters
    render: Callable[[Scope, n.Expression], tuple[str, int]]
    facts: Facts
    names: Names
    comments: Comments = field(default_factory=lambda: Comments(""))
    mutable: frozenset[str] = frozenset()  # variables that are assigned after their declaration
    passed: tuple[n.Check, ...] = ()  # checks that are known to hold at this point of the text
    spelled: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def text(self, expression: n.Expression, limit: int = ANY) -> str:
        """An expression's text, parenthesized if it binds less tightly than `limit`."""
        text, level = self.render(self, expression)
        return text if level <= limit else f"({text})"

    def name(self, variable: str) -> str:
        """How a variable of the function is spelled."""
        if variable not in self.spelled:
            self.spelled[variable] = self.names.fresh(variable)
        return self.spelled[variable]

    def emit(self, line: str) -> None:
        """Add a line (or several) at the present depth."""
        pad = "    " * self.depth
        self.lines.extend(part for one in line.split("\n") for part in fitted(pad + one))

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines inside braces that `head` opens and `tail` closes."""
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.emit(tail)

    @contextmanager
    def knowing(self, checks: tuple[n.Check, ...]) -> Iterator[None]:
        """Where these checks hold."""
        before = self.passed
        self.passed = (*before, *checks)
        yield
        self.passed = before

    def hold(self, expression: n.Expression, wish: str) -> n.Expression:
        """An expression that costs nothing to repeat: itself if it is simple, else a new variable
        that holds its value."""
        if isinstance(expression, (n.Constant, n.Variable, n.Builtin)):
            return expression
        return self.keep(expression, wish)

    def keep(self, expression: n.Expression, wish: str) -> n.Expression:
        """A new variable that holds what an expression is worth here."""
        held = n.Variable(f" {wish}.{len(self.spelled)}", expression.type, expression.span)
        self.spelled[held.name] = self.names.fresh(wish)
        register = self.module.register(expression.type, expression)
        self.emit(f"{register} {self.spelled[held.name]} = {self.text(expression)};")
        return held
