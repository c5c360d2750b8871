"""Recurrent networks, one place at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.creation import empty, zeros
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.gates import NONLINEARITIES, State, gru, lstm, mode_of, plain
from treadle.tensor.tensor import Tensor


class _Cell(Module):
    """One place of one layer."""

    _gates: ClassVar[int]
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self._gates * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), dtype=dtype, device=device))
        self.weight_hh = Parameter(empty((rows, hidden_size), dtype=dtype, device=device))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(empty(rows, dtype=dtype, device=device)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _stepped(self, step: Callable[..., State], input: Any, states: Any, count: int) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name} takes (N, {self.input_size}) or ({self.input_size},), not {input.shape}"
            )
        shape = (*input.shape[:-1], self.hidden_size)
        if states is None:
            states = (zeros(shape, dtype=input.dtype, device=input.device),) * count
        for each in states:
            if each.shape != shape:
                raise ShapeError(f"{name}: a state has shape {each.shape}, not {shape}")
        x = linear(input, self.weight_ih, self.bias_ih)
        return step(x, states, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        """The sizes."""
        end = "" if self.bias else f", bias={self.bias}"
        return f"{self.input_size}, {self.hidden_size}{end}"


class RNNCell(_Cell):
    """One step of an `RNN`: it takes (N, input_size) and the state (N, hidden_size), zeros if it is
    not given, and returns the next state.

    >>> import treadle as td
    >>> cell = td.nn.RNNCell(4, 8, device="cpu")
    >>> h = cell(td.ones((2, 4), device="cpu"))
    >>> cell(td.ones((2, 4), device="cpu"), h).shape
    (2, 8)
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        mode_of(nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> Tensor:
        """The next state."""
        step = plain(NONLINEARITIES[self.nonlinearity])
        return self._stepped(step, input, None if hx is None else (hx,), 1)[0]

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        end = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + end


class LSTMCell(_Cell):
    """One step of an `LSTM`: it takes (N, input_size) and the states (h, c), both of shape (N,
    hidden_size), zeros if they are not given, and returns the next states.

    >>> import treadle as td
    >>> cell = td.nn.LSTMCell(4, 8, device="cpu")
    >>> h, c = cell(td.ones((2, 4), device="cpu"))
    >>> h.shape, c.shape
    ((2, 8), (2, 8))
    """

    _gates = 4

    def forward(
        self, input: ArrayLike, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next states h and c."""
        hidden, cell = self._stepped(lstm, input, hx, 2)
        return hidden, cell


class GRUCell(_Cell):
    """One step of a `GRU`: it takes (N, input_size) and the state (N, hidden_size), zeros if it is
    not given, and returns the next state.

    >>> import treadle as td
    >>> cell = td.nn.GRUCell(4, 8, device="cpu")
    >>> cell(td.ones((2, 4), device="cpu")).shape
    (2, 8)
    """

    _gates = 3

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> Tensor:
        """The next state."""
        return self._stepped(gru, input, None if hx is None else (hx,), 1)[0]
