"""Recurrent networks over whole sequences, and their derivative.

Arrays are contiguous: `inputs` of shape (length, batch, gates * width) are the products with the
inputs, states are (batch, width). Gates lie side by side as in `tensor.functional.gates`.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType, float32, float64
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.recurrent import GATES, Stepping, back_stepper, stepper
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST, _MOST_ON_GPUS = 512, 256  # elements of a state: for more, products of their own are quicker
_MOST_ROUNDS = 50_000  # of a thread's loops, on software adapters, some of which end loops then
_FEWEST = 32
_COLUMNS = 4  # of the gates, of a lane at a time


class Recurrence(NamedTuple):
    """What is computed: the kind (of `GATES`), whether from the last step to the first, whether
    there is a bias, and whether all cells of an LSTM are kept or only the last ones."""

    kind: str
    reverse: bool
    has_bias: bool
    keeps: bool


def fits(device: Device, dtype: DType, kind: str, length: int, batch: int, width: int) -> bool:
    """Whether the kernels take sequences of so many steps."""
    wide, serial = GATES[kind] * width, serial_threads(device)
    most = _MOST if serial else _MOST_ON_GPUS
    if dtype not in (float32, float64) or width > most or not length * batch * width:
        return False
    rounds = length * (-(-wide // _threads(device, dtype, wide)) + 1) * wide
    if device.traits.software and rounds > _MOST_ROUNDS:
        return False
    shared = (GATES[kind] + 2) * _room(width) * dtype.itemsize * _rows(device, batch)
    return length * batch * wide < MOST_NARROW and shared <= device.limits.max_shared_memory


@for_any_sizes
def recur(
    inputs: DeviceArray, weight: DeviceArray, bias: DeviceArray, hidden: DeviceArray,
    cell: DeviceArray, what: Recurrence,
) -> tuple[DeviceArray, DeviceArray]:  # fmt: skip
    """The hidden states of all steps, and the cells: (length, batch, width), of one step if they
    are not kept; of no step unless it is an LSTM. The weight is of shape (width, gates * width).

    >>> import treadle as td
    >>> x, weight, bias, state = (
    ...     td.ones(shape, device="cpu")._array for shape in ((2, 1, 1), (1, 1), (1,), (1, 1))
    ... )
    >>> out, _ = recur(x, weight, bias, state, state, Recurrence("relu", False, False, False))
    >>> out.to_host().ravel().tolist()
    [2.0, 3.0]
    """
    length, batch, _ = inputs.shape
    width, dtype = hidden.shape[1], _dtype(inputs)
    steps = 0 if what.kind != "lstm" else length if what.keeps else 1
    out, cells = new(inputs, dtype, length, batch, width), new(inputs, dtype, steps, batch, width)
    form = _form(inputs, what, batch, width)
    stepper(form, what.keeps)[batch // form.rows, form.threads](
        flat(inputs), flat(weight), flat(bias), flat(hidden), flat(cell), flat(out),
        flat(cells if steps else out), length, batch, width,
    )  # fmt: skip
    return out, cells


@for_any_sizes
def recur_backward(
    of_out: DeviceArray, of_cells: DeviceArray, inputs: DeviceArray, parts: DeviceArray,
    before: DeviceArray, cells: DeviceArray, cell: DeviceArray, weight: DeviceArray,
    what: Recurrence,
) -> tuple[DeviceArray, ...]:  # fmt: skip
    """From the gradients of both results those of the inputs, of `parts` (the products of the
    states `before` each step with the weight, with the bias), and of the first states: (1, batch,
    width), and of an LSTM (2, …), the cell's last. Except for a GRU `inputs` has the parts added,
    `parts` is not read, and its gradients, those of inputs, are an array of no elements. The weight
    is of shape (gates * width, width)."""
    length, batch, wide = inputs.shape
    width, dtype = cell.shape[1], _dtype(inputs)
    is_gru, is_lstm = what.kind == "gru", what.kind == "lstm"
    of_inputs = new(inputs, dtype, length, batch, wide)
    of_parts = new(inputs, dtype, length if is_gru else 0, batch, wide)
    of_states = new(inputs, dtype, 2 if is_lstm else 1, batch, width)
    form = _form(inputs, what, batch, width)
    # What a kind does not use is an array that it has: one binding serves both.
    back_stepper(form._replace(columns=0, even=False, has_bias=False))[
        batch // form.rows, form.threads
    ](
        flat(of_out), flat(of_cells if is_lstm else of_out), flat(inputs),
        flat(parts if is_gru else inputs), flat(before if is_gru else of_out),
        flat(cells if is_lstm else of_out), flat(cell if is_lstm else of_out), flat(weight),
        flat(of_inputs), flat(of_parts if is_gru else of_inputs), flat(of_states),
        length, batch, width,
    )  # fmt: skip
    return of_inputs, of_parts, of_states


def _form(inputs: DeviceArray, what: Recurrence, batch: int, width: int) -> Stepping:
    device, dtype, wide = inputs.device, _dtype(inputs), inputs.shape[2]
    threads, columns = _threads(device, dtype, wide), 1
    while serial_threads(device) and columns < _COLUMNS and wide % (threads * columns * 2) == 0:
        columns *= 2
    even = wide % (threads * columns) == 0
    rows, room = _rows(device, batch), _room(width)
    return Stepping(
        what.kind, dtype, threads, rows, room, columns, even, what.has_bias, what.reverse
    )


def _threads(device: Device, dtype: DType, wide: int) -> int:
    if serial_threads(device):
        return 64 // dtype.itemsize
    threads = min(256, device.limits.max_threads_per_block)
    while threads > _FEWEST and threads >= 2 * wide:
        threads //= 2
    return threads


def _rows(device: Device, batch: int) -> int:
    """How many sequences a block has: on the CPU some, which read the weights once."""
    if not serial_threads(device):
        return 1
    return next(rows for rows in (4, 2, 1) if batch % rows == 0)


def _room(width: int) -> int:
    """The elements that a state has room for: few numbers, so that there are few kernels."""
    room = _FEWEST
    while room < width:
        room *= 2
    return room


def _dtype(array: DeviceArray) -> DType:
    assert isinstance(array.dtype, DType)
    return array.dtype
