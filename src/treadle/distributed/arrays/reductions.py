"""Reductions of sharded arrays: of each piece, and then over the ranks that have the others.

Sums stay to be added up until something needs their values. The rest is reduced at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.autograd.function import Function
from treadle.core import dtypes
from treadle.core.dtypes import DType, integer_range
from treadle.core.errors import DtypeError, ShapeError
from treadle.distributed.arrays.elementwise import elementwise
from treadle.distributed.arrays.layout import Entry, Layout
from treadle.distributed.arrays.moving import Pieces, moved, moved_by
from treadle.graph.history import recorded
from treadle.tensor import reductions
from treadle.tensor.assembly import concat
from treadle.tensor.axes import some_axes
from treadle.tensor.creation import full
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import where
from treadle.tensor.tensor import Tensor

_HALVES = (dtypes.float16, dtypes.bfloat16)


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """`td.sum` of a sharded array."""
    return _total("sum", x, axis, dtype, keepdims)


def _total(operation: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    axes = some_axes(operation, axis, len(x.shape))
    if dtype is None and x.dtype in _HALVES and _split(x, axes):
        # The ranks' sums are not rounded before they are added.
        return settled(sum(x, axis, dtypes.float32, keepdims), operation).to(x.dtype)
    if dtype is not None or x.dtype.kind not in ("float", "complex"):
        x = settled(x, operation)  # small integers wrap, and their sums do not
    made = reductions.sum(x.piece, axis=axes, dtype=dtype, keepdims=keepdims)
    layout = _reduced(x.layout, axes, keepdims)
    total = x.like(made, layout.replaced(pending=(*x.layout.pending, *_split(x, axes))))
    # That of all elements is a number, which one rank alone may want to print.
    return settled(total, operation) if math.prod(layout.shape) == 1 else total


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """`td.prod` of a sharded array."""
    axes = some_axes("prod", axis, len(x.shape))
    x = settled(x, "prod")
    made = reductions.prod(x.piece, axis=axes, dtype=dtype, keepdims=keepdims)
    return _combined(x, made, axes, keepdims, "prod", "product")


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.any` of a sharded array."""
    axes = some_axes("any", axis, len(x.shape))
    x = settled(x, "any")
    made = reductions.any(x.piece, axis=axes, keepdims=keepdims)
    return _combined(x, made, axes, keepdims, "any", "max")


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.all` of a sharded array."""
    axes = some_axes("all", axis, len(x.shape))
    x = settled(x, "all")
    made = reductions.all(x.piece, axis=axes, keepdims=keepdims)
    return _combined(x, made, axes, keepdims, "all", "min")


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.count_nonzero` of a sharded array."""
    wanted = default_integer(x.piece.device)
    return sum((x != 0).to(wanted), axis, keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.mean` of a sharded array."""
    axes = some_axes("mean", axis, len(x.shape))
    count = math.prod([x.shape[each] for each in axes])
    if x.dtype.kind not in ("float", "complex"):
        x = x.to(dtypes.float32)
    kind = x.dtype
    total = _total("mean", x, axes, dtypes.float32 if kind in _HALVES else None, keepdims)
    made = total / count if count else settled(total, "mean") * math.nan
    return made.to(kind) if made.dtype is not kind else made


