"""Members that are const or references, which a constructor cannot leave without a value."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.errors import CompileError
from treadle.cuda_cpp.syntax import tree


def needs_initializer(member: tree.VariableDeclaration) -> bool:
    """Whether a member is a reference or const, so that it cannot be left without a value. A const
    object of a class may have a default constructor."""
    if member.initializer is not None:
        return False
    written = member.type
    while isinstance(written, tree.ArrayType):
        written = written.of
    if isinstance(written, tree.ReferenceType):
        return True
    return isinstance(written, tree.ConstType) and written.const and _is_scalar(written.of)


def _is_scalar(written: tree.TypeTree) -> bool:
    return isinstance(written, (tree.BuiltinType, tree.PointerType))


def unset_members(
    constructor: tree.FunctionDeclaration, owner: tree.StructDeclaration
) -> Iterator[CompileError]:
    """An error if a constructor of a class leaves such a member out."""
    named = {name.text for name, _ in constructor.initializers}
    if constructor.body is None or owner.kind == "union" or owner.name in named:
        return  # another constructor of the class does it
    for member in owner.members:
        if not isinstance(member, tree.VariableDeclaration) or "static" in member.specifiers:
            continue
        if member.name and member.name not in named and needs_initializer(member):
            what = "a reference" if isinstance(member.type, tree.ReferenceType) else "const"
            yield CompileError(
                f"{member.name} of {owner.name} is {what}, and this constructor gives it no value: "
                f"write {owner.name}(…) : {member.name}(…)",
                constructor.span,
            )
            return
