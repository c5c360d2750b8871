"""Writes in work that is recorded, and run again on the same memory.

A write to a tensor is a new version of its cell, which may be in other memory. So that the next run
goes on from what this one has written, the version is written to the memory that the cell had
before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from treadle.core.errors import AutogradError
from treadle.core.sizes import has_sizes
from treadle.drivers.base import Buffer
from treadle.graph import views
from treadle.graph.history import recorded
from treadle.graph.node import COPY, FAILED, VIEW, WRITE, Node, computed, pending_readers
from treadle.graph.realize import finish_readers, realize
from treadle.runtime.memory import Storage
from treadle.tensor.cells import Cell, cells_of, compute_pending, written

Changed = Sequence[tuple[Cell, Node]]
"""Cells that were written, with the computed values that they had before."""


def write_over(changed: Changed) -> None:
    """Let what is pending of the cells' values be computed into the old values' memory."""
    for cell, old in changed:
        if cell.value.array is None and not _is_overwritten(old):
            cell.value = _written_over(old, cell.value)


def copy_over(changed: Changed) -> None:
    """Copy the values, which are computed, to the old values' memory where they are elsewhere."""
    for cell, old in changed:
        array, now = old.whole_array, cell.value.whole_array
        if now.buffer is not array.buffer:
            finish_readers(array.storage)
            now.copy_elements_to(array)
            cell.value = computed(array)
        elif has_sizes(now.shape):
            cell.value = computed(array)


def _is_overwritten(old: Node) -> bool:
    """Whether a pending value is to be written into the memory of an array, which must not be
    replaced before."""
    storage = old.whole_array.storage
    targets = [reader.sources[0] for reader in pending_readers(old) if reader.op == WRITE]
    return any(each.array is not None and each.array.storage is storage for each in targets)


def _written_over(old: Node, value: Node) -> Node:
    """A write of a value over the whole memory of the old one."""
    if value.op == VIEW:
        value = Node(COPY, (value,), value.shape, value.dtype, value.device)
    whole = views.whole(old.shape)
    return Node(WRITE, (old, value), old.shape, old.dtype, old.device, whole)


@contextlib.contextmanager
def carrying(device: object, body: str | None) -> Iterator[None]:
    """See `runtime.lazy.LazyArrays.carrying`. What is pending must have been computed before."""
    before = {cell: cell.value for cell in cells_of(device) if cell.value.array is not None}
    noted: dict[Cell, Node] = {}
    noting = written.set(noted)
    try:
        try:
            yield
        finally:
            written.reset(noting)
        changed = [
            (cell, before[cell])
            for cell in noted
            if cell in before and cell.value is not before[cell]
        ]
        _check_gradients(changed, body)
        _carry(changed)
    except BaseException:
        _forget(noted, before)
        raise
    if body is None:
        compute_pending(device)
    else:
        _end_made(cell for cell in cells_of(device) if cell not in before)


def _carry(changed: Changed) -> None:
    histories = [cell.value.history for cell, _ in changed]
    with recorded(False):
        write_over(changed)
        realize([cell.value for cell, _ in changed])
        copy_over(changed)
        for (cell, _), history in zip(changed, histories, strict=True):
            cell.value.history = history


def _check_gradients(changed: Changed, body: str | None) -> None:
    # A leaf that is written without recording keeps the history that it has.
    if any(cell.value.history not in (None, old.history) for cell, old in changed):
        raise AutogradError(
            f"{'a capture' if body is None else 'the body of ' + body} writes a tensor with values "
            "that require gradients, which a replay could not follow: write x.detach(), or do it "
            "within td.no_grad()"
        )


def _forget(noted: dict[Cell, Node], before: dict[Cell, Node]) -> None:
    """What was recorded will not run: the cells have the elements that they had."""
    for cell in noted:
        old = before.get(cell)
        if old is not None and cell.value is not old:
            cell.value, old.overwritten = old, False


def _end_made(cells: Iterable[Cell]) -> None:
    """Let arrays that a body has made raise an error where they are used after it."""
    why = (
        "this tensor was made in the body of while_ or if_, which may not have run: make it before "
        "the body, and write to it there (x[...] = value)"
    )
    for cell in cells:
        value = cell.value
        cell.value = Node(FAILED, (), value.shape, value.dtype, value.device, why)


class OutsideArrays:
    """Arrays that a recording uses, but for a trace's arguments: the parameters of a model, say.

    A recording contains addresses of memory, so their elements must be where they were when it was
    made. If a cell has got a new array since, its elements are copied back there.
    """

    def __init__(self, cells: Sequence[Cell], written: Sequence[Storage]) -> None:
        self.cells = list(cells)
        self.nodes = [cell.value for cell in cells]
        self.arrays = [node.whole_array for node in self.nodes]
        self.buffers = {array.buffer for array in self.arrays}
        self.written = list(written)
        self.written_buffers = {storage.buffer for storage in written}

    def prepare(self) -> None:
        """Bring all elements to their place, and compute pending values that read memory to be
        written."""
        if [cell.value for cell in self.cells] != self.nodes:
            self._return()
        for storage in self.written:
            if storage.readers is not None:
                finish_readers(storage)

    def _return(self) -> None:
        pairs = zip(self.cells, self.nodes, strict=True)
        moved = [at for at, (cell, node) in enumerate(pairs) if cell.value is not node]
        realize([self.cells[at].value for at in moved])
        noted = written.get()
        for at in moved:
            cell, array = self.cells[at], self.arrays[at]
            now = cell.value.whole_array
            if noted is not None:  # a replay in a capture, which carries what it changes
                noted.setdefault(cell, cell.value)
            if now.buffer is not array.buffer or now.offset != array.offset:
                finish_readers(array.storage)
                now.copy_elements_to(array)
                cell.value = computed(array)
            self.nodes[at] = cell.value


def used_arrays(
    device: object, touched: Iterable[Buffer], written: Iterable[Buffer]
) -> OutsideArrays:
    """The arrays of all tensors in memory that a recording uses, and may write."""
    used, changed = set(touched), set(written)
    cells = [
        cell
        for cell in cells_of(device)
        if cell.value.array is not None and cell.value.array.buffer in used
    ]
    storages = {cell.value.whole_array.storage: None for cell in cells}
    return OutsideArrays(cells, [each for each in storages if each.buffer in changed])


class LazyTensors:
    """Lazy tensors for the runtime: the protocol `runtime.lazy.LazyArrays`."""

    finish_readers = staticmethod(finish_readers)
    compute_pending = staticmethod(compute_pending)
    carrying = staticmethod(carrying)
    used_arrays = staticmethod(used_arrays)
