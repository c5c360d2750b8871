"""Ambiguous calls: overload resolution finds two equally good candidates.

A call is refused only if it is certainly ambiguous in C++. The lowering does not implement all
rules of ranking (partial ordering of templates, references to non-const, half precision, braces);
where these decide, it takes the candidate that is probably the better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.values import Braced, Candidate, FunctionSet, Value
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.types import (
    BFLOAT16,
    BOOL,
    HALF,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    NullPointer,
    Pointer,
    Reference,
    Void,
)

_NOT_OF_C = (HALF, BFLOAT16)  # classes with many conversions in CUDA
_JUDGED = (Arithmetic, EnumType, Pointer, ClassType)


def equally_good(
    best: Candidate, found: Sequence[Candidate], values: Sequence[Value]
) -> Candidate | None:
    """A candidate that is certainly not worse than the best one; None if there is none."""
    for other in found:
        if other is not best and _is_equally_good(best, other, values):
            return other
    return None


def _is_equally_good(best: Candidate, other: Candidate, values: Sequence[Value]) -> bool:
    mine, theirs = best.declaration, other.declaration
    if best.types == other.types or mine.const != theirs.const:
        return False  # a function declared twice, or a const member function
    if "host" in (mine.specifiers ^ theirs.specifiers) or mine.variadic or theirs.variadic:
        return False
    signs = []
    columns = zip(values, best.types, other.types, best.ranks, other.ranks, strict=False)
    for value, one, two, mine_rank, their_rank in columns:
        if mine_rank != their_rank:
            signs.append(-1 if mine_rank < their_rank else 1)
            continue
        sign = nearer(value, one, two)
        if sign is None:
            return False
        signs.append(sign)
    if -1 in signs:
        return 1 in signs  # each is better for some argument
    if 1 in signs:
        return False
    return not mine.template and not theirs.template


def nearer(value: Value, one: CppType, two: CppType) -> int | None:
    """Which of two conversions of the same rank is better: -1 for the first, 1 for the second, 0
    for neither, None if that is not known."""
    if one == two:
        return 0
    given: Any = getattr(value, "type", None)
    if isinstance(value, (Braced, FunctionSet)) or given in _NOT_OF_C:
        return None
    if any(isinstance(type, Reference) and (type.rvalue or not type.const) for type in (one, two)):
        return None
    one, two = (type.to if isinstance(type, Reference) else type for type in (one, two))
    if one == two:
        return 0
    if isinstance(one, Pointer) and isinstance(two, Pointer):
        return _nearer_pointer(given, one, two)
    if not isinstance(one, _JUDGED) or not isinstance(two, _JUDGED):
        return None
    if one in _NOT_OF_C or two in _NOT_OF_C:
        return None
    if BOOL in (one, two) and isinstance(given, (Pointer, NullPointer)):
        return None
    return _nearer_class(one, two)


def _nearer_pointer(given: Any, one: Pointer, two: Pointer) -> int | None:
    if one.to == two.to:  # they differ in const only
        if not isinstance(given, Pointer) or given.const:
            return None
        return 1 if one.const else -1
    if isinstance(one.to, Void) or isinstance(two.to, Void):
        if not isinstance(given, Pointer):
            return 0
        return 1 if isinstance(one.to, Void) else -1
    return _nearer_class(one.to, two.to)


def _nearer_class(one: CppType, two: CppType) -> int:
    if derives(one, two):
        return -1
    return 1 if derives(two, one) else 0
