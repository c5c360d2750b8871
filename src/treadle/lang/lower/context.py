"""The state of a lowering: a `Lowering` for the kernel, a `Context` for each function in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias
from typing import Literal as Literal_

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import walk
from treadle.lang.definitions import DeviceFunction
from treadle.lang.lower.scope import Scope, analyze
from treadle.lang.lower.values import (
    EXPRESSIONS,
    TupleValue,
    Value,
    contains_array,
)
from treadle.lang.refusals import REFUSALS
from treadle.lang.rules import Literal, Number
from treadle.lang.source import Source

FRAGMENT_METHODS = "treadle.lang.fragment_methods"

# Statements that may change the value of other expressions. The Declare of a temporary does not.
_EFFECTS = (
    n.Assign, n.If, n.For, n.While, n.Barrier, n.Fence, n.Atomic, n.Subgroup, n.OpaqueStore,
    n.Copies, n.Staged, n.CallStatement, n.Print, n.Assert,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Specialization:
    """A function lowered for the types of one call."""

    name: str
    result: t.Type
    pure: bool
    tuple_result: bool  # the result is a tuple, returned as a struct
    in_memory: bool = False  # the result holds an array: it is stored in the caller's memory


Access: TypeAlias = Literal_["read", "write", "update", "atomic"]


@dataclass(frozen=True, slots=True)
class CellAccess:
    """An access to a parameter of a stencil: at offsets from the position, or (None) at indices. Of
    a stack of grids, `layer` are the constants that say which grid."""

    parameter: str
    kind: Access
    offsets: tuple[int, ...] | None
    span: Span
    layer: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The functions of the lowering that recur: a call lowers a body, which has expressions, which
    have calls. Modules below the one that defines such a function call it through the context;
    `rules.RULES` has them all.
    """

    body: Callable[[Context, Sequence[ast.stmt]], None]
    call: Callable[[Context, ast.Call], Value]
    power: Callable[[Context, n.Expression | Literal, n.Expression | Literal, ast.AST], Value]
    copied: Callable[[Context, n.Expression, str, Span], n.Load]
    call_device_function: Callable[[Context, DeviceFunction, list[Value], ast.AST], Value]


@dataclass
class Lowering:
    """The state that the functions of one kernel share."""

    rules: Rules
    fastmath: bool
    checked: bool
    index_type: t.Scalar
    asserts: bool = False  # whether operations without a defined value fail, as in check mode
    functions: list[n.Function] = field(default_factory=list)
    specializations: dict[Any, Specialization] = field(default_factory=dict)
    active: list[Any] = field(default_factory=list)  # keys being lowered, to find recursion
    function_names: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # texts by file, for messages
    # (function, kinds of its arguments) -> the types of its local names, for the interpreter
    types: dict[Any, dict[str, Any]] = field(default_factory=dict)
    # Accesses to the parameters of a stencil, each noted once for each place in the source.
    accesses: list[CellAccess] = field(default_factory=list)

    def unique_function(self, name: str) -> str:
        """A function name that this kernel does not use yet."""
        count = self.function_names.get(name, 0)
        self.function_names[name] = count + 1
        return name if count == 0 else f"{name}.{count}"


@dataclass
class Frame:
    """A block being filled. `body` is the id of the Python statements it comes from."""

    statements: list[n.Statement]
    body: int | None
    loop: bool = False


@dataclass
class Binding:
    """The binding of a local name: a variable, or a compile-time value."""

    value: Value
    variable: n.Variable | None = None
    constant: Number | None = None  # the variable's only value, where it is a literal


