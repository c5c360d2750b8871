"""What of a recording depends on sizes: the launches that are others for other sizes.

While a function is traced with symbols (`core.sizes`), extents and offsets reach the launch path as
`Size`s. The driver records their present values; here it is noted which grids and parameters were
made of them. A replay for other sizes computes these numbers anew and changes the launches in the
recording, whose memory is as large as a fact of the trace says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.core.size_record import Record
from treadle.core.sizes import Size, has_sizes, valued

if TYPE_CHECKING:
    from treadle.drivers import base

_SMALLEST = 4096
_LARGE = 64 << 20

# While this thread traces a function with symbols.
varying: ContextVar[Varying | None] = ContextVar("varying", default=None)


class VaryingLaunch(NamedTuple):
    """A recorded launch: its number in the recording, its kernel, and what packs the numbers behind
    the grid's three into its parameter block."""

    place: int
    kernel: base.CompiledKernel
    pack: Callable[..., bytes]


# What takes a parameter block's numbers from arguments, grid and threads, and what packs them.
Packing = tuple[Callable[..., tuple[Any, ...]], Callable[..., bytes]]
# What is done with the numbers of work of the host's before a replay.
HostChange = Callable[[tuple[Any, ...]], None]


class Varying:
    """The work of a recording that depends on sizes, and the numbers that it depends on."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.changes: list[VaryingLaunch | HostChange] = []
        self.numbers: list[tuple[Any, ...]] = []  # of each change
        self.wanted: list[Any] = []  # other numbers that a replay needs
        self.is_over = False  # the recording has ended, and what follows is not in it

    def want(self, numbers: Any) -> int:
        """The place, among the numbers that are computed before a replay, of numbers in tuples."""
        self.wanted.append(numbers)
        return len(self.wanted) - 1

    def launch(
        self, kernel: base.CompiledKernel, packing: Packing, grid: Dim3, values: list[Any],
        threads: tuple[int, ...], stream: base.Stream,
    ) -> tuple[Dim3, bytes]:  # fmt: skip
        """Note a launch that is about to be recorded. Returns its grid and parameters for now."""
        fields, pack = packing
        numbers = (*grid, *fields(values, grid, threads))
        now = valued(numbers)
        if not self.is_over and has_sizes(numbers):
            place = stream.recorded
            self.changes.append(VaryingLaunch(place, kernel, pack))
            self.numbers.append(numbers)
        return Dim3(*now[:3]), pack(*now[3:])

    def host(self, numbers: tuple[Any, ...], change: HostChange) -> None:
        """Note work of the host's that depends on numbers, which `change` is given."""
        if not self.is_over and has_sizes(numbers):
            self.changes.append(change)
            self.numbers.append(numbers)

    def function(self) -> Callable[..., Any]:
        """A function of the symbols' values: the numbers of all changes, and the others. None for
        values for which a fact does not hold."""
        return self.record.function((tuple(self.numbers), tuple(self.wanted)))


class Components:
    """The components of a vector, or the fields of a struct, that is an argument of a launch. Some
    of them are sizes."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: tuple[Any, ...]) -> None:
        self._numbers = numbers

    def tolist(self) -> tuple[Any, ...]:
        """The numbers, as of a NumPy record."""
        return self._numbers


def room_for(size: Size) -> int:
    """The bytes to allocate for memory that may be needed for other sizes, too."""
    value = size.value
    if value >= _LARGE:
        return value + value // 4
    return max(1 << (value * 3 // 2).bit_length(), _SMALLEST)
