"""Statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treadle.cuda_cpp.lower.access import refuse_hidden
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.constant_rules import refuse_run_time
from treadle.cuda_cpp.lower.context import Context, key_of, tree_made
from treadle.cuda_cpp.lower.dispatch import constant_value, lower, static_assert, type_of
from treadle.cuda_cpp.lower.gotos import has_labels, lower_goto, lower_sections
from treadle.cuda_cpp.lower.inlining import lower_return
from treadle.cuda_cpp.lower.loops import (
    lower_do,
    lower_for,
    lower_range_for,
    lower_while,
    whole_condition_of,
)
from treadle.cuda_cpp.lower.names import constant_integer
from treadle.cuda_cpp.lower.objects import subscript
from treadle.cuda_cpp.lower.placeholders import refuse_other_types
from treadle.cuda_cpp.lower.special_members import members_of
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.switches import lower_switch
from treadle.cuda_cpp.lower.using_declarations import refuse_unknown
from treadle.cuda_cpp.lower.values import FunctionSet, describe
from treadle.cuda_cpp.lower.variables import declare as declare_variable
from treadle.cuda_cpp.lower.warnings import warn_of_statement
from treadle.cuda_cpp.semantics.scopes import declare, declare_defined
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    Arithmetic,
    ArrayOf,
    ClassType,
    EnumType,
    Pointer,
    Reference,
    VectorType,
    decay,
    size_of,
)
from treadle.cuda_cpp.semantics.unset import pointers_without_value
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import rewrite, root_of


def lower_statement(cx: Context, node: tree.Statement) -> None:
    """Lower a statement to the current block."""
    outer = cx.span
    cx.span = cx.lowering.span = node.span
    _HANDLERS[node.__class__](cx, node)
    cx.span = outer


def lower_as_block(cx: Context, node: tree.Statement) -> n.Block:
    """Lower a statement to a new block, with a scope of its own."""
    with cx.separate_block() as block, cx.inner_scope():
        _attempt(cx, node)
    return tuple(block)


def _attempt(cx: Context, node: tree.Statement) -> None:
    """Lower a statement, with error recovery if there is one."""
    if cx.errors is None:
        lower_statement(cx, node)
    else:
        cx.errors.attempt(cx, node, lower_statement)


def _expression(cx: Context, node: tree.ExpressionStatement) -> None:
    cx.unused = node.expression
    with cx.lifetime():
        value = lower(cx, node.expression)
    warn_of_statement(cx, node, value)
    if isinstance(value, FunctionSet) and not value.overloads:  # one of CUDA's
        raise cx.error(f"{value.name} is not called: write {value.name}(…)", node.span)


def _declarations(cx: Context, node: tree.DeclarationStatement) -> None:
    for one in node.declarations:
        declare_locally(cx, one)
    if len(node.declarations) > 1:
        refuse_other_types(cx, node.declarations)


def declare_locally(cx: Context, node: tree.Declaration) -> None:
    """A declaration inside a function."""
    match node:
        case tree.VariableDeclaration():
            if isinstance(node.type, tree.DefinedType):
                declare_defined(node.type, cx.scope)
            declare_variable(cx, node)
        case tree.StaticAssert():
            if cx.checks_all() and not cx.is_in_template():
                refuse_run_time(cx, node.condition, "the condition of static_assert")
            static_assert(cx, node)
        case tree.HostCode():
            raise cx.error(f"this declaration cannot be parsed: {node.reason}", node.span)
        case tree.FunctionDeclaration():
            pass  # a prototype
        case tree.StructDeclaration(kind="union", name="", complete=True):
            _anonymous_union(cx, node)
        case tree.UsingDeclaration():
            if cx.lowering.all_names and not cx.is_in_template():
                refuse_unknown(cx, node)
            declare(node, cx.scope)
        case _:
            declare(node, cx.scope)


def _anonymous_union(cx: Context, node: tree.StructDeclaration) -> None:
    """A union without a name, whose members are names of the block."""
    key = "<union>"
    variable = tree_made(
        cx,
        key,
        node,
        lambda: tree.VariableDeclaration(key, tree.DefinedType(node), span=node.span),
    )
    declare_locally(cx, variable)
    whole = cx.scope.names.pop(key)
    for name in _names_of(node):
        cx.scope.names[name] = cx.rules.member_of(cx, whole, tree.Name(name), node.span)


def _names_of(node: tree.StructDeclaration) -> Iterator[str]:
    """The members of an anonymous union or struct, with those of anonymous ones in it."""
    for one in node.members:
        if isinstance(one, tree.VariableDeclaration):
            yield one.name
        elif isinstance(one, tree.StructDeclaration) and not one.name:
            yield from _names_of(one)


def _structured_binding(cx: Context, node: tree.StructuredBinding) -> None:
    """The parts of a value as names."""
    key = "<binding>"
    variable = tree_made(
        cx,
        key,
        node,
        lambda: tree.VariableDeclaration(key, node.type, node.initializer, span=node.span),
    )
    is_object = isinstance(node.initializer, (tree.Name, tree.Member, tree.Subscript))
    of_array = type_of(cx, node.initializer) if is_object else None
    if isinstance(of_array, ArrayOf) and not isinstance(node.type, tree.ReferenceType):
        given = lower(cx, node.initializer)
        whole = declare_object(cx, "parts", of_array, key_of(cx, variable), given, node.span)
    else:
        declare_variable(cx, variable)
        whole = cx.scope.names.pop(key)
    type = getattr(whole, "type", None)
    parts: list[Any]
    if isinstance(type, ArrayOf):
        count = type.length or 0
        parts = [subscript(cx, whole, constant(at, ir.I32), node.span) for at in range(count)]
    elif isinstance(type, ClassType):
        names = [one.name for one in members_of(type)]
        for one in names:
            refuse_hidden(cx, type, one, node.span, of_object=True)
        parts = [cx.rules.member_of(cx, whole, tree.Name(one), node.span) for one in names]
        items = type.fields[0].type if len(type.fields) == 1 else None
        if isinstance(items, ArrayOf) and type.name.startswith("array<"):  # std::array
            held, count = parts[0], items.length or 0
            parts = [subscript(cx, held, constant(at, ir.I32), node.span) for at in range(count)]
    elif isinstance(type, VectorType):
        names = list(ir.COMPONENTS[: type.count])
        parts = [cx.rules.member_of(cx, whole, tree.Name(one), node.span) for one in names]
    else:
        raise cx.wrong(f"{describe(whole)} has no parts", node.span)
    if len(parts) != len(node.names):
        raise cx.wrong(f"{len(node.names)} names for the {len(parts)} parts of {type}", node.span)
    cx.scope.names.update(zip(node.names, parts, strict=True))


def _compound(cx: Context, node: tree.Compound) -> None:
    with cx.inner_scope():
        if cx.lowering.guarded:
            cx.lowering.unset_pointers.update(map(id, pointers_without_value(node.body)))
        if has_labels(node.body):
            lower_sections(cx, node.body, node.span)
            return
        for statement in node.body:
            _attempt(cx, statement)


def _if(cx: Context, node: tree.If) -> None:
    with cx.inner_scope():
        if node.initializer is not None:
            lower_statement(cx, node.initializer)
        if cx.checks_all():
            _check_if(cx, node)
            return
        if node.constexpr:
            assert not isinstance(node.condition, tree.VariableDeclaration)
            taken = constant_value(cx, node.condition, "the condition of if constexpr")
            chosen = node.then if taken else node.otherwise
            if chosen is not None:
                with cx.inner_scope():
                    lower_statement(cx, chosen)
            return
        condition = _uniform_condition(cx, folded(whole_condition_of(cx, node.condition)))
        if isinstance(condition, n.Constant):  # the discarded branch of an instance is not lowered
            chosen = node.then if condition.value else node.otherwise
            if chosen is not None:
                with cx.inner_scope():
                    lower_statement(cx, chosen)
            return
        then = lower_as_block(cx, node.then)
        otherwise = () if node.otherwise is None else lower_as_block(cx, node.otherwise)
        cx.emit(n.If(condition, then, otherwise, node.span))


def _check_if(cx: Context, node: tree.If) -> None:
    """Both branches, whatever is known of the condition."""
    if node.constexpr:
        assert not isinstance(node.condition, tree.VariableDeclaration)
        constant_value(cx, node.condition, "the condition of if constexpr")
    else:
        whole_condition_of(cx, node.condition)
    lower_as_block(cx, node.then)
    if node.otherwise is not None:
        lower_as_block(cx, node.otherwise)


def _uniform_condition(cx: Context, condition: n.Expression) -> n.Expression:
    """The condition of an if. Directly after a barrier, its reads of shared variables become
    variables before the if, by which passes see that the condition is uniform."""
    block = cx.blocks[-1]
    if not block or block[-1] != n.Barrier("block"):
        return condition
    known: dict[n.Load, n.Variable] = {}

    def read_first(node: object) -> object:
        if isinstance(node, n.Load) and _is_shared_variable(cx, node.place):
            if node not in known:
                known[node] = cx.let_as("flag", node, node.span)
            return known[node]
        return node

    made: n.Expression = rewrite(condition, read_first)
    return made


def _is_shared_variable(cx: Context, place: n.Place) -> bool:
    root = root_of(place)
    if not isinstance(root, n.Element) or not isinstance(root.index, n.Constant):
        return False
    target = cx.lowering.memory_targets.get(root.memory)
    return target is not None and target.space == "shared"


def _break(cx: Context, node: tree.Break) -> None:
    if not cx.continue_flags:
        raise cx.wrong("break is not in a loop or switch", node.span)
    cx.end_from(cx.loops[-1])
    cx.emit(n.Break(node.span))


def _continue(cx: Context, node: tree.Continue) -> None:
    if None not in cx.continue_flags:
        raise cx.wrong("continue is not in a loop", node.span)
    flag = cx.continue_flags[-1]
    outer = max(at for at, one in enumerate(cx.continue_flags) if one is None)
    cx.end_from(cx.loops[outer])
    if flag is not None:  # inside a switch that became a loop
        cx.emit(n.Assign(flag, n.TRUE, node.span), n.Break(node.span))
        return
    cx.emit(n.Continue(node.span))


def _label(cx: Context, node: tree.Case | tree.Default) -> None:
    raise cx.wrong("case and default must be directly in the braces of a switch", node.span)


def _goto_label(cx: Context, node: tree.Label) -> None:
    raise cx.error(f"the label {node.name} must be directly in a block {{ … }}", node.span)


_SIZES = {"h": 2, "r": 4, "l": 8}  # of the integers of each constraint
_FLOATS = {"f": "float", "d": "double"}


def _check_operand(cx: Context, node: tree.OperandCheck) -> None:
    """CompileError for an operand of `asm` of another type than its constraint's."""
    if node.constraint == "n" and cx.lowering.checking:
        constant_integer(cx, node.operand, 'the operand of asm with the constraint "n"')
    type = type_of(cx, node.operand)
    letter = node.constraint
    type = type.to if isinstance(type, Reference) else decay(type)
    if letter in _FLOATS:
        fits = isinstance(type, Arithmetic) and type.name == _FLOATS[letter]
        wanted = _FLOATS[letter]
    elif letter in _SIZES:
        is_float = isinstance(type, Arithmetic) and (type.scalar.is_float or type == BOOL)
        integral = isinstance(type, (Arithmetic, EnumType, Pointer)) and not is_float
        fits = integral and size_of(type) == _SIZES[letter]
        wanted = f"integers of {8 * _SIZES[letter]} bits" + " and pointers" * (letter == "l")
    else:
        return
    if not fits:
        raise cx.amiss(
            f'an operand of asm is {type}, and its constraint "{letter}" is for {wanted}',
            node.operand.span,
            type,
        )


def _refused(cx: Context, node: tree.RefusedStatement) -> None:
    raise cx.error(refusal_message(node.construct, node.reason), node.span)


_HANDLERS: dict[type, Callable[[Context, Any], None]] = {
    tree.ExpressionStatement: _expression,
    tree.DeclarationStatement: _declarations,
    tree.StructuredBinding: _structured_binding,
    tree.Compound: _compound,
    tree.If: _if,
    tree.For: lower_for,
    tree.RangeFor: lower_range_for,
    tree.While: lower_while,
    tree.DoWhile: lower_do,
    tree.Switch: lower_switch,
    tree.Case: _label,
    tree.Default: _label,
    tree.Break: _break,
    tree.Continue: _continue,
    tree.Return: lower_return,
    tree.Goto: lower_goto,
    tree.Label: _goto_label,
    tree.OperandCheck: _check_operand,
    tree.RefusedStatement: _refused,
}