class Context:
    """One function while its body is being lowered."""

    def __init__(
        self, lowering: Lowering, function: FunctionType, source: Source, *, is_kernel: bool
    ) -> None:
        self.lowering = lowering
        self.rules = lowering.rules
        self.function = function
        self.source = source
        lowering.sources[source.file] = source.text
        self.is_kernel = is_kernel
        self.scope: Scope = analyze(source.tree)
        self.owner = dict(self.scope.owner)
        self.bindings: dict[str, Binding] = {}
        # The types of local variables, once known; of a tuple, a tuple of types and literals.
        self.types: dict[str, Any] = {}
        self.declared: dict[str, t.Type] = {}  # `x: td.f32` without a value
        self.frames: list[Frame] = [Frame([], id(source.tree.body))]
        self.memories: list[n.Memory] = []
        self.parameters: dict[str, n.Parameter] = {}  # a kernel's, used or not
        self.unrolled = 0  # unrolled loops inside the innermost real loop
        self.result: t.Type | None = None  # of a function, set by the first return
        self.result_declared = False
        self.tuple_result = False
        self.result_place: n.Element | None = None  # for a result that holds an array
        self.prologue: list[n.Statement] = []  # what is before all other statements
        self.tables: dict[Any, Any] = {}  # tuples and arrays of constants in memory
        self.item_memories: set[str] = set()  # of tuples, whose items are not assigned
        self.guard: n.Expression | None = None  # of the cell that is stored, if it may be outside
        # What methods of fragments are made of is at the place of the call, for messages.
        self.has_places = function.__module__ != FRAGMENT_METHODS
        self._names: dict[str, int] = {}

    # --- names and places ---

    def unique(self, name: str) -> str:
        """A name for a variable or memory that this function does not use yet."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}.{count}"

    def span(self, node: ast.AST) -> Span:
        """The position of a node in the user's file; nowhere in a method of fragments."""
        return self.source.span(node) if self.has_places else NOWHERE

    def error(self, message: str, node: ast.AST) -> CompileError:
        """An error at a node."""
        return CompileError(message, self.span(node), self.text)

    @property
    def text(self) -> str | None:
        """The text of the user's file; None in a method of fragments."""
        return self.source.text if self.has_places else None

    def refusal(self, key: str, node: ast.AST, **names: object) -> CompileError:
        """The error for a construct from the table of refusals."""
        return self.error(REFUSALS[key].message(**names), node)

    # --- statements ---

    @property
    def whole_body(self) -> tuple[n.Statement, ...]:
        """The statements of the whole function."""
        return (*self.prologue, *self.frames[0].statements)

    @property
    def statements(self) -> list[n.Statement]:
        """The block being filled."""
        return self.frames[-1].statements

    def emit(self, statement: n.Statement) -> None:
        """Add a statement to the current block."""
        self.statements.append(statement)

    @contextmanager
    def block(self, body: int | None = None, *, loop: bool = False) -> Iterator[list[n.Statement]]:
        """A new block, whose names end with it."""
        frame = Frame([], body, loop)
        with self._entered(frame):
            yield frame.statements

    @contextmanager
    def guarded(self, span: Span) -> Iterator[None]:
        """The store of a place, where it may be outside: only if the guard says that it is inside.
        The guard is used up."""
        guard, self.guard = self.guard, None
        if guard is None:
            yield
            return
        with self.block() as body:
            yield
        self.emit(n.If(guard, tuple(body), (), span))

    @contextmanager
    def taken(self, body: int) -> Iterator[None]:
        """The side of a branch that is decided at compile time: its statements go to the block
        around it, but its names end with it."""
        with self._entered(Frame(self.statements, body)):
            yield

    @contextmanager
    def unrolled_body(self, body: int) -> Iterator[None]:
        """A body whose statements go to the block around it."""
        self.unrolled += 1
        with self._entered(Frame(self.statements, body, loop=True)):
            yield
        self.unrolled -= 1

    @contextmanager
    def _entered(self, frame: Frame) -> Iterator[None]:
        self.frames.append(frame)
        yield
        self.frames.pop()
        for name in [name for name in self.bindings if self.owner.get(name) == frame.body]:
            del self.bindings[name]

    # --- temporaries ---

    def temporary(self, type: t.Type, span: Span, hint: str = "t") -> n.Variable:
        """A new variable, declared here and set to zero."""
        variable = n.Variable(self.unique(f"{hint}.0"), type, span)
        self.emit(n.Declare(variable, None, span))
        return variable

    def spill(self, value: n.Expression, hint: str = "t") -> n.Expression:
        """The value in a variable, unless repeating the expression is cheap."""
        if is_trivial(value):
            return value
        return self.keep(value, len(self.statements), hint)

    def keep(self, value: n.Expression, at: int, hint: str = "t") -> n.Expression:
        """The value in a variable declared at position `at` of the current block."""
        if contains_array(value.type):
            return self._keep_in_memory(value, at, hint)
        variable = n.Variable(self.unique(f"{hint}.0"), value.type, value.span)
        self.statements.insert(at, n.Declare(variable, value, value.span))
        return variable

    def _keep_in_memory(self, value: n.Expression, at: int, hint: str) -> n.Expression:
        with self.block() as copying:
            kept = self.rules.copied(self, value, hint, value.span)
        self.statements[at:at] = copying
        return kept

    def protect(self, values: list[Value], mark: int) -> list[Value]:
        """Values lowered before position `mark`, protected from effects of later statements."""
        if not any(isinstance(each, _EFFECTS) for each in self.statements[mark:]):
            return values
        after = len(self.statements) - mark
        return [self._protected(value, after) for value in values]

    def _protected(self, value: Value, after: int) -> Value:
        """A value that reads memory, moved to a variable before the last `after` statements."""
        if isinstance(value, TupleValue):
            return TupleValue(tuple(self._protected(item, after) for item in value.items))
        if isinstance(value, EXPRESSIONS) and reads_memory(value):
            return self.keep(value, len(self.statements) - after)
        return value


def is_trivial(value: n.Expression, budget: int = 3) -> bool:
    """Whether repeating an expression is cheap: no memory, a few operations."""
    if isinstance(value, (n.Constant, n.Variable, n.Builtin)):
        return True
    nodes = list(walk(value))
    cheap = (n.Constant, n.Variable, n.Builtin, n.Binary, n.Extract)
    return len(nodes) <= budget and all(
        isinstance(each, cheap)
        and not (isinstance(each, n.Binary) and each.op not in ("add", "sub"))
        for each in nodes
    )


def reads_memory(value: n.Expression) -> bool:
    """Whether an expression loads."""
    return any(isinstance(each, n.Load) for each in walk(value))


def is_movable(statement: n.Statement) -> bool:
    """Whether a statement may be speculated: a temporary's Declare whose value neither loads nor
    calls."""
    return isinstance(statement, n.Declare) and (
        statement.value is None
        or not any(isinstance(each, (n.Load, n.Call)) for each in walk(statement.value))
    )
