"""Explicit specializations of templates that nothing before them declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.core.errors import CompileError
from treadle.cuda_cpp.semantics.early_errors import may_be_foreign
from treadle.cuda_cpp.semantics.malformed import is_of_user
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree

# Namespaces of libraries, of which our headers need not have all templates.
_LIBRARIES = frozenset(("std", "cuda", "cub", "thrust", "cooperative_groups", "nvcuda"))


def of_no_template(
    declarations: tuple[tree.Declaration, ...], file: str, unknown_headers: Sequence[str]
) -> Iterator[CompileError]:
    """An error for each of the user's files. None if a template may come from a header that was
    skipped, or from a namespace that is used as a whole."""
    if not unknown_headers and not _uses_namespaces(declarations):
        yield from _found(declarations, file, set(), _templates(declarations))


def _uses_namespaces(declarations: tuple[tree.Declaration, ...]) -> bool:
    return any(
        (isinstance(one, tree.UsingDeclaration) and one.namespace)
        or (isinstance(one, tree.NamespaceDeclaration) and _uses_namespaces(one.members))
        for one in declarations
    )


def _templates(declarations: tuple[tree.Declaration, ...]) -> dict[str, tree.Declaration]:
    """All templates, by their names: the first one of each."""
    found: dict[str, tree.Declaration] = {}
    for node in walk_tree(declarations):
        if _is_template(node):
            found.setdefault(_name_of(node), node)
    return found


def _found(
    declarations: tuple[tree.Declaration, ...],
    file: str,
    known: set[str],
    templates: dict[str, tree.Declaration],
) -> Iterator[CompileError]:
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration) and one.name not in _LIBRARIES:
            yield from _found(one.members, file, known, templates)
        elif isinstance(one, (tree.HostCode, tree.UsingDeclaration)):
            known.update(one.names if isinstance(one, tree.HostCode) else (_name_of(one),))
        elif _is_specialization(one) and is_of_user(one, file):
            name = _name_of(one)
            if name not in known and not may_be_foreign(name):
                yield CompileError(_message(name, templates.get(name)), one.span)
        known.update(map(_name_of, filter(_is_template, walk_tree(one))))


def _message(name: str, later: tree.Declaration | None) -> str:
    if later is None:
        return f"there is no template {name} that this could specialize: declare it before"
    return f"{name} is specialized before its template, of line {later.span.line}: exchange them"


def _is_template(node: object) -> bool:
    if isinstance(node, tree.StructDeclaration):
        return node.template is not None and node.specialized is None
    if isinstance(node, (tree.FunctionDeclaration, tree.VariableDeclaration)):
        return node.template is not None
    return isinstance(node, tree.TypedefDeclaration) and node.template is not None


def _is_specialization(one: tree.Declaration) -> bool:
    """Whether it is one of a template without a namespace or class before its name."""
    if isinstance(one, tree.FunctionDeclaration):
        return one.specialization and not one.name.scope
    if isinstance(one, tree.StructDeclaration):
        return one.specialized is not None and not one.scope
    return False


def _name_of(one: object) -> str:
    name = getattr(one, "name", "")
    return name.text if isinstance(name, tree.Name) else str(name)
