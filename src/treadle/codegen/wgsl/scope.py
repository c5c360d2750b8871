"""The body of one function while it is printed: its names, its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.codegen.wgsl.module import Module
from treadle.codegen.wgsl.names import Names
from treadle.codegen.wgsl.plans import Plan
from treadle.ir import nodes as n

# How tightly an expression's text binds. An operand is parenthesized if it binds less than asked.
PRIMARY, UNARY, PRODUCT, SUM, SHIFT, COMPARISON, ANY = range(7)
# A comparison as an argument is parenthesized: `f(a < b, c > (d))` would be read as a template.
ARGUMENT = SHIFT


@dataclass
class Scope:
    """Prints one function. `render` gives an expression's text and how tightly it binds."""

    module: Module
    plans: Mapping[str, Plan]
    functions: Mapping[str, str]  # WGSL names of device functions
    parameters: Mapping[str, str]  # texts of the kernel's scalar parameters
    render: Callable[[Scope, n.Expression], tuple[str, int]]
    mutable: frozenset[str] = frozenset()  # variables that are assigned after their declaration
    lengths: frozenset[str] = frozenset()  # parameters that count the elements of an array
    uniform_loads: frozenset[int] = frozenset()  # statements, by identity
    is_entry: bool = True
    names: Names = field(default_factory=Names)
    spelled: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def text(self, expression: n.Expression, limit: int = ANY) -> str:
        """An expression's text, parenthesized if it binds less tightly than `limit`."""
        text, level = self.render(self, expression)
        return text if level <= limit else f"({text})"

    def argument(self, expression: n.Expression) -> str:
        """An expression as an argument of a call."""
        return self.text(expression, ARGUMENT)

    def name(self, variable: str) -> str:
        """How a variable of the function is spelled."""
        if variable not in self.spelled:
            self.spelled[variable] = self.names.fresh(variable)
        return self.spelled[variable]

    def emit(self, line: str) -> None:
        """Add a line (or several) at the present depth."""
        pad = "    " * self.depth
        self.lines.extend(pad + part if part else "" for part in line.split("\n"))

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines inside braces that `head` opens and `tail` closes."""
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.emit(tail)

    def hold(self, expression: n.Expression, wish: str) -> n.Expression:
        """An expression that costs nothing to repeat: itself if it is simple, else a new constant
        that holds its value."""
        if isinstance(expression, (n.Constant, n.Variable, n.Builtin)):
            return expression
        return self.keep(expression, wish)

    def keep(self, expression: n.Expression, wish: str) -> n.Expression:
        """A new constant that holds what an expression is worth here."""
        held = n.Variable(f" {wish}.{len(self.spelled)}", expression.type, expression.span)
        self.spelled[held.name] = self.names.fresh(wish)
        self.emit(f"let {self.spelled[held.name]} = {self.text(expression)};")
        return held
