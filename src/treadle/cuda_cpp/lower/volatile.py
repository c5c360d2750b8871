"""Which shared memories are looked at as volatile: their code may count on warps being in step."""

from __future__ import annotations

from typing import Any

from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChoiceLvalue,
    Lvalue,
    MemoryTarget,
    PointerValue,
    PointerVariable,
    ScatteredLvalue,
    Target,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of


def note_volatile(cx: Context, written: Any, value: Any) -> None:
    """Remember what a variable or cast of a type with `volatile` in it leads to."""
    if not _is_volatile(written):
        return
    for target in _targets(cx, value):
        if isinstance(target, MemoryTarget) and target.space == "shared":
            cx.lowering.volatile.add(target.memory)


def _is_volatile(written: Any) -> bool:
    while isinstance(
        written, (tree.ConstType, tree.PointerType, tree.ReferenceType, tree.ArrayType)
    ):
        if isinstance(written, tree.ConstType):
            if written.volatile:
                return True
            written = written.of
        elif isinstance(written, tree.ArrayType):
            written = written.of
        else:
            written = written.to
    return False


def _targets(cx: Context, value: Any) -> list[Target]:
    match value:
        case PointerVariable(key=key):
            return list(cx.lowering.facts.targets.get(key, ()))
        case PointerValue(targets=targets):
            return list(targets)
        case ArrayValue(first=first):
            return list(first.targets)
        case ScatteredLvalue(target=target):
            return [target]
        case ChoiceLvalue(choices=choices):
            return [one for choice in choices for one in _targets(cx, choice)]
        case Lvalue(place=place):
            root = root_of(place)
            known = cx.lowering.memory_targets
            if isinstance(root, n.Element) and root.memory in known:
                return [known[root.memory]]
    return []
