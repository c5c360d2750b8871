"""What declarations are made of: what stands before a name, and what around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.source import NOWHERE, Span
from treadle.cuda_cpp.syntax import tree


@dataclass(slots=True)
class Specifiers:
    """What stands before the declarators: `static const __device__ float`."""

    type: tree.TypeTree | None
    words: frozenset[str]
    alignment: tree.Expression | None = None
    launch_bounds: tuple[tree.Expression, ...] = ()
    typedef: bool = False
    packed: bool = False
    span: Span = field(default=NOWHERE)


@dataclass(frozen=True, slots=True)
class Function:
    """What stands behind the name of a function."""

    parameters: tuple[tree.Parameter, ...]
    variadic: bool = False
    const: bool = False


@dataclass(frozen=True, slots=True)
class Declarator:
    """One declared name with its type; for a function `type` is that of its result."""

    name: tree.Name | None
    type: tree.TypeTree
    function: Function | None = None
    pack: bool = False
    words: frozenset[str] = frozenset()  # specifiers that stand behind a `*`
    span: Span = field(default=NOWHERE)
