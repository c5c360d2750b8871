"""Syntax trees of CUDA C++, which the parser makes and the lowering reads.

Nodes are immutable and represent only the text. Name lookup, the types of expressions and overload
resolution happen when a kernel is lowered, for a template once for each instance.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """A type by its name: a class, enum, typedef, template parameter, or a type of CUDA's."""

    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DefinedType:
    """A class or enum that is defined where it is used (`struct {…} a;`)."""

    definition: StructDeclaration | EnumDeclaration
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AutoType:
    """`auto`, or `C auto` with a concept, whose arguments after the type itself are given. `exact`:
    `decltype(auto)`, of an initializer in parentheses with them."""

    span: Span = field(default=NOWHERE, compare=False)
    concept: Name | None = None
    exact: bool = False
    parentheses: bool = False


@dataclass(frozen=True, slots=True)
class DecltypeType:
    """`decltype(operand)`; `decltype((operand))` in `parentheses` is a reference for an lvalue."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)
    parentheses: bool = False


@dataclass(frozen=True, slots=True)
class ConstType:
    """A cv-qualified type."""

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
    """`of[size]`; `of[]` has the size None."""

    of: TypeTree
    size: Expression | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function type, as in `float (*f)(int)`."""

    result: TypeTree
    parameters: tuple[Parameter, ...]
    span: Span = field(default=NOWHERE, compare=False)
    const: bool = False  # of a member function


@dataclass(frozen=True, slots=True)
class MemberPointerType:
    """`to owner::*`"""

    owner: Name
    to: TypeTree
    span: Span = field(default=NOWHERE, compare=False)


