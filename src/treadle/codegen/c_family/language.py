"""What differs between the languages of the family, as data and a few small functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Struct, Vector

if TYPE_CHECKING:
    from treadle.codegen.c_family.module import Module
    from treadle.codegen.c_family.scope import Scope


@dataclass(frozen=True, slots=True)
class Helper:
    """A small function that printed text may call, for one scalar type.

    `text` is a format string: {fn} begins a function; {T} is the type, {U} the unsigned one of its
    size, {bits} its width, {min} and {max} its range; {S} is the type that is converted from, in
    which {low} is `min` and {high} is `max` + 1. `uses` names the helpers that it calls: "name" is
    for the same type, "name:f32" for that one, "name:" for none.
    """

    text: str
    uses: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Language:
    """A language's spellings. Tables by the IR's names: of scalar types, of operations."""

    title: str  # in messages: "CUDA C++"
    function: str  # how a device function begins: "__device__ inline"
    scalars: Mapping[str, str]
    suffixes: Mapping[str, str]  # of integer literals
    structs: frozenset[str]  # scalar types that are structs of ours: bf16, and f16 in CUDA C++
    reserved: frozenset[str]  # names that nothing of a user's may have
    declared: frozenset[str]  # names that no function of a user's may have; variables may
    helpers: Mapping[str, Helper]
    vector: Callable[[Module, Vector], tuple[str, str, str]]
    """The type in registers, the type in memory, and what builds one: `make_float2({})`."""
    native_vector: Callable[[str, Vector], bool]  # whether an operation on whole vectors exists
    special: Mapping[tuple[str, str], str]  # ("nan", "f32"): its text
    intrinsics: Mapping[tuple[str, str], str]  # ("sqrt", "f32"): a format of its operands
    bitcasts: Mapping[tuple[str, str], str]  # ("f32", "i32"): a format of its operand
    allow: Callable[[Module, Scalar, n.Expression | None], None]  # refuses what is lacking
    builtin: Callable[[Scope, n.Builtin], str]  # an unsigned (or, of lanes, signed) number
    pointer: Callable[[Scope, str, str], str]  # the type of a pointer into a memory
    atomic: Callable[[Scope, n.Atomic, str], str]  # the call, for the text of the place
    subgroup: Callable[[Scope, n.Subgroup], str]  # the value
    barrier: Callable[[Scope, n.Barrier], None]
    fence: Callable[[Scope, n.Fence], None]
    clock: Callable[[Scope, n.Clock], str]  # the value
    copies: Callable[[Scope, n.Copies | n.Assign], str] | None = None  # a call, where it has them
    opaque: Callable[[Module, Struct], str | None] | None = None  # the type of a matrix of its own
    opaque_store: Callable[[Scope, n.OpaqueStore], str] | None = None  # a call, likewise
