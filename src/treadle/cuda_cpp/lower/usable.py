"""Functions that overload resolution selects and kernels cannot call: deleted ones, those for the
host, and those without a definition."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.special_members import is_for_host
from treadle.cuda_cpp.semantics.scopes import Overload
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type


def refuse_deleted(cx: Context, chosen: Overload, span: Span) -> None:
    """CompileError for a function that is deleted."""
    if chosen.declaration.note == "deleted":
        raise cx.wrong(f"{signature(chosen)} is deleted, so it cannot be used", span)


def refuse_unusable(cx: Context, chosen: Overload, span: Span) -> None:
    """CompileError for a function that kernels cannot call."""
    refuse_deleted(cx, chosen, span)
    declaration = chosen.declaration
    if is_for_host(declaration):
        raise cx.of_host(for_host(signature(chosen)), span)
    if declaration.body is None and not declaration.note:
        raise cx.error(undefined(declaration.name.text), span)


def for_host(name: str) -> str:
    """The message for a function that is for the host."""
    return (
        f"{name} is for the host: declare it __device__ (or __host__ __device__), so that kernels "
        "can call it"
    )


def undefined(name: str) -> str:
    """The message for a function without a body."""
    return (
        f"{name} is declared here, but not defined in any included file: include its definition, "
        "since a module is one translation unit"
    )


def signature(chosen: Overload) -> str:
    """A function as messages name it: `S::S(const S&)`."""
    declaration = chosen.declaration
    name = declaration.name.text
    if name == "operator ()" and declaration.name.arguments:
        target = declaration.name.arguments[0]
        name = f"operator {spell_type(target)}" if isinstance(target, tree.TYPES) else "operator"
    types = ", ".join(spell_type(one.type) for one in declaration.parameters)
    owner = f"{chosen.owner}::" if chosen.owner is not None else ""
    return f"{owner}{name}({types})"
