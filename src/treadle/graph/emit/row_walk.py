"""How a device goes over rows: `Walk`, the interface of `row_loops` and `row_blocks`.

`row_kernels` prints the passes of a program in its terms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from treadle.graph.emit.body import Body
from treadle.graph.emit.combine import Reduction, State
from treadle.graph.program import Phase
from treadle.ir import builder as ir
from treadle.ir import nodes as n

Known = dict[int, n.Expression]  # values of steps that are one for a row
ROW = -1  # what a walk knows its row's number as


class Neighbours(Enum):
    """What neighbouring lanes of a CPU, or threads of a GPU, work on."""

    ELEMENTS = "elements"  # of one row
    ROWS = "rows"


class RowVariant(NamedTuple):
    """One kernel of a program. `number` is its pass. `along` says what neighbouring lanes or
    threads are: elements of a row, or rows. `rows` and `threads` are how many rows are done
    together and by how many threads each; `unroll` elements are under variant at once in each, of
    `lanes` neighbours each. Of a row that is `held` in registers each thread has so many elements,
    or with `even` exactly so many. Threads of a `subgroup` exchange values, if it is not 0. The
    program is `online` before it is printed, if that is said. Over rows that are `long` a CPU's
    passes that compute little take more elements at once than the others."""

    phase: Phase
    along: Neighbours
    rows: int = 1
    threads: int = 1
    unroll: int = 1
    lanes: int = 1
    number: int = 0
    held: int = 0
    even: bool = False
    subgroup: int = 0
    online: bool = False
    long: bool = False


class Spot(NamedTuple):
    """An element: its indices along all loop axes, its number in the row, and, if a thread holds
    it, which of the thread's it is."""

    point: tuple[n.Expression, ...]
    number: n.Expression
    slot: int = -1


# States of the elements at some spots, given what is known of their row.
Visit = Callable[[Sequence[Spot], Known], list[list[State]]]
Done = Callable[[list[State], n.Expression], None]  # takes what became of a row, and its number


class Axes(NamedTuple):
    """What a walk goes over: the extents of a row's axes, and their product."""

    extents: tuple[n.Expression, ...]
    total: n.Expression


class Walk(ABC):
    """One way of going over rows."""

    def __init__(self, body: Body, variant: RowVariant) -> None:
        self.body = body
        self.variant = variant

    @abstractmethod
    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """Statements for each row: its indices, its number, and what is remembered of it."""

    @abstractmethod
    def remember(self, step: int, value: n.Expression) -> None:
        """Remember a value of a row, inside `each_row`."""

    @abstractmethod
    def owned(self) -> n.Expression | None:
        """Whether this thread is the one that writes for its row; None: it is."""

    @abstractmethod
    def reduce(
        self,
        reductions: Sequence[Reduction],
        axes: Axes,
        visit: Visit,
        done: Done,
    ) -> None:
        """Reduce the elements that are this block's; `done` gets the states, inside `each_row`."""

    @abstractmethod
    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """Do something for the elements that are this block's."""


def product(body: Body, extents: Sequence[n.Expression]) -> n.Expression:
    """The product of extents."""
    total: n.Expression = ir.constant(1, body.index_type)
    for k, extent in enumerate(extents):
        total = extent if k == 0 else ir.mul(total, extent)
    return total


def indices(
    body: Body, number: n.Expression, extents: Sequence[n.Expression]
) -> tuple[n.Expression, ...]:
    """The indices along axes of an element that is counted in row-major order."""
    found: list[n.Expression] = []
    for extent in reversed(extents[1:]):
        found.append(body.let("i", ir.binary("mod", number, extent)))
        number = body.let("q", ir.binary("floordiv", number, extent))
    return (number, *reversed(found)) if extents else ()