TypeTree: TypeAlias = (
    BuiltinType | NamedType | DefinedType | AutoType | DecltypeType
    | ConstType | PointerType | ReferenceType | ArrayType | FunctionType | MemberPointerType
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
    """Adjacent literals concatenated, with escape sequences resolved: `data` are the bytes."""

    data: bytes
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        """The string as text."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class UserLiteral:
    """`12_km`: a literal for the function `operator""_km`; `text` is a number as it is written."""

    literal: IntegerLiteral | FloatLiteral | CharacterLiteral | StringLiteral
    suffix: str
    text: str = ""
    span: Span = field(default=NOWHERE, compare=False)


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


GUIDE = "<guide>"
"""Before the name of a class template, that of its deduction guides."""

OF_TYPE = "decltype"
"""The name in the scope of `decltype(x)::a`, with the type as its argument."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name, which may be qualified and have template arguments: `a`, `ns::a`, `f<float, 4>`.

    `scope` is the part before the last `::` ("" first for a leading `::`). An operator function is
    named "operator+", a conversion function "operator ()" with its type in `arguments`.
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
    """op: ++ or -- after the operand."""

    op: str
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """op: * / % + - << >> < > <= >= <=> == != & ^ | && || .* ->* and the comma `,`. `span` is its
    place."""

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
    """`condition ? if_true : if_false`; without `if_true` in GNU's `condition ?: if_false`."""

    condition: Expression
    if_true: Expression | None
    if_false: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`launch`: `kernel<<<configuration>>>(…)` in device code; `functions` are what that calls."""

    function: Expression
    arguments: tuple[Expression | InitializerList, ...]
    launch: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    configuration: tuple[Expression | InitializerList, ...] = ()
    functions: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Subscript:
    """`base[index]`. Of several `indices`, `index` is the comma operator: what they mean depends on
    the class of `base`."""

    base: Expression
    index: Expression
    span: Span = field(default=NOWHERE, compare=False)
    indices: int = 1


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
    names: tuple[str | None, ...] = ()  # the designators


@dataclass(frozen=True, slots=True)
class New:
    """`new type(…)`, `new type[count]` or `new (place) type(…)`. `functions` are what it calls."""

    type: TypeTree
    count: Expression | None = None
    initializer: InitializerList | None = None
    place: Expression | None = None
    functions: tuple[Name, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete operand`, or `delete[] operand` of an `array`. `functions` are what it calls."""

    operand: Expression
    array: bool = False
    functions: tuple[Name, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class InitializerList:
    """`{a, b, c}`; `names` are the designators (`.x = a`), None for items without one. The
    initializer `(a, b, c)` of a variable or member is one without `braces`."""

    items: tuple[Expression | InitializerList, ...]
    names: tuple[str | None, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    braces: bool = True


@dataclass(frozen=True, slots=True)
class SizeOf:
    """`sizeof` or `alignof` (in `op`) of a type or an expression."""

    operand: TypeTree | Expression
    op: str = "sizeof"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OffsetOf:
    """`offsetof(type, member)`; the member may be `a.b[2]`."""

    type: TypeTree
    member: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StatementExpression:
    """`({ … })`, whose value is that of its last statement."""

    body: Compound
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """`(first op ... op second)`, of which one is the pack's pattern; one may be missing."""

    op: str
    first: Expression | None
    second: Expression | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PackExpansion:
    """`pattern...`"""

    pattern: Expression | TypeTree
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture of a lambda: `x`, `&x`, `x = value`, `this` or `*this`."""

    name: str
    by_reference: bool = False
    initializer: Expression | InitializerList | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """`[default, captures](…) {…}`: `default` is "=", "&" or "", `call` its operator()."""

    default: str
    captures: tuple[Capture, ...]
    call: FunctionDeclaration
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Of a requires-expression: `expression;`, `{ expression } -> result;` with a concept,
    `typename type;`, or (`nested`) `requires expression;`."""

    expression: Expression | TypeTree
    result: Name | None = None
    nested: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Requires:
    """`requires (parameters) { requirements }`"""

    parameters: tuple[Parameter, ...]
    requirements: tuple[Requirement, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A C++ construct that is not supported in device code: a key of `REFUSALS`."""

    construct: str
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = (
    IntegerLiteral | FloatLiteral | CharacterLiteral | StringLiteral | UserLiteral | BoolLiteral
    | NullLiteral | This | Name | Unary | Postfix | Binary | Assign | Conditional | Call | Subscript
    | Member | Cast | Construct | New | Delete | SizeOf | OffsetOf | StatementExpression
    | PackExpansion | Fold | Lambda | Requires | Refused
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
class StructuredBinding:
    """`auto [a, b] = value;`: `type` is `auto`, const or a reference to it."""

    names: tuple[str, ...]
    type: TypeTree
    initializer: Expression | InitializerList
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Compound:
    """`{…}`; without `braces` the empty statement, `;`."""

    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False)
    braces: bool = True


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
    """`unroll` is the factor of `#pragma unroll`: None without one, 0 for all iterations, 1 for no
    unrolling. A condition of None is true."""

    initializer: Statement | None
    condition: Expression | None
    update: Expression | None
    body: Statement
    unroll: Expression | int | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeFor:
    variable: VariableDeclaration
    range: Expression | InitializerList
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
    """`body` is usually a Compound, in which Case and Default are statements of their own."""

    condition: Expression
    body: Statement
    initializer: Statement | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """The label only: its statements follow in the Compound. `last`: of GCC's `case 1 ... 9`."""

    value: Expression
    span: Span = field(default=NOWHERE, compare=False)
    last: Expression | None = None


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
    parentheses: bool = False  # around the whole value, which decltype(auto) asks for


@dataclass(frozen=True, slots=True)
class Goto:
    """`goto label;`"""

    label: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Label:
    """`name:`, before the statement that it labels."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OperandCheck:
    """Whether an operand of `asm` has the type that its constraint is for; nothing is computed."""

    constraint: str
    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RefusedStatement:
    """asm, try, throw, …: `construct` is a key of `REFUSALS`, `reason` what is known
    beyond that."""

    construct: str
    span: Span = field(default=NOWHERE, compare=False)
    reason: str = ""


Statement: TypeAlias = (
    ExpressionStatement | DeclarationStatement | StructuredBinding | Compound | If | For | RangeFor
    | While | DoWhile | Switch | Case | Default | Break | Continue | Return | Goto | Label
    | OperandCheck | RefusedStatement
)  # fmt: skip

# --- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """kind: "type" (`type` None, `default` a TypeTree), "value" (of `type`), or "template".
    `constraint` is that of `template <std::integral T>`, as an expression with T in it."""

    kind: str
    name: str
    type: TypeTree | None = None
    default: TemplateArgument | None = None
    pack: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    constraint: Expression | None = None


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
    """`initializer`: an expression or list after `=` (copy-initialization), or with `direct` an
    InitializerList for `x(a, b)` or `x{…}`. `alignment` is that of __align__ or alignas."""

    name: str
    type: TypeTree
    initializer: Expression | InitializerList | None = None
    direct: bool = False
    specifiers: frozenset[str] = frozenset()
    alignment: Expression | None = None
    template: tuple[TemplateParameter, ...] | None = None
    bits: Expression | None = None  # of a bit field
    specialized: tuple[TemplateArgument, ...] | None = None  # of a variable template
    span: Span = field(default=NOWHERE, compare=False)
    constraint: Expression | None = None  # of a template


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A function or method. Without `body` it is only declared, or is what `note` says: "deleted",
    "defaulted", "pure", or defined for the host, in a body that is not read ("host").

    `name` may be qualified (`Vec::dot`, defined out of line), an operator ("operator+"), a
    constructor (the class's name; `result` is None) or a destructor ("~Vec").
    """

    name: Name
    result: TypeTree | None
    parameters: tuple[Parameter, ...]
    body: Compound | None
    specifiers: frozenset[str] = frozenset()
    template: tuple[TemplateParameter, ...] | None = None
    specialization: bool = False  # `template <> …`
    launch_bounds: tuple[Expression, ...] = ()
    initializers: tuple[tuple[Name, InitializerList], ...] = ()
    const: bool = False
    variadic: bool = False
    expanded: bool = False  # made from one with parameter packs
    note: str = ""
    reference: str = ""  # the ref-qualifier of a method: & or &&
    span: Span = field(default=NOWHERE, compare=False)
    constraint: Expression | None = None


@dataclass(frozen=True, slots=True)
class StructDeclaration:
    """kind: "struct", "class" or "union". `complete` is False for `struct A;`. An unnamed one has
    the name "". `hidden` are the names that have no public member, and `private` those that have
    neither a public nor a protected one; `hidden_functions` is the access of each function that is
    not public, by its name and parameters (`lower.access.signature_key`), and `base_access` that of
    the bases. `friends` and `friend_functions` may use all of it."""

    kind: str
    name: str
    members: tuple[Declaration, ...] = ()
    bases: tuple[NamedType | PackExpansion, ...] = ()
    complete: bool = True
    alignment: Expression | None = None
    template: tuple[TemplateParameter, ...] | None = None
    specialized: tuple[TemplateArgument, ...] | None = None  # `struct A<float> {…}`
    expanded: bool = False  # made from one with parameter packs
    packing: int | None = None  # the greatest alignment of a member, if it is packed
    hidden: frozenset[str] = field(default=frozenset(), compare=False)
    private: frozenset[str] = field(default=frozenset(), compare=False)
    final: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    constraint: Expression | None = None  # of a template
    friends: frozenset[str] = field(default=frozenset(), compare=False)
    scope: tuple[Name, ...] = ()  # of one that is defined outside of its class: `struct A::B {…}`
    friend_functions: frozenset[str] = field(default=frozenset(), compare=False)
    hidden_functions: Mapping[tuple[object, ...], str] = field(default_factory=dict, compare=False)
    base_access: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class EnumDeclaration:
    name: str
    enumerators: tuple[tuple[str, Expression | None], ...]
    underlying: TypeTree | None = None
    scoped: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    scope: tuple[Name, ...] = ()  # of one that is defined outside of its class: `enum A::E {…}`
    template: tuple[TemplateParameter, ...] | None = None  # that of its class, there


@dataclass(frozen=True, slots=True)
class TypedefDeclaration:
    """`typedef type name;` or `using name = type;`"""

    name: str
    type: TypeTree
    template: tuple[TemplateParameter, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)
    constraint: Expression | None = None  # of a template


@dataclass(frozen=True, slots=True)
class UsingDeclaration:
    """`using ns::name;`, `using namespace ns;` with `namespace`, `using enum E;` with `enum`,
    `using T::name...;` with `pack`."""

    name: Name
    namespace: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    enum: bool = False
    pack: bool = False


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
    """A declaration of host code, which is skipped: the names it declares, what it is ("function",
    "variable", "class", …), and if it could not be parsed, the reason."""

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
    """A whole file with all that it includes."""

    declarations: tuple[Declaration, ...]
    file: str = ""
    statics: tuple[VariableDeclaration, ...] = ()  # the static variables of functions
