"""The parts of a declaration: decl-specifiers and declarators."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.source import NOWHERE, Span
from treadle.cuda_cpp.syntax import tree


@dataclass(slots=True)
class Specifiers:
    """The decl-specifier-seq of a declaration: `static const __device__ float`."""

    type: tree.TypeTree | None
    words: frozenset[str]
    alignment: tree.Expression | None = None
    launch_bounds: tuple[tree.Expression, ...] = ()
    typedef: bool = False
    packed: bool = False
    span: Span = field(default=NOWHERE)


@dataclass(frozen=True, slots=True)
class Function:
    """The part of a function's declarator after its name."""

    parameters: tuple[tree.Parameter, ...]
    variadic: bool = False
    const: bool = False
    reference: str = ""  # the ref-qualifier: & or &&
    words: frozenset[str] = frozenset()  # override, final


@dataclass(frozen=True, slots=True)
class Declarator:
    """One declared name with its type; for a function `type` is the return type."""

    name: tree.Name | None
    type: tree.TypeTree
    function: Function | None = None
    pack: bool = False
    words: frozenset[str] = frozenset()  # specifiers after a `*`
    span: Span = field(default=NOWHERE)
