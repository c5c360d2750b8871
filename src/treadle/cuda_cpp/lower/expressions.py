"""Expressions: each class of nodes, in C++'s order of evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import allocation, builtin_names
from treadle.cuda_cpp.lower.access import refuse_hidden, refuse_hidden_constructors
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.assignment import (
    assign,
    operator_of_assignment,
    stepped,
)
from treadle.cuda_cpp.lower.calls import (
    call,
    chosen_operator,
    is_in_namespaces,
    operator_call,
)
from treadle.cuda_cpp.lower.cast_rules import check_cast
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.class_deduction import deduced_class, placeholder
from treadle.cuda_cpp.lower.classes import is_const_field
from treadle.cuda_cpp.lower.closures import (
    is_closure,
    is_static,
    lower_lambda,
    this_object,
)
from treadle.cuda_cpp.lower.conditionals import (
    demand_places,
    lower_conditional,
    lower_logical,
    lower_place,
)
from treadle.cuda_cpp.lower.constraints import concept_holds, is_concept, lower_requires
from treadle.cuda_cpp.lower.constructors import construct
from treadle.cuda_cpp.lower.context import ChosenOperator, Context, LowerAgain
from treadle.cuda_cpp.lower.conversions import (
    OBJECTS,
    rvalue,
)
from treadle.cuda_cpp.lower.dispatch import (
    lower,
    lower_unevaluated,
    type_of,
    unevaluated,
)
from treadle.cuda_cpp.lower.evaluation_order import (
    OBJECT,
    Operands,
    arguments,
    lower_to_block,
    snapshot,
)
from treadle.cuda_cpp.lower.fields import (
    find_bits,
    find_field,
    has_field,
    has_own_field,
    refuse_ambiguous,
)
from treadle.cuda_cpp.lower.initializers import from_list
from treadle.cuda_cpp.lower.member_pointers import holds_function_pointer, pointed_member
from treadle.cuda_cpp.lower.members import (
    address_of,
    dereference,
    lower_member,
    lower_subscript,
    member_of,
)
from treadle.cuda_cpp.lower.names import (
    constant_integer,
    is_auto,
    known_entity,
    lookup,
    named_type,
    qualified_names,
    refuse_later,
    resolve,
    scope_of,
)
from treadle.cuda_cpp.lower.operators import (
    binary,
    is_object_of_class,
    unary,
)
from treadle.cuda_cpp.lower.overloads import takes_list
from treadle.cuda_cpp.lower.pointers import example_of
from treadle.cuda_cpp.lower.traits import predicate
from treadle.cuda_cpp.lower.tree_analysis import note_volatile
from treadle.cuda_cpp.lower.user_literals import lower_user_literal
from treadle.cuda_cpp.lower.values import (
    VALUES,
    Braced,
    FunctionSet,
    Null,
    Rvalue,
    Text,
    TypeValue,
    Value,
    VoidValue,
    as_const,
)
from treadle.cuda_cpp.lower.variables import global_variable
from treadle.cuda_cpp.lower.warnings import warn_of_operator
from treadle.cuda_cpp.semantics.early_errors import may_be_foreign
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    Functions,
    GlobalVariable,
    HostEntity,
    KnownValue,
    Namespace,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.semantics.types import (
    ARITHMETIC,
    BOOL,
    CHAR,
    FLOAT,
    SIZE,
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    MemberPointer,
    NoLayout,
    Pointer,
    Reference,
    Void,
    align_of,
    holds_array,
    ir_type,
    size_of,
)
from treadle.cuda_cpp.source.headers import LIBRARIES
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.keywords import TRAITS
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.arithmetic import round_float

# --- literals ------------------------------------------------------------------------------------

_INTEGER_TYPES = {
    "": ("int", "long", "long long"),
    "u": ("unsigned int", "unsigned long", "unsigned long long"),
    "l": ("long", "long long"),
    "ul": ("unsigned long", "unsigned long long"),
    "ll": ("long long",),
    "ull": ("unsigned long long",),
}


def lower_integer(cx: Context, node: tree.IntegerLiteral) -> Value:
    candidates = list(_INTEGER_TYPES[node.suffix])
    if not node.decimal and "u" not in node.suffix:
        candidates = [name for signed in candidates for name in (signed, _unsigned_name(signed))]
    for name in candidates:
        type = ARITHMETIC[name]
        if node.value < 1 << (type.scalar.bits - type.scalar.is_signed):
            made = n.Constant(node.value, type.scalar, node.span)
            return Rvalue(made, type, literal_zero=node.value == 0)
    raise cx.wrong(f"{node.value} does not fit any integer type", node.span)


def _unsigned_name(name: str) -> str:
    return "unsigned int" if name == "int" else f"unsigned {name}"


def lower_float(cx: Context, node: tree.FloatLiteral) -> Value:
    types = cx.lowering.types
    type = FLOAT if node.suffix == "f" else types.double
    if types.double_is_float and type != FLOAT and _overflows(node.value):
        cx.note("emulated", f"{node.value}", "infinity: a double is a float here", node.span)
    return Rvalue(constant(node.value, type.scalar, node.span), type)


def _overflows(value: float) -> bool:
    """Whether a double is too large for a float."""
    return math.isfinite(value) and math.isinf(round_float(value, FLOAT.scalar))


def lower_character(cx: Context, node: tree.CharacterLiteral) -> Value:
    return Rvalue(constant(node.value, CHAR.scalar, node.span), CHAR)


def lower_bool(cx: Context, node: tree.BoolLiteral) -> Value:
    return Rvalue(n.Constant(node.value, ir.BOOL, node.span), BOOL)


# --- names ---------------------------------------------------------------------------------------


def lower_name(cx: Context, node: tree.Name) -> Value:
    entity: Any = _find_value(cx, node)
    if entity is None:
        return _builtin(cx, node)
    if cx.lowering.checking and not builtin_names.is_known(node.text):
        refuse_later(cx, entity, node)
    match entity:
        case Functions(overloads=overloads):
            return FunctionSet(node.text, tuple(overloads), arguments=node.arguments)
        case GlobalVariable() if is_concept(entity):
            holds = concept_holds(cx, entity, node)
            return Rvalue(n.Constant(holds, ir.BOOL, node.span), BOOL)
        case GlobalVariable():
            return global_variable(cx, entity, node)
        case TypeEntity() | DeclaredType():
            return TypeValue(named_type(cx, node, node.span))
        case HostEntity(code):
            if code.what == "function" and builtin_names.is_function(node.text):
                return _builtin(cx, node)  # the host's is an overload of it
            is_plain = code.what == "function" and not code.reason
            raise (cx.of_host if is_plain else cx.error)(_host_only(node, code), node.span)
    known = known_entity(cx, entity, node.span)
    value: Value = entity if known is None else known
    return value


def _host_only(node: tree.Name, code: tree.HostCode) -> str:
    reason = f" ({code.reason})" if code.reason else ""
    if code.what == "function":
        return (
            f"{node.text} is a host function: declare it __device__ (or __host__ __device__), so "
            f"that kernels can call it{reason}"
        )
    return f"{node.text} is host code, which a kernel can't use{reason}"


def _find_value(cx: Context, node: tree.Name) -> Any:
    """The entity of a name: a local variable, a member of `*this`, or one of the file."""
    if node.scope:
        return lookup(cx, node) or _qualified_field(cx, node)
    scope: Scope | None = cx.scope
    this = cx.this
    in_lambda = False
    while scope is not None:
        found = scope.own(node.text)
        if found is not None and not _is_hidden_by_field(scope, node):
            _refuse_hidden_in_base(cx, scope, node)
            _refuse_ambiguous_in_bases(cx, scope, node)
            if isinstance(found, Functions) and scope.kind == "class" and this is not None:
                return FunctionSet(
                    node.text, tuple(found.overloads), arguments=node.arguments, receiver=this
                )
            if in_lambda:
                _refuse_uncaptured(cx, found, node)
            return found
        if scope.kind == "class" and cx.this is not None:
            type = scope.names.get("<class>")
            if isinstance(type, ClassType) and has_field(type, node.text):
                if this is None:
                    raise cx.wrong(_without_object(cx, node, in_lambda), node.span)
                _refuse_hidden_in_base(cx, scope, node)
                found = member_of(cx, this, node, node.span)
                return as_const(found) if is_const_field(type, node.text) else found
            if is_closure(type):
                in_lambda = True
                this = this_object(cx)
        elif scope.kind == "class" and cx.lowering.unevaluated:  # `auto f() -> decltype(member)`
            type = scope.names.get("<class>")
            if isinstance(type, ClassType) and has_field(type, node.text):
                return member_of(cx, example_of(type, node.span), node, node.span)
        scope = scope.parent
    return None


def _refuse_hidden_in_base(cx: Context, scope: Scope, node: tree.Name) -> None:
    """CompileError for a name in a method that is a member of a base, and private there."""
    type = scope.names.get("<class>") if scope.kind == "class" else None
    if isinstance(type, ClassType) and type.bases:
        refuse_hidden(cx, type, node.text, node.span)


def _is_hidden_by_field(scope: Scope, node: tree.Name) -> bool:
    """Whether a class has a field of the name of what its base declares."""
    type = scope.names.get("<class>") if scope.kind == "class" else None
    if not isinstance(type, ClassType) or not type.bases or node.text in scope.names:
        return False
    return has_own_field(type, node.text)


def _refuse_ambiguous_in_bases(cx: Context, scope: Scope, node: tree.Name) -> None:
    """CompileError for a name in a method that several bases declare."""
    type = scope.names.get("<class>") if scope.kind == "class" else None
    if isinstance(type, ClassType) and type.bases and node.text not in scope.names:
        refuse_ambiguous(cx, type, node.text, node.span)


def _without_object(cx: Context, node: tree.Name, in_lambda: bool) -> str:
    if in_lambda:
        return f"{node.text} is a member: capture `this`"
    return f"{node.text} is a member of each object, and {cx.name} is static: it has no object"


def _refuse_uncaptured(cx: Context, found: Any, node: tree.Name) -> None:
    """CompileError for a local variable that a lambda uses without a capture."""
    is_variable = isinstance(found, VALUES) and not isinstance(found, FunctionSet)
    if is_variable and not is_static(cx, found):
        raise cx.wrong(
            f"{node.text} is not captured by this lambda: write [{node.text}] for a copy, or "
            f"[&{node.text}] for the variable itself",
            node.span,
        )


def _qualified_field(cx: Context, node: tree.Name) -> Value | None:
    """`B::x` in a method: a field of `*this` or of its base."""
    this = this_object(cx)
    in_type = this is None and cx.lowering.unevaluated > 0  # decltype(B::x)
    home = scope_of(cx, node.scope) if this is not None or in_type else None
    type = None if home is None else home.names.get("<class>")
    if in_type and isinstance(type, ClassType):
        this = example_of(type, node.span)
    if this is None or not isinstance(type, ClassType) or not has_field(type, node.text):
        return None
    return member_of(cx, this, node, node.span)


def _builtin(cx: Context, node: tree.Name) -> Value:
    """A name that CUDA or the language declares."""
    if node.text in ("__func__", "__FUNCTION__"):
        return Text(cx.name, data=cx.name.encode())
    if node.text in builtin_names.VARIABLES:
        return builtin_names.variable(cx, node)
    if node.text in TRAITS:
        return predicate(cx, node)
    if builtin_names.is_function(node.text):
        return FunctionSet(node.text, (), builtin=True, arguments=node.arguments)
    spelled = "::".join([*(part.text for part in node.scope), node.text])
    if node.scope:
        _refuse_qualified(cx, node)
    known_as = cx.scope.all_names() if cx.lowering.checking and not node.scope else ()
    if node.scope and (home := scope_of(cx, node.scope)) is not None:
        before = spelled.removesuffix(node.text)
        known_as = [before + name for name in home.names if name.isidentifier()]
        if _is_of_file(home, node.scope) and cx.lowering.all_names and not cx.is_in_template():
            raise cx.wrong(builtin_names.unknown(spelled, known_as), node.span)
    elif not node.scope:
        known_as = [*known_as, *qualified_names(cx, node.text)]
    # A call in a template may be of a function that is found by its arguments.
    own = cx.lowering.declared  # in a variable's own initializer
    sure = cx.lowering.all_names and not (node.scope or may_be_foreign(node.text))
    sure = sure and not (own and own[:2] == (node.text, id(cx.scope)))
    error = cx.wrong if sure and not cx.is_in_template() else cx.error
    raise error(builtin_names.unknown(spelled, known_as, cx.lowering.texts), node.span)


def _is_of_file(scope: Scope, path: Sequence[tree.Name]) -> bool:
    """Whether a namespace is one of the user's, all of whose names are known."""
    is_library = path[0].text in LIBRARIES or path[0].text in ("", "std")
    return scope.kind == "namespace" and not (is_library or scope.using_directives)