def var(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """`td.var` of a sharded array."""
    axes = some_axes("var", axis, len(x.shape))
    if x.dtype.kind == "complex":
        raise DtypeError("var of complex numbers that are split: that of x.real + that of x.imag")
    kind = x.dtype if x.dtype.kind == "float" else dtypes.float32
    x = settled(x, "var").to(dtypes.float32 if kind in _HALVES else kind)
    distance = x - settled(mean(x, axes, True), "var")
    count = math.prod([x.shape[each] for each in axes]) - correction
    total = sum(distance * distance, axes, keepdims=keepdims)
    made = total / count if count > 0 else settled(total, "var") * math.nan
    return made.to(kind) if made.dtype is not kind else made


def std(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """`td.std` of a sharded array."""
    return var(x, axis, correction, keepdims).sqrt()


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.max` of a sharded array."""
    return _extreme("max", x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.min` of a sharded array."""
    return _extreme("min", x, axis, keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """`td.argmax` of a sharded array."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """`td.argmin` of a sharded array."""
    return _place("argmin", x, axis, keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`td.logsumexp` of a sharded array."""
    axes = some_axes("logsumexp", axis, len(x.shape))
    x = settled(x, "logsumexp")
    kind = x.dtype if x.dtype.kind == "float" else dtypes.float32
    if not _split(x, axes):
        made = reductions.logsumexp(x.piece, axis=axes, keepdims=keepdims)
        return x.like(made, _reduced(x.layout, axes, keepdims))
    x = x.to(dtypes.float32 if kind in _HALVES else kind)
    shift = _shift(x, axes)
    made = sum((x - shift).exp(), axes, keepdims=True).log() + shift
    made = made if keepdims else squeezed(made, axes)
    return made.to(kind) if made.dtype is not kind else made


def softmax(x: Any, axis: int = -1) -> Any:
    """`td.nn.functional.softmax` of a sharded array."""
    axes, x, kind = _of_softmax("softmax", x, axis)
    powers = (x - _shift(x, axes)).exp()
    made = powers / sum(powers, axes, keepdims=True)
    return made.to(kind) if made.dtype is not kind else made


def log_softmax(x: Any, axis: int = -1) -> Any:
    """`td.nn.functional.log_softmax` of a sharded array."""
    axes, x, kind = _of_softmax("log_softmax", x, axis)
    distance = x - _shift(x, axes)
    made = distance - sum(distance.exp(), axes, keepdims=True).log()
    return made.to(kind) if made.dtype is not kind else made


# --- parts -------------------------------------------------------------------------------------


def settled(x: Any, operation: str) -> Any:
    """The array with nothing pending."""
    if not x.layout.pending:
        return x
    return x.like(moved(x, x.layout.spec, operation), x.layout.replaced(pending=()))


def squeezed(x: Any, axes: tuple[int, ...]) -> Any:
    """The array without axes of one element."""
    left = [axis for axis in range(len(x.shape)) if axis not in axes]
    shape = tuple([x.shape[axis] for axis in left])
    spec = tuple([x.layout.spec[axis] for axis in left])
    own = tuple([x.piece.shape[axis] for axis in left])
    return x.like(x.piece.reshape(own), x.layout.replaced(shape=shape, spec=spec))


def _of_softmax(name: str, x: Any, axis: int) -> tuple[tuple[int, ...], Any, DType]:
    if x.dtype.kind != "float":
        raise DtypeError(f"{name} takes floating numbers, not {x.dtype}: x.to(td.float32)")
    x = settled(x, name)
    wide = dtypes.float32 if x.dtype in _HALVES else x.dtype
    return some_axes(name, axis, len(x.shape)), x.to(wide), x.dtype


def _shift(x: Any, axes: tuple[int, ...]) -> Any:
    """The greatest element along axes where it is finite, else 0, without a gradient."""
    with recorded(False):
        greatest = max(x, axes, True)
        return elementwise("where", where, greatest.isfinite(), greatest, 0)


def _split(x: Pieces, axes: tuple[int, ...]) -> Entry:
    """The mesh axes that axes are split over."""
    return tuple([name for axis in axes for name in x.layout.spec[axis]])


def _reduced(layout: Layout, axes: tuple[int, ...], keepdims: bool) -> Layout:
    """The layout without axes."""
    if keepdims:
        shape = [1 if at in axes else extent for at, extent in enumerate(layout.shape)]
        spec = [() if at in axes else entry for at, entry in enumerate(layout.spec)]
    else:
        left = [at for at in range(len(layout.shape)) if at not in axes]
        shape, spec = [layout.shape[at] for at in left], [layout.spec[at] for at in left]
    return layout.replaced(shape=tuple(shape), spec=tuple(spec))


def _combined(
    x: Any, made: Tensor, axes: tuple[int, ...], keepdims: bool, operation: str, reduction: str
) -> Any:
    """The ranks' results, reduced."""
    layout = _reduced(x.layout, axes, keepdims)
    for name in _split(x, axes):
        made = moved_by("all_reduce", made, layout, name, operation, reduction)
    return x.like(made, layout)


def _extreme(kind: str, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = some_axes(kind, axis, len(x.shape))
    x = settled(x, kind)
    _check_order(kind, x, axes)
    layout, names = _reduced(x.layout, axes, keepdims), _split(x, axes)
    if not names:
        made = getattr(reductions, kind)(x.piece, axis=axes, keepdims=keepdims)
        return x.like(made, layout)
    made = _Extreme.apply(x.piece, kind, axes, keepdims, layout, names)
    return x.like(made, layout)


def _check_order(kind: str, x: Pieces, axes: tuple[int, ...]) -> None:
    """The errors that a rank's piece alone would not give on all ranks."""
    if x.dtype.kind == "complex":
        raise DtypeError(f"{kind}: complex numbers have no order; take abs(x) or the real parts")
    for axis in axes:
        if x.shape[axis] == 0:
            raise ShapeError(f"{kind} of no elements: axis {axis} of shape {x.shape} is empty")


def _with_least(kind: str, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The piece with an element that no other loses against, for pieces without elements."""
    for axis in axes:
        if not x.shape[axis]:
            shape = tuple([1 if at == axis else extent for at, extent in enumerate(x.shape)])
            least = full(shape, _worst(kind, x.dtype), dtype=x.dtype, device=x.device)
            x = concat((x, least), axis=axis)
    return x


def _worst(kind: str, dtype: DType) -> Any:
    if dtype.kind == "bool":
        return kind.endswith("min")
    if dtype.kind == "float":
        return math.inf if kind.endswith("min") else -math.inf
    return integer_range(dtype)[kind.endswith("min")]


class _Extreme(Function):
    """The greatest or least elements. Those that are as great as the greatest have equal parts of
    its gradient, on whatever rank they are; NaN counts as the greatest."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, kind: str, axes: tuple[int, ...], keepdims: bool, layout: Layout,
        names: Entry,
    ) -> Tensor:  # fmt: skip
        reduce = getattr(reductions, kind)
        made: Tensor = reduce(_with_least(kind, x, axes), axis=axes, keepdims=keepdims)
        for name in names:
            every = moved_by("stack", made, layout, name, kind)
            made = reduce(every, axis=0)
        ctx.rest = (kind, axes, keepdims, layout, names)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(x, made)
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        kind, axes, keepdims, layout, names = ctx.rest
        x, made = ctx.saved_tensors
        kept = tuple([1 if at in axes else extent for at, extent in enumerate(x.shape)])
        chosen = (x == made.reshape(kept)).to(g.dtype)
        count = reductions.sum(chosen, axis=axes, keepdims=keepdims)
        for name in names:
            g = moved_by("all_reduce", g, layout, name, f"gradient of {kind}")
            count = moved_by("all_reduce", count, layout, name, f"gradient of {kind}")
        return chosen * (g / count).reshape(kept), None, None, None, None, None


def _place(kind: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    axes = some_axes(kind, axis, len(x.shape))
    x = settled(x, kind)
    _check_order(kind, x, axes)
    layout, names = _reduced(x.layout, axes, keepdims), _split(x, axes)
    find = getattr(reductions, kind)
    if not names:
        made = find(x.piece, axis=axis, keepdims=keepdims)
        return x.like(made, layout)
    piece = _with_least(kind, x.piece.detach(), axes)
    values = getattr(reductions, kind[3:])(piece, axis=axes, keepdims=keepdims)
    places = _whole_places(x, piece, find(piece, axis=axis, keepdims=keepdims), axes)
    for name in names:
        every = moved_by("stack", values, layout, name, kind)
        values = getattr(reductions, kind[3:])(every, axis=0)
        found = moved_by("stack", places, layout, name, kind)
        is_best = (every == values) | ((every != every) & (values != values))
        far: int = np.iinfo(np.int32).max if places.dtype.itemsize < 8 else np.iinfo(np.int64).max
        places = reductions.min(where(is_best, found, far), axis=0)
    return x.like(places, layout)


def _whole_places(x: Pieces, piece: Tensor, places: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Places in the whole array of those in a piece: in the order of the axes. A piece without
    elements has the last one."""
    layout = x.layout
    last = math.prod([x.shape[axis] for axis in axes])
    found: Tensor = places * 0
    if 0 in [x.piece.shape[axis] for axis in axes]:
        found += last
        return found
    step = 1
    for axis in reversed(axes):
        extent = piece.shape[axis]
        found = found + (places % extent + layout.range(axis)[0]) * step
        places, step = places // extent, step * x.shape[axis]
    return found
