"""What recurrent networks do at one place of a sequence.

Each function takes the product with the input (with its bias), the states, and the hidden state's
weight and bias; it gives the new states, of which the first is the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    hidden, cell = states
    taken, kept, new, shown = _parts(x + linear(hidden, weight, bias), 4)
    cell = sigmoid(kept) * cell + sigmoid(taken) * tanh(new)
    hidden = sigmoid(shown) * tanh(cell)
    return hidden if projection is None else linear(hidden, projection), cell


def gru(x: Tensor, states: State, weight: Tensor, bias: Tensor | None, _: Any = None) -> State:
    """A gated recurrent unit: the part of the old state that stays, and a new one."""
    hidden = states[0]
    reset, update, new = _parts(x, 3)
    from_hidden = _parts(linear(hidden, weight, bias), 3)
    part = sigmoid(update + from_hidden[1])
    made = tanh(new + sigmoid(reset + from_hidden[0]) * from_hidden[2])
    return (made + part * (hidden - made),)


def _parts(x: Tensor, count: int) -> list[Tensor]:
    """The gates, which lie side by side."""
    width = x.shape[-1] // count
    return [x[..., k * width : (k + 1) * width] for k in range(count)]


STEPS: dict[str, Callable[..., State]] = {
    "lstm": lstm, "gru": gru, "tanh": plain(tanh), "relu": plain(relu),
}  # fmt: skip
