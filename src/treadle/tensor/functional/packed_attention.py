"""Attention of texts that are packed one after the other.

Kernels that keep scores in registers are given the keys that each query sees, from one to another
one, as two columns of a mask; so they skip the tiles of other texts. Derivatives by products of
matrices need texts that are padded to one length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import bool_, int32
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph.history import recorded
from treadle.graph.node import Node
from treadle.kernels.attend_gradients import derived_by_fragments
from treadle.kernels.device_code.attention import SPANS
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat, stack
from treadle.tensor.conversions import device_of
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, where
from treadle.tensor.functional.attention import (
    attention_of,
    checked_operands,
    is_tracked,
    probability,
    reach_of,
    scale_of,
)
from treadle.tensor.functional.heads import AttentionOptions, laid_out
from treadle.tensor.generator import Generator
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.precision import cast_by_name
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import max as largest
from treadle.tensor.searching import searchsorted
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["packed_attention"]

_NAME = "packed_attention"
_maximum, _minimum = FUNCTIONS["maximum"], FUNCTIONS["minimum"]
Reach = tuple[int | None, int | None]


@cast_by_name
def packed_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    starts: ArrayLike,
    key_starts: ArrayLike | None = None,
    *,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window: int | tuple[int | None, int | None] | None = None,
    longest: int | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Attention of texts of different lengths that lie one after the other, without padding: each
    query sees the keys of its own text.

    Shapes: query (…, L, E), key (…, S, E), value (…, S, Ev), where L and S are the sums of all
    texts' lengths; the result is (…, L, Ev). Text i has the rows from starts[i] to starts[i + 1] of
    the query, and those from key_starts[i] to key_starts[i + 1] of key and value: for n texts both
    are n + 1 integers that do not decrease, often 0 and the running sum of the lengths. Without
    `key_starts` they are `starts`. Rows before the first text and after the last have zeros as
    their result.

    `is_causal` and `window` count from the beginning of a text: query i of a text sees its keys up
    to key i. The other arguments are those of `scaled_dot_product_attention`.

    Where the derivative is made by products of matrices (on the CPU, in float32 and on devices
    without small matrix products), texts are padded to the length of the longest one, `longest`,
    which is read from `starts` unless it is given. A text that is longer gets NaN.

    As with a mask, a NaN or an infinity in a row of `value` may make rows NaN that do not see it:
    those of neighbouring texts, and those before them. Rows behind the last text may be anything.
    Dropout draws other weights where texts are padded.

    ShapeError, DtypeError or ValueError for arguments that do not fit; what `starts` has on a
    device is not checked.

    >>> import treadle as td
    >>> q = td.asarray([[1.0], [1.0], [1.0]], device="cpu")
    >>> v = td.asarray([[2.0], [4.0], [9.0]], device="cpu")
    >>> td.nn.functional.packed_attention(q, q, v, [0, 2, 3]).tolist()
    [[3.0], [3.0], [9.0]]
    """
    device = device_of(_NAME, (query, key, value, starts, key_starts))
    nodes, front, heads = checked_operands(_NAME, (query, key, value), device, enable_gqa)
    queries, keys = nodes[0].shape[-2], nodes[1].shape[-2]
    left, right = reach_of(_NAME, window, is_causal)
    scale, dropout = scale_of(_NAME, scale, nodes[0].shape[-1]), probability(_NAME, dropout_p)
    own = _bounds("starts", starts, queries, device)
    others = own if key_starts is None else _bounds("key_starts", key_starts, keys, device)
    if key_starts is None and queries != keys:
        raise ShapeError(
            f"{_NAME}: query has {queries} rows and key has {keys}: without key_starts texts have "
            "as many keys as queries"
        )
    if own.shape != others.shape:
        raise ShapeError(
            f"{_NAME}: starts and key_starts are of the same texts, and have {own.size} and "
            f"{others.size} numbers"
        )
    options = AttentionOptions(front, heads, scale, None, None, dropout)
    if own.size == 1 or not queries or not keys:
        nothing = zeros((1, 1), dtype=bool_, device=device)
        return attention_of([*nodes, nothing._node], options, generator)
    rows, columns = _Rows.of(own, queries), _Rows.of(others, keys)
    with recorded(False):
        spans = concat([
            _spans(rows, others, keys, (left, right)),
            _spans(columns, own, queries, (right, left)),
        ])  # fmt: skip
    operands = [*nodes, spans._node]
    if is_tracked(nodes) and not _derived_in_registers(operands, options):
        if longest is None:
            longest = max(_longest(own), _longest(others))
        options = options._replace(left=left, right=right)
        return _padded(nodes, options, rows, columns, longest, generator)
    return attention_of(operands, options, generator)


