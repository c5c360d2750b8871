"""`Group`: some of the ranks, or all, as one of them sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import index
from typing import Any, Protocol

from treadle.core.errors import DistributedError
from treadle.distributed.backends.base import Backend
from treadle.distributed.operation import Operation
from treadle.distributed.request import Members, Request


class AllRanks(Protocol):
    """What a group needs of `world.World`."""

    rank: int
    size: int
    engine: Backend | None

    def start(self, request: Request, given: Any, result: Any) -> Operation:
        """Start an operation."""

    def wait(self, operation: Operation) -> None:
        """Wait for one."""

    def exchange(self, kind: str, value: Any, members: Members | None, patient: bool) -> list[Any]:
        """The values of all ranks of a group."""


class Group:
    """Some of the ranks, in an order of their own, or all: what collectives take as `group`, and
    `td.distributed.new_group` makes.

    `rank` is the number of this process in the group, from 0, `size` how many there are, `ranks`
    their numbers among all. In a process that is not in the group (`is_member` is False) these, and
    all that takes the group, raise a `DistributedError`.

    >>> import treadle as td
    >>> group = td.distributed.new_group([0])
    >>> group.rank, group.size, group.ranks
    (0, 1, (0,))
    """

    __slots__ = ("_outside", "_own", "_world")

    def __init__(
        self,
        world: AllRanks,
        members: Members | None,
        outside: Sequence[tuple[int, ...]] | None = None,
    ) -> None:
        self._world = world
        self._own = members  # None: all ranks
        self._outside = outside  # the groups that were made, if this rank is in none of them

    @property
    def is_member(self) -> bool:
        """Whether this process is in the group."""
        return self._outside is None

    @property
    def _members(self) -> Members | None:
        if self._outside is not None:
            raise DistributedError(
                f"this rank, {self._world.rank}, is not in the group {self._shown}: what is done "
                "in a group is called by its ranks alone, as by: if group.is_member: …"
            )
        return self._own

    @property
    def _shown(self) -> str:
        return " or ".join([str([*each]) for each in self._outside or ()])

    @property
    def rank(self) -> int:
        """The number of this process in the group."""
        members = self._members
        return self._world.rank if members is None else members.ranks.index(self._world.rank)

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        members = self._members
        return self._world.size if members is None else len(members.ranks)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of the group's ranks among all."""
        members = self._members
        return tuple(range(self._world.size)) if members is None else members.ranks

    @property
    def engine(self) -> Backend | None:
        """What moves the data; None where there is a single rank."""
        members = self._members
        return None if members is not None and len(members.ranks) == 1 else self._world.engine

    def start(self, request: Request, given: Any, result: Any) -> Operation:
        """Start an operation of the group, after those before it."""
        members = self._members
        if members is not None:
            request = replace(request, members=members)
        return self._world.start(request, given, result)

    def wait(self, operation: Operation) -> None:
        """Wait for an operation. DistributedError if it fails, or if it does not end in time."""
        self._world.wait(operation)

    def exchange(self, kind: str, value: Any, patient: bool = False) -> list[Any]:
        """The values of all ranks of the group, through the store: JSON, of which there is
        little. A patient rank waits for others that live without a limit: they write a file,
        say."""
        if self.engine is None:
            return [value]
        return self._world.exchange(kind, value, self._members, patient)

    def __copy__(self) -> Group:
        return self

    def __deepcopy__(self, known: dict[int, Any]) -> Group:
        return self  # copies of a module have its group

    def __repr__(self) -> str:
        if not self.is_member:
            return f"Group(without this rank, {self._world.rank}: {self._shown})"
        return f"Group(rank={self.rank}, ranks={self.ranks})"


def parts_of(ranks: Sequence[Any], size: int) -> list[tuple[int, ...]]:
    """What `new_group` is given, as a list of groups. ValueError if a rank is in two of them, or
    is none."""
    given = [*ranks]
    is_single = not any(isinstance(each, Iterable) for each in given)
    parts = [tuple(map(index, part)) for part in ([given] if is_single else given)]
    every = [rank for part in parts for rank in part]
    if not all(parts):
        raise ValueError("new_group takes at least one rank for each group")
    for rank in every:
        if not 0 <= rank < size:
            raise ValueError(f"new_group takes ranks from 0 to {size - 1}, not {rank!r}")
    if len({*every}) < len(every):
        raise ValueError(
            f"new_group was given a rank twice: {given}. Groups that are made together have no "
            "rank in common; make others by a second call"
        )
    return parts
