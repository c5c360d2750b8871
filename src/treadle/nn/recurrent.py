"""Recurrent networks: what each place of a sequence makes of its input and of what came before.

The products with the inputs of all places are one product. What follows is one operation for all
places, of a kernel that goes through them, where there is one; else some operations at each place.
Packed sequences are refused: pad, and mask what is computed from the padding.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.assembly import concat, stack
from treadle.tensor.creation import empty, zeros
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.dropouts import dropout
from treadle.tensor.functional.gates import State, mode_of
from treadle.tensor.functional.recurrences import is_one_operation, recurrent, step_by_step
from treadle.tensor.manipulation import swapaxes
from treadle.tensor.tensor import Tensor


class Recurrent(Module):
    """The base of recurrent layers: layers of one kind, perhaps in both directions."""

    _gates: ClassVar[int]
    mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(
                f"{name}: hidden_size={hidden_size} and num_layers={num_layers} are greater than 0"
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout is a probability, not {dropout}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{name}: proj_size={proj_size} is from 0 to less than hidden_size={hidden_size}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._add_parameters(device, dtype)
        self.reset_parameters()

    @property
    def _out(self) -> int:
        return self.proj_size or self.hidden_size

    def _directions(self) -> list[str]:
        return ["", "_reverse"] if self.bidirectional else [""]

    def _names(self, layer: int, direction: str) -> list[str | None]:
        """Of the weights and biases for input and hidden state, and of the projection."""
        end = f"_l{layer}{direction}"
        biases = ["bias_ih" + end, "bias_hh" + end] if self.bias else [None, None]
        projection = "weight_hr" + end if self.proj_size else None
        return ["weight_ih" + end, "weight_hh" + end, *biases, projection]

    def _add_parameters(self, device: Any, dtype: Any) -> None:
        rows = self._gates * self.hidden_size
        for layer in range(self.num_layers):
            inputs = self.input_size if layer == 0 else self._out * len(self._directions())
            shapes: list[tuple[int, ...]] = [
                (rows, inputs), (rows, self._out), (rows,), (rows,), (self._out, self.hidden_size)
            ]  # fmt: skip
            for direction in self._directions():
                names = self._names(layer, direction)
                for name, shape in zip(names, shapes, strict=True):
                    if name is not None:
                        made = Parameter(empty(shape, dtype=dtype, device=device))
                        self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not be adjacent in memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [
            [getattr(self, name) for name in self._names(layer, direction) if name is not None]
            for layer in range(self.num_layers)
            for direction in self._directions()
        ]

    def _kind(self) -> str:
        """Of `gates.STEPS`."""
        return self.mode.lower()

    def _state_widths(self) -> tuple[int, ...]:
        """How many elements each of the states has."""
        return (self._out,)

    # --- computing -------------------------------------------------------------------------------

    def _run(self, input: Any, states: Any) -> tuple[Tensor, State]:
        """The outputs of the last layer, and the last states of all layers."""
        x, is_batch = self._sequence(input)
        initial = self._initial(x, states, is_batch)
        last: list[list[Tensor]] = [[] for _ in initial]
        directions = self._directions()
        for layer in range(self.num_layers):
            found = []
            for number, direction in enumerate(directions):
                at = layer * len(directions) + number
                begin = tuple(each[at] for each in initial)
                outputs, ends = self._along(x, begin, layer, direction)
                found.append(outputs)
                for kept, end in zip(last, ends, strict=True):
                    kept.append(end)
            x = found[0] if len(found) == 1 else concat(found, axis=-1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = dropout(x, self.dropout)
        ends = tuple(stack(each) for each in last)
        if not is_batch:
            return x[:, 0], tuple(each[:, 0] for each in ends)
        return swapaxes(x, 0, 1).copied() if self.batch_first else x, ends

    def _sequence(self, input: Any) -> tuple[Tensor, bool]:
        """The input as (L, N, H), and whether it has a batch."""
        name = type(self).__name__
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{name} takes a tensor, not a {type(input).__name__}; there are no packed "
                "sequences: pad them, and mask what comes from the padding"
            )
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name} takes sequences of shape (L, {self.input_size}), or with a batch "
                f"{'before' if self.batch_first else 'behind'} the L, not {input.shape}"
            )
        if input.ndim == 2:
            return input[:, None], False
        return swapaxes(input, 0, 1) if self.batch_first else input, True

    def _initial(self, x: Tensor, states: Any, is_batch: bool) -> State:
        count = self.num_layers * len(self._directions())
        shapes = [(count, x.shape[1], width) for width in self._state_widths()]
        if states is None:
            return tuple(zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes)
        given = states if isinstance(states, (tuple, list)) else (states,)
        if len(given) != len(shapes):
            raise TypeError(
                f"{type(self).__name__} has {len(shapes)} states (h_0, c_0), not {len(given)}"
                if len(shapes) == 2
                else f"{type(self).__name__} has one state, not {len(given)}"
            )
        found = tuple(each if is_batch else each[:, None] for each in given)
        for each, shape in zip(found, shapes, strict=True):
            if each.shape != shape:
                raise ShapeError(
                    f"{type(self).__name__}: a state has shape {each.shape}, not {shape}: layers "
                    "times directions, batch, elements"
                )
        return found

    def _along(self, x: Tensor, states: State, layer: int, direction: str) -> tuple[Tensor, State]:
        """One layer in one direction."""
        weight_in, weight, bias_in, bias, projection = (
            None if name is None else getattr(self, name) for name in self._names(layer, direction)
        )
        if not x.shape[0]:
            raise ShapeError(f"{type(self).__name__}: a sequence without places has no last state")
        inputs = linear(x, weight_in, bias_in)  # type: ignore[arg-type]
        kind = self._kind()
        weights = weight, bias
        if projection is None and is_one_operation(kind, inputs, states, weights):
            return recurrent(inputs, states, weight, bias, kind, bool(direction))  # type: ignore[arg-type]
        return step_by_step(inputs, states, weight, bias, projection, kind, bool(direction))  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        usual: dict[str, Any] = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        for name, value in usual.items():
            if getattr(self, name) != value:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(Recurrent):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh) at each step, or with relu (`nonlinearity`).

    It takes sequences (L, N, input_size), or (N, L, input_size) with `batch_first`, or (L,
    input_size), and optionally the initial states, of shape (layers * directions, N, hidden_size).
    It returns the outputs of the last layer at all steps, and the last states of all layers.

    >>> import treadle as td
    >>> layer = td.nn.RNN(3, 4, num_layers=2, device="cpu")
    >>> outputs, last = layer(td.ones((5, 2, 3), device="cpu"))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (2, 2, 4))
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        mode = mode_of(nonlinearity)
        options = bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, num_layers, *options, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity
        self.mode = mode

    def _kind(self) -> str:
        return self.nonlinearity

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> tuple[Tensor, Tensor]:
        """The outputs, and the last states."""
        outputs, (last,) = self._run(input, hx)
        return outputs, last


class LSTM(Recurrent):
    """Long short-term memory, by S. Hochreiter and J. Schmidhuber, 1997: each layer has a cell
    state, and gates decide which part of it is forgotten, written and output.

    The states are (h, c); with `proj_size` the outputs and h are projected to fewer elements. The
    other arguments and shapes are those of `RNN`.

    >>> import treadle as td
    >>> lstm = td.nn.LSTM(4, 8, device="cpu")
    >>> y, (h, c) = lstm(td.ones((5, 2, 4), device="cpu"))
    >>> y.shape, h.shape, c.shape
    ((5, 2, 8), (1, 2, 8), (1, 2, 8))
    """

    _gates = 4
    mode = "LSTM"

    def _state_widths(self) -> tuple[int, ...]:
        return self._out, self.hidden_size

    def forward(
        self, input: ArrayLike, hx: ArrayLike | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The outputs, and the last states h and c."""
        outputs, (hidden, cell) = self._run(input, hx)
        return outputs, (hidden, cell)


class GRU(Recurrent):
    """Gated recurrent units, by K. Cho and others, 2014. Arguments and shapes are those of `RNN`.

    >>> import treadle as td
    >>> gru = td.nn.GRU(4, 8, device="cpu")
    >>> y, h = gru(td.ones((5, 2, 4), device="cpu"))
    >>> y.shape, h.shape
    ((5, 2, 8), (1, 2, 8))
    """

    _gates = 3
    mode = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        options = bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, num_layers, *options, device=device, dtype=dtype)

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> tuple[Tensor, Tensor]:
        """The outputs, and the last states."""
        outputs, (last,) = self._run(input, hx)
        return outputs, last
