"""What C++ forbids where a value initializes or is assigned to an object of another type: a base
that is not public, and a conversion function that is explicit."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_base
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.special_members import callable_constructors, constructors_of
from treadle.cuda_cpp.lower.values import Value
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.semantics.types import (
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    Pointer,
)
from treadle.cuda_cpp.syntax import tree


def check_copy(cx: Context, value: Value, type: CppType | None, span: Span) -> None:
    """CompileError for a value that does not convert to a type without a cast, or not here."""
    refuse_hidden_base(cx, value, type, span)
    given = getattr(value, "type", None)
    if not isinstance(given, ClassType) or not isinstance(type, (Arithmetic, EnumType, Pointer)):
        return
    found = None if given.scope is None else given.scope.own("operator ()")
    functions = found.overloads if isinstance(found, Functions) else []
    if functions and all("explicit" in one.declaration.specifiers for one in functions):
        raise cx.amiss(
            f"a {given} converts to {type} by a cast only, as its conversion function is explicit: "
            f"write static_cast<{type}>(…)",
            span,
            given,
        )


def check_list(cx: Context, type: CppType, node: tree.InitializerList, span: Span) -> None:
    """CompileError for `S s = {…}` if all constructors that take so many values are explicit."""
    if not isinstance(type, ClassType) or not callable_constructors(type) or not node.items:
        return
    count = len(node.items)
    if any(isinstance(one, tree.PackExpansion) for one in node.items):
        return
    if count == 1 and not isinstance(node.items[0], _LITERALS):  # it may be an object of the class
        return
    fitting = [one.declaration for one in constructors_of(type) if _takes(one.declaration, count)]
    if fitting and all("explicit" in one.specifiers for one in fitting):
        raise cx.amiss(
            f"the constructor of {type} is explicit, so = {{…}} does not call it: leave out the =",
            span,
            type,
        )


_LITERALS = (tree.IntegerLiteral, tree.FloatLiteral, tree.CharacterLiteral, tree.BoolLiteral)


def _takes(function: tree.FunctionDeclaration, count: int) -> bool:
    """Whether a constructor takes so many values, or a list of them."""
    parameters = function.parameters
    if function.variadic or any(one.pack for one in parameters):
        return True
    least = sum(one.default is None for one in parameters)
    return least <= count <= len(parameters) or least == 1
