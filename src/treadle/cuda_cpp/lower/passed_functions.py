"""Pointers to functions that the host passes: numbers of the file's functions.

The caller names a function, as C++ names a variable whose value it copies from the device. The
kernel gets a number: 0 for null, else the place of the function among all of the file that have the
type. So a kernel is compiled once, whichever functions it is launched with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.declared import declared_variables
from treadle.cuda_cpp.lower.names import parameter_type, resolve
from treadle.cuda_cpp.lower.overloads import result_type
from treadle.cuda_cpp.lower.values import Candidate, FunctionTarget, PointerValue
from treadle.cuda_cpp.lower.variables import function_table
from treadle.cuda_cpp.semantics.scopes import Functions, Namespace, Overload, Scope
from treadle.cuda_cpp.semantics.types import FunctionOf, Pointer


def functions_of_type(cx: Context, type: FunctionOf) -> dict[str, FunctionTarget]:
    """The `__device__` functions of the file that have a type, and what its variables that are
    pointers to such functions point to, by qualified name."""
    file = _file_scope(cx.scope)
    return dict(_functions(cx, file, type)) | dict(_of_variables(cx, file, type))


def numbers_of_functions(found: dict[str, FunctionTarget]) -> dict[str, int]:
    """The number that is passed for each function: variables may have the same ones."""
    numbers = {target: at for at, target in enumerate(distinct(found), 1)}
    return {name: numbers[target] for name, target in found.items()}


def distinct(found: dict[str, FunctionTarget]) -> tuple[FunctionTarget, ...]:
    """Each function once, in the order of their numbers."""
    return tuple(dict.fromkeys(found.values()))


def _file_scope(scope: Scope) -> Scope:
    while scope.parent is not None and scope.kind != "global":
        scope = scope.parent
    return scope


def _functions(cx: Context, scope: Scope, type: FunctionOf) -> Iterator[tuple[str, FunctionTarget]]:
    for name, entity in scope.names.items():
        if isinstance(entity, Namespace) and not name.startswith("<"):
            yield from _functions(cx, entity.scope, type)
        elif isinstance(entity, Functions):
            for one in entity.overloads:
                target = _target(cx, one, type)
                if target is not None:
                    yield scope.qualified(name), target


def _target(cx: Context, function: Overload, type: FunctionOf) -> FunctionTarget | None:
    """A function as a target of pointers; None if it has another type, or is of a header here."""
    declaration = function.declaration
    if (
        declaration.template
        or declaration.body is None
        or "device" not in declaration.specifiers
        or cx.lowering.is_ours(declaration)
        or len(declaration.parameters) != len(type.parameters)
    ):
        return None
    with suppress(CompileError), cx.in_scope(function.scope):
        types = tuple(parameter_type(resolve(cx, one.type)) for one in declaration.parameters)
        candidate = Candidate(function, function.scope, types)
        if types == type.parameters and result_type(cx, candidate) == type.result:
            return FunctionTarget((id(declaration), ()), candidate)
    return None


def _of_variables(
    cx: Context, scope: Scope, type: FunctionOf
) -> Iterator[tuple[str, FunctionTarget]]:
    for name, entity in declared_variables(scope):
        value = None
        with suppress(CompileError):  # which is raised where a kernel uses the variable
            value = function_table(cx, entity)
        if isinstance(value, PointerValue) and value.type == Pointer(type):
            target = value.targets[0]
            if isinstance(target, FunctionTarget):
                yield name, target