def _refuse_qualified(cx: Context, node: tree.Name) -> None:
    """CompileError for `A::x` that a class of the file does not have, or has only in objects."""
    home = scope_of(cx, node.scope)
    type = None if home is None else home.names.get("<class>")
    if home is not None and home.parent is not None:
        of_enum = home.parent.names.get(f"<enum>{home.name}")
        if isinstance(of_enum, Namespace) and of_enum.scope is home:
            raise cx.wrong(f"the enum {home.name} has no enumerator {node.text}", node.span)
    if not isinstance(type, ClassType):
        return
    if has_field(type, node.text):
        raise cx.wrong(
            f"{node.text} is a member of each object of {type}: name one, as in object.{node.text}",
            node.span,
        )
    raise cx.amiss(f"{type} has no member {node.text}", node.span, type)


def lower_this(cx: Context, node: tree.This) -> Value:
    this = this_object(cx)
    if this is None:
        raise cx.wrong("`this` is only allowed in a method, or if it is captured", node.span)
    return address_of(cx, this, node.span)


# --- operators -----------------------------------------------------------------------------------


def _unary(cx: Context, node: tree.Unary) -> Value:
    if node.op == "&":
        member = cx.rules.member_pointer(cx, node.operand, node.span)
        if member is not None:
            return member
        if isinstance(node.operand, tree.Name):
            _demand_object(cx, node.operand)
        cx.addressed = node.operand
        value = lower_place(cx, node.operand)
        if isinstance(node.operand, tree.Conditional):
            demand_places(cx, value)
        return address_of(cx, value, node.span)
    if node.op in ("++", "--"):
        operand = _changed(cx, node.operand, node.span)
    else:
        operand = lower(cx, node.operand)
    if node.op == "*":
        return dereference(cx, operand, node.span)
    if node.op in ("++", "--"):
        return stepped(cx, node.op, operand, False, node.span)
    if node.op == "+" and is_closure(getattr(operand, "type", None)):
        return cx.rules.function_pointer(cx, operand, None, node.span)
    return unary(cx, node.op, operand, node.span)


