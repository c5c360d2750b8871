"""What classes do when objects are copied and end, where it is more than kernels here can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.cuda_cpp.meaning.scopes import Functions, Scope
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message

if TYPE_CHECKING:
    from treadle.cuda_cpp.lower.context import Context


def refuse_special_functions(
    cx: Context, name: str, members: tuple[tree.Declaration, ...], home: Scope
) -> None:
    """CompileError for a destructor or copy constructor of the device's that does something, and
    for `using B::f` beside own functions of that name."""
    for member in members:
        if isinstance(member, tree.FunctionDeclaration) and "device" in member.specifiers:
            if member.name.text == f"~{name}" and not member.note and not _is_empty(member):
                raise cx.error(refusal_message("destructor"), member.span)
            if _is_copy_constructor(member, name) and not _merely_copies(member):
                raise cx.error(refusal_message("copy_constructor"), member.span)
        elif (
            isinstance(member, tree.UsingDeclaration)
            and not member.namespace
            and isinstance(home.names.get(member.name.text), Functions)
        ):
            raise cx.error(refusal_message("using_base_function"), member.span)


def _is_empty(function: tree.FunctionDeclaration) -> bool:
    return function.body is not None and not function.body.body


def _is_copy_constructor(function: tree.FunctionDeclaration, name: str) -> bool:
    if function.result is not None or function.name.text != name or len(function.parameters) != 1:
        return False
    written: tree.TypeTree = function.parameters[0].type
    if not isinstance(written, tree.ReferenceType):
        return False
    written = written.to
    if isinstance(written, tree.ConstType):
        written = written.of
    return isinstance(written, tree.NamedType) and written.name.text == name


def _merely_copies(function: tree.FunctionDeclaration) -> bool:
    """Whether each field is given the other object's own, in the list or in the body."""
    if function.note:  # defaulted or deleted
        return True
    if function.body is None:
        return False
    other = function.parameters[0].name
    copied = [(name, items[0]) for name, items in function.initializers if len(items) == 1]
    if len(copied) != len(function.initializers):
        return False
    for statement in function.body.body:
        if not isinstance(statement, tree.ExpressionStatement):
            return False
        node = statement.expression
        if not isinstance(node, tree.Assign) or node.op != "=":
            return False
        target = node.target
        if isinstance(target, tree.Member) and isinstance(target.base, (tree.This,)):
            target = target.name
        if not isinstance(target, tree.Name):
            return False
        copied.append((target, node.value))
    return all(
        isinstance(value, tree.Member)
        and isinstance(value.base, tree.Name)
        and value.base.text == other
        and value.name.text == name.text
        for name, value in copied
    )
