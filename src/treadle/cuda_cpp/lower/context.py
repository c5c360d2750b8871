"""The state of a kernel's lowering: scopes, statements, and facts from earlier runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.cuda_cpp.lower.values import (
    ItemTarget,
    MemoryTarget,
    ObjectTarget,
    PointerValue,
    Target,
    Value,
    is_in_parts,
    same_object,
)
from treadle.cuda_cpp.program import LEVELS, QueuedKernel, Sampling
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.scopes import DeclaredType, Enumerator, Scope
from treadle.cuda_cpp.semantics.types import (
    NUMBER_TYPES,
    VOID,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    MemberPointer,
    NumberTypes,
    Pointer,
    Reference,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.lang.lower.standalone import library_functions

SlotKey = tuple[str, tuple[str, ...]]

_LIBRARY_ENDINGS = ("_f32", "_f64", "_f16", "_bf16", "_u32", "_i32", "_u64", "_i64")
_MOST_COPIES = 2  # of a variable, before a fact holds for all
MOST_CONSTANT_CALLS = 10_000  # of constexpr functions by constexpr functions
MOST_INLINED = 64  # levels of nested calls
MOST_CALLS = 8192  # that are inlined in a kernel


@dataclass(frozen=True, slots=True)
class Note:
    """A note for the report of a kernel; kind "used", "emulated" or "refused"."""

    kind: str
    construct: str
    reason: str
    span: Span


class LowerAgain(Exception):
    """A new fact changes what was lowered already: the kernel is lowered again."""


class Keys:
    """A set of variables' keys. Each new key costs a run of the lowering, so if several inlined
    copies of a function add the same declaration, it holds for all copies."""

    def __init__(self) -> None:
        self._keys: set[Any] = set()
        self._copies: Counter[int] = Counter()

    def add(self, key: Any) -> None:
        """Add a key."""
        self._keys.add(key)
        if isinstance(key[1], int):
            self._copies[key[1]] += 1

    def __contains__(self, key: Any) -> bool:
        return key in self._keys or self._copies[key[1]] > _MOST_COPIES


@dataclass(slots=True)
class Facts:
    """Facts that a run of the lowering finds for the next one.

    The key of a variable is the chain of calls that it is inlined through, and its declaration.
    """

    in_memory: Keys = field(default_factory=Keys)  # objects that need an address
    assigned: Keys = field(default_factory=Keys)  # parameters that are assigned to
    targets: dict[Any, list[Target]] = field(default_factory=dict)  # of pointer variables
    wide: set[Any] = field(default_factory=set)  # pointer variables with 64-bit offsets
    addressed: set[Any] = field(default_factory=set)  # constants whose address is taken
    # Those of pointers that are kept in memory: by the memory and the names of the members.
    slots: dict[SlotKey, list[Target]] = field(default_factory=dict)
    units: dict[Any, int] = field(default_factory=dict)  # bytes of a step, if less than the element
    inlined: set[Any] = field(default_factory=set)  # functions that cannot be IR functions
    recursive: set[Any] = field(default_factory=set)  # functions that call themselves
    # Their parameters for which not all calls pass the same, and their types of results.
    varying: set[Any] = field(default_factory=set)
    results: dict[Any, CppType] = field(default_factory=dict)
    # The elements and dimensions that accesses expect of images that no launch gave.
    images: dict[str, tuple[ir.Scalar, int]] = field(default_factory=dict)
    temporaries: dict[Any, int] = field(default_factory=dict)  # that parameters refer to: numbers
    # The names that each function may assign to, by its identity.
    assigned_names: dict[int, frozenset[str]] = field(default_factory=dict)
    # Trees that are made of the file's, with what they are made of, which keeps its identity.
    trees: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    # Whether arrays whose addresses in shared memory become numbers are memories of their own.
    apart: bool = False
    changed: bool = False  # a fact was added, so that the kernel is lowered again
    # The targets that pointer variables were given in this run, and whether old ones were dropped.
    given: dict[Any, list[Target]] = field(default_factory=dict)
    dropped: bool = False

    def drop_old_targets(self) -> None:
        """Drop the targets of pointer variables that no assignment of this run gave them: earlier
        runs, which knew less, had other names for some variables. Once, after the last run."""
        if self.dropped:
            return
        self.dropped = True
        for key, given in self.given.items():
            known = self.targets[key]
            left = [one for one in known if one in given or not isinstance(one, _PLACED)]
            if len(left) < len(known):
                self.targets[key] = left
                self.changed = True


_PLACED = (ItemTarget, ObjectTarget)  # the targets that may have names of variables in them


class Frames(Protocol):
    """The functions that call themselves, as a loop over frames (`recursion.Recursion`)."""

    level: n.Variable
    levels: int
    path: tuple[Any, ...]

    def is_outer(self, name: str) -> bool:
        """Whether a variable of the IR is declared before the loop."""


class ChosenOperator(Protocol):
    """The operator function of the file that an operator calls."""

    @property
    def types(self) -> tuple[CppType, ...]:
        """The types of its parameters."""

    def call(self, cx: Context, values: Sequence[Value], span: Span) -> Value:
        """The value of the call."""


class OperatorRule(Protocol):
    """Overload resolution among operator functions of the file; None if none is viable."""

    def __call__(
        self,
        cx: Context,
        op: str,
        values: Sequence[Value],
        span: Span,
        members_only: bool = False,
    ) -> ChosenOperator | None: ...


class Recovery(Protocol):
    """Error recovery (`recovery.Errors`)."""

    def attempt(
        self, cx: Context, node: tree.Statement, lower: Callable[[Context, tree.Statement], None]
    ) -> None:
        """Lower a statement. Its error is recorded, up to a limit."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Mutually recursive parts of the lowering: a subscript contains an expression, a conversion
    may be a call, a call lowers statements. A module that is imported before that of a rule calls
    it through the context; `rules.RULES` has them all.
    """

    expressions: Mapping[type, Callable[[Context, Any], Value]]  # by the class of the node
    statement: Callable[[Context, tree.Statement], None]
    resolve: Callable[[Context, tree.TypeTree], CppType]
    member_of: Callable[[Context, Value, tree.Name, Span], Value]
    # classes and templates
    class_type: Callable[[Context, tree.StructDeclaration, Scope], CppType]
    enum_type: Callable[[Context, tree.EnumDeclaration, Scope], EnumType]
    enumerator: Callable[[Context, Enumerator], tuple[CppType, n.Constant]]
    class_instance: Callable[[Context, DeclaredType, Sequence[Any], Span], CppType]
    method_of_instance: Callable[
        [Context, tree.FunctionDeclaration, tree.StructDeclaration, Scope, Scope],
        tuple[tree.FunctionDeclaration, Scope] | None,
    ]
    bind_arguments: Callable[
        [Context, Sequence[tree.TemplateParameter], Sequence[Any], Scope, Span], Scope
    ]
    transformed: Callable[[Context, tree.Name, Span], CppType]  # `__treadle_decay<T>`
    place: Callable[[Context, Any], Value]  # an expression as an object: `c ? a : b`
    # functions, constructors, conversions and operators of the file
    function_pointer: Callable[[Context, Value, CppType | None, Span], PointerValue]
    member_pointer: Callable[[Context, Any, Span], Value | None]  # of the operand of a `&`
    to_member_pointer: Callable[[Context, Value, MemberPointer, Span], Value | None]
    launch: Callable[[Context, tree.Call], Value]
    call_chosen: Callable[[Context, Any, Sequence[Value], Value | None, Span], Value]
    construct: Callable[[Context, CppType, Sequence[Value], Span], Value]
    list_arguments: Callable[[Context, ClassType, tree.InitializerList], list[Value]]
    constructed_from: Callable[[Context, CppType, Sequence[Value]], Sequence[CppType | None]]
    run_constructor: Callable[[Context, Value, ClassType, Sequence[Value], Span], None]
    text_pointer: Callable[[Context, Value, Span], Value]
    copy_into: Callable[[Context, Value, Value, CppType, Span], None]  # by a copy constructor
    destroy: Callable[[Context, Value, CppType, Span], None]
    has_converting_constructor: Callable[[Context, Value, ClassType], bool]
    # by a conversion function; whether those that are explicit may be called
    call_conversion: Callable[[Context, Value, CppType | None, bool, Span], Value | None]
    conversion_result: Callable[[Context, CppType, CppType], CppType | None]
    call_operator: Callable[[Context, str, Sequence[Value], Span], Value | None]
    chosen_operator: OperatorRule
    no_operator: Callable[[Context, str, Sequence[Value], Span], str]  # the message
    rewritten: Callable[[Context, str, Value, Value, Span], Value | None]
    three_way: Callable[[Context, Value, Value, Span], Value]
    # constraints of templates
    satisfied: Callable[[Context, Scope, tree.Expression | None], bool]
    why_unsatisfied: Callable[[Context, Scope, tree.Expression | None], str]
    stricter: Callable[[Context, tuple[Scope, Any], tuple[Scope, Any]], int]


@dataclass(slots=True)
class Lowering:
    """The state of a kernel's lowering that all its functions share."""

    rules: Rules
    texts: Mapping[str, str]
    facts: Facts
    index_type: ir.Scalar = ir.I32
    guarded: bool = False  # with the checks of `guards.py`
    unset_pointers: set[int] = field(default_factory=set)  # declarations, for these checks
    fastmath: bool = False
    types: NumberTypes = NUMBER_TYPES["double"]
    sampling: Mapping[str, Sampling] = field(default_factory=dict)  # of textures, by parameter
    recursion: int = LEVELS  # how deep functions may call themselves
    span: Span = NOWHERE  # of the current statement
    unless_changed: list[CompileError] = field(default_factory=list)  # errors of the last run
    constant_calls: int = 0
    # The results of functions in constant expressions (`constant_evaluation.Results`).
    constant_results: dict[Any, Any] = field(default_factory=dict)
    folding: int = 0  # depth of initializers of constants
    unevaluated: int = 0  # depth of unevaluated operands
    checking: bool = False  # only types are checked, function by function (`checking.py`)
    immediate: bool = False  # the function that is checked is consteval
    warnings: dict[tuple[str, Span], None] = field(default_factory=dict)  # of what is checked
    file: str = ""  # that the user opened
    all_names: bool = False  # nothing but the file declares names of the function that is checked
    constants: int = 0  # depth of constant expressions
    maybe_constants: int = 0  # depth of initializers of `const int n`, which may be constant
    asked_constant: bool = False  # whether code asked if it is in one
    literals: dict[Any, Any] = field(default_factory=dict)  # the literals of `const char *s = "…"`
    declared: tuple[str, int, CppType] | None = None  # a variable at its initializer, its scope
    in_namespaces: frozenset[str] | None = None  # the names of functions in namespaces
    converting: bool = False  # by a constructor, whose argument is not converted by another one
    names: dict[str, int] = field(default_factory=dict)
    memories: list[n.Memory] = field(default_factory=list)
    functions: dict[str, n.Function] = field(default_factory=dict)  # callees first
    function_names: dict[Any, str] = field(default_factory=dict)
    parameters: dict[str, n.Parameter] = field(default_factory=dict)
    buffers: list[n.Buffer] = field(default_factory=list)
    symbols: dict[str, PointerValue] = field(default_factory=dict)  # __constant__ and __device__
    statics: dict[Any, Any] = field(default_factory=dict)  # shared variables of functions
    notes: dict[Note, None] = field(default_factory=dict)
    hierarchy: tuple[list[ClassType], bool] | None = None  # of the file (`hierarchy.py`)
    classes: dict[Any, Any] = field(default_factory=dict)  # instances of classes
    instances: dict[Any, Any] = field(default_factory=dict)  # of class templates, by arguments
    signatures: dict[Any, Any] = field(default_factory=dict)  # of functions (`screening.py`)
    enums: dict[Any, Any] = field(default_factory=dict)  # their types (`enums.py`)
    open_enums: set[Any] = field(default_factory=set)  # those whose values are being found
    incomplete: dict[str, Any] = field(default_factory=dict)  # keys of classes, by name
    # The classes in the types of the file's variables, which were made before this lowering.
    of_variables: dict[str, ClassType] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)  # variables for objects that are not known yet
    nulls: set[str] = field(default_factory=set)  # variables for what null pointers point to
    demanded: set[Any] = field(default_factory=set)  # declarations that the next run has in memory
    starts: dict[str, n.Expression] = field(default_factory=dict)  # of arrays, in their buffers
    memory_targets: dict[str, MemoryTarget] = field(default_factory=dict)  # by memory
    buffer_numbers: dict[str, n.Variable] = field(default_factory=dict)  # those of the launch
    variable_instances: set[str] = field(default_factory=set)  # memories of variable templates
    memory_numbers: dict[str, int] = field(default_factory=dict)  # in pointers in memory
    parameter_numbers: dict[str, int] = field(default_factory=dict)  # those of arguments
    linked: dict[str, Any] = field(default_factory=dict)  # constants with pointers, in their parts
    tables: dict[int, MemoryTarget] = field(default_factory=dict)  # of the launch, by position
    tables_by_value: set[str] = field(default_factory=set)  # long arrays of pointers, as memories
    images: dict[str, Any] = field(default_factory=dict)  # by memory
    queued: list[QueuedKernel] = field(default_factory=list)  # that this kernel launches
    arrays: dict[str, str] = field(default_factory=dict)  # arguments of the launch, by buffer
    references: dict[str, PointerValue] = field(default_factory=dict)  # of the file, to textures
    variable_keys: dict[str, Any] = field(default_factory=dict)  # of variables of the IR
    parameter_keys: dict[str, Any] = field(default_factory=dict)  # of those without assignments
    # How memories are filled with objects by value at the start, and what they then contain.
    fillings: dict[str, list[n.Assign]] = field(default_factory=dict)
    parameter_objects: dict[str, dict[str | int, Any]] = field(default_factory=dict)
    srgb: bool = False  # whether texels are read as numbers of sRGB
    closures: dict[Any, int] = field(default_factory=dict)  # numbers of lambdas' classes
    calls: int = 0  # inlined so far
    volatile: set[str] = field(default_factory=set)  # shared memories that are accessed as volatile

    def unique(self, name: str) -> str:
        """A name that is unique in the kernel."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        if not count:
            return name
        return self.unique(f"{name}.{count + 1}")

    def unique_function(self, name: str) -> str:
        """A name that is unique among the kernel's functions and those of the math library."""
        if name.endswith(_LIBRARY_ENDINGS):
            name += "_"
        unique, number = name, 2
        while unique in self.functions:
            unique = f"{name}.{number}"
            number += 1
        return unique

    def error(self, message: str, span: Span) -> CompileError:
        """An error at a location in the user's files."""
        return CompileError(message, span, self.texts.get(span.file))

    def wrong(self, message: str, span: Span) -> IllFormed:
        """The error of what C++ itself forbids."""
        return IllFormed(message, span, self.texts.get(span.file))

    def is_ours(self, declaration: Any) -> bool:
        """Whether a declaration is one of our own headers."""
        file: str = getattr(getattr(declaration, "span", None), "file", "")
        return file.startswith("<") and file != self.file

    @property
    def calls_are_examples(self) -> bool:
        """Whether a call gives some value of its type: its body is checked by itself."""
        return self.checking and not self.constants and not self.folding