def _demand_object(cx: Context, name: tree.Name) -> None:
    """A local constant whose address is taken is an object in the next run."""
    found = None if name.scope else cx.scope.find(name.text)
    if isinstance(found, KnownValue) and found.key is not None:
        cx.lowering.facts.addressed.add(found.key)
        raise LowerAgain


def _changed(cx: Context, node: Any, span: Span) -> Value:
    """An lvalue that an operator changes. CompileError for a constant, by its name."""
    value = lower_place(cx, node)
    type = value.type if isinstance(value, Rvalue) else None
    if isinstance(node, tree.Name) and isinstance(type, (Arithmetic, EnumType)):
        raise cx.wrong(f"{node.text} is const, so it cannot be assigned to", span)
    return value


def _postfix(cx: Context, node: tree.Postfix) -> Value:
    unused = cx.unused is node
    operand = _changed(cx, node.operand, node.span)
    # If the value is discarded, `i++` is `++i`, except for classes, which may define both.
    keeps = not unused or isinstance(getattr(operand, "type", None), ClassType)
    return stepped(cx, node.op, operand, keeps, node.span)


def _binary(cx: Context, node: tree.Binary) -> Value:
    if node.op == ",":
        unused, cx.unused = cx.unused is node, node.left
        left = lower(cx, node.left)
        if unused:
            cx.unused = node.right
        made = _overloaded(cx, node, left)
        return lower(cx, node.right) if made is None else made
    if node.op in (".*", "->*"):
        return _pointed_member(cx, node)
    if node.op in ("&&", "||"):
        left = lower(cx, node.left)
        made = _overloaded(cx, node, left)
        return lower_logical(cx, node, left) if made is None else made
    chain = _left_chain(node)
    value = lower(cx, chain[-1].left)
    for one in reversed(chain):
        _refuse_powers(cx, one)
        operands = Operands([value], [[]])
        operands.add(*lower_to_block(cx, one.right))
        left, value = value, _combined(cx, one.op, operands, one.span)
        warn_of_operator(cx, one.op, left, one.right, one.span)
    return value


