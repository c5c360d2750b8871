"""Flat parameters: one stretch of memory for the parameters of an optimizer, one for their
gradients, and one for each state, so that one launch updates all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treadle.core.dtypes import DType, float32
from treadle.core.limits import MOST_NARROW
from treadle.graph.node import COPY, Node, computed
from treadle.graph.realize import finish_readers, realize
from treadle.graph.views import View
from treadle.kernels.device_code.optimizer_steps import DERIVED, WIDTH
from treadle.kernels.update import number_dtype
from treadle.runtime.arrays import DeviceArray, bytes_of, is_contiguous, packed_strides
from treadle.runtime.devices import Device
from treadle.tensor.cells import Cell, OwnedCell, written
from treadle.tensor.tensor import Tensor, from_cell, tensor_of_owner

_ALIGNMENT = 64  # bytes


class Run(NamedTuple):
    """Adjacent parameters with gradients and equal step counts, or one copied parameter: the
    first, their number, and where their elements begin and end."""

    first: int
    members: int
    start: int
    end: int


class Flat:
    """Parameters of one device and dtype.

    A parameter is at home if its cell's value is in its part of `values`. Writing all of it, or
    giving it other data, moves it elsewhere; it is moved back before a step. A parameter that
    cannot be moved, since it is a view or another library shares its memory, is in
    `copied_params`: each step copies it in and out.
    """

    def __init__(self, params: Sequence[Tensor], numbers: int) -> None:
        first = params[0]
        assert isinstance(first.dtype, DType)
        self.params = list(params)
        self.device, self.dtype = first.device, first.dtype
        unit = alignment(self.dtype)
        self.offsets: list[int] = []
        end = 0
        for parameter in params:
            self.offsets.append(end)
            end += padded(parameter.size, unit)
        # Larger than any single parameter, so that no parameter is the whole array.
        self.size = end + unit
        self.values = self._new()
        self.gradients = OwnedCell(computed(self._new()))
        self.homes = [tensor_of_owner(self.gradients, self._place(k)) for k in range(len(params))]
        self.states: dict[str, tuple[Cell, list[Tensor]]] = {}
        self.steps = Cell(computed(zeros(self.device, float32, len(params) + 1)))
        self.counts = [from_cell(self.steps, View((), (), k)) for k in range(len(params))]
        self.given = zeros(self.device, number_dtype(self.dtype), numbers)
        self.now = Cell(
            computed(zeros(self.device, number_dtype(self.dtype), len(params) * WIDTH + 1))
        )
        self.scalars: dict[str, list[Tensor]] = {}  # numbers that rows of `now` remember
        self.numbers: tuple[float, ...] = ()
        self.cells: list[Cell | None] = [None] * len(params)
        self.copied_params: set[int] = set()
        self.cohorts = [0] * len(params)  # those of one number have taken the same steps
        self._runs: dict[tuple[int, ...], list[Run]] = {}

    def _new(self) -> DeviceArray:
        return zeros(self.device, self.dtype, self.size)

    def _view(self, cell: Cell, k: int) -> Tensor:
        return from_cell(cell, self._place(k))

    def _place(self, k: int) -> View:
        shape = self.params[k].shape
        return View(shape, packed_strides(shape), self.offsets[k])

    def state(self, name: str, initial: float = 0.0) -> tuple[Cell, list[Tensor]]:
        """What is remembered under a name, as a whole and of each parameter."""
        found = self.states.get(name)
        if found is None:
            cell = Cell(computed(self._new()))
            parts = [self._view(cell, k) for k in range(len(self.params))]
            found = self.states[name] = cell, parts
            if initial:
                is_complex = self.dtype.kind == "complex"  # kernels see pairs of numbers
                for part in parts:
                    part[...] = complex(initial, initial) if is_complex else initial
        return found

    def remember_numbers(self, numbers: dict[str, tuple[int, float]]) -> None:
        """Begin numbers that are remembered of each parameter: where rows of `now` have them, and
        their first values."""
        array = self.now.value.whole_array
        assert isinstance(array.dtype, DType)
        rows = np.zeros(array.size, array.dtype.numpy)
        for name, (slot, initial) in numbers.items():
            rows[DERIVED + slot : -1 : WIDTH] = initial
            places = [WIDTH * k + DERIVED + slot for k in range(len(self.params))]
            self.scalars[name] = [from_cell(self.now, View((), (), place)) for place in places]
        array.upload(rows)

    def give(self, numbers: tuple[float, ...]) -> None:
        """Put numbers where steps read them."""
        if numbers != self.numbers:
            self.numbers = numbers
            assert isinstance(self.given.dtype, DType)
            self.given.upload(np.array(numbers, self.given.dtype.numpy))

    # --- places ----------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether the parameters still are of this dtype and device: `model.to` changes them."""
        device, dtype = self.device, self.dtype
        for each in self.params:
            node = each._cell.value
            if node.dtype is not dtype or node.device is not device:
                return False
        return True

    def pending(self) -> list[Node]:
        """The pending values that must be computed before `settle`."""
        return [v for each in self.params if (v := each._cell.value).array is None]

    def settle(self) -> None:
        """Move parameters home where that is possible; `copied_params` are the others. No value is
        pending."""
        for k, parameter in enumerate(self.params):
            cell = parameter._cell
            array = cell.value.array
            at_home = (
                array is not None
                and array.buffer is self.values.buffer
                and array.offset == self.offsets[k]
            )
            if at_home and self.cells[k] is cell:
                continue
            self._settle(k, cell)

    def _settle(self, k: int, cell: Cell) -> None:
        parameter, before = self.params[k], self.cells[k]
        node = cell.value
        if before is not None and before is not cell and self._is_here(before, k):
            # Other tensors may still read the memory that the parameter had.
            _put(before, before.value.whole_array.copy_to(self.device))
        if not _is_movable(parameter) or node.whole_array.storage is self.values.storage:
            self._is_guest(k, True)
            self.cells[k] = None
            return
        array = node.whole_array
        home = DeviceArray(
            self.device, self.values.storage, self.dtype, node.shape, None, self.offsets[k]
        )
        array.copy_elements_to(home)
        _put(cell, home)
        self.cells[k] = cell
        self._is_guest(k, False)

    def _is_guest(self, k: int, now: bool) -> None:
        if now != (k in self.copied_params):
            (self.copied_params.add if now else self.copied_params.discard)(k)
            self._runs.clear()

    def _is_here(self, cell: Cell, k: int) -> bool:
        array = cell.value.array
        return (
            array is not None
            and array.buffer is self.values.buffer
            and array.offset == self.offsets[k]
        )

    def take(self, k: int) -> None:
        """Copy one of `copied_params` in."""
        node = self.params[k]._node
        whole = Cell(computed(self.values))
        self._view(whole, k)._write(Node(COPY, (node,), node.shape, node.dtype, node.device))
        from_cell(whole, None).realize()

    def written(self, run: Run) -> None:
        """Note that a step was taken: what was computed with the old values can then no longer be
        differentiated."""
        for k in range(run.first, run.first + run.members):
            cell = self.cells[k]
            if cell is not None:
                _put(cell, cell.value.whole_array)
            else:
                here = self._view(Cell(computed(self.values)), k)
                self.params[k]._write(here.copied()._node)

    # --- runs ------------------------------------------------------------------------------------

    def runs(self, present: tuple[int, ...]) -> list[Run]:
        """The parameters with gradients, as runs of one launch each."""
        found = self._runs.get(present)
        if found is None:
            self._split(present)
            found = self._found(present)
            self._runs = {**self._runs, present: found} if len(self._runs) < 8 else {present: found}
        return found

    def _split(self, present: tuple[int, ...]) -> None:
        """Separate the parameters that take this step from those that do not."""
        taking = set(present)
        pairs = [(cohort, k in taking) for k, cohort in enumerate(self.cohorts)]
        numbers: dict[tuple[int, bool], int] = {}
        new = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
        if new != self.cohorts:
            self.cohorts = new
            self._runs.clear()

    def set_steps(self, counts: list[int]) -> None:
        """Say how many steps each parameter has taken."""
        realize((self.steps.value,))
        array = self.steps.value.whole_array
        finish_readers(array.storage)
        array.upload(np.array([*counts, 0], np.float32))
        self.cohorts = counts
        self._runs.clear()

    def set_step(self, k: int, count: int) -> None:
        """Say how many steps one parameter has taken."""
        self.counts[k][...] = count
        self.cohorts[k] = max(self.cohorts) + 1
        self._runs.clear()

    def _found(self, present: tuple[int, ...]) -> list[Run]:
        found: list[Run] = []
        for k in present:
            start = self.offsets[k]
            end = start + self.params[k].size
            last = found[-1] if found else None
            if (
                last is not None
                and last.first + last.members == k
                and not self.copied_params.intersection((k - 1, k))
                and self.cohorts[last.first] == self.cohorts[k]
            ):
                found[-1] = last._replace(members=last.members + 1, end=end)
            else:
                found.append(Run(k, 1, start, end))
        return found