@dataclass(slots=True)
class Ending:
    """An object whose lifetime ends with a block, or with a full expression."""

    value: Any
    type: CppType
    made: n.Variable | None = None  # whether it was constructed, if only some paths do that


@dataclass(slots=True)
class Returns:
    """What `return` does in the current function: `place` receives the value."""

    type: CppType | None  # None: deduced (`auto`)
    deduced: bool = False  # the type is that of the first return
    place: Any = None  # an Lvalue or PointerVariable; None without a value
    reference: Any = None  # the object, if a reference is returned
    choices: list[Any] = field(default_factory=list)  # the objects, if there are several returns
    address: Any = None  # receives the address of a reference, in a function that calls itself
    dependent: bool = False  # the type depends on a template parameter
    elided: str | None = None  # the variable that all returns name, which becomes the value
    written: Any = None  # the type in the declaration, which may be `auto &`


class Context:
    """The current function: its scope, and the block that statements are appended to."""

    def __init__(
        self,
        lowering: Lowering,
        scope: Scope,
        *,
        path: tuple[Any, ...] = (),
        returns: Returns | None = None,
        this: Value | None = None,
        depth: int = 0,
        name: str = "",
        isolated: bool = False,
    ) -> None:
        self.lowering = lowering
        self.rules = lowering.rules
        self.scope = scope
        self.path = path
        self.returns = returns or Returns(VOID)
        self.this = this
        self.depth = depth
        self.name = name
        self.isolated = isolated  # an IR function, which sees no variables of the kernel
        self.memories = lowering.memories
        self.recursion: Frames | None = None  # of the functions that call themselves, in these
        self.blocks: list[list[n.Statement]] = [[]]
        self.span = NOWHERE  # of the current statement
        self.called_at: Span | None = None  # where users call one of our headers, for reports
        self.unused: Any = None  # the call whose value is discarded
        self.addressed: Any = None  # the operand of `&`
        self.changes_nothing = False  # a method that is declared const
        self.calls = 0  # that were inlined here so far
        self.errors: Recovery | None = None  # None: no recovery
        # For each enclosing loop None, or for a switch that became a loop the flag of `continue`.
        self.continue_flags: list[n.Variable | None] = []
        # The objects that end with each of the open blocks and full expressions, after those that
        # end with the call; and the number of these lists outside of each loop and switch.
        self.endings: list[list[Ending]] = [[]]
        self.loops: list[int] = []
        self.labels: list[Any] = []  # of the blocks around, for goto (`gotos.Labels`)
        self.for_call = False  # new variables belong to the block of the call
        self.by_value: set[str] = set()  # the parameters that are not references

    def scope_arguments(self) -> Any:
        """The instance of the function, which has its own static variables."""
        return self.path[-1][0] if self.path else None

    @contextmanager
    def numbered_apart(self, part: Any) -> Iterator[None]:
        """Calls in here are numbered by themselves. What is known of a pointer grows from run to
        run of the lowering, and so does the number of calls through it: those that follow would
        have other numbers in each run, and with these the facts of other calls."""
        outer = self.path, self.calls
        self.path, self.calls = (*self.path, (self.scope_arguments(), part)), 0
        try:
            yield
        finally:
            self.path, self.calls = outer

    def checks_all(self) -> bool:
        """Whether code that is never reached is checked, too."""
        return self.lowering.calls_are_examples and not self.is_in_instance()

    def is_in_template(self) -> bool:
        """Whether the scope is in a template that is checked by itself."""
        scope: Scope | None = self.scope
        while scope is not None:
            if scope.kind == "dependent":
                return True
            scope = scope.parent
        return False

    def is_in_instance(self) -> bool:
        """Whether the scope is in an instance of a template."""
        scope: Scope | None = self.scope
        while scope is not None:
            if scope.kind == "template":
                return True
            scope = scope.parent
        return False

    # --- messages ---

    def error(self, message: str, span: Span | None = None) -> CompileError:
        """An error at a location in the user's files."""
        return self.lowering.error(message, span or self.span)

    def wrong(self, message: str, span: Span | None = None) -> IllFormed:
        """The error of what C++ itself forbids: it is reported when the file is opened. `error` is
        for what kernels cannot have here."""
        return self.lowering.wrong(message, span or self.span)

    def unfit(self, message: str, value: Value, span: Span) -> CompileError:
        """The error of a value of another type than is needed, which is C++'s own if the value has
        a form that it has in C++, too."""
        if is_in_parts(value):
            return self.error(message, span)
        return self.amiss(message, span, getattr(value, "type", None))

    def amiss(self, message: str, span: Span, *types: Any) -> CompileError:
        """The error of what C++ forbids for these types, unless one is a class of our own headers,
        which may lack what NVIDIA's has."""
        ours = any(self.lowering.is_ours(getattr(one, "declaration", None)) for one in types)
        return (self.error if ours else self.wrong)(message, span)

    def of_host(self, message: str, span: Span) -> CompileError:
        """The error of what only the host has or calls, where a function for kernels uses it: the
        file's, as CUDA forbids it. In a template it is that of an instance, and in an operand that
        is not evaluated CUDA allows it."""
        lowering = self.lowering
        certain = lowering.checking and lowering.all_names and not self.is_in_template()
        evaluated = not (lowering.unevaluated or lowering.constants or lowering.folding)
        return (self.wrong if certain and evaluated else self.error)(message, span)

    def warn(self, message: str, span: Span) -> None:
        """Warn of what compiles, when types are checked. Once for each place."""
        if not self.lowering.unevaluated:
            self.lowering.warnings[message, span] = None

    def note(self, kind: str, construct: str, reason: str = "", span: Span | None = None) -> None:
        """Add a note to the kernel's report."""
        self.lowering.notes[Note(kind, construct, reason, span or self.span)] = None

    # --- statements ---

    def emit(self, *statements: n.Statement) -> None:
        """Append statements to the current block."""
        if self.called_at is not None:
            statements = tuple(self._placed(one) for one in statements)
        self.blocks[-1].extend(statements)

    def _placed(self, statement: n.Statement) -> n.Statement:
        """A statement of one of our headers, at the user's call: reports name that."""
        assert self.called_at is not None
        return replace(statement, span=self.called_at) if statement.span.is_of_header else statement

    @contextmanager
    def separate_block(self) -> Iterator[list[n.Statement]]:
        """A new block, which is not part of the kernel yet: emitted statements go there."""
        block: list[n.Statement] = []
        self.blocks.append(block)
        try:
            yield block
        finally:
            self.blocks.pop()

    @contextmanager
    def inner_scope(self) -> Iterator[Scope]:
        """A block scope."""
        outer = parent = self.scope
        # A chain of `else` opens many blocks that declare nothing: a lookup skips them.
        while parent.kind == "block" and parent.parent:
            if parent.names or parent.using_directives:
                break
            parent = parent.parent
        self.scope = Scope(parent)
        try:
            with self.lifetime():
                yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def lifetime(self) -> Iterator[list[Ending]]:
        """A block or full expression: the objects that begin in it end with it."""
        depth = len(self.endings)
        own: list[Ending] = []
        self.endings.append(own)
        try:
            yield own
            if own:
                self.end_from(depth)
        finally:
            del self.endings[depth:]

    def end_from(self, depth: int, kept: Value | None = None) -> None:
        """End the objects of the blocks from this depth on, the last one first; nothing if control
        has left the block. `kept` is taken over by whom a function returns it to."""
        last = self.blocks[-1][-1] if self.blocks[-1] else None
        if isinstance(last, (n.Return, n.Break, n.Continue)):
            return
        for own in reversed(self.endings[depth:]):
            for ending in reversed(own):
                if kept is None or not same_object(ending.value, kept):
                    self._end(ending)

    def _end(self, ending: Ending) -> None:
        if ending.made is None:
            self.rules.destroy(self, ending.value, ending.type, self.span)
            return
        with self.separate_block() as block:
            self.rules.destroy(self, ending.value, ending.type, self.span)
        self.emit(n.If(ending.made, tuple(block), (), self.span))

    @contextmanager
    def in_scope(self, scope: Scope) -> Iterator[None]:
        """Another scope: that of the definition of a class or template."""
        outer = self.scope
        self.scope = scope
        try:
            yield
        finally:
            self.scope = outer

    def variable(self, name: str, type: ir.Type, span: Span | None = None) -> n.Variable:
        """Declare a variable that is initialized with zero."""
        variable = n.Variable(self.lowering.unique(name), type, span or self.span)
        self.emit(n.Declare(variable, None, variable.span))
        return variable

    def let_as(self, name: str, value: n.Expression, span: Span | None = None) -> n.Variable:
        """Declare a variable that is initialized with a value."""
        variable = n.Variable(self.lowering.unique(name), value.type, span or self.span)
        if self.for_call:
            self.blocks[0].append(n.Declare(variable, None, variable.span))
            self.emit(n.Assign(variable, value, variable.span))
        else:
            self.emit(n.Declare(variable, value, variable.span))
        return variable

    @contextmanager
    def outermost(self) -> Iterator[None]:
        """What is computed now is in variables of the block of the call, for the caller."""
        self.for_call = True
        try:
            yield
        finally:
            self.for_call = False

    def local_memory(self, name: str, element: ir.Type, length: int, span: Span) -> n.Memory:
        """A local memory of the thread."""
        memory = n.Memory(self.lowering.unique(name), "local", element, length, span)
        self.memories.append(memory)
        return memory

    # --- for recipes of built-in functions (builtins.overload.Maker) ---

    @property
    def fastmath(self) -> bool:
        """Whether the kernel uses the hardware's own mathematics."""
        return self.lowering.fastmath

    def let(self, value: n.Expression) -> n.Expression:
        """The value, computed once: a variable or constant as it is, else a new variable."""
        if isinstance(value, (n.Constant, n.Builtin, n.Variable)):
            return value
        return self.let_as("value", value)

    def copied(self, value: n.Expression) -> n.Expression:
        """A copy of the value, which later assignments do not change."""
        if isinstance(value, (n.Constant, n.Builtin)):
            return value
        if isinstance(value, n.Variable) and value.name in self.lowering.parameter_keys:
            return value
        return self.let_as("value", value)

    def library(self, name: str, *operands: n.Expression) -> n.Expression:
        """A call of a function of `treadle.lang.math`."""
        type = operands[0].type
        assert isinstance(type, ir.Scalar)
        called, functions = library_functions(name, type)
        known = {function.name: function for function in functions}
        for function in functions:
            self.lowering.functions.setdefault(function.name, function)
        return n.Call(called, operands, known[called].result, self.span)

    def refuse(self, reason: str) -> Exception:
        """The error of a call that is not supported."""
        return self.error(reason)