def _pointed_member(cx: Context, node: tree.Binary) -> Value:
    """`object.*member` and `pointer->*member`, of which a class may have its own."""
    operands = Operands([lower(cx, node.left)], [[]])
    operands.add(*lower_to_block(cx, node.right))
    if node.op == "->*" and any(map(is_object_of_class, operands.values)):
        made = operator_call(cx, node.op, operands, node.span)
        if made is not None:
            return made
    base, pointer = operands.emit(cx, lambda: (OBJECT, None))
    if node.op == "->*":
        base = dereference(cx, base, node.span)
    return pointed_member(cx, base, pointer, node.span)


def _refuse_powers(cx: Context, node: tree.Binary) -> None:
    """CompileError for `a ** b`, which C++ reads as `a * (*b)`."""
    right = node.right
    if node.op != "*" or not isinstance(right, tree.Unary) or right.op != "*":
        return
    adjacent = (right.span.line, right.span.column) == (node.span.line, node.span.column + 1)
    if adjacent and isinstance(type_of(cx, right.operand), Arithmetic):
        raise cx.wrong("there is no operator **: powers are powf(a, b) and pow(a, b)", node.span)


def _overloaded(cx: Context, node: tree.Binary, left: Value) -> Value | None:
    """The call of an operator function for `,`, `&&` or `||`, both of whose operands are evaluated;
    None if it is the language's own operator."""
    name = f"operator{node.op}"
    of_object = is_object_of_class(left)
    scope = getattr(getattr(left, "type", None), "scope", None) if of_object else None
    scopes = [one for one in (cx.scope, scope) if one is not None]
    declared = any(next(one.functions(name), None) for one in scopes)
    if not declared and not is_in_namespaces(cx, name):
        return None
    right = unevaluated(cx, node.right)
    if not (of_object or is_object_of_class(right)):
        return None
    if chosen_operator(cx, node.op, [left, right], node.span) is None:
        return None
    operands = Operands([left], [[]])
    operands.add(*lower_to_block(cx, node.right))
    return operator_call(cx, node.op, operands, node.span)


