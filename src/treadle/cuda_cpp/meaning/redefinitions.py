"""What a file defines twice: C++ allows it once, and one of the two would be silently lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree


def redefinitions(
    declarations: tuple[tree.Declaration, ...],
) -> Iterator[CompileError]:
    """An error for each second definition of a function or class, and for each kernel whose name
    another one has: kernels are launched by their names."""
    yield from _found(declarations, (), {})


def _found(
    declarations: tuple[tree.Declaration, ...], path: tuple[str, ...], known: dict[Any, Span]
) -> Iterator[CompileError]:
    """Those of one namespace, which may be opened several times, and of the ones in it."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration) and one.alias is None:
            yield from _found(one.members, (*path, one.name), known)
        for key, what in _keys(one):
            earlier = known.setdefault((path, key), one.span)
            if earlier is not one.span:
                yield CompileError(f"{what}: the first one is in line {earlier.line}", one.span)
                break


def _keys(one: tree.Declaration) -> Iterator[tuple[Any, str]]:
    if isinstance(one, tree.StructDeclaration):
        if one.name and one.complete and one.specialized is None:
            yield ("class", one.name), f"{one.name} is defined a second time"
    elif isinstance(one, tree.FunctionDeclaration) and one.body is not None:
        if one.specialization:
            return
        if one.template is None:
            types = tuple(parameter.type for parameter in one.parameters)
            yield (
                ("function", _path(one.name), types, one.const),
                f"{one.name.text} is defined a second time",
            )
        if "global" in one.specifiers:
            yield (
                ("kernel", _path(one.name)),
                f"two kernels are called {one.name.text}, and kernels are launched by their names "
                "here: give one of them another name",
            )


def _path(name: tree.Name) -> tuple[str, ...]:
    return (*(part.text for part in name.scope), name.text)
