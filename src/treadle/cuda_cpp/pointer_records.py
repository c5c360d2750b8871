"""What a launch knows of pointers in memory: the elements that they lead to, and what is done
before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treadle.core.errors import LaunchError
from treadle.cuda_cpp.program import (
    PointerSlot,
    Table,
)
from treadle.runtime.devices import Device, Stream

Words = tuple[int, int]  # the offset and the number of a pointer in memory
Step = Callable[[Stream | None], None]


@dataclass(frozen=True, slots=True)
class KernelPointer:
    """A pointer that a kernel stored, into the heap or a variable of the file. Kernels of the same
    module on the same device may get it again."""

    offset: int
    number: int = field(repr=False)
    device: Device | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Raw:
    """Elements with pointers in them as a kernel had them, for a kernel that it launches, and the
    arrays that they point into by number."""

    array: Any
    pointed: Mapping[int, Any]


@dataclass(slots=True)
class Pool:
    """The elements of a table; `owners` are the caller's lists that they are in, and `starts` where
    these begin."""

    layout: Table
    items: list[Any] = field(default_factory=list)
    owners: list[tuple[Any, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    # By the identity of an object: the element, and the list that it came with.
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # what has an identity in `places`


@dataclass(slots=True)
class Tables:
    """What the pointers in the arguments of a launch lead to, and what is done before and after
    it."""

    before: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)
    pointers: list[KernelPointer] = field(default_factory=list)  # among the arguments
    device: Device | None = None  # that the kernel runs on
    pools: dict[int, Pool] = field(default_factory=dict)  # by the positions of tables
    pointed: dict[int, list[Any]] = field(default_factory=dict)  # arrays, by position
    slots: dict[int, PointerSlot] = field(default_factory=dict)  # for these
    known: Mapping[int, Table] = field(default_factory=dict)  # all tables, by position
    waiting: list[tuple[Pool, int]] = field(default_factory=list)

    def run_on(self, where: Device) -> None:
        """Note the device of the launch. LaunchError for pointers of another one."""
        self.device = where
        for one in self.pointers:
            if one.device is not where:
                raise LaunchError(
                    f"a pointer that a kernel stored on {one.device and one.device.id} was given "
                    f"to one on {where.id}, which has memory of its own"
                )
