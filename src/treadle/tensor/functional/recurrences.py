"""Recurrent networks over whole sequences, as one operation on checked operands."""

from __future__ import annotations

from treadle.graph.calls import call_of_several
from treadle.graph.history import recording
from treadle.graph.placeholders import within
from treadle.kernels import recurrent as kernels
from treadle.kernels.recurrent import Recurrence
from treadle.tensor.assembly import stack
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.functional.gates import STEPS
from treadle.tensor.manipulation import matrix_transpose
from treadle.tensor.precision import lower
from treadle.tensor.tensor import Tensor, from_node


def is_one_operation(
    kind: str, inputs: Tensor, states: tuple[Tensor, ...], weights: tuple[Tensor | None, ...]
) -> bool:
    """Whether `recurrent` takes these operands."""
    if lower.get() is not None or within.get() is not None:
        return False
    others = [each for each in (*states, *weights) if each is not None]
    if any(each.dtype is not inputs.dtype or each.device is not inputs.device for each in others):
        return False
    length, batch, _ = inputs.shape
    width = states[0].shape[-1]
    return kernels.fits(inputs.device, inputs.dtype, kind, length, batch, width)


def recurrent(
    inputs: Tensor,
    states: tuple[Tensor, ...],
    weight: Tensor,
    bias: Tensor | None,
    kind: str,
    reverse: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The hidden states of all steps, and the last states, from the products with the inputs of all
    steps, of shape (length, batch, gates * width), and the first states, (batch, width)."""
    tensors = (inputs, weight, bias, *states)
    tracked = any(each is not None and each._history is not None for each in tensors)
    keeps = tracked and recording.get()
    hidden, cell = (states[0], states[-1])
    out, cells = recurrence(
        inputs, weight, bias, hidden, cell if kind == "lstm" else None, kind, reverse, keeps
    )
    last = 0 if reverse else -1
    ends = (out[last],)
    return out, (*ends, cells[last if keeps else 0]) if kind == "lstm" else ends


def step_by_step(
    inputs: Tensor,
    states: tuple[Tensor, ...],
    weight: Tensor,
    bias: Tensor | None,
    projection: Tensor | None,
    kind: str,
    reverse: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The same of operations of each step; the hidden state may be projected."""
    step = STEPS[kind]
    outputs: list[Tensor] = []
    places = range(inputs.shape[0])
    for at in reversed(places) if reverse else places:
        states = step(inputs[at], states, weight, bias, projection)
        outputs.append(states[0])
    if reverse:
        outputs.reverse()
    return stack(outputs), states


@composite
@as_one_node
def recurrence(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    hidden: Tensor,
    cell: Tensor | None,
    kind: str,
    reverse: bool,
    keeps: bool,
) -> tuple[Tensor, Tensor]:
    """The hidden states of all steps, and the cells (see `kernels.recurrent.recur`)."""
    length, batch, _ = inputs.shape
    width = hidden.shape[-1]
    what = Recurrence(kind, reverse, bias is not None, keeps)
    steps = 0 if kind != "lstm" else length if keeps else 1
    shapes = [(length, batch, width), (steps, batch, width)]
    sources = (
        inputs, matrix_transpose(weight), inputs if bias is None else bias, hidden,
        hidden if cell is None else cell,
    )  # fmt: skip
    out, cells = call_of_several(
        kernels.recur,
        [each._node for each in sources],
        [(shape, inputs.dtype) for shape in shapes],
        (what,),
    )
    return from_node(out), from_node(cells)