def _bounds(name: str, given: Any, rows: int, device: Device) -> Tensor:
    """Where texts start, with the end of the last, as int32. Numbers of the host are checked."""
    numbers = given if isinstance(given, Tensor) else np.asarray(given)
    if len(numbers.shape) != 1 or not numbers.shape[0]:
        raise ShapeError(
            f"{_NAME}: {name} has one axis, with one number more than there are texts, not the "
            f"shape {tuple(numbers.shape)}"
        )
    kind = numbers.dtype.kind
    if kind not in ("int", "uint", "i", "u"):
        raise DtypeError(f"{_NAME}: {name} are integers, not {numbers.dtype}")
    if isinstance(numbers, np.ndarray):
        falls = np.flatnonzero(numbers[1:] < numbers[:-1])
        if falls.size:
            i = int(falls[0])
            raise ValueError(
                f"{_NAME}: {name} must not decrease, and number {i + 1}, {numbers[i + 1]}, is less "
                f"than the one before, {numbers[i]}"
            )
        if numbers[0] < 0 or numbers[-1] > rows:
            raise ValueError(
                f"{_NAME}: {name} go from {numbers[0]} to {numbers[-1]}, and there are {rows} rows"
            )
        return asarray(numbers.astype(np.int32), device=device)
    return numbers.to(int32)


class _Rows(NamedTuple):
    """Of each row: the text that it belongs to, from -1 (before the first) to their number; the
    nearest text that exists; and its place in that text. And where texts start."""

    text: Tensor
    near: Tensor
    place: Tensor
    starts: Tensor

    @staticmethod
    def of(starts: Tensor, count: int) -> _Rows:
        """Of so many rows."""
        with recorded(False):
            numbers = arange(count, dtype=int32, device=starts.device)
            text = searchsorted(starts, numbers, side="right").to(int32) - 1
            near = clip(text, 0, starts.size - 2)
            return _Rows(text, near, numbers - starts[near], starts)

    @property
    def inside(self) -> Tensor:
        """Whether a row belongs to a text."""
        return (self.text >= 0) & (self.text < self.starts.size - 1)


def _spans(rows: _Rows, others: Tensor, count: int, reach: Reach) -> Tensor:
    """For each row the first of the `count` others that it sees, and the one after the last."""
    left, right = reach
    begin, end = others[rows.near], others[rows.near + 1]
    low, high = begin, end
    if left is not None:
        low = _minimum(_maximum(begin + rows.place - left, begin), end)
    if right is not None:
        high = _minimum(begin + rows.place + right + 1, end)
    # Rows after the last text see none either, at a place from which on there are none to be seen.
    outside = where(rows.text < 0, 0, end)
    low, high = (clip(where(rows.inside, x, outside), 0, count) for x in (low, high))
    return stack([low, high], axis=1).to(SPANS)


def _derived_in_registers(operands: list[Node], options: AttentionOptions) -> bool:
    """Whether the device computes the derivative without products of whole matrices."""
    sources, problem, _ = laid_out(operands, options)
    elements = max(node.size for node in sources)
    first = operands[0]
    return derived_by_fragments(first.device, first.dtype, problem, elements)


def _longest(starts: Tensor) -> int:
    return int(largest(starts[1:] - starts[:-1]))


def _padded(
    nodes: list[Node], options: AttentionOptions, rows: _Rows, columns: _Rows, longest: int,
    generator: Generator | None,
) -> Tensor:  # fmt: skip
    """The same, of one text after the other along a further axis in front."""
    with recorded(False):
        places = arange(longest, dtype=int32, device=rows.text.device)
        ends = columns.starts[1:]
        seen = places < (ends - columns.starts[:-1]).reshape((-1, 1))
        own, others = (each.starts[:-1].reshape((-1, 1)) + places for each in (rows, columns))
    texts = len(ends)
    operands = [
        moveaxis(x[..., clip(index, 0, x.shape[-2] - 1), :], -3, 0)
        for x, index in zip(map(from_node, nodes), (own, others, others), strict=True)
    ]
    front = (texts, *options.front)
    mask = seen.reshape((texts, *(1,) * len(options.front), 1, longest))
    # An operand with fewer axes in front than the result broadcasts behind the axis of texts.
    wide = [x.reshape((texts, *(1,) * (len(front) + 2 - x.ndim), *x.shape[1:])) for x in operands]
    options = options._replace(front=front)
    made = attention_of([x._node for x in (*wide, mask)], options, generator)
    # From (texts, …, longest, Ev) to the rows that were there.
    by_text = moveaxis(made, 0, -3)
    found = by_text[..., rows.near, clip(rows.place, 0, longest - 1), :]
    absent = rows.inside & (rows.place >= longest)
    found = where(rows.inside.reshape((-1, 1)), found, 0)
    return where(absent.reshape((-1, 1)), float("nan"), found).to(made.dtype)
