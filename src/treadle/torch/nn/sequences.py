"""Packed sequences: sequences of several lengths without padding, and recurrent layers over them.

`data` has the first places of all sequences, longest first, then the second places of those that
have one, and so on; `batch_sizes` says how many there are of each. Places with as many sequences
follow one another, and are one call of the layer: no padding is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from treadle.nn.recurrent import Recurrent
from treadle.tensor.assembly import concat, stack
from treadle.tensor.functional.dropouts import dropout
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor as Inner


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Packed):
    """Sequences of several lengths, as `pack_padded_sequence` and `pack_sequence` make them."""

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        """The tuple, with the inverse of `sorted_indices` where it is not given."""
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = sorted_indices.argsort()
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data cast or moved; `batch_sizes` stays on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if each is None else each.to(data.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a CUDA device."""
        return self.to("cuda" if not args else args[0])

    def float(self) -> PackedSequence:
        """The data as float32."""
        return self._with(self.data.float())

    def double(self) -> PackedSequence:
        """The data as float64."""
        return self._with(self.data.double())

    def half(self) -> PackedSequence:
        """The data as float16."""
        return self._with(self.data.half())

    def long(self) -> PackedSequence:
        """The data as int64."""
        return self._with(self.data.long())

    def _with(self, data: Any) -> PackedSequence:
        return type(self)(data, *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        found: bool = self.data.is_cuda
        return found

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return False


class _Stretch(NamedTuple):
    """Places that follow one another with as many sequences: rows of the data."""

    start: int
    places: int
    batch: int


def _stretches(sizes: list[int]) -> Iterator[_Stretch]:
    start = 0
    for batch, same in groupby(sizes):
        places = len(list(same))
        yield _Stretch(start, places, batch)
        start += places * batch


class OverPacked(Recurrent):
    """A recurrent layer of treadle's that also takes packed sequences."""

    def _run(self, input: Any, states: Any) -> Any:
        if not isinstance(input, PackedSequence):
            return super()._run(input, states)
        order, back = input.sorted_indices, input.unsorted_indices
        if states is not None and order is not None:
            given = states if isinstance(states, (tuple, list)) else (states,)
            states = tuple(take(each, order, axis=1) for each in given)
        data, ends = self._over(input.data, input.batch_sizes.tolist(), states)
        if back is not None:
            ends = tuple(take(each, back, axis=1) for each in ends)
        return PackedSequence(data, *input[1:]), ends

    def _over(self, data: Inner, sizes: list[int], states: Any) -> tuple[Inner, Any]:
        """The outputs at all places, and the last states of all layers."""
        if len(data.shape) != 2 or data.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{data.shape[-1]}"
            )
        stretches = list(_stretches(sizes))
        initial = self._initial(data[None, : sizes[0]], states, True)
        last: list[list[Inner]] = [[] for _ in initial]
        directions = self._directions()
        for layer in range(self.num_layers):
            found = []
            for number, direction in enumerate(directions):
                at = layer * len(directions) + number
                begin = tuple(each[at] for each in initial)
                along = self._backwards if direction else self._forwards
                outputs, ends = along(data, stretches, begin, layer, direction)
                found.append(outputs)
                for kept, end in zip(last, ends, strict=True):
                    kept.append(end)
            data = found[0] if len(found) == 1 else concat(found, axis=-1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                data = dropout(data, self.dropout)
        return data, tuple(stack(each) for each in last)

    def _one(
        self, data: Inner, part: _Stretch, states: Any, layer: int, direction: str
    ) -> tuple[Inner, Any]:
        rows = part.places * part.batch
        x = data[part.start : part.start + rows].reshape((part.places, part.batch, -1))
        outputs, ends = self._along(x, states, layer, direction)
        return outputs.reshape((rows, outputs.shape[-1])), ends

    def _forwards(
        self, data: Inner, stretches: list[_Stretch], states: Any, layer: int, direction: str
    ) -> tuple[Inner, Any]:
        outputs, ended = [], []
        for number, part in enumerate(stretches):
            states = tuple(each[: part.batch] for each in states)
            found, states = self._one(data, part, states, layer, direction)
            outputs.append(found)
            more = stretches[number + 1].batch if number + 1 < len(stretches) else 0
            ended.append(tuple(each[more:] for each in states))  # these sequences end here
        ends = tuple(concat(list(each)) for each in zip(*reversed(ended), strict=True))
        return concat(outputs), ends

    def _backwards(
        self, data: Inner, stretches: list[_Stretch], initial: Any, layer: int, direction: str
    ) -> tuple[Inner, Any]:
        outputs: list[Inner] = []
        states = tuple(each[:0] for each in initial)
        for part in reversed(stretches):
            states = tuple(
                concat([each, begin[each.shape[0] : part.batch]])  # these sequences begin here
                for each, begin in zip(states, initial, strict=True)
            )
            found, states = self._one(data, part, states, layer, direction)
            outputs.append(found)
        return concat(outputs[::-1]), states