def _combined(cx: Context, op: str, operands: Operands, span: Span) -> Value:
    """A binary operator; its operands are evaluated from left to right."""
    if any(map(is_object_of_class, operands.values)):
        made = operator_call(cx, op, operands, span)
        if made is not None:
            return made
    left, right = operands.emit(cx)
    return binary(cx, op, left, right, span, overloaded=False)


_NOT_IN_CHAINS = frozenset((",", "&&", "||", ".*", "->*"))


def _left_chain(node: tree.Binary) -> list[tree.Binary]:
    """`a + b + c` without recursion: chains of thousands are normal for generated code."""
    chain = [node]
    while isinstance(chain[-1].left, tree.Binary) and chain[-1].left.op not in _NOT_IN_CHAINS:
        chain.append(chain[-1].left)
    return chain


def _assign(cx: Context, node: tree.Assign) -> Value:
    if isinstance(node.value, tree.InitializerList):
        target = lower(cx, node.target)
        chosen = _operator_for_list(cx, node, target)
        if chosen is not None:
            return chosen.call(cx, [target, Braced(node.value)], node.span)
        value = from_list(cx, getattr(target, "type", VOID), node.value, node.span)
        return assign(cx, node.op, target, value, node.span)
    value = lower(cx, node.value)  # the right operand comes first
    with cx.separate_block() as inside:
        target = _changed(cx, node.target, node.span)
    if inside:
        type = _right_type(cx, node.op, target, value, node.span)
        value = snapshot(cx, value, type, inside, node.span)
        cx.emit(*inside)
    warn_of_operator(cx, node.op, target, node.value, node.span)
    return assign(cx, node.op, target, value, node.span)


