"""Cells: the current versions of arrays, and how what is pending in them is computed.

What is written in place is deferred like everything else, so that it may turn out only later that
it cannot be computed (it is too large for the device, memory is short). Who has it computed gets
the error, and then the write is dropped: the tensor has the elements that it had before.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet, WeakValueDictionary, ref

from treadle.core.errors import DeviceLost, TreadleError
from treadle.graph.node import FAILED, Node
from treadle.graph.realize import finish_readers, realize
from treadle.runtime.lazy import Awaited

_MOST_VERSIONS = 128  # that a cell can go back over
_DROPPED = (
    "what was to be written in place was dropped: the tensor has the elements that it had before"
)


class Cell:
    """The current version of an array, for all tensors that see parts of it. No two cells have one
    node, since a write may take over its node's memory.

    While writes are pending, `before` is the version that was in memory, and `versions` are those
    between it and the current one.
    """

    __slots__ = ("__weakref__", "before", "value", "versions")

    def __init__(self, value: Node) -> None:
        self.value = value
        self.before: Node | None = None
        self.versions: tuple[ref[Node], ...] = ()
        _cells.add(ref(self, _cells.discard))

    def defer(self, value: Node) -> None:
        """Have a new version, which is not computed yet."""
        old = self.value
        if old.array is not None:
            self.before = old
            self.versions = ()
        else:
            self.versions = (*self.versions[-_MOST_VERSIONS:], ref(old))
        self.value = value

    def release(self) -> None:
        """Hold nothing of earlier versions, which are found only if the current one needs them."""
        if self.before is not None:
            self.versions = (ref(self.before), *self.versions)
            self.before = None

    def settle(self) -> None:
        """The current version is there: forget the earlier ones."""
        if self.before is not None or self.versions:
            self.before = None
            self.versions = ()

    def recover(self, retry: bool) -> bool:
        """Go back to the last version that there is or, with `retry`, that can be computed. Whether
        it is an earlier one."""
        earlier = [found for each in reversed(self.versions) if (found := each()) is not None]
        if len(earlier) < len(self.versions):
            del earlier[:]  # a version is gone that the older ones are behind
        elif self.before is not None:
            earlier.append(self.before)
        for version in (self.value, *earlier):
            if version.array is None:
                if not retry or version.op == FAILED:
                    continue
                try:
                    realize((version,))
                except (TreadleError, MemoryError):
                    continue
            is_earlier = version is not self.value
            if is_earlier:
                version.overwritten = False
                if version.history is not None:
                    version.history.restore(version)
                self.value = version
            self.settle()
            return is_earlier
        return False


class OwnedCell(Cell):
    """A cell whose memory is filled again and again (by an optimizer, with gradients), while
    tensors that were given a part of it should keep what was in it: it knows the tensors that
    see it."""

    __slots__ = ("tensors",)

    def __init__(self, value: Node) -> None:
        super().__init__(value)
        self.tensors: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by identity

    def show(self, tensor: Any) -> None:
        """Note a tensor that sees a part of it."""
        self.tensors[id(tensor)] = tensor


# All the cells there are. (Making one costs little for it: the set is one of plain references.)
_cells: set[ref[Cell]] = set()

# Where a thread notes the cells that it writes, and what was in them.
written: ContextVar[dict[Cell, Node] | None] = ContextVar("written", default=None)


class _States(threading.local):
    """Cells that were in memory and have been written since. They are computed with whatever is
    computed next: a program that trains reads its losses, and its parameters must not wait for
    ever. Each thread has its own: one that prepares data must not decide when others' are."""

    def __init__(self) -> None:
        self.cells: WeakSet[Cell] = WeakSet()


_states = _States()


def compute_soon(cell: Cell) -> None:
    """Compute a cell with whatever this thread computes next."""
    _states.cells.add(cell)


def compute(node: Node, cell: Cell | None = None) -> None:
    """Compute a node, of this cell if it is one's version, and the states that wait."""
    waiting = _states.cells
    if not waiting and (cell is None or not (cell.versions or cell.before)):
        realize((node,))
        return
    cells = [each for each in waiting if each.value.device is node.device]
    for each in cells:
        waiting.discard(each)
    states = sorted((each.value for each in cells), key=lambda value: value.serial)
    if cell is not None and cell not in cells:
        cells.append(cell)
    _compute_cells((node, *states), cells)


def compute_alone(node: Node, cell: Cell) -> None:
    """Compute a cell's version, and leave the states that wait."""
    _compute_cells((node,), [cell])


def _compute_cells(nodes: tuple[Node, ...], cells: list[Cell]) -> None:
    def release() -> None:
        for each in cells:
            each.release()

    try:
        realize(nodes, release)
    except BaseException as error:
        _recover(cells, error)
        raise
    for each in cells:
        each.settle()


def _recover(cells: list[Cell], error: BaseException) -> None:
    retry = isinstance(error, (TreadleError, MemoryError)) and not isinstance(error, DeviceLost)
    # A list, as each of them has to go back.
    dropped = [each.recover(retry) for each in cells if retry or each.value.op == FAILED]
    if any(dropped):
        error.add_note(_DROPPED)


def compute_pending(device: object) -> None:
    """Compute all lazy tensors on a device."""
    cells = [cell for cell in cells_of(device) if cell.value.array is None]
    if cells:
        _compute_cells(tuple([cell.value for cell in cells]), cells)


def cells_of(device: object) -> list[Cell]:
    """All the arrays there are on a device."""
    # The set is copied at once: other threads may add to it.
    found = [each() for each in tuple(_cells)]
    return [cell for cell in found if cell is not None and cell.value.device is device]


class LazyTensors:
    """Lazy tensors for the runtime: the protocol `runtime.lazy.LazyArrays`."""

    def finish_readers(self, memory: Awaited) -> None:
        """Compute what still has to read memory."""
        finish_readers(memory)

    def compute_pending(self, device: object) -> None:
        """Compute all tensors that are pending on a device."""
        compute_pending(device)
