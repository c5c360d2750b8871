"""Meshes: names for the axes along which ranks are laid out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from treadle.core.errors import DistributedError
from treadle.distributed.group import current, new_group
from treadle.distributed.members import Group


class Mesh:
    """All ranks, laid out along named axes: the last axis varies fastest.

    `axes` are the names with their sizes, whose product is the number of ranks; one size may be -1:
    what is left. All ranks make the same meshes, in the same order.

    >>> import treadle as td
    >>> mesh = td.distributed.Mesh({"data": -1, "model": 1})  # of one rank
    >>> mesh
    Mesh({'data': 1, 'model': 1})
    >>> mesh.coordinates["data"]
    0
    """

    def __init__(self, axes: Mapping[str, int]) -> None:
        world = current()
        self._sizes = sizes = _sizes(axes, world.size)
        self.rank = world.rank
        coordinates, left = {}, world.rank
        for name in reversed(sizes):
            left, coordinates[name] = divmod(left, sizes[name])
        self._coordinates = {name: coordinates[name] for name in sizes}
        self._groups = {name: self._group(world, name) for name in sizes}

    @property
    def axes(self) -> Mapping[str, int]:
        """The names of the axes, with their sizes."""
        return MappingProxyType(self._sizes)

    @property
    def coordinates(self) -> Mapping[str, int]:
        """Where this rank is along each axis."""
        return MappingProxyType(self._coordinates)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return math.prod(self._sizes.values())

    def group(self, axis: str) -> Group:
        """The ranks that differ from this one along an axis only, in their order: for collectives
        along the axis, as `all_reduce(x, group=mesh.group("data"))`.

        >>> import treadle as td
        >>> td.distributed.Mesh({"data": 1}).group("data").size
        1
        """
        if axis not in self._groups:
            raise ValueError(f"{self} has no axis {axis!r}")
        return self._groups[axis]

    def _group(self, world: Group, axis: str) -> Group:
        count = self._sizes[axis]
        if count == world.size:
            return world
        names = [*self._sizes]
        step = math.prod(self._sizes[name] for name in names[names.index(axis) + 1 :])
        firsts = [rank for rank in range(world.size) if rank // step % count == 0]
        return new_group([[first + at * step for at in range(count)] for first in firsts])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and [*self._sizes.items()] == [*other._sizes.items()]

    def __hash__(self) -> int:
        return hash(tuple(self._sizes.items()))

    def __repr__(self) -> str:
        return f"Mesh({self._sizes})"


def _sizes(axes: Any, count: int) -> dict[str, int]:
    """The sizes of the axes, with none left out."""
    if not isinstance(axes, Mapping) or not axes:
        raise TypeError(f'a mesh has names with sizes, as Mesh({{"data": {count}}}), not {axes!r}')
    sizes: dict[str, int] = {}
    for name, size in axes.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"axes of a mesh have names, and {name!r} is none")
        if not isinstance(size, int) or isinstance(size, bool) or (size < 1 and size != -1):
            raise ValueError(f"the axis {name!r} has a number of ranks, or -1, not {size!r}")
        sizes[name] = size
    unknown = [name for name, size in sizes.items() if size == -1]
    known = math.prod(size for size in sizes.values() if size != -1)
    if len(unknown) > 1:
        raise ValueError(f"one size may be -1, not those of {' and '.join(map(repr, unknown))}")
    if unknown and count % known == 0:
        sizes[unknown[0]] = count // known
    if math.prod(sizes.values()) != count:
        raise DistributedError(
            f"the mesh {dict(axes)} has {known} ranks"
            f"{' or a multiple of them' if unknown else ''}, and there are {count}: "
            f"treadle launch -n {known} starts so many"
        )
    return sizes
