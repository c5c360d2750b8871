"""Which integers without axes are one value plus a number: known without reading them.

`n + 1` and `n` are one apart, whatever `n` is. An origin is the element at which such a chain of
additions begins, and the number that is added to it. Nodes drop their sources when they are
computed, so `Node.become` notes the origin of an integer that has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # nodes ask for their origins when they are computed
    from treadle.graph.node import Node

_NOTED = frozenset({"add", "subtract", "cast", "copy"})
_INTEGERS = ("int", "uint")


class Origin(NamedTuple):
    """An element of a node, which is named by its serial number so that it may be freed, and the
    number that is added."""

    serial: int
    place: int
    added: int


def origin_of(node: Node, recorded: bool = False) -> Origin:
    """The origin of an integer without axes: itself, if it was not made by an addition.

    With `recorded` the origins of computed integers do not count: when a recording is replayed,
    their memory may have other values.
    """
    added: int = 0
    while node.array is None:
        if node.op == "view":
            base, place = _base(node)
            if base.size > 1 or base is node:
                return Origin(base.serial, place, added)
            node = base
            continue
        found = _addition(node)
        if found is None:
            break
        node = found[0]
        added += found[1]
    noted = None if recorded else getattr(node, "origin", None)
    if noted is not None:
        return Origin(noted.serial, noted.place, noted.added + added)
    return Origin(node.serial, 0, added)


def note_origin(node: Node) -> None:
    """Note the origin of a node without axes that is about to be computed."""
    if node.op in _NOTED and node.dtype.kind in _INTEGERS:
        found = origin_of(node)
        if found.serial != node.serial:
            node.origin = found


def _base(node: Node) -> tuple[Node, int]:
    """What a view of one element is a view of, and which element it is."""
    base, place = node.sources[0], node.detail.offset
    return (base, place) if base.op != "view" or base.size == 1 else (node, 0)


def _addition(node: Node) -> tuple[Node, int] | None:
    """What an integer is made of, and what is added to it. None if it is made otherwise."""
    op, sources = node.op, node.sources
    if op == "copy":
        return sources[0], 0
    if op == "cast":
        source, target = sources[0].dtype, node.dtype
        keeps = source.kind in _INTEGERS and (
            source.itemsize < target.itemsize and (target.kind == "int" or source.kind == "uint")
        )
        return (sources[0], 0) if keeps else None
    if op in ("add", "subtract"):
        one, other = sources
        if other.op == "constant":
            return one, other.detail if op == "add" else -other.detail
        if one.op == "constant" and op == "add":
            return other, one.detail
    return None
