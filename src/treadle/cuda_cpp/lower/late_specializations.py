"""Explicit specializations behind a use of the instance that they define ([temp.expl.spec]): the
use has made it from the template."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.semantics.types import ClassType
from treadle.cuda_cpp.syntax import tree


def refuse_late_function(
    cx: Context, special: tree.FunctionDeclaration, name: str, used: Span
) -> None:
    """CompileError for the specialization that a call means."""
    _refuse(cx, name, special.span, used)


def refuse_late_class(cx: Context, type: ClassType, used: Span) -> None:
    """CompileError for the class of an object, if it is a specialization."""
    declaration = type.declaration
    if getattr(declaration, "specialized", None) is not None and not declaration.template:
        _refuse(cx, declaration.name, declaration.span, used)


def _refuse(cx: Context, name: str, at: Span, used: Span) -> None:
    """A template is used where its own instances are, so only what is in none is compared."""
    behind = (used.line, used.column) < (at.line, at.column)
    if not cx.lowering.checking or not behind or used.file != at.file:
        return
    if not (cx.is_in_template() or cx.is_in_instance()):
        raise cx.wrong(
            f"{name} is specialized here, and used as it is in line {used.line} before: put the "
            "specialization before its use",
            at,
        )