def _operator_for_list(cx: Context, node: tree.Assign, target: Value) -> ChosenOperator | None:
    """The operator function of a class that takes the braced list of an assignment; None if the
    list initializes an object that is assigned."""
    type = getattr(target, "type", None)
    if not isinstance(type, ClassType) or type.scope is None:
        return None
    known = type.scope.own(f"operator{node.op}")
    overloads = known.overloads if isinstance(known, Functions) else ()
    if node.op == "=" and not any(takes_list(one.declaration) for one in overloads):
        return None
    assert isinstance(node.value, tree.InitializerList)
    listed = Braced(node.value)
    return cx.rules.chosen_operator(
        cx, node.op, [target, listed], node.span, members_only=node.op == "="
    )


def _right_type(cx: Context, op: str, target: Value, value: Value, span: Span) -> CppType | None:
    """The type of an operator function's parameter for the right operand of an assignment."""
    chosen = operator_of_assignment(cx, op, target, value, span)
    if chosen is not None:
        return chosen.types[1]
    own = getattr(target, "type", None)
    if op == "=" and isinstance(own, ClassType):  # the implicit operator=
        return Reference(own, True)
    return None


# --- casts and the like --------------------------------------------------------------------------


def _cast(cx: Context, node: tree.Cast) -> Value:
    type = resolve(cx, node.type)
    operand = lower(cx, node.operand)
    if isinstance(type, Pointer) and type.to != CHAR:
        operand = cx.rules.text_pointer(cx, operand, node.span)
    if cx.lowering.checking:
        check_cast(cx, operand, type, node.style, node.span)
    made = explicit_cast(cx, operand, type, node.style, node.span)
    note_volatile(cx, node.type, made)
    return made


def _construct(cx: Context, node: tree.Construct) -> Value:
    if is_auto(node.type):
        raise cx.wrong("auto is not a type that can be constructed", node.span)
    template = placeholder(cx, node.type)
    if template is not None:
        listed = tree.InitializerList(node.arguments, node.names, node.span)
        type: CppType = deduced_class(cx, template, listed, node.span)
    else:
        type = resolve(cx, node.type)
    if node.braces:
        listed = tree.InitializerList(node.arguments, node.names, node.span)
        return from_list(cx, type, listed, node.span)
    if len(node.arguments) == 1 and not isinstance(type, ClassType):
        only = node.arguments[0]
        if isinstance(only, tree.InitializerList):
            return from_list(cx, type, only, node.span)
        return explicit_cast(cx, lower(cx, only), type, "c", node.span)
    if isinstance(type, ClassType):
        refuse_hidden_constructors(cx, type, node.span)
    return construct(cx, type, arguments(cx, node.arguments, type), node.span)


def _initializer_list(cx: Context, node: tree.InitializerList) -> Value:
    raise cx.error("the type that this braced list initializes is not known", node.span)


def _size_of(cx: Context, node: tree.SizeOf) -> Value:
    if isinstance(node.operand, tree.Name):
        own = cx.lowering.declared
        if own and own[:2] == (node.operand.text, id(cx.scope)):  # in its own initializer
            type: CppType = own[2]
        else:
            named = lower_unevaluated(cx, node.operand)
            type = getattr(named, "type", VOID)  # a name may be a type
            if isinstance(named, Text):
                type = ArrayOf(CHAR, len(named.data) + 1)
    elif isinstance(node.operand, tree.TYPES):
        type = resolve(cx, node.operand)
    elif isinstance(node.operand, tree.StringLiteral):
        type = ArrayOf(CHAR, len(node.operand.data) + 1)
    else:
        type = type_of(cx, node.operand)
    if isinstance(type, MemberPointer) and isinstance(type.to, FunctionOf):
        return Rvalue(n.Constant(16 if node.op == "sizeof" else 8, SIZE.scalar, node.span), SIZE)
    if holds_function_pointer(type):
        raise cx.error(f"{node.op} of an object with a pointer to member functions", node.span)
    if isinstance(type, Void):
        raise cx.wrong(f"{node.op} of void, or of what is not an object", node.span)
    try:
        size = size_of(type) if node.op == "sizeof" else align_of(type)
    except NoLayout as reason:
        raise cx.error(f"{node.op} of {reason}", node.span) from None
    return Rvalue(n.Constant(size, SIZE.scalar, node.span), SIZE)


