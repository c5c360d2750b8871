"""Cells: the current versions of arrays, and how pending versions are computed.

In-place writes are deferred like all operations, so it may turn out only later that one cannot be
computed (it is too large for the device, or memory is short). The call that computes it gets the
error, and the write is dropped: the tensor has the elements that it had before.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary, ref

from treadle.core.errors import DeviceLost, TreadleError
from treadle.graph.node import FAILED, Node
from treadle.graph.placeholders import without_values
from treadle.graph.realize import realize

_MOST_VERSIONS = 128  # that a cell can return to
_DROPPED = (
    "what was to be written in place was dropped: the tensor has the elements that it had before"
)


class Cell:
    """The current version of an array, shared by all tensors that are views of it. No two cells
    share a node, since a write may take over its node's memory.

    While writes are pending, `before` is the version that was in memory, and `versions` are those
    between it and the current one.
    """

    __slots__ = ("__weakref__", "before", "value", "versions", "writes")

    base: Any = None  # a `ComputedCell`: the tensor that its elements are computed from

    def __init__(self, value: Node) -> None:
        self.value = value
        self.before: Node | None = None
        self.versions: tuple[ref[Node], ...] = ()
        self.writes = 0  # how often a tensor was written in place
        _cells.add(ref(self, _cells.discard))

    def defer(self, value: Node) -> None:
        """Set a new version, which is not computed yet."""
        old = self.value
        if old.array is not None:
            self.before = old
            self.versions = ()
        else:
            self.versions = (*self.versions[-_MOST_VERSIONS:], ref(old))
        self.value = value

    def release(self) -> None:
        """Drop the references to earlier versions, which then live only if the current one needs
        them."""
        if self.before is not None:
            self.versions = (ref(self.before), *self.versions)
            self.before = None

    def settle(self) -> None:
        """Forget the earlier versions, since the current one is computed."""
        if self.before is not None or self.versions:
            self.before = None
            self.versions = ()

    def recover(self, retry: bool) -> bool:
        """Return to the last version that is in memory or, with `retry`, that can be computed. True
        if it is an earlier one."""
        earlier = [found for each in reversed(self.versions) if (found := each()) is not None]
        if len(earlier) < len(self.versions):
            del earlier[:]  # a version between them and the current one is gone
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
    """A cell whose owner fills its memory again and again (an optimizer, with gradients), while
    tensors that are views of it should keep the elements that they had: it knows these tensors."""

    __slots__ = ("tensors",)

    def __init__(self, value: Node) -> None:
        super().__init__(value)
        self.tensors: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by identity

    def show(self, tensor: Any) -> None:
        """Register a tensor that is a view of it."""
        self.tensors[id(tensor)] = tensor


# All cells. (A set of plain weak references keeps it cheap to make one.)
_cells: set[ref[Cell]] = set()

# Where a thread records the cells that it writes, with their earlier values.
written: ContextVar[dict[Cell, Node] | None] = ContextVar("written", default=None)


class _States(threading.local):
    """Cells that were in memory and have been written since. They are computed with the next
    computation, whatever that is: a training loop reads only its losses, and its parameters must
    not stay pending forever. Each thread has its own: a thread that prepares data must not decide
    when those of others are computed."""

    def __init__(self) -> None:
        self.cells: set[ref[Cell]] = set()  # not a WeakSet, whose callbacks are Python: see `Pool`


_states = _States()


def compute_soon(cell: Cell) -> None:
    """Compute a cell with the next computation of this thread."""
    cells = _states.cells
    cells.add(ref(cell, cells.discard))


def compute(node: Node, cell: Cell | None = None) -> None:
    """Compute a node, which may be a version of a cell, and the pending states."""
    waiting = _states.cells
    if not waiting and (cell is None or not (cell.versions or cell.before)):
        realize((node,))
        return
    cells = _states_on(node.device)
    states = _values(cells)
    if cell is not None and cell not in cells:
        cells.append(cell)
    _compute_cells((node, *states), cells)


def compute_together(nodes: list[Node]) -> None:
    """Compute nodes of one device, and the pending states."""
    cells = _states_on(nodes[0].device)
    _compute_cells((*nodes, *_values(cells)), cells)


def _states_on(device: object) -> list[Cell]:
    """The pending states of a device, which wait no longer."""
    waiting = _states.cells
    living = [each for one in waiting.copy() if (each := one()) is not None]
    cells = [each for each in living if each.value.device is device]
    for each in cells:
        waiting.discard(ref(each))
    return cells


def _values(cells: list[Cell]) -> list[Node]:
    return sorted((each.value for each in cells), key=lambda value: value.serial)


def compute_version(node: Node, cell: Cell) -> None:
    """Compute a version of a cell without the pending states."""
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
    # A list, since `any` would stop at the first, and each has to recover.
    dropped = [each.recover(retry) for each in cells if retry or each.value.op == FAILED]
    if any(dropped):
        error.add_note(_DROPPED)


def compute_pending(device: object) -> None:
    """Compute all lazy tensors on a device."""
    cells = [cell for cell in computable_cells(device) if cell.value.array is None]
    if cells:
        _compute_cells(tuple([cell.value for cell in cells]), cells)


def computable_cells(device: object) -> list[Cell]:
    """The cells of all arrays on a device that have values, or will have: without those of
    `td.vmap` that an error has kept alive, and what could not be computed."""
    found = [(cell, cell.value) for cell in cells_of(device)]
    unknown = without_values([value for _, value in found if value.array is None])
    return [cell for cell, value in found if value.op != FAILED and value not in unknown]


def cells_of(device: object) -> list[Cell]:
    """The cells of all arrays on a device."""
    # A set's own copy allocates before it copies: other threads may add to it, and the garbage
    # collector, which a step of an iteration may start, removes from it.
    found = [each() for each in _cells.copy()]
    return [cell for cell in found if cell is not None and cell.value.device is device]