# --- memory --------------------------------------------------------------------------------------


def zeros(device: Device, dtype: DType, size: int) -> DeviceArray:
    """New memory, filled with zeros."""
    made = DeviceArray.allocate(device, dtype, (size,))
    device.default_stream.handle.fill_zero(made.buffer, 0, made.buffer.size)
    return made


def full(device: Device, value: float) -> DeviceArray:
    """A number in memory."""
    made = DeviceArray.allocate(device, float32, (1,))
    device.default_stream.handle.write(made.buffer, 0, bytes_of(np.array([value], np.float32)))
    return made


def alignment(dtype: DType) -> int:
    """The elements that the size of each parameter's part is a multiple of."""
    return max(_ALIGNMENT // dtype.itemsize, 1)


def padded(size: int, unit: int) -> int:
    """A size rounded up."""
    return -(-size // unit) * unit


def partition(params: Sequence[Tensor]) -> list[list[Tensor]]:
    """Lists of parameters that share one stretch of memory: of one device and dtype, and of a
    limited size."""
    found: list[list[Tensor]] = []
    last: dict[tuple[Device, DType], tuple[list[Tensor], int]] = {}  # with its elements
    for each in params:
        assert isinstance(each.dtype, DType)
        kind = each.device, each.dtype
        size = padded(each.size, alignment(each.dtype))
        part, before = last.get(kind, ([], 0))
        if not part or before + size > most_elements(*kind):
            part, before = [], 0
            found.append(part)
        part.append(each)
        last[kind] = part, before + size
    return found


def most_elements(device: Device, dtype: DType) -> int:
    """The most elements of one stretch of memory on a device."""
    limits = device.info.limits
    most = min(limits.max_binding_size, limits.max_buffer_size) // dtype.itemsize
    return min(most, MOST_NARROW // 2) - alignment(dtype)


def _is_movable(parameter: Tensor) -> bool:
    """Whether a parameter is all of its cell, and its memory is not shared."""
    if parameter._cell.base is not None:
        return False
    node, view = parameter._cell.value, parameter._view
    array = node.whole_array
    if node.history is not None or array.key.read_only or array.storage.is_shared:
        return False
    return view is None or (
        view.offset == 0 and is_contiguous(view.shape, view.strides) and parameter.size == node.size
    )


def _put(cell: Cell, array: DeviceArray) -> None:
    """Give a cell new elements, or elements another place."""
    old = cell.value
    if (noted := written.get()) is not None:
        noted.setdefault(cell, old)
    new = computed(array)
    new.history = old.history
    old.overwritten = True
    cell.value = new
