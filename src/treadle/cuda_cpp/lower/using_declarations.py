"""Using-declarations that name nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import scope_of
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.scopes import Namespace, Scope
from treadle.cuda_cpp.source.headers import LIBRARIES
from treadle.cuda_cpp.syntax import tree


def refuse_unknown(cx: Context, node: tree.UsingDeclaration) -> None:
    """CompileError for `using q::f;` of a namespace of the file, all of whose names are known, that
    has no f."""
    path = node.name.scope
    if node.namespace or node.enum or node.pack or not path or path[0].text in _FOREIGN:
        return
    home = scope_of(cx, path)
    if home is None or home.kind != "namespace" or home.using_directives:
        return
    if home.own(node.name.text) is None:
        raise cx.wrong(f"the namespace {home.name} has no {node.name.text}", node.span)


_FOREIGN = frozenset(("", "std", *LIBRARIES))


def unknown_of_file(
    cx: Context, declarations: Sequence[tree.Declaration], scope: Scope
) -> Iterator[IllFormed]:
    """The errors of the using-declarations of a file and of its namespaces."""
    for one in declarations:
        inside = scope.names.get(one.name) if isinstance(one, tree.NamespaceDeclaration) else None
        if isinstance(one, tree.NamespaceDeclaration) and isinstance(inside, Namespace):
            yield from unknown_of_file(cx, one.members, inside.scope)
        elif isinstance(one, tree.UsingDeclaration):
            try:
                with cx.in_scope(scope):
                    refuse_unknown(cx, one)
            except IllFormed as error:
                yield error
