"""The syntax of CUDA C++ as trees: what the parser makes and the lowering reads.

Nodes are frozen and say only what is written. What a name means, which type an expression has, and
which overload is called is found when a kernel is lowered, for a template once an instance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, get_args

from treadle.core.source import NOWHERE, Span
from treadle.cuda_cpp.source.tokens import Token

# --- types as written ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BuiltinType:
    """A fundamental type in its canonical spelling: one of BUILTIN_TYPES."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


BUILTIN_TYPES = (
    "void", "bool", "char", "signed char", "unsigned char", "wchar_t", "char16_t", "char32_t",
    "short", "unsigned short", "int", "unsigned int", "long", "unsigned long", "long long",
    "unsigned long long", "float", "double", "long double", "__int128", "unsigned __int128",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type called by a name: a struct, enum, typedef or template parameter, or one of CUDA's."""

    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DefinedType:
    """A struct, class, union or enum that is defined where it is used (`struct {…} a;`)."""

    definition: StructDeclaration | EnumDeclaration
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AutoType:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DecltypeType:
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ConstType:
    """`const of` (a `volatile` is kept here too, as it says nothing more to us)."""

    of: TypeTree
    const: bool = True
    volatile: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PointerType:
    to: TypeTree
    restrict: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ReferenceType:
    to: TypeTree
    rvalue: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`of[size]`; size None is `of[]`."""

    of: TypeTree
    size: Expression | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function's type, as in `float (*f)(int)`: parsed so that it can be refused by name."""

    result: TypeTree
    parameters: tuple[Parameter, ...]
    span: Span = field(default=NOWHERE, compare=False)


TypeTree: TypeAlias = (
    BuiltinType | NamedType | DefinedType | AutoType | DecltypeType
    | ConstType | PointerType | ReferenceType | ArrayType | FunctionType
)  # fmt: skip
TYPES = get_args(TypeTree)

# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    """`suffix` in lower case: "", "u", "l", "ul", "ll", "ull"; `decimal`: not 0x…, 0b… or 0…"""

    value: int
    suffix: str = ""
    decimal: bool = True
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    """`suffix` in lower case: "" (double), "f", "l"."""

    value: float
    suffix: str = ""
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CharacterLiteral:
    value: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """Adjacent literals joined, escapes resolved: `data` are their bytes."""

    data: bytes
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        """What people read."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class BoolLiteral:
    value: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NullLiteral:
    """`nullptr`."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class This:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A name, perhaps qualified and with template arguments: `a`, `ns::a`, `f<float, 4>`.

    `scope` holds what stands before the last `::` ("" first for a leading `::`). Names of operator
    functions are written "operator+", of conversions "operator ()" with the type in `arguments`.
    """

    text: str
    scope: tuple[Name, ...] = ()
    arguments: tuple[TemplateArgument, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """op: one of + - ! ~ * & ++ -- (the last two before the operand)."""

    op: str
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Postfix:
    """op: ++ or -- behind the operand."""

    op: str
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """op: * / % + - << >> < > <= >= == != & ^ | && || and the comma `,`; `span` is its place."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """op: = += -= *= /= %= <<= >>= &= ^= |=. `span` is the operator's."""

    op: str
    target: Expression
    value: Expression | InitializerList
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expression
    if_true: Expression
    if_false: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`launch` is set for `kernel<<<…>>>(…)` inside device code."""

    function: Expression
    arguments: tuple[Expression | InitializerList, ...]
    launch: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Subscript:
    base: Expression
    index: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """`base.name`, or `base->name` with `arrow`."""

    base: Expression
    name: Name
    arrow: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """style: "c", "static_cast", "reinterpret_cast", "const_cast"."""

    type: TypeTree
    operand: Expression
    style: str = "c"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Construct:
    """`type(arguments)` or `type{arguments}`."""

    type: TypeTree
    arguments: tuple[Expression | InitializerList, ...]
    braces: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class InitializerList:
    """`{a, b, c}`; `names` for designated ones (`.x = a`), None where there is none. `(a, b, c)`
    behind a variable is one without `braces`."""

    items: tuple[Expression | InitializerList, ...]
    names: tuple[str | None, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    braces: bool = True


@dataclass(frozen=True, slots=True)
class SizeOf:
    """`sizeof` or (`op` "alignof") of a type or an expression."""

    operand: TypeTree | Expression
    op: str = "sizeof"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PackExpansion:
    """`pattern...`"""

    pattern: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that is C++ and that device code here can't have: a key of `REFUSALS`."""

    construct: str
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = (
    IntegerLiteral | FloatLiteral | CharacterLiteral | StringLiteral | BoolLiteral | NullLiteral
    | This | Name | Unary | Postfix | Binary | Assign | Conditional | Call | Subscript | Member
    | Cast | Construct | SizeOf | PackExpansion | Refused
)  # fmt: skip
EXPRESSIONS = get_args(Expression)
TemplateArgument: TypeAlias = TypeTree | Expression

# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpressionStatement:
    expression: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DeclarationStatement:
    """Declarations inside a function, in order (`int a = 1, *b;` are two)."""

    declarations: tuple[Declaration, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Compound:
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """`condition` may be a declaration (`if (int n = f())`); `constexpr` for `if constexpr`."""

    condition: Expression | VariableDeclaration
    then: Statement
    otherwise: Statement | None = None
    initializer: Statement | None = None
    constexpr: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`unroll` is what `#pragma unroll` asks for: None nothing, 0 all of it, n so many rounds (1:
    none). A condition of None is true."""

    initializer: Statement | None
    condition: Expression | None
    update: Expression | None
    body: Statement
    unroll: Expression | int | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeFor:
    variable: VariableDeclaration
    range: Expression
    body: Statement
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    condition: Expression | VariableDeclaration
    body: Statement
    unroll: Expression | int | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DoWhile:
    body: Statement
    condition: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Switch:
    """`body` is usually a Compound in which Case and Default stand as statements of their own."""

    condition: Expression
    body: Statement
    initializer: Statement | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """The label alone: what follows it are the next statements."""

    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Default:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Break:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Continue:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | InitializerList | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RefusedStatement:
    """goto, a label, asm, try, throw, …: `construct` is a key of `REFUSALS`."""

    construct: str
    span: Span = field(default=NOWHERE, compare=False)


Statement: TypeAlias = (
    ExpressionStatement | DeclarationStatement | Compound | If | For | RangeFor | While | DoWhile
    | Switch | Case | Default | Break | Continue | Return | RefusedStatement
)  # fmt: skip

# --- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """kind: "type" (`type` None, `default` a TypeTree), "value" (of `type`), or "template"."""

    kind: str
    name: str
    type: TypeTree | None = None
    default: TemplateArgument | None = None
    pack: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str  # "" if it has none
    type: TypeTree
    default: Expression | InitializerList | None = None
    specifiers: frozenset[str] = frozenset()
    pack: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class VariableDeclaration:
    """`initializer`: after `=` an expression or list; `Construct`-like `x(a, b)` and `x{…}` are
    InitializerLists with `direct` set. `alignment` from __align__ or alignas."""

    name: str
    type: TypeTree
    initializer: Expression | InitializerList | None = None
    direct: bool = False
    specifiers: frozenset[str] = frozenset()
    alignment: Expression | None = None
    template: tuple[TemplateParameter, ...] | None = None
    bits: Expression | None = None  # of a bit field
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A function or method. `body` None: declared only, deleted or defaulted (`note` says which).

    `name` may be qualified (`Vec::dot` defined outside of its class), an operator ("operator+"), a
    constructor (the class's name, `result` None) or a destructor ("~Vec").
    """

    name: Name
    result: TypeTree | None
    parameters: tuple[Parameter, ...]
    body: Compound | None
    specifiers: frozenset[str] = frozenset()
    template: tuple[TemplateParameter, ...] | None = None
    specialization: bool = False  # `template <> …`
    launch_bounds: tuple[Expression, ...] = ()
    initializers: tuple[tuple[Name, tuple[Expression | InitializerList, ...]], ...] = ()
    const: bool = False
    variadic: bool = False
    note: str = ""
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StructDeclaration:
    """kind: "struct", "class" or "union". `complete` is False for `struct A;`. `name` is "" for an
    anonymous one. Access specifiers are read and forgotten."""

    kind: str
    name: str
    members: tuple[Declaration, ...] = ()
    bases: tuple[NamedType, ...] = ()
    complete: bool = True
    alignment: Expression | None = None
    template: tuple[TemplateParameter, ...] | None = None
    specialized: tuple[TemplateArgument, ...] | None = None  # `struct A<float> {…}`
    packing: int | None = None  # the greatest alignment of a member, if anything sets one
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EnumDeclaration:
    name: str
    enumerators: tuple[tuple[str, Expression | None], ...]
    underlying: TypeTree | None = None
    scoped: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TypedefDeclaration:
    """`typedef type name;` or `using name = type;`"""

    name: str
    type: TypeTree
    template: tuple[TemplateParameter, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class UsingDeclaration:
    """`using ns::name;`, or `using namespace ns;` with `namespace`."""

    name: Name
    namespace: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NamespaceDeclaration:
    """A namespace ("" for an anonymous one), or `namespace name = alias;`."""

    name: str
    members: tuple[Declaration, ...] = ()
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StaticAssert:
    condition: Expression
    message: str = ""
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class HostCode:
    """A declaration for the host alone, recognized and skipped: what names it declares, what it is
    ("function", "variable", "class", …), and, if it could not be read, why."""

    names: tuple[str, ...]
    what: str
    reason: str = ""
    tokens: tuple[Token, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)


Declaration: TypeAlias = (
    VariableDeclaration | FunctionDeclaration | StructDeclaration | EnumDeclaration
    | TypedefDeclaration | UsingDeclaration | NamespaceDeclaration | StaticAssert | HostCode
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A whole file after its includes."""

    declarations: tuple[Declaration, ...]
    file: str = ""
