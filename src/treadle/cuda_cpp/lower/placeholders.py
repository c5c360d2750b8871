"""`auto` in declarations: that its concept holds, and that it stands for one type in each."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.dispatch import type_of
from treadle.cuda_cpp.semantics.scopes import Scope, TypeEntity
from treadle.cuda_cpp.semantics.types import CppType, Reference
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.constraints import applied, concept_of

_DEDUCED = "<deduced>"


def refuse_unsatisfied(cx: Context, written: tree.TypeTree, type: CppType, span: Span) -> None:
    """CompileError for `C auto x = value` if the concept does not hold for the type of the value.
    In `C auto *x` it is asked for another one."""
    concept = concept_of(written)
    if concept is None or isinstance(written, tree.PointerType) or cx.is_in_template():
        return
    deduced = type.to if isinstance(type, Reference) else type
    inner = Scope(cx.scope)
    inner.names[_DEDUCED] = TypeEntity(deduced)
    of = tree.NamedType(tree.Name(_DEDUCED, span=span), span)
    if not cx.rules.satisfied(cx, inner, applied(concept, of)):
        raise cx.wrong(f"{deduced} does not satisfy {concept.text}, which is written here", span)


def refuse_other_types(cx: Context, declarations: Sequence[tree.Declaration]) -> None:
    """CompileError for `auto a = 1, b = 2.0f`, in which auto would stand for two types."""
    if not cx.lowering.checking or cx.is_in_template():
        return
    first: tuple[str, CppType] | None = None
    for one in declarations:
        if not isinstance(one, tree.VariableDeclaration) or not _is_plain(one.type):
            continue
        type = type_of(cx, tree.Name(one.name, span=one.span))
        if first is not None and type != first[1]:
            raise cx.wrong(
                f"auto is {type} for {one.name}, and {first[1]} for {first[0]} before it: declare "
                "them one by one",
                one.span,
            )
        first = first or (one.name, type)


def _is_plain(written: tree.TypeTree) -> bool:
    of = written.of if isinstance(written, tree.ConstType) else written
    return isinstance(of, tree.AutoType) and not of.exact