def _offset_of(cx: Context, node: tree.OffsetOf) -> Value:
    def offset(type: CppType, path: Any) -> tuple[int, CppType]:
        match path:
            case tree.Name():
                inner, at = type, 0
                name = path.text
            case tree.Member(base=base, name=tree.Name(text=name)):
                at, inner = offset(type, base)
            case tree.Subscript(base=base, index=index):
                at, inner = offset(type, base)
                if isinstance(inner, ArrayOf):
                    index_ = constant_integer(cx, index, "the index of offsetof")
                    return at + index_ * size_of(inner.element), inner.element
                name = "[]"
            case _:
                name, inner, at = "", VOID, 0
        if isinstance(inner, ClassType) and find_bits(inner, name) is not None:
            raise cx.wrong(f"{name} is bits of a word, which has no offset", node.span)
        if not isinstance(inner, ClassType) or (found := find_field(inner, name)) is None:
            raise cx.wrong(f"{inner} has no member {name}", node.span)
        owner: CppType = inner
        for one in (*found[0], found[1]):
            struct = ir_type(owner)
            assert isinstance(struct, ir.Struct)
            assert isinstance(owner, ClassType)
            at += 0 if owner.is_union else ir.field_offset(struct, one.name)
            owner = one.type
        return at, owner

    try:
        at, _ = offset(resolve(cx, node.type), node.member)
    except NoLayout as reason:
        raise cx.error(f"offsetof: {reason}", node.span) from None
    return Rvalue(n.Constant(at, SIZE.scalar, node.span), SIZE)


def _statement_expression(cx: Context, node: tree.StatementExpression) -> Value:
    with cx.inner_scope():
        body = node.body.body
        last = body[-1] if body else None
        if not isinstance(last, tree.ExpressionStatement):
            for statement in body:
                cx.rules.statement(cx, statement)
            return VoidValue(VOID)
        for statement in body[:-1]:
            cx.rules.statement(cx, statement)
        value = lower(cx, last.expression)
        type = getattr(value, "type", VOID)
        if isinstance(value, (Rvalue, *OBJECTS)) and not holds_array(type):
            return Rvalue(cx.copied(rvalue(cx, value, node.span).expression), type)
        return value


def _pack_expansion(cx: Context, node: tree.PackExpansion | tree.Fold) -> Value:
    raise cx.error("the length of this parameter pack is not known here", node.span)


def _refused(cx: Context, node: tree.Refused) -> Value:
    raise cx.error(refusal_message(node.construct), node.span)


def _call(cx: Context, node: tree.Call) -> Value:
    return call(cx, node)


# What lowers each kind of expression.
HANDLERS: dict[type, Callable[[Context, Any], Value]] = {
    tree.IntegerLiteral: lower_integer,
    tree.FloatLiteral: lower_float,
    tree.CharacterLiteral: lower_character,
    tree.StringLiteral: lambda cx, node: Text(node.text, data=node.data),
    tree.UserLiteral: lower_user_literal,
    tree.BoolLiteral: lower_bool,
    tree.NullLiteral: lambda cx, node: Null(),
    tree.This: lower_this,
    tree.Name: lower_name,
    tree.Unary: _unary,
    tree.Postfix: _postfix,
    tree.Binary: _binary,
    tree.Assign: _assign,
    tree.Conditional: lower_conditional,
    tree.Call: _call,
    tree.Subscript: lower_subscript,
    tree.Member: lower_member,
    tree.Cast: _cast,
    tree.Construct: _construct,
    tree.New: allocation.new,
    tree.Delete: allocation.delete,
    tree.InitializerList: _initializer_list,
    tree.SizeOf: _size_of,
    tree.OffsetOf: _offset_of,
    tree.StatementExpression: _statement_expression,
    tree.PackExpansion: _pack_expansion,
    tree.Fold: _pack_expansion,
    tree.Lambda: lower_lambda,
    tree.Requires: lower_requires,
    tree.Refused: _refused,
}