def key_of(cx: Context, declaration: tree.VariableDeclaration | tree.Parameter) -> Any:
    """The key of a variable, which is the same in each run of the lowering."""
    return (cx.path, id(declaration))


def completed(cx: Context, type: CppType) -> CppType:
    """The type of a member; of a pointer to a class that was not complete where the member was
    declared, such as its own class, the pointer to the class."""
    if isinstance(type, ArrayOf):
        element = completed(cx, type.element)
        return type if element is type.element else ArrayOf(element, type.length)
    if not isinstance(type, Pointer):
        return type
    to = type.to
    if isinstance(to, Pointer):
        inner = completed(cx, to)
        return type if inner is to else Pointer(inner, type.const)
    if not isinstance(to, ClassType) or to.scope is not None or to.fields:
        return type
    known = cx.lowering.classes.get(cx.lowering.incomplete.get(to.name))
    if not isinstance(known, ClassType):
        known = cx.lowering.of_variables.get(to.name)
    return Pointer(known, type.const) if isinstance(known, ClassType) else type


def add_classes(found: dict[str, ClassType], type: CppType) -> None:
    """Add the complete classes that a type consists of or points to, by name."""
    waiting: list[CppType] = [type]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ArrayOf):
            waiting.append(one.element)
        elif isinstance(one, (Pointer, Reference)):
            waiting.append(one.to)
        elif isinstance(one, ClassType) and one.name not in found and one.scope is not None:
            found[one.name] = one
            waiting += [*one.bases, *(each.type for each in one.fields)]


def tree_made(cx: Context, key: Any, origin: Any, make: Callable[[], Any]) -> Any:
    """A tree that is made of another one, the same object in each run: variables have their keys
    by the identity of their declarations. `key` is what it is made for, besides `origin`."""
    trees = cx.lowering.facts.trees
    found = trees.get((id(origin), key))
    if found is None:
        found = trees[id(origin), key] = (make(), origin)
    return found[0]


class NotPure(Exception):
    """A function must be inlined: it uses memory or variables of the kernel."""
