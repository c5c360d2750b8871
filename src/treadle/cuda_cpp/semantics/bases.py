"""Bases of classes: which class derives from which, and where a base is in an object."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.cuda_cpp.semantics.types import ClassType, CppType, Field, parts_of_bases


def derives(given: CppType | None, base: CppType) -> bool:
    """Whether a class is derived from another one."""
    if not isinstance(given, ClassType) or not isinstance(base, ClassType):
        return False
    return any(one == base or derives(one, base) for one in given.bases)


def way_to_base(type: ClassType, base: ClassType) -> tuple[Field, ...]:
    """The fields that lead from an object to one of its bases, which may be a base of a base: none
    if the base's fields are among those of the object."""
    bases = parts_of_bases(type)
    direct = next((one for one in bases if one[0] == base), None)
    inner, part = direct or next(one for one in bases if derives(one[0], base))
    further = () if inner == base else way_to_base(inner, base)
    return further if part is None else (part, *further)


def all_bases(type: ClassType) -> Iterator[ClassType]:
    """The bases of a class, and theirs."""
    for base in type.bases:
        yield base
        yield from all_bases(base)
