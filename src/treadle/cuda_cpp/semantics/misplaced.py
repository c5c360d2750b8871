"""Declarations that CUDA forbids where they stand: kernels that are members of a class, and dynamic
shared arrays of one name and of two types."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree


def misplaced(
    declarations: tuple[tree.Declaration, ...], words: Container[str]
) -> Iterator[CompileError]:
    """An error for each. `words` are all words of the file."""
    yield from _kernels_in_classes(declarations)
    if "extern" in words:
        yield from _dynamic_arrays(declarations, (), {})


def _kernels_in_classes(
    declarations: tuple[tree.Declaration, ...], owner: str = ""
) -> Iterator[CompileError]:
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration):
            yield from _kernels_in_classes(one.members)
        elif isinstance(one, tree.StructDeclaration):
            yield from _kernels_in_classes(one.members, one.name or one.kind)
        elif isinstance(one, tree.FunctionDeclaration) and _is_own_kernel(one):
            name = one.name.text
            if owner:
                yield CompileError(
                    f"{name} is a kernel, which cannot be a member of a class: declare it "
                    f"outside of {owner}, with a parameter for the object",
                    one.span,
                )
            if other := one.specifiers & {"device", "host"}:
                yield CompileError(
                    f"{name} is __global__, so it cannot be __{min(other)}__, too: what other "
                    "functions call is a function of its own",
                    one.span,
                )
            if one.variadic:
                yield CompileError(
                    f"the kernel {name} takes any number of arguments (...): name each", one.span
                )


def _is_own_kernel(one: tree.FunctionDeclaration) -> bool:
    return "global" in one.specifiers and "friend" not in one.specifiers


def _dynamic_arrays(
    declarations: tuple[tree.Declaration, ...],
    path: tuple[str, ...],
    known: dict[tuple[Any, ...], tuple[str, Span]],
) -> Iterator[CompileError]:
    """All `extern __shared__` arrays of a name in a namespace are one, of one type. Types that are
    named are not compared: a template may have another one in each instance."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration):
            yield from _dynamic_arrays(one.members, (*path, one.name), known)
            continue
        for node in walk_tree(one):
            if not isinstance(node, tree.VariableDeclaration):
                continue
            element = _element(node.type)
            if not element or not {"extern", "shared"} <= node.specifiers:
                continue
            type, span = known.setdefault((path, node.name), (element, node.span))
            if type != element:
                yield CompileError(
                    f"{node.name} is an array of {element} here, and of {type} in line "
                    f"{span.line}: dynamic shared memory of one name has one type; declare "
                    "unsigned char and cast, or give it another name",
                    node.span,
                )


def _element(type: Any) -> str:
    while isinstance(type, (tree.ConstType, tree.ArrayType)):
        type = type.of
    return type.name if isinstance(type, tree.BuiltinType) else ""
