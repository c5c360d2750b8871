"""Expressions: each kind of the syntax tree, in C++'s order of evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.classes import find_field
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    OBJECTS,
    common_type,
    condition,
    convert,
    explicit_cast,
    number,
    number_as,
    rvalue,
    underlying,
)
from treadle.cuda_cpp.lower.evaluate import evaluate
from treadle.cuda_cpp.lower.names import is_auto, known_entity, lookup, named_type, resolve
from treadle.cuda_cpp.lower.objects import component_type, member, subscript
from treadle.cuda_cpp.lower.operators import assign, binary, stepped, unary
from treadle.cuda_cpp.lower.pointers import address, as_index, follow, pointer_of
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChoiceLvalue,
    ChosenPointer,
    Exploded,
    FunctionSet,
    Items,
    Lvalue,
    Null,
    ObjectAddress,
    PointerValue,
    PointerVariable,
    Rvalue,
    Text,
    TypeValue,
    Value,
    describe,
)
from treadle.cuda_cpp.meaning.scopes import (
    DeclaredType,
    Functions,
    GlobalVariable,
    HostEntity,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.meaning.types import (
    ARITHMETIC,
    BOOL,
    CHAR,
    FLOAT,
    INT,
    SIZE,
    UNSIGNED,
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    NoLayout,
    Pointer,
    Void,
    align_of,
    decay,
    holds_array,
    ir_type,
    size_of,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import walk


def lower(cx: Context, expression: Any) -> Value:
    """An expression as a value; what it does besides goes to the block at hand."""
    handler = _HANDLERS.get(expression.__class__)
    if handler is None:
        raise cx.error("this is no expression", expression.span)
    return handler(cx, expression)


def lower_condition(cx: Context, expression: tree.Expression) -> n.Expression:
    """An expression as a condition."""
    return condition(cx, lower(cx, expression), expression.span)


def lower_number(cx: Context, expression: tree.Expression) -> tuple[n.Expression, Arithmetic]:
    """An expression that must be a number, and its type."""
    return number(cx, lower(cx, expression), expression.span)


# --- what is known when the kernel is compiled ---------------------------------------------------


def constant_rvalue(cx: Context, expression: Any, what: str) -> Rvalue:
    """A constant expression."""
    outer, cx.lowering.unevaluated = cx.lowering.unevaluated, 0
    try:
        with cx.aside() as emitted:
            value = rvalue(cx, lower(cx, expression), expression.span)
    finally:
        cx.lowering.unevaluated = outer
    result = evaluate(emitted, value.expression, cx.lowering.functions)
    if result is None:
        raise cx.error(f"{what} must be known when the kernel is compiled", expression.span)
    return Rvalue(result, value.type)


def constant_value(cx: Context, expression: Any, what: str) -> bool | int | float:
    """A constant expression as a Python number."""
    result = constant_rvalue(cx, expression, what).expression
    assert isinstance(result, n.Constant)
    return result.value


def type_of(cx: Context, expression: Any) -> CppType:
    """The type of an expression that is not evaluated (decltype, sizeof, auto)."""
    cx.lowering.unevaluated += 1
    try:
        with cx.aside():
            value = lower(cx, expression)
    finally:
        cx.lowering.unevaluated -= 1
    type: CppType = getattr(value, "type", VOID)
    return type


# --- literals ------------------------------------------------------------------------------------

_INTEGER_TYPES = {
    "": ("int", "long", "long long"),
    "u": ("unsigned int", "unsigned long", "unsigned long long"),
    "l": ("long", "long long"),
    "ul": ("unsigned long", "unsigned long long"),
    "ll": ("long long",),
    "ull": ("unsigned long long",),
}


def _integer(cx: Context, node: tree.IntegerLiteral) -> Value:
    candidates = list(_INTEGER_TYPES[node.suffix])
    if not node.decimal and "u" not in node.suffix:
        candidates = [name for signed in candidates for name in (signed, _unsigned_name(signed))]
    for name in candidates:
        type = ARITHMETIC[name]
        if node.value < 1 << (type.scalar.bits - type.scalar.is_signed):
            made = n.Constant(node.value, type.scalar, node.span)
            return Rvalue(made, type, literal_zero=node.value == 0)
    raise cx.error(f"{node.value} fits no integer type", node.span)


def _unsigned_name(name: str) -> str:
    return "unsigned int" if name == "int" else f"unsigned {name}"


def _float(cx: Context, node: tree.FloatLiteral) -> Value:
    type = FLOAT if node.suffix == "f" else ARITHMETIC["double"]
    return Rvalue(constant(node.value, type.scalar, node.span), type)


def _character(cx: Context, node: tree.CharacterLiteral) -> Value:
    return Rvalue(constant(node.value, CHAR.scalar, node.span), CHAR)


def _bool(cx: Context, node: tree.BoolLiteral) -> Value:
    return Rvalue(n.Constant(node.value, ir.BOOL, node.span), BOOL)


# --- names ---------------------------------------------------------------------------------------


def _name(cx: Context, node: tree.Name) -> Value:
    entity: Any = _find_value(cx, node)
    if entity is None:
        return _builtin(cx, node)
    match entity:
        case Functions(overloads=overloads):
            return FunctionSet(node.text, tuple(overloads), arguments=node.arguments)
        case GlobalVariable():
            from treadle.cuda_cpp.lower.variables import global_variable

            return global_variable(cx, entity, node)
        case TypeEntity() | DeclaredType():
            return TypeValue(named_type(cx, node, node.span))
        case HostEntity(code):
            raise cx.error(_host_only(node, code), node.span)
    known = known_entity(cx, entity, node.span)
    value: Value = entity if known is None else known
    return value


def _host_only(node: tree.Name, code: tree.HostCode) -> str:
    reason = f" ({code.reason})" if code.reason else ""
    if code.what == "function":
        return (
            f"{node.text} is a function of the host: put __device__ (or __host__ __device__) "
            f"before it, so that kernels can call it{reason}"
        )
    return f"{node.text} belongs to the host alone, and a kernel can't use it{reason}"


def _find_value(cx: Context, node: tree.Name) -> Any:
    """What a name means: a local, a member of the object at hand, something of the file."""
    if node.scope:
        return lookup(cx, node)
    scope: Scope | None = cx.scope
    while scope is not None:
        found = scope.own(node.text)
        if found is not None:
            if isinstance(found, Functions) and scope.kind == "class" and cx.this is not None:
                return FunctionSet(
                    node.text, tuple(found.overloads), arguments=node.arguments, receiver=cx.this
                )
            return found
        if scope.kind == "class" and cx.this is not None:
            type = scope.names.get("<class>")
            if isinstance(type, ClassType) and find_field(type, node.text) is not None:
                return member_of(cx, cx.this, node, node.span)
        scope = scope.parent
    return None


def _builtin(cx: Context, node: tree.Name) -> Value:
    """A name that CUDA or the language declares."""
    if node.text in builtin_names.VARIABLES:
        return builtin_names.variable(cx, node)
    if builtin_names.is_function(node.text):
        return FunctionSet(node.text, (), builtin=True, arguments=node.arguments)
    spelled = "::".join([*(part.text for part in node.scope), node.text])
    raise cx.error(builtin_names.unknown(spelled), node.span)


def _this(cx: Context, node: tree.This) -> Value:
    if cx.this is None:
        raise cx.error("`this` stands for nothing outside of a method", node.span)
    return _address_of(cx, cx.this, node.span)


# --- operators -----------------------------------------------------------------------------------


def _unary(cx: Context, node: tree.Unary) -> Value:
    if node.op == "&":
        return _address_of(cx, lower_place(cx, node.operand), node.span)
    operand = lower_place(cx, node.operand) if node.op in ("++", "--") else lower(cx, node.operand)
    if node.op == "*":
        return dereference(cx, operand, node.span)
    if node.op in ("++", "--"):
        return stepped(cx, node.op, operand, False, node.span)
    return unary(cx, node.op, operand, node.span)


def dereference(cx: Context, operand: Value, span: Span) -> Value:
    """`*operand`"""
    pointer = pointer_of(cx, operand)
    if pointer is not None:
        return follow(cx, pointer, span)
    if isinstance(operand, FunctionSet):
        return operand
    if isinstance(operand, ObjectAddress):
        return operand.object
    if isinstance(operand, Items):
        return subscript(cx, operand, constant(0, ir.I32), span)
    from treadle.cuda_cpp.lower.calls import call_operator

    made = call_operator(cx, "*", [operand], span)
    if made is None:
        raise cx.error(f"{describe(operand)} is no pointer to follow", span)
    return made


def _address_of(cx: Context, value: Value, span: Span) -> Value:
    if isinstance(value, FunctionSet):
        raise cx.error(refusal_message("function_pointer"), span)
    if isinstance(value, Exploded):
        return ObjectAddress(value)
    if isinstance(value, (PointerValue, PointerVariable, ChosenPointer, Items)):
        raise cx.error(
            "a pointer to a pointer: memory on most devices holds no addresses. Return the new "
            "pointer, or pass it by reference",
            span,
        )
    return address(cx, value, span)


def _postfix(cx: Context, node: tree.Postfix) -> Value:
    unused = cx.unused is node
    operand = lower_place(cx, node.operand)
    # Where nobody asks for the old value, `i++` is `++i`; a class may have two operators.
    keeps = not unused or isinstance(getattr(operand, "type", None), ClassType)
    return stepped(cx, node.op, operand, keeps, node.span)


def _binary(cx: Context, node: tree.Binary) -> Value:
    if node.op == ",":
        unused, cx.unused = cx.unused is node, node.left
        lower(cx, node.left)
        if unused:
            cx.unused = node.right
        return lower(cx, node.right)
    if node.op in ("&&", "||"):
        return _logical(cx, node)
    chain = _left_chain(node)
    value = lower(cx, chain[-1].left)
    for one in reversed(chain):
        if one.op in ("<<", ">>"):
            value, right = _left_first(cx, value, one.right)
        else:
            value, right = _second(cx, value, one.right)
        value = binary(cx, one.op, value, right, one.span)
    return value


def _left_chain(node: tree.Binary) -> list[tree.Binary]:
    """`a + b + c` without recursion: chains of thousands are normal for generated code."""
    chain = [node]
    while isinstance(chain[-1].left, tree.Binary) and chain[-1].left.op not in (",", "&&", "||"):
        chain.append(chain[-1].left)
    return chain


def _second(cx: Context, first: Value, expression: Any) -> tuple[Value, Value]:
    """The value of a second operand; if it does something, the first one was read before."""
    block = cx.blocks[-1]
    before = len(block)
    second = lower(cx, expression)
    if len(block) > before and isinstance(first, Rvalue) and _changes(first.expression):
        kept = n.Variable(cx.lowering.unique("value"), first.expression.type, cx.span)
        block.insert(before, n.Declare(kept, first.expression, cx.span))
        first = Rvalue(kept, first.type)
    return first, second


def _left_first(cx: Context, first: Value, expression: Any) -> tuple[Value, Value]:
    """The operands of a shift: C++17 reads the left one before it does anything of the right."""
    with cx.aside() as inside:
        second = lower(cx, expression)
    if inside:
        first = _kept(cx, first, cx.span)
        cx.blocks[-1].extend(inside)
    return first, second


def _changes(expression: n.Expression) -> bool:
    """Whether a value depends on what statements may change."""
    return any(isinstance(node, (n.Load, n.Variable)) for node in walk(expression))


def _logical(cx: Context, node: tree.Binary) -> Value:
    left_value = lower(cx, node.left)
    left = condition(cx, left_value, node.left.span)
    if isinstance(left, n.Constant) and left.value == (node.op == "||"):
        return Rvalue(left, BOOL)
    with cx.aside() as inside:
        right = lower_condition(cx, node.right)
    op = "logical_and" if node.op == "&&" else "logical_or"
    if not inside:
        return Rvalue(_connected(op, left, right, node.span), BOOL)
    result = cx.let_as("condition", left, node.span)
    inside.append(n.Assign(result, right, node.span))
    needed = result if node.op == "&&" else n.Unary("not", result, ir.BOOL, node.span)
    cx.emit(n.If(needed, tuple(inside), (), node.span))
    return Rvalue(result, BOOL)


def _connected(op: str, left: n.Expression, right: n.Expression, span: Span) -> n.Expression:
    made = n.Binary(op, left, right, ir.BOOL, span)
    if isinstance(left, n.Constant) or isinstance(right, n.Constant):
        return folded(made)
    return made


def _assign(cx: Context, node: tree.Assign) -> Value:
    if isinstance(node.value, tree.InitializerList):
        target = lower(cx, node.target)
        from treadle.cuda_cpp.lower.initializers import from_list

        value = from_list(cx, getattr(target, "type", VOID), node.value, node.span)
        return assign(cx, node.op, target, value, node.span)
    value = lower(cx, node.value)
    with cx.aside() as inside:
        target = lower_place(cx, node.target)
    if inside:  # the target does something, and the value is read before
        value = _kept(cx, value, node.span)
        cx.blocks[-1].extend(inside)
    return assign(cx, node.op, target, value, node.span)


def _kept(cx: Context, value: Value, span: Span) -> Value:
    """A number, vector or small object as it is now."""
    if not isinstance(value, (Rvalue, *OBJECTS)) or holds_array(value.type):
        return value
    read = rvalue(cx, value, span)
    return Rvalue(cx.copied(read.expression), read.type, literal_zero=read.literal_zero)


def lower_place(cx: Context, expression: Any) -> Value:
    """An expression whose object is wanted, not its value: `(a > b ? a : b) = 0`."""
    if isinstance(expression, tree.Conditional):
        return _conditional(cx, expression, as_object=True)
    return lower(cx, expression)


def _conditional(cx: Context, node: tree.Conditional, as_object: bool = False) -> Value:
    test = lower_condition(cx, node.condition)
    test = folded(test) if isinstance(test, (n.Binary, n.Unary, n.Constant)) else test
    if isinstance(test, n.Constant):
        if as_object:
            return lower_place(cx, node.if_true if test.value else node.if_false)
        return _chosen_already(cx, bool(test.value), node)
    with cx.aside() as first:
        one = lower(cx, node.if_true)
    with cx.aside() as second:
        other = lower(cx, node.if_false)
    pointer = pointer_of(cx, one) or pointer_of(cx, other)
    if pointer is not None:
        return _conditional_pointer(cx, test, (first, one), (second, other), pointer.to, node)
    objects = isinstance(one, OBJECTS) and isinstance(other, OBJECTS) and not (first or second)
    wanted = as_object and getattr(one, "type", None) == getattr(other, "type", None)
    if objects and (wanted or _same_class(one, other)) and not isinstance(one, ChoiceLvalue):
        tag = n.Select(test, constant(0, ir.I32), constant(1, ir.I32), ir.I32, node.span)
        return ChoiceLvalue(cx.copied(tag), (one, other), getattr(one, "type", VOID))
    return _conditional_value(cx, test, (first, one), (second, other), node)


def _chosen_already(cx: Context, truth: bool, node: tree.Conditional) -> Value:
    """The side that a constant chooses; the other one has its say in the type all the same."""
    chosen, left_out = (node.if_true, node.if_false) if truth else (node.if_false, node.if_true)
    value = lower(cx, chosen)
    own = underlying(decay(getattr(value, "type", VOID)))
    if own is None:
        return value
    other = underlying(decay(type_of(cx, left_out)))
    if other is None or other == own:
        return value
    return convert(cx, value, common_type(own, other), node.span)


def _same_class(one: Value, other: Value) -> bool:
    """Whether two objects are of one class; of numbers and vectors only the values matter."""
    type = getattr(one, "type", None)
    return isinstance(type, ClassType) and type == getattr(other, "type", None)


def _conditional_value(
    cx: Context,
    test: n.Expression,
    first: tuple[list[n.Statement], Value],
    second: tuple[list[n.Statement], Value],
    node: tree.Conditional,
) -> Value:
    type = _common_of(cx, first[1], second[1], node)
    if isinstance(type, Void):
        cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
        return Rvalue(constant(0, ir.I32), VOID)
    values: list[n.Expression] = []
    for block, value in (first, second):
        with cx.aside() as inside:
            inside.extend(block)
            values.append(rvalue(cx, convert(cx, value, type, node.span), node.span).expression)
        block[:] = inside
    if not first[0] and not second[0] and all(map(_is_cheap, values)):
        made = n.Select(test, values[0], values[1], values[0].type, node.span)
        return Rvalue(made, type)
    result = cx.variable("chosen", values[0].type, node.span)
    first[0].append(n.Assign(result, values[0], node.span))
    second[0].append(n.Assign(result, values[1], node.span))
    cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
    return Rvalue(result, type)


def _is_cheap(expression: n.Expression) -> bool:
    """Whether a value may be computed where it is not needed: no memory, no function."""
    return not any(isinstance(node, (n.Load, n.Call)) for node in walk(expression))


def _common_of(cx: Context, one: Value, other: Value, node: tree.Conditional) -> CppType:
    left: CppType = decay(getattr(one, "type", VOID))
    right: CppType = decay(getattr(other, "type", VOID))
    if left == right:
        return left
    first, second = underlying(left), underlying(right)
    if first is not None and second is not None:
        return common_type(first, second)
    from treadle.cuda_cpp.lower.conversions import IMPOSSIBLE, rank_of

    if rank_of(cx, other, left) < IMPOSSIBLE:
        return left
    if rank_of(cx, one, right) < IMPOSSIBLE:
        return right
    raise cx.error(
        f"?: chooses between {left} and {right}, which have no type in common", node.span
    )


def _conditional_pointer(
    cx: Context,
    test: n.Expression,
    first: tuple[list[n.Statement], Value],
    second: tuple[list[n.Statement], Value],
    to: CppType,
    node: tree.Conditional,
) -> Value:
    from treadle.cuda_cpp.lower.variables import declare_pointer

    variable = declare_pointer(cx, "chosen", Pointer(to), (cx.path, id(node)), node.span)
    for block, value in (first, second):
        with cx.aside() as inside:
            inside.extend(block)
            assign(cx, "=", variable, value, node.span)
        block[:] = inside
    cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
    return variable


# --- parts ---------------------------------------------------------------------------------------


def _subscript(cx: Context, node: tree.Subscript) -> Value:
    base = lower(cx, node.base)
    if isinstance(getattr(base, "type", None), ClassType):
        from treadle.cuda_cpp.lower.calls import call_operator

        made = call_operator(cx, "[]", [base, lower(cx, node.index)], node.span)
        if made is not None:
            return made
    base, index = _second(cx, base, node.index)
    in_parts = isinstance(base, (Items, ObjectAddress))
    if not in_parts and pointer_of(cx, base) is None and pointer_of(cx, index) is not None:
        base, index = index, base  # 3[a] is a[3]
    place, _ = number(cx, index, node.span)
    return subscript(cx, base, as_index(cx, folded(place)), node.span)


def _member(cx: Context, node: tree.Member) -> Value:
    if isinstance(node.base, tree.Name) and not node.arrow:
        special = builtin_names.component(cx, node.base, node.name.text, node.span)
        if special is not None:
            return special
    base = lower(cx, node.base)
    if node.arrow:
        base = _arrow(cx, base, node.span)
    return member_of(cx, base, node.name, node.span)


def _arrow(cx: Context, base: Value, span: Span) -> Value:
    if pointer_of(cx, base) is None and isinstance(getattr(base, "type", None), ClassType):
        from treadle.cuda_cpp.lower.calls import call_operator

        made = call_operator(cx, "->", [base], span)
        if made is not None:
            return _arrow(cx, made, span)
    return dereference(cx, base, span)


def member_of(cx: Context, base: Value, name: tree.Name, span: Span) -> Value:
    """`base.name`: a component, a field, a method, a static member."""
    type: CppType = getattr(base, "type", VOID)
    component = component_type(type, name.text)
    if component is not None:
        return member(cx, base, name.text, component, span)
    if isinstance(type, ClassType):
        return _of_class(cx, base, type, name, span)
    raise cx.error(f"{describe(base)} has no member {name.text}", span)


def _of_class(cx: Context, base: Value, type: ClassType, name: tree.Name, span: Span) -> Value:
    found = find_field(type, name.text)
    if found is not None:
        for field in (*found[0], found[1]):
            if isinstance(base, Exploded):
                base = base.fields[field.name]
            else:
                base = member(cx, base, field.name, field.type, span)
        return base
    entity: Any = None if type.scope is None else type.scope.own(name.text)
    match entity:
        case Functions(overloads=overloads):
            return FunctionSet(name.text, tuple(overloads), arguments=name.arguments, receiver=base)
        case GlobalVariable():
            from treadle.cuda_cpp.lower.variables import global_variable

            return global_variable(cx, entity, name)
    value = known_entity(cx, entity, span)
    if value is not None:
        known: Value = value
        return known
    fields = ", ".join(field.name for field in type.fields) or "none"
    raise cx.error(f"{type} has no member {name.text}; its fields: {fields}", span)


# --- casts and the like --------------------------------------------------------------------------


def _cast(cx: Context, node: tree.Cast) -> Value:
    type = resolve(cx, node.type)
    return explicit_cast(cx, lower(cx, node.operand), type, node.style, node.span)


def _construct(cx: Context, node: tree.Construct) -> Value:
    from treadle.cuda_cpp.lower.calls import arguments, construct
    from treadle.cuda_cpp.lower.initializers import from_list

    if is_auto(node.type):
        raise cx.error("auto names no type to construct", node.span)
    type = resolve(cx, node.type)
    if node.braces:
        listed = tree.InitializerList(node.arguments, (), node.span)
        return from_list(cx, type, listed, node.span)
    if len(node.arguments) == 1 and not isinstance(type, ClassType):
        only = node.arguments[0]
        if isinstance(only, tree.InitializerList):
            return from_list(cx, type, only, node.span)
        return explicit_cast(cx, lower(cx, only), type, "c", node.span)
    return construct(cx, type, arguments(cx, node.arguments), node.span)


def _initializer_list(cx: Context, node: tree.InitializerList) -> Value:
    raise cx.error("a list in braces stands here for a value of no known type", node.span)


def _size_of(cx: Context, node: tree.SizeOf) -> Value:
    if isinstance(node.operand, tree.Name):
        value = lower(cx, node.operand)  # a name may be a type
        type: CppType = getattr(value, "type", VOID)
    elif isinstance(node.operand, _TYPES):
        type = resolve(cx, node.operand)
    elif isinstance(node.operand, tree.StringLiteral):
        type = ArrayOf(CHAR, len(node.operand.text.encode("latin-1", "replace")) + 1)
    else:
        type = type_of(cx, node.operand)
    if isinstance(type, Void):
        raise cx.error(f"{node.op} of void, or of what is no object", node.span)
    try:
        size = size_of(type) if node.op == "sizeof" else align_of(type)
    except NoLayout as reason:
        raise cx.error(f"{node.op} of {reason}", node.span) from None
    return Rvalue(n.Constant(size, SIZE.scalar, node.span), SIZE)


def _pack_expansion(cx: Context, node: tree.PackExpansion) -> Value:
    raise cx.error(refusal_message("parameter_pack"), node.span)


def _refused(cx: Context, node: tree.Refused) -> Value:
    raise cx.error(refusal_message(node.construct), node.span)


def _call(cx: Context, node: tree.Call) -> Value:
    from treadle.cuda_cpp.lower.calls import call

    return call(cx, node)


_TYPES = (
    tree.BuiltinType, tree.NamedType, tree.DefinedType, tree.AutoType, tree.DecltypeType,
    tree.ConstType, tree.PointerType, tree.ReferenceType, tree.ArrayType, tree.FunctionType,
)  # fmt: skip

_HANDLERS: dict[type, Callable[[Context, Any], Value]] = {
    tree.IntegerLiteral: _integer,
    tree.FloatLiteral: _float,
    tree.CharacterLiteral: _character,
    tree.StringLiteral: lambda cx, node: Text(node.text),
    tree.BoolLiteral: _bool,
    tree.NullLiteral: lambda cx, node: Null(),
    tree.This: _this,
    tree.Name: _name,
    tree.Unary: _unary,
    tree.Postfix: _postfix,
    tree.Binary: _binary,
    tree.Assign: _assign,
    tree.Conditional: _conditional,
    tree.Call: _call,
    tree.Subscript: _subscript,
    tree.Member: _member,
    tree.Cast: _cast,
    tree.Construct: _construct,
    tree.InitializerList: _initializer_list,
    tree.SizeOf: _size_of,
    tree.PackExpansion: _pack_expansion,
    tree.Refused: _refused,
}

__all__ = [
    "INT", "UNSIGNED", "ArrayValue", "Lvalue", "PointerValue", "cast", "constant_rvalue",
    "constant_value", "ir_type", "lower", "lower_condition", "lower_number", "number_as", "type_of",
]  # fmt: skip
