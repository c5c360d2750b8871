"""Attention as products of matrices: a slice of the scores at a time is in memory.

This is faster where products are much faster than other work: on cards with a vendor's library and
without kernels of fragments, and on the CPU with BLAS. It computes the derivative wherever
`attend_gradients` does not. Memory is bounded: a slice has as
many heads as fit the bound, or, if one head has too many scores, some of its queries. (For the
formulas see T. Dao and others, "FlashAttention", 2022: weights are recomputed from the logarithm of
the sums of exponentials that the forward pass stores.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels import vendor_product
from treadle.kernels.attend import Laid, Problem
from treadle.kernels.device_code import attention, attention_softmax
from treadle.kernels.device_code.attention_softmax import Scoring, Slice
from treadle.kernels.device_code.keys import wide
from treadle.kernels.factors import Factor, Product
from treadle.kernels.launching import flat, for_any_sizes, new, packed, serial_threads, zeros
from treadle.kernels.matrix_check import usable_products
from treadle.kernels.product import filling
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device

_MOST_BYTES = 256 << 20  # of scores, weights and their gradients, on a GPU
_CACHED = 8 << 20  # the same on the CPU, so that it stays in a cache
_LONG = 512  # queries and keys
_FEW_ROWS = 256  # the fewest queries of a slice where a window hides keys, which are skipped
_EVEN = 16  # queries of a slice are a multiple of this


def scored_in(device: Device, dtype: DType) -> DType:
    """The dtype that operands have to be in: halves only where their products can be had in
    float32."""
    if wide(dtype) is dtype:
        return dtype
    probe = Product((), 64, 64, 64, Factor((), 64, 1, 0), Factor((), 64, 1, 0))
    found = vendor_product.prepared(device, dtype, probe, wide(dtype))
    return wide(dtype) if found is None else dtype


def pays(device: Device, dtype: DType, queries: int, keys: int) -> bool:
    """Whether scores in memory are the faster way of the forward pass: where products of halves
    have units of their own, and dominate the other work."""
    if wide(dtype) is dtype or min(queries, keys) < _LONG:
        return False
    if dtype.short in usable_products(device):
        return False  # the kernel that keeps scores in registers has these units, too
    return scored_in(device, dtype) is dtype


@for_any_sizes
def attend_by_products(
    query: DeviceArray, key: DeviceArray, value: DeviceArray, *more: Any
) -> tuple[DeviceArray, DeviceArray]:
    """As `attend`: the result and the logarithms, of operands in a dtype that `scored_in` names."""
    *given, p = more
    task = _Task.of(query, key, given, p)
    out = new(query, task.dtype, *p.shape, p.queries, p.width)
    norms = new(query, task.partial, *p.shape, p.queries)
    if not out.size:
        return out, norms
    kernel = attention_softmax.softmax(task.what)
    for part in task.slices():
        scores = task.scores(part)
        weights = scores if task.alike else new(query, task.dtype, scores.size)
        kernel[part.lines, task.what.threads](
            scores, weights, flat(norms), *task.of_lines(part, p), 1.0 - p.dropout
        )
        values = task.keys_of(value, p.value, part, p.width)
        made = _some(out, part.first * p.width, part.lines * p.width)
        extents = (part.rows, p.width, part.keys)
        task.multiply(part.operand(weights, part.keys), values.transposed, made, part, extents)
    return out, norms


@for_any_sizes
def attend_backward(
    query: DeviceArray,
    key: DeviceArray,
    value: DeviceArray,
    gradient: DeviceArray,
    norms: DeviceArray,
    sums: DeviceArray,
    *more: Any,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """The gradients of query, key and value, whose axes in front are the problem's: where heads
    share keys and values, those of key and value have extent 1.

    `gradient` is that of the result, `norms` what the forward pass gave, `sums` the sums along each
    row of the result times its gradient; `more` is what `attend` takes."""
    *given, p = more
    task = _Task.of(query, key, given, p)
    of_query = new(query, task.dtype, *p.heads, p.queries, p.depth)
    filled = new if task.is_simple else zeros
    of_key = filled(query, task.partial, *task.own, p.keys, p.depth)
    of_value = filled(query, task.partial, *task.own, p.keys, p.width)
    kernel = attention_softmax.softmax_gradient(task.what)
    flat_gradient = flat(gradient)
    for part in task.slices() if math.prod(gradient.shape) else ():
        scores = task.scores(part)
        slopes = new(query, task.partial, scores.size)
        at = _some(flat_gradient, part.first * p.width, part.lines * p.width)
        given_here = part.operand(at, p.width)
        values = task.keys_of(value, p.value, part, p.width)
        task.multiply(given_here, values, slopes, part, (part.rows, part.keys, p.width))
        weights, steep = scores, slopes
        if not task.alike:
            weights, steep = (new(query, task.dtype, scores.size) for _ in range(2))
        lines = task.of_lines(part, p)
        kernel[part.lines, task.what.threads](
            scores,
            slopes,
            weights,
            steep,
            flat(norms),
            flat(sums),
            *lines,
            p.scale,
            1.0 - p.dropout,
        )
        steep_here = part.operand(steep, part.keys)
        keys = task.keys_of(key, p.key, part, p.depth)
        made = _some(of_query, part.first * p.depth, part.lines * p.depth)
        task.multiply(steep_here, keys.transposed, made, part, (part.rows, p.depth, part.keys))
        task.add(part.operand(weights, part.keys), given_here, of_value, part, p.width)
        task.add(steep_here, task.queries_of(part), of_key, part, p.depth)
    return of_query, of_key, of_value


class _Operand(NamedTuple):
    """A factor of the products of a slice: an array, and the strides from a row of the first factor
    (a column of the second) to the next, along the inner axis, and from a head to the next."""

    array: DeviceArray
    line: int
    inner: int
    step: int

    @property
    def transposed(self) -> _Operand:
        """Lines as the inner axis."""
        return self._replace(line=self.inner, inner=self.line)


class _Slice(NamedTuple):
    """Scores that are in memory at a time: of so many heads, of each so many queries and keys.
    `place` is where the first head is along all axes, `first` its first query among all lines."""

    place: tuple[int, ...]
    heads: int
    row: int
    rows: int
    first_key: int
    keys: int
    first: int

    @property
    def lines(self) -> int:
        """Of all heads."""
        return self.heads * self.rows

    def operand(self, array: DeviceArray, columns: int) -> _Operand:
        """An array that has the slice's lines one after the other, of so many columns."""
        return _Operand(array, columns, 1, self.rows * columns)


