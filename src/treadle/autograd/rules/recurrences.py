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
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.gates import STEPS
from treadle.tensor.manipulation import matrix_transpose
from treadle.tensor.products import matmul
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node


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
        (length, batch, wide), (length if kind == "gru" else 0, batch, wide), (batch, width),
        (batch, width),
    ]  # fmt: skip
    made = call_of_several(
        recur_backward,
        [each._node for each in sources],
        [(shape, inputs.dtype) for shape in shapes],
        (Recurrence(kind, reverse, bias is not None, True),),
    )
    of_inputs, of_parts, of_hidden, of_cell = map(from_node, made)
    of_parts = (of_parts if kind == "gru" else of_inputs).reshape((length * batch, wide))
    flat = before.reshape((length * batch, width))
    found = {
        "inputs": of_inputs,
        "weight": matmul(matrix_transpose(of_parts), flat),
        "hidden": of_hidden,
    }
    if bias is not None:
        found["bias"] = total(of_parts, axis=0)
    if cell is not None:
        found["cell"] = of_cell
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


RULES: dict[str, Rule] = {"recurrence": _recurrence}
