"""The best of the viable candidates for a call: conversions, templates, constraints, const."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.ambiguity import nearer
from treadle.cuda_cpp.lower.constraints import (
    stricter,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.values import (
    Candidate,
    Value,
)
from treadle.cuda_cpp.semantics.scopes import Scope
from treadle.cuda_cpp.semantics.types import (
    Reference,
)
from treadle.cuda_cpp.syntax import tree


def best_candidate(cx: Context, found: list[Candidate], values: Sequence[Value]) -> Candidate:
    """The best viable candidate: not worse than any other for all arguments, and better for one.
    Otherwise the first by C++'s tie-breakers."""
    best = found[0]
    for other in found[1:]:
        if _better(cx, other, best, values):
            best = other
    return best


def _better(cx: Context, one: Candidate, other: Candidate, values: Sequence[Value]) -> bool:
    pairs = list(zip(one.ranks, other.ranks, strict=False))
    if any(a > b for a, b in pairs):
        return any(a < b for a, b in pairs) and sum(one.ranks) < sum(other.ranks)
    if any(a < b for a, b in pairs):
        return True
    signs = {nearer(*each) for each in zip(values, one.types, other.types, strict=False)}
    if signs & {-1, 1} == {-1}:  # a nearer base, for example
        return True
    if signs & {-1, 1} == {1}:
        return False
    mine, theirs = _order(one), _order(other)
    if mine[:3] == theirs[:3]:
        order = stricter(cx, _constraint(one), _constraint(other))
        if order:
            return order > 0
    return mine > theirs


def _constraint(chosen: Candidate) -> tuple[Scope, tree.Expression | None]:
    return chosen.scope, chosen.declaration.constraint


def is_method(chosen: Candidate) -> bool:
    """Whether a function is called on an object, which it may change."""
    name = chosen.declaration.name.text
    return chosen.overload.owner is not None and not name.startswith(("~", "operator"))


def takes_const(chosen: Candidate) -> bool:
    """Whether a function may be called on a const object."""
    return (
        chosen.declaration.const
        or chosen.overload.owner is None
        or "static" in chosen.declaration.specifiers
    )


def _order(chosen: Candidate) -> tuple[bool, int, bool, bool, bool, bool, bool, bool]:
    """The tie-breakers: functions before templates, more specialized templates first, those without
    parameter packs, definitions, then the ones for temporary objects, and for non-const objects,
    whose references can be assigned to; `const T &` before a `T &&` that is the same."""
    declaration = chosen.declaration
    names = {one.name for one in declaration.template or ()}
    special = _specificity(declaration.parameters, names)
    constant = any(isinstance(type, Reference) and type.const for type in chosen.types)
    moving = any(isinstance(type, Reference) and type.rvalue for type in chosen.types)
    forwards = any(
        isinstance(one.type, tree.ReferenceType) and one.type.rvalue and not type.rvalue
        for one, type in zip(declaration.parameters, chosen.types, strict=False)
        if isinstance(type, Reference)
    )
    defined = declaration.body is not None
    own = not declaration.expanded
    is_const = declaration.const
    plain, fixed = not declaration.template, not forwards
    return (plain, special, own, defined, moving, not constant, fixed, not is_const)


def _specificity(parameters: Sequence[tree.Parameter], names: set[str]) -> int:
    """How much of the parameters' types is written, not left to the template parameters `names`:
    `const T *` more than `T *`, `A<A<T>>` more than `A<T>`, `A<2, T>` and `A<T, T>` more than
    `A<T, U>`."""
    mentioned: list[str] = []

    def weight(written: Any) -> int:
        match written:
            case tree.ConstType(of):
                return weight(of)
            case tree.PointerType(to):
                const = isinstance(to, tree.ConstType) and to.const
                return _OF_PART + const + weight(to)
            case tree.ReferenceType(to):
                return weight(to)
            case tree.ArrayType(of):
                return _OF_PART + weight(of)
            case tree.NamedType(name) | (tree.Name() as name):
                if name.arguments:
                    return _OF_PART + sum(map(weight, name.arguments))
                if not name.scope and name.text in names:
                    mentioned.append(name.text)
                    return 0
        return _FIXED

    whole = sum(weight(one.type) for one in parameters)
    return whole + len(mentioned) - len(set(mentioned))


_FIXED = 4  # a type or number without template parameters: more than all const in a type


_OF_PART = 16
