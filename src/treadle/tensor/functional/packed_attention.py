"""Attention of texts that are packed one after the other.

Kernels that keep scores in registers are given where texts begin; each of their blocks has rows of
one text alone (`kernels.device_code.text_tiles`). Derivatives by products of matrices need texts
that are padded to one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import bool_, int32
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph.node import Node
from treadle.kernels.attend_gradients import derived_by_fragments
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import device_of
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.functional.attention import (
    attention_of,
    checked_operands,
    is_tracked,
    probability,
    reach_of,
    scale_of,
)
from treadle.tensor.functional.heads import AttentionOptions, laid_out
from treadle.tensor.functional.padded_texts import PackedRows, length_of
from treadle.tensor.generator import Generator
from treadle.tensor.precision import cast_by_name
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["packed_attention"]

_NAME = "packed_attention"


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

    Nothing of a text reaches another one or its gradients, be it NaN or infinite; nor does what is
    before the first text and behind the last. Dropout draws other weights where texts are padded.

    ShapeError, DtypeError or ValueError for arguments that do not fit; what `starts` has on a
    device is not checked: where it decreases, results are undefined.

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
    options = AttentionOptions(front, heads, scale, left, right, dropout, True, longest)
    if own.size == 1 or not queries or not keys:
        nothing = zeros((1, 1), dtype=bool_, device=device)
        options = options._replace(packed=False)
        return attention_of([*nodes, nothing._node], options, generator)
    operands = [*nodes, own._node, others._node]
    if is_tracked(nodes) and not _derived_in_registers(operands, options):
        return _padded(nodes, options, (own, others), generator)
    return attention_of(operands, options, generator)


def _bounds(name: str, given: Any, rows: int, device: Device) -> Tensor:
    """Where texts start, with the end of the last, as int32. Numbers of the host are checked."""
    numbers = given if isinstance(given, Tensor) else np.asarray(given)
    bools = isinstance(given, Sequence) and any(isinstance(each, bool) for each in given)
    if bools or (isinstance(numbers, np.ndarray) and numbers.dtype.kind in "OSU"):
        raise DtypeError(
            f"{_NAME}: {name} are integers, one more than there are texts, not {given!r}"
        )
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


def _derived_in_registers(operands: list[Node], options: AttentionOptions) -> bool:
    """Whether the device computes the derivative without products of whole matrices."""
    sources, problem, _ = laid_out(operands, options)
    elements = max(node.size for node in sources)
    first = operands[0]
    return derived_by_fragments(first.device, first.dtype, problem, elements)


def _padded(
    nodes: list[Node], options: AttentionOptions, starts: tuple[Tensor, Tensor],
    generator: Generator | None,
) -> Tensor:  # fmt: skip
    """The same, of one text after the other along a further axis in front."""
    rows, columns = (
        PackedRows.of(each, node.shape[-2]) for each, node in zip(starts, nodes, strict=False)
    )
    longest = length_of((rows, columns), options.longest)
    front = len(options.front)
    operands = [
        each.padded(from_node(node), longest, front)
        for each, node in zip((rows, columns, columns), nodes, strict=True)
    ]
    _, seen = columns.rows(longest)
    mask = seen.reshape((len(seen), *(1,) * (front + 1), longest))
    options = options._replace(front=(len(seen), *options.front), packed=False)
    made = attention_of([x._node for x in (*operands, mask)], options, generator)
    return rows.packed(made, longest)
