"""`Reads`: what a kernel that is being built reads, from which buffers and at which places."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.graph.node import Node
from treadle.graph.program import Space
from treadle.graph.views import View
from treadle.runtime.arrays import packed_strides

NO_BUFFER = -1  # of a place that is only an index


class TooManyBuffers(Exception):
    """The kernel would have more buffers than the device binds."""


class Seen(NamedTuple):
    """A node as a kernel sees it: through a view, or as it is (None). The view's axes are those of
    `space`. `part` is the innermost view of a part of an array that it is
    seen through (see `parts.is_part`), `first` where the box of the loops begins in which it is
    seen, if that is not all of them."""

    node: Node
    view: View | None = None
    space: Space = Space.OUTER
    part: Node | None = None
    first: tuple[int, ...] | None = None


class Place(NamedTuple):
    """An access before axes are merged: strides along the axes of a space."""

    buffer: int
    strides: tuple[int, ...]
    offset: int
    space: Space = Space.OUTER
    part: Node | None = None  # the view or the write of a part, where the offset is one's


@dataclass(slots=True)
class Reads:
    """`leaves` are the nodes of the buffers, at most `most`, `types` the short names of their
    dtypes, and `places` all accesses, in the order of their numbers."""

    most: int
    leaves: list[Node] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    _buffers: dict[int, int] = field(default_factory=dict)
    _indices: dict[tuple[int, Space], int] = field(default_factory=dict)

    def limit(self, most: int) -> None:
        """Allow fewer buffers than before. TooManyBuffers if there are more already."""
        self.most = most
        if len(self.leaves) > most:
            raise TooManyBuffers

    def buffer_of(self, node: Node) -> int:
        """The number of a node's buffer."""
        identity = identity_of(node)
        known = self._buffers.get(identity)
        if known is None:
            if len(self.leaves) >= self.most:
                raise TooManyBuffers
            known = self._buffers[identity] = len(self.leaves)
            self.leaves.append(node)
            self.types.append(node.dtype.short)
        return known

    def add(self, place: Place) -> int:
        """The number of one more access."""
        self.places.append(place)
        return len(self.places) - 1

    def access(self, seen: Seen) -> int:
        """The access that reads a node's elements."""
        array = seen.node.array
        offset = array.offset if array is not None else 0
        return self.add(_place(self.buffer_of(seen.node), offset, seen))

    def index(self, seen: Seen) -> int:
        """The access whose place is the index of an element in row-major order."""
        return self.add(_place(NO_BUFFER, 0, seen._replace(part=None)))

    def index_along(self, axis: int, axes: int, space: Space) -> int:
        """The access whose place is the index along one of so many axes of a space."""
        known = self._indices.get((axis, space))
        if known is None:
            strides = tuple([int(each == axis) for each in range(axes)])
            known = self._indices[axis, space] = self.add(Place(NO_BUFFER, strides, 0, space))
        return known


def _place(buffer: int, offset: int, seen: Seen) -> Place:
    node, view, space, part, first = seen
    if view is None:
        place = Place(buffer, packed_strides(node.shape), offset, space)
    else:
        place = Place(buffer, view.strides, offset + view.offset, space, part)
    if first is not None:  # indices count from the beginning of the loops, not of the box
        back = sum(map(operator.mul, first, place.strides))
        place = place._replace(offset=place.offset - back)
    return place


def identity_of(node: Node) -> int:
    """What distinguishes memory: the buffer, or the node that will get one."""
    return id(node.array.buffer) if node.array is not None else id(node)
