"""Which piece of an array each rank has.

An array axis that is split over a mesh axis of *k* ranks is cut into *k* parts of ceil(n / k)
elements; the last ones are shorter where that does not divide, or empty. Over several mesh axes
each part is cut again, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from treadle.core.errors import ShapeError
from treadle.distributed.arrays.mesh import Mesh

Entry = tuple[str, ...]  # the mesh axes that one array axis is split over
Spec = tuple[Entry, ...]  # of each array axis


class Layout:
    """Where an array of a shape is: `spec`, and the mesh axes along which the ranks' pieces are
    still to be added up (`pending`). Along all other mesh axes each rank has the same."""

    __slots__ = ("mesh", "pending", "shape", "spec")

    def __init__(
        self, mesh: Mesh, shape: tuple[int, ...], spec: Spec, pending: Iterable[str] = ()
    ) -> None:
        self.mesh = mesh
        self.shape = shape
        self.spec = spec
        self.pending = tuple([name for name in mesh.axes if name in {*pending}])

    def range(self, axis: int) -> tuple[int, int]:
        """The first element of this rank along an array axis, and how many it has."""
        return part(
            self.shape[axis],
            [(self.mesh.axes[name], self.mesh.coordinates[name]) for name in self.spec[axis]],
        )

    def width(self, axis: int) -> int:
        """How many elements a rank has at most along an array axis."""
        return width(self.shape[axis], [self.mesh.axes[name] for name in self.spec[axis]])

    @property
    def piece_shape(self) -> tuple[int, ...]:
        """The shape of this rank's piece."""
        return tuple([self.range(axis)[1] for axis in range(len(self.shape))])

    @property
    def most(self) -> int:
        """How many elements a rank has at most."""
        return math.prod(self.width(axis) for axis in range(len(self.shape)))

    @property
    def split(self) -> Entry:
        """The mesh axes that array axes are split over."""
        return tuple([name for entry in self.spec for name in entry])

    @property
    def repeated(self) -> Entry:
        """The mesh axes along which all ranks have the same."""
        return tuple([x for x in self.mesh.axes if x not in self.split and x not in self.pending])

    @property
    def is_whole(self) -> bool:
        """Whether each rank has all of the array."""
        return not self.split and not self.pending

    def replaced(self, **changes: Any) -> Layout:
        """The layout with other attributes."""
        names = ("mesh", "shape", "spec", "pending")
        return Layout(**{**{name: getattr(self, name) for name in names}, **changes})

    def _key(self) -> tuple[Any, ...]:
        return self.mesh, self.shape, self.spec, self.pending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        pending = f", to be added up over {' and '.join(self.pending)}" if self.pending else ""
        return f"{list(self.shape)} as {shown(self.spec)}{pending}"


def part(count: int, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first of so many elements that are at a place, and how many: `places` has the number of
    parts and which of them it is, for each time that they are cut.

    >>> [part(5, [(2, 0)]), part(5, [(2, 1)]), part(5, [(2, 1), (2, 1)])]
    [(0, 3), (3, 2), (5, 0)]
    """
    start, length, most = 0, count, count
    for parts, at in places:
        most = -(-most // parts)
        before = min(at * most, length)
        start, length = start + before, min(most, length - before)
    return start, length


def width(count: int, parts: Sequence[int]) -> int:
    """How many elements a part has at most.

    >>> width(5, [2]), width(5, [2, 2]), width(5, [])
    (3, 2, 5)
    """
    for each in parts:
        count = -(-count // each)
    return count


def as_spec(mesh: Mesh, spec: Any, axes: int) -> Spec:
    """What a user gives, with an entry for each array axis."""
    if spec is None or isinstance(spec, str):
        spec = (spec,) if isinstance(spec, str) else ()
    if not isinstance(spec, (tuple, list)):
        raise TypeError(f"a spec has a mesh axis or None for each array axis, and {spec!r} has not")
    if len(spec) > axes:
        raise ShapeError(f"the spec {tuple(spec)} has {len(spec)} entries for {axes} axes")
    found: list[Entry] = []
    for each in spec:
        entry = () if each is None else (each,) if isinstance(each, str) else tuple(each)
        for name in entry:
            if name not in mesh.axes:
                known = ", ".join(map(repr, mesh.axes))
                raise ValueError(f"{mesh} has no axis {name!r}: its axes are {known}")
        found.append(entry)
    names = [name for entry in found for name in entry]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{tuple(spec)} splits two axes over {name!r}: each mesh axis is used once"
            )
    return (*found, *[()] * (axes - len(found)))


def shown(spec: Spec) -> tuple[Any, ...]:
    """A spec as users write it."""
    return tuple([None if not x else x[0] if len(x) == 1 else x for x in spec])