class _Task(NamedTuple):
    """A problem, and how it is cut. `axes` are the axes of heads without those that are taken for
    one head with more queries; heads lie `stacked` along the last of them if these have keys of
    their own. `own` are extents of the axes of heads along which keys or values differ."""

    query: DeviceArray
    key: DeviceArray
    mask: DeviceArray | None
    draws: DeviceArray | None
    p: Problem
    what: Scoring
    axes: tuple[int, ...]
    folded: int
    own: tuple[int, ...]
    stacked: bool

    @staticmethod
    def of(query: DeviceArray, key: DeviceArray, given: list[Any], p: Problem) -> _Task:
        """How a problem is cut."""
        dtype = query.dtype
        assert isinstance(dtype, DType)
        given = list(given)
        mask = given.pop(0) if p.mask is not None else None
        draws = given.pop() if p.dropout else None
        if max(math.prod(p.heads) * p.queries, 0 if mask is None else mask.size) >= MOST_NARROW:
            raise ShapeError(
                f"attention of {p.queries} queries and {p.keys} keys in heads of shape {p.shape} "
                f"has more than {MOST_NARROW} lines, or elements of a mask: split the heads"
            )
        own = p.own
        folded, axes = 1, p.heads
        if axes and own[-1] == 1 and p.query.strides[-2] == p.queries * p.query.strides[-1]:
            folded, axes = axes[-1], axes[:-1]
        threads = (
            32
            if serial_threads(query.device)
            else min(256, query.device.limits.max_threads_per_block)
        )
        kind = None if mask is None else mask.dtype
        what = Scoring(dtype, wide(dtype), kind, p.dropout > 0, threads)
        stacked = bool(axes) and own[len(axes) - 1] == axes[-1] and axes[-1] > 1
        return _Task(query, key, mask, draws, p, what, axes, folded, own, stacked)

    @property
    def dtype(self) -> DType:
        """Of operands and results."""
        return self.what.dtype

    @property
    def partial(self) -> DType:
        """Of scores."""
        return self.what.partial

    @property
    def alike(self) -> bool:
        """Whether weights are of the scores' dtype."""
        return self.dtype is self.partial

    def step(self, laid: Laid) -> int:
        """From a head of a slice to the next."""
        return laid.strides[len(self.axes) - 1] if self.stacked else 0

    @property
    def is_simple(self) -> bool:
        """Whether all queries that see a key are in one slice."""
        return self.own[: len(self.axes)] == self.axes and self.rows == self.lines

    @property
    def lines(self) -> int:
        """Queries that see the same keys, as far as nothing hides these."""
        return self.folded * self.p.queries

    @property
    def most(self) -> int:
        """Scores of a slice."""
        item = self.partial.itemsize * 2 + (0 if self.alike else self.dtype.itemsize * 2)
        bound = self.query.device.limits.max_binding_size // self.partial.itemsize
        most = (_CACHED if serial_threads(self.query.device) else _MOST_BYTES) // item
        return max(min(most, bound), 1)

    @property
    def rows(self) -> int:
        """Queries of a slice: all that see the same keys, if there is room."""
        p = self.p
        fitting = self.most // max(p.keys, 1)
        rows = self.lines if self.lines <= fitting else min(fitting, p.queries)
        # All queries of several heads make one slice, so that a GPU has more work at once.
        separately = serial_threads(self.query.device) or 2 * self.lines > fitting
        if separately and (p.left is not None or p.right is not None):
            rows = min(rows, max(p.queries // 4, _FEW_ROWS))
        return rows if rows == self.lines else max(rows // _EVEN * _EVEN, _EVEN)

    def slices(self) -> Iterator[_Slice]:
        """All scores, slice by slice."""
        p = self.p
        lines, rows = self.lines, self.rows
        outer = self.axes[:-1] if self.stacked else self.axes
        extent = self.axes[-1] if self.stacked else 1
        heads = min(extent, max(self.most // max(lines * p.keys, 1), 1)) if rows == lines else 1
        steps = packed_strides(self.axes)
        for place in np.ndindex(*outer):
            for start in range(0, extent, heads):
                count = min(heads, extent - start)
                here = (*place, start) if self.stacked else place
                before = sum(i * step for i, step in zip(here, steps, strict=True)) * lines
                # Slices of rows end where positions begin anew.
                for turn in range(0, lines, p.queries) if rows < lines else (0,):
                    length = p.queries if rows < lines else lines
                    for row in range(0, length, rows):
                        n = min(rows, length - row)
                        low, high = _seen_by(p, row, n) if rows < lines else (0, p.keys)
                        yield _Slice(
                            here, count, turn + row, n, low, max(high - low, 0), before + turn + row
                        )

    def queries_of(self, part: _Slice) -> _Operand:
        """The queries of a slice."""
        return self._seen(self.query, self.p.query, part, part.row, part.rows, self.p.depth)

    def keys_of(self, array: DeviceArray, laid: Laid, part: _Slice, columns: int) -> _Operand:
        """The keys or the values that a slice sees."""
        return self._seen(array, laid, part, part.first_key, part.keys, columns)

    def _seen(
        self, array: DeviceArray, laid: Laid, part: _Slice, row: int, rows: int, columns: int
    ) -> _Operand:
        """An operand from the first element of a slice to the last one: no more than a binding may
        have. Its lines are the rows."""
        start = laid.offset + row * laid.strides[-1]
        start += sum(i * step for i, step in zip(part.place, laid.strides, strict=False))
        count = (part.heads - 1) * self.step(laid) + (rows - 1) * laid.strides[-1] + columns
        seen = _some(array, start, count if rows and columns else 0)
        return _Operand(seen, laid.strides[-1], 1, self.step(laid))

    def scores(self, part: _Slice) -> DeviceArray:
        """The products of a slice's queries and keys."""
        p = self.p
        made = new(self.query, self.partial, part.lines * part.keys)
        keys = self.keys_of(self.key, p.key, part, p.depth)
        extents = (part.rows, part.keys, p.depth)
        self.multiply(self.queries_of(part), keys, made, part, extents)
        return made

    def of_lines(self, part: _Slice, p: Problem) -> tuple[Any, ...]:
        """The arguments that say where a slice's lines are."""
        mask = (0,) * 5
        if p.mask is not None:
            moves = p.mask.strides
            start = p.mask.offset + sum(
                i * move for i, move in zip(part.place, moves, strict=False)
            )
            fold = moves[len(self.axes)] if self.folded > 1 else 0
            mask = (start, self.step(p.mask), fold, moves[-2], moves[-1])
        left = p.queries if p.left is None else min(p.left, p.queries)
        right = p.keys if p.right is None else min(p.right, p.keys)
        lines = part.rows, part.row, self.lines, p.queries, part.first - part.row
        keys = part.keys, part.first_key, p.keys
        return (
            0 if self.mask is None else flat(self.mask),
            0 if self.draws is None else self.draws,
            packed(Slice, *lines, *keys, left, right, *mask),
            p.scale * attention.LOG2_E,
        )

    def multiply(
        self,
        left: _Operand,
        right: _Operand,
        out: DeviceArray,
        part: _Slice,
        extents: tuple[int, int, int],
    ) -> None:
        """Fill `out` with products of (rows, columns, inner) extents."""
        rows, columns, inner = extents
        several = part.heads > 1
        first, second = (
            Factor((each.step,) if several else (), each.line, each.inner, 0)
            for each in (left, right)
        )
        if not out.size:
            return
        if not inner:
            _clear(out)
            return
        product = Product((part.heads,) if several else (), rows, columns, inner, first, second)
        assert isinstance(left.array.dtype, DType)
        assert isinstance(out.dtype, DType)
        fill = filling(out.device, left.array.dtype, product, out.dtype)
        fill(left.array, right.array, out)

    def add(
        self, weights: _Operand, right: _Operand, into: DeviceArray, part: _Slice, columns: int
    ) -> None:
        """Add the products of a slice's weights, transposed, and what belongs to its queries, to
        what is there for its keys."""
        count = part.heads * part.keys * columns
        if not count:
            return
        steps = packed_strides(self.own)
        place = zip(part.place, self.own, steps, strict=False)
        head = sum(i * move for i, n, move in place if n > 1)
        start = (head * self.p.keys + part.first_key) * columns
        made = _some(into, start, count) if self.is_simple else new(self.query, self.partial, count)
        extents = (part.keys, columns, part.rows)
        self.multiply(weights.transposed, right.transposed, made, part, extents)
        if self.is_simple:
            return
        adder = attention_softmax.adder(self.partial)
        adder.launch(made.size, flat(into), made, start)


def _seen_by(p: Problem, row: int, rows: int) -> tuple[int, int]:
    """The keys that some queries see: the first one, and the one after the last."""
    low = 0 if p.left is None else max(row - p.left, 0)
    high = p.keys if p.right is None else min(row + rows + p.right, p.keys)
    return min(low, p.keys), high


def _some(array: DeviceArray, start: int, count: int) -> DeviceArray:
    return array.view((count,), (1,), array.offset + start)


def _clear(array: DeviceArray) -> None:
    if array.key.imagined:
        return
    item = array.dtype.itemsize
    stream = array.device.default_stream.handle
    stream.fill_zero(array.buffer, array.offset * item, array.size * item)
