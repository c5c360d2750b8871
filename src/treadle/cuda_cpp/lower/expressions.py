"""Expressions: each kind of the syntax tree, in C++'s order of evaluation."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.calls import arguments, call, construct, operator_call
from treadle.cuda_cpp.lower.conditionals import lower_conditional, lower_logical, lower_place
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.dispatch import (
    HANDLERS,
    lower,
    type_of,
)
from treadle.cuda_cpp.lower.identifiers import lower_name, lower_this
from treadle.cuda_cpp.lower.initializers import from_list
from treadle.cuda_cpp.lower.literals import lower_bool, lower_character, lower_float, lower_integer
from treadle.cuda_cpp.lower.members import (
    address_of,
    dereference,
    lower_member,
    lower_subscript,
)
from treadle.cuda_cpp.lower.names import is_auto, resolve
from treadle.cuda_cpp.lower.operators import (
    assign,
    binary,
    is_object_of_class,
    operator_of_assignment,
    stepped,
    unary,
)
from treadle.cuda_cpp.lower.order import Operands, kept, lowered_apart
from treadle.cuda_cpp.lower.values import (
    Null,
    Rvalue,
    Text,
    Value,
)
from treadle.cuda_cpp.lower.volatile import note_volatile
from treadle.cuda_cpp.meaning.types import (
    CHAR,
    SIZE,
    VOID,
    ArrayOf,
    ClassType,
    CppType,
    NoLayout,
    Reference,
    Void,
    align_of,
    size_of,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.ir import nodes as n

# --- what is known when the kernel is compiled ---------------------------------------------------


# --- literals ------------------------------------------------------------------------------------


# --- names ---------------------------------------------------------------------------------------


# --- operators -----------------------------------------------------------------------------------


def _unary(cx: Context, node: tree.Unary) -> Value:
    if node.op == "&":
        return address_of(cx, lower_place(cx, node.operand), node.span)
    operand = lower_place(cx, node.operand) if node.op in ("++", "--") else lower(cx, node.operand)
    if node.op == "*":
        return dereference(cx, operand, node.span)
    if node.op in ("++", "--"):
        return stepped(cx, node.op, operand, False, node.span)
    return unary(cx, node.op, operand, node.span)


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
        return lower_logical(cx, node)
    chain = _left_chain(node)
    value = lower(cx, chain[-1].left)
    for one in reversed(chain):
        operands = Operands([value], [[]])
        operands.add(*lowered_apart(cx, one.right))
        value = _combined(cx, one.op, operands, one.span)
    return value


def _combined(cx: Context, op: str, operands: Operands, span: Span) -> Value:
    """An operator on operands that are evaluated from left to right."""
    if any(map(is_object_of_class, operands.values)):
        made = operator_call(cx, op, operands, span)
        if made is not None:
            return made
    left, right = operands.emit(cx)
    return binary(cx, op, left, right, span, overloaded=False)


def _left_chain(node: tree.Binary) -> list[tree.Binary]:
    """`a + b + c` without recursion: chains of thousands are normal for generated code."""
    chain = [node]
    while isinstance(chain[-1].left, tree.Binary) and chain[-1].left.op not in (",", "&&", "||"):
        chain.append(chain[-1].left)
    return chain


def _assign(cx: Context, node: tree.Assign) -> Value:
    if isinstance(node.value, tree.InitializerList):
        target = lower(cx, node.target)
        value = from_list(cx, getattr(target, "type", VOID), node.value, node.span)
        return assign(cx, node.op, target, value, node.span)
    value = lower(cx, node.value)  # the right operand comes first
    with cx.aside() as inside:
        target = lower_place(cx, node.target)
    if inside:
        type = _right_type(cx, node.op, target, value, node.span)
        value = kept(cx, value, type, inside, node.span)
        cx.emit(*inside)
    return assign(cx, node.op, target, value, node.span)


def _right_type(cx: Context, op: str, target: Value, value: Value, span: Span) -> CppType | None:
    """The type of the parameter that the right operand of an assignment becomes, if it is one."""
    chosen = operator_of_assignment(cx, op, target, value, span)
    if chosen is not None:
        return chosen.types[1]
    own = getattr(target, "type", None)
    if op == "=" and isinstance(own, ClassType):  # that of the operator= that it has by itself
        return Reference(own, True)
    return None


# --- parts ---------------------------------------------------------------------------------------


# --- casts and the like --------------------------------------------------------------------------


def _cast(cx: Context, node: tree.Cast) -> Value:
    type = resolve(cx, node.type)
    made = explicit_cast(cx, lower(cx, node.operand), type, node.style, node.span)
    note_volatile(cx, node.type, made)
    return made


def _construct(cx: Context, node: tree.Construct) -> Value:
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
    return construct(cx, type, arguments(cx, node.arguments, type), node.span)


def _initializer_list(cx: Context, node: tree.InitializerList) -> Value:
    raise cx.error("a list in braces stands here for a value of no known type", node.span)


def _size_of(cx: Context, node: tree.SizeOf) -> Value:
    if isinstance(node.operand, tree.Name):
        value = lower(cx, node.operand)  # a name may be a type
        type: CppType = getattr(value, "type", VOID)
    elif isinstance(node.operand, _TYPES):
        type = resolve(cx, node.operand)
    elif isinstance(node.operand, tree.StringLiteral):
        type = ArrayOf(CHAR, len(node.operand.data) + 1)
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
    return call(cx, node)


_TYPES = (
    tree.BuiltinType, tree.NamedType, tree.DefinedType, tree.AutoType, tree.DecltypeType,
    tree.ConstType, tree.PointerType, tree.ReferenceType, tree.ArrayType, tree.FunctionType,
)  # fmt: skip

HANDLERS.update(
    {
        tree.IntegerLiteral: lower_integer,
        tree.FloatLiteral: lower_float,
        tree.CharacterLiteral: lower_character,
        tree.StringLiteral: lambda cx, node: Text(node.text),
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
        tree.InitializerList: _initializer_list,
        tree.SizeOf: _size_of,
        tree.PackExpansion: _pack_expansion,
        tree.Refused: _refused,
    }
)
