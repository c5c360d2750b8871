"""What recurrent networks do at one place of a sequence.

Each function takes the product with the input (with its bias), the states, and the hidden state's
weight and bias; it gives the new states, of which the first is the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.functional.activations import relu, sigmoid, tanh
from treadle.tensor.functional.affine import linear
from treadle.tensor.tensor import Tensor

State = tuple[Tensor, ...]
NONLINEARITIES: dict[str, Callable[..., Tensor]] = {"tanh": tanh, "relu": relu}


def mode_of(nonlinearity: str) -> str:
    """The mode of a nonlinearity. ValueError if there is none."""
    if nonlinearity not in NONLINEARITIES:
        raise ValueError(f'nonlinearity is "tanh" or "relu", not {nonlinearity!r}')
    return f"RNN_{nonlinearity.upper()}"


def plain(nonlinearity: Callable[..., Tensor]) -> Callable[..., State]:
    """A sum of both products, through a nonlinearity."""

    def step(x: Tensor, states: State, weight: Tensor, bias: Tensor | None, _: Any = None) -> State:
        return (nonlinearity(x + linear(states[0], weight, bias)),)

    return step


def lstm(
    x: Tensor, states: State, weight: Tensor, bias: Tensor | None, projection: Any = None
) -> State:
    """Long short-term memory: the hidden state, which may be projected, and the cell."""
    hidden, cell = lstm_gates(x, linear(states[0], weight, bias), states[1])
    return hidden if projection is None else linear(hidden, projection), cell


@composite
@as_one_node
def lstm_gates(x: Tensor, from_hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The new hidden state and cell."""
    taken, kept, new, shown = parts_of(x + from_hidden, 4)
    cell = sigmoid(kept) * cell + sigmoid(taken) * tanh(new)
    return sigmoid(shown) * tanh(cell), cell


def gru(x: Tensor, states: State, weight: Tensor, bias: Tensor | None, _: Any = None) -> State:
    """A gated recurrent unit: the part of the old state that stays, and a new one."""
    return (gru_gates(x, linear(states[0], weight, bias), states[0]),)


@composite
@as_one_node
def gru_gates(x: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The new hidden state."""
    reset, update, new = parts_of(x, 3)
    own = parts_of(from_hidden, 3)
    part = sigmoid(update + own[1])
    made = tanh(new + sigmoid(reset + own[0]) * own[2])
    return made + part * (hidden - made)


def parts_of(x: Tensor, count: int) -> list[Tensor]:
    """The gates, which lie side by side."""
    width = x.shape[-1] // count
    return [x[..., k * width : (k + 1) * width] for k in range(count)]


STEPS: dict[str, Callable[..., State]] = {
    "lstm": lstm, "gru": gru, "tanh": plain(tanh), "relu": plain(relu),
}  # fmt: skip
