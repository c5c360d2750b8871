"""The derivative of recurrent networks: a kernel for all steps, and products over all of them."""

from __future__ import annotations

import functools
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.rules.composed import gradients_of
from treadle.graph.calls import call_of_several
from treadle.graph.history import recording
from treadle.graph.placeholders import within
from treadle.kernels.recurrent import Recurrence, recur_backward
from treadle.tensor.assembly import concat, stack
from treadle.tensor.creation import zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.gates import STEPS, parts_of
from treadle.tensor.manipulation import matrix_transpose
from treadle.tensor.products import matmul
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node

_sigmoid, _tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


def _recurrence(
    g: Any, inputs: Tensor, weight: Tensor, bias: Any, hidden: Tensor, cell: Any, kind: str,
    reverse: bool, out: Any,
) -> dict[str, Any]:  # fmt: skip
    if recording.get() or within.get() is not None:
        values = {"inputs": inputs, "weight": weight, "bias": bias, "hidden": hidden, "cell": cell}
        return gradients_of(functools.partial(_cells_too, kind, reverse), values, g)
    states, cells = out
    length, batch, wide = inputs.shape
    width, first = hidden.shape[-1], hidden.reshape((1, batch, -1))
    before = concat([states[1:], first] if reverse else [first, states[:-1]])
    parts = linear(before, weight, bias)
    if kind != "gru":
        parts = inputs = inputs + parts
    g = [
        zeros((length, batch, width), dtype=inputs.dtype, device=inputs.device)
        if each is None
        else each
        for each in g
    ]
    sources = (
        g[0], g[1], inputs, parts, before, cells, hidden if cell is None else cell, weight,
    )  # fmt: skip
    shapes = [
        (length, batch, wide), (length if kind == "gru" else 0, batch, wide),
        (1 if cell is None else 2, batch, width),
    ]  # fmt: skip
    made = call_of_several(
        recur_backward,
        [each._node for each in sources],
        [(shape, inputs.dtype) for shape in shapes],
        (Recurrence(kind, reverse, bias is not None, True),),
    )
    of_inputs, of_parts, of_states = map(from_node, made)
    of_parts = (of_parts if kind == "gru" else of_inputs).reshape((length * batch, wide))
    flat = before.reshape((length * batch, width))
    found = {
        "inputs": of_inputs,
        "weight": matmul(matrix_transpose(of_parts), flat),
        "hidden": of_states[0],
    }
    if bias is not None:
        found["bias"] = total(of_parts, axis=0)
    if cell is not None:
        found["cell"] = of_states[1]
    return found


def _cells_too(
    kind: str, reverse: bool, inputs: Tensor, weight: Tensor, bias: Any, hidden: Tensor, cell: Any
) -> tuple[Tensor, Tensor]:
    """The hidden states and cells of all steps, made of operations of each step."""
    states: tuple[Tensor, ...] = (hidden,) if cell is None else (hidden, cell)
    found: list[tuple[Tensor, ...]] = []
    places = range(inputs.shape[0])
    for at in reversed(places) if reverse else places:
        states = STEPS[kind](inputs[at], states, weight, bias)
        found.append(states)
    if reverse:
        found.reverse()
    outputs, cells = (stack([each[at] for each in found]) for at in (0, -1))
    return outputs, cells


# --- one step ------------------------------------------------------------------------------------


def _lstm_gates(g: Any, x: Tensor, from_hidden: Tensor, cell: Tensor) -> dict[str, Any]:
    taken, kept, new, shown = parts_of(widened(x + from_hidden)[0], 4)
    taken, kept, shown = _sigmoid(taken), _sigmoid(kept), _sigmoid(shown)
    new, old = _tanh(new), widened(cell)[0]
    bent = _tanh(kept * old + taken * new)
    of_hidden, of_cell = (0.0 if each is None else widened(each)[0] for each in g)
    of_cell = of_cell + of_hidden * shown * (1 - bent * bent)
    of_gates = concat(
        [
            of_cell * new * taken * (1 - taken),
            of_cell * old * kept * (1 - kept),
            of_cell * taken * (1 - new * new),
            of_hidden * bent * shown * (1 - shown),
        ],
        axis=-1,
    )
    return {"x": of_gates, "from_hidden": of_gates, "cell": of_cell * kept}


def _gru_gates(g: Any, x: Tensor, from_hidden: Tensor, hidden: Tensor) -> dict[str, Any]:
    g, old = widened(g)[0], widened(hidden)[0]
    reset, part, new = parts_of(widened(x)[0], 3)
    own = parts_of(widened(from_hidden)[0], 3)
    reset, part = _sigmoid(reset + own[0]), _sigmoid(part + own[1])
    made = _tanh(new + reset * own[2])
    of_new = g * (1 - part) * (1 - made * made)
    front = [of_new * own[2] * reset * (1 - reset), g * (old - made) * part * (1 - part)]
    return {
        "x": concat([*front, of_new], axis=-1),
        "from_hidden": concat([*front, of_new * reset], axis=-1),
        "hidden": g * part,
    }


RULES: dict[str, Rule] = {
    "gru_gates": _gru_gates,
    "lstm_gates": _lstm_gates,
    "recurrence": _recurrence,
}
