"""Views: which elements of a base, in which order. Pure arithmetic on integers.

A view counts in the row-major linear index of its base: element (i, j, …) of the view is element
offset + i * strides[0] + j * strides[1] + … of the base. Strides may be 0 (one element seen many
times) or negative. Every tensor operation passes here, so the functions trust their callers: axes
are checked and not negative, shapes are tuples of integers, and only what shapes decide is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from treadle.core.errors import ShapeError
from treadle.runtime.arrays import is_contiguous, packed_strides

Integers = tuple[int, ...]


class View(NamedTuple):
    """The elements offset + sum(index * strides) of a base, for every index of a shape."""

    shape: Integers
    strides: Integers
    offset: int


# --- making and asking ---------------------------------------------------------------------------


@lru_cache(4096)
def whole(shape: Integers) -> View:
    """All elements of a base of this shape, in order.

    >>> whole((2, 3))
    View(shape=(2, 3), strides=(3, 1), offset=0)
    """
    return View(shape, packed_strides(shape), 0)


def is_whole(view: View, base_shape: Integers) -> bool:
    """Whether a view is its base, unchanged.

    >>> is_whole(permute(whole((1, 3)), (1, 0)), (1, 3)), is_whole(whole((2, 3)), (2, 3))
    (False, True)
    """
    shape, strides, offset = view
    if len(shape) != len(base_shape):
        return False
    # Extents are compared last: of a transposed view they are equal for some sizes, and plans for
    # sizes that change depend on what was asked.
    if _packed(shape, strides) and offset == 0:
        return shape == base_shape
    return 0 in shape and shape == base_shape


def same_shape(one: Integers, other: Integers) -> bool:
    """Whether shapes are equal. Tuples of different lengths compare their elements first, and what
    sizes say then would be a fact of a plan that does not depend on it.

    >>> same_shape((1, 64), (1, 64)), same_shape((1, 64), (1, 64, 2))
    (True, False)
    """
    return len(one) == len(other) and one == other


def is_in_order(view: View) -> bool:
    """Whether a view has the elements of its base in order, each once, if the sizes agree.

    >>> is_in_order(View((2, 1, 3), (3, 7, 1), 0)), is_in_order(flip(whole((2,)), (0,)))
    (True, False)
    """
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return view.offset == 0


def _packed(shape: Integers, strides: Integers) -> bool:
    """`is_contiguous`, quicker. Strides along axes of extent 1 are not compared: plans for sizes
    that change would depend on them."""
    return is_contiguous(shape, strides) if 1 in shape else strides == whole(shape)[1]


def overlaps(view: View) -> bool:
    """Whether two indices may be one element of the base. False is certain; True is the answer too
    where telling would need a search.

    >>> overlaps(whole((2, 3))), overlaps(expand(whole((1, 3)), (2, 3)))
    (False, True)
    """
    shape, strides, _ = view
    if _packed(shape, strides) or 0 in shape:
        return False
    reached = 0  # the farthest that the axes with shorter strides go
    for stride, extent in sorted(
        (abs(stride), extent) for stride, extent in zip(strides, shape, strict=True) if extent != 1
    ):
        if stride <= reached:
            return True
        reached += stride * (extent - 1)
    return False


def reach(view: View) -> tuple[int, int]:
    """The stretch of the base that a view lies in, from its first element to past its last one.

    >>> reach(flip(whole((2, 3)), (0, 1)))
    (0, 6)
    """
    shape, strides, offset = view
    if 0 in shape:
        return offset, offset
    low = high = offset
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += stride * (extent - 1)
        else:
            high += stride * (extent - 1)
    return low, high + 1


def begin_of(view: View, base_shape: Integers) -> Integers:
    """Where a box of a base begins, along its axes.

    >>> begin_of(slice_axis(whole((2, 7)), 1, 5, 1, 2), (2, 7))
    (0, 5)
    """
    return tuple(_digits(view.offset, base_shape))


def axes_within(base_shape: Integers, extent: int, stride: int) -> tuple[Integers, Integers]:
    """The neighbouring axes of a base that an axis of a view passes through, of this extent and
    with so many elements between neighbours: their extents and strides. The axis as it is if there
    are none.

    >>> axes_within((5, 2, 16), 32, 1), axes_within((5, 2, 16), 8, 1)
    (((2, 16), (16, 1)), ((8,), (1,)))
    """
    steps = packed_strides(base_shape)
    for end in range(len(base_shape), 0, -1):
        if steps[end - 1] != stride or base_shape[end - 1] == 1:
            continue
        begin, size = end, 1
        while size < extent and begin > 0:
            begin -= 1
            size *= base_shape[begin]
        if size == extent and begin < end:
            return base_shape[begin:end], steps[begin:end]
    return (extent,), (stride,)


# --- other views of the same base ----------------------------------------------------------------


def permute(view: View, axes: Iterable[int]) -> View:
    """The axes in another order: axis i of the result is axis axes[i].

    >>> permute(whole((2, 3)), (1, 0))
    View(shape=(3, 2), strides=(1, 3), offset=0)
    """
    shape, strides, offset = view
    order = tuple(axes)
    return View(tuple([shape[a] for a in order]), tuple([strides[a] for a in order]), offset)


def flip(view: View, axes: Iterable[int]) -> View:
    """The elements along these axes from the last to the first.

    >>> flip(whole((2, 3)), (1,))
    View(shape=(2, 3), strides=(3, -1), offset=2)
    """
    shape, strides, offset = view
    turned = list(strides)
    for axis in axes:
        if shape[axis]:
            offset += (shape[axis] - 1) * turned[axis]
        turned[axis] = -turned[axis]
    return View(shape, tuple(turned), offset)


def expand(view: View, shape: Integers) -> View:
    """The view broadcast to a shape. ShapeError if it does not broadcast to that.

    >>> expand(whole((2, 1)), (4, 2, 3))
    View(shape=(4, 2, 3), strides=(0, 1, 0), offset=0)
    """
    old, strides, offset = view
    if old == shape:
        return view
    added = len(shape) - len(old)
    if added < 0:
        raise ShapeError(
            f"shape {old} does not broadcast to {shape}: it has {len(old)} axes, and broadcasting "
            f"takes none away; index or reshape it to {len(shape)} axes first"
        )
    stretched = [0] * added
    for axis, extent in enumerate(old):
        wanted = shape[added + axis]
        if extent == wanted:
            stretched.append(strides[axis])
        elif extent == 1:
            stretched.append(0)
        else:
            raise ShapeError(
                f"shape {old} does not broadcast to {shape}: axis {axis} has extent {extent}, "
                f"axis {added + axis} wants {wanted}; counted from the right, extents must be "
                "equal or 1"
            )
    return View(shape, tuple(stretched), offset)


def squeeze(view: View, axes: Iterable[int]) -> View:
    """The view without these axes. ShapeError unless each has extent 1.

    >>> squeeze(whole((2, 1, 3)), (1,))
    View(shape=(2, 3), strides=(3, 1), offset=0)
    """
    shape, strides, offset = view
    gone = set(axes)
    for axis in gone:
        if shape[axis] != 1:
            raise ShapeError(
                f"axis {axis} of shape {shape} has extent {shape[axis]}: only axes of extent 1 "
                "can be squeezed"
            )
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    return View(tuple([shape[a] for a in kept]), tuple([strides[a] for a in kept]), offset)


def unsqueeze(view: View, axis: int) -> View:
    """The view with an axis of extent 1 before this one, or at the end.

    >>> unsqueeze(whole((2, 3)), 1)
    View(shape=(2, 1, 3), strides=(3, 3, 1), offset=0)
    """
    shape, strides, offset = view
    step = shape[axis] * strides[axis] if axis < len(shape) else 1  # as if it were packed
    return View((*shape[:axis], 1, *shape[axis:]), (*strides[:axis], step, *strides[axis:]), offset)


def diagonal(view: View, offset: int, axis1: int, axis2: int) -> View:
    """The elements where the index along axis2 is the one along axis1 plus an offset. The two axes
    go, and the diagonal is the last axis.

    >>> diagonal(whole((3, 4)), 1, 0, 1)
    View(shape=(3,), strides=(5,), offset=1)
    """
    shape, strides, start = view
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(shape[axis1] - down, shape[axis2] - right), 0)
    if count:
        start += down * strides[axis1] + right * strides[axis2]
    kept = [axis for axis in range(len(shape)) if axis not in (axis1, axis2)]
    return View(
        (*[shape[a] for a in kept], count),
        (*[strides[a] for a in kept], strides[axis1] + strides[axis2]),
        start,
    )


def slice_axis(view: View, axis: int, start: int, step: int, count: int) -> View:
    """The elements start, start + step, … along an axis, `count` of them, all inside.

    A step that is never made does not count: `x[::10**30]` has strides as others have.

    >>> slice_axis(whole((2, 7)), 1, 5, -2, 3)
    View(shape=(2, 3), strides=(7, -2), offset=5)
    """
    shape, strides, offset = view
    stride = strides[axis]
    if count:
        offset += start * stride
    if count > 1:
        stride *= step
    after = axis + 1
    return View(
        (*shape[:axis], count, *shape[after:]),
        (*strides[:axis], stride, *strides[after:]),
        offset,
    )


def reshape(view: View, shape: Integers) -> View | None:
    """The same elements in the same order with another shape, or None if no strides say that.
    ShapeError if the numbers of elements differ.

    >>> reshape(slice_axis(whole((4, 6)), 0, 0, 2, 2), (2, 2, 3))
    View(shape=(2, 2, 3), strides=(12, 3, 1), offset=0)
    >>> reshape(permute(whole((2, 3)), (1, 0)), (6,)) is None
    True
    """
    old, strides, offset = view
    if old == shape:
        return view
    size = math.prod(old)
    if size != math.prod(shape):
        raise ShapeError(
            f"{size} elements of shape {old} cannot have shape {shape}, which is "
            f"{math.prod(shape)} elements: the products of the extents must be equal"
        )
    if size == 0 or _packed(old, strides):
        return View(shape, whole(shape)[1], offset)
    extents, steps = _merged(old, strides)
    axis = len(extents) - 1
    left, step = extents[axis], steps[axis]
    fine: list[int] = []  # the new strides, from the last axis to the first
    for extent in reversed(shape):
        if left == 1 and extent != 1:
            axis -= 1
            left, step = extents[axis], steps[axis]
        if left % extent:
            return None
        fine.append(step)
        left //= extent
        step *= extent
    return View(shape, tuple(fine[::-1]), offset)


# --- views of views ------------------------------------------------------------------------------


def compose(outer: View, inner: View) -> View | None:
    """A view of a view: `outer` counts in the row-major linear index of `inner`'s own elements;
    the result counts in the base of `inner`. None if no strides say that.

    >>> compose(whole((3, 2)), permute(whole((2, 3)), (1, 0)))
    View(shape=(3, 2), strides=(1, 3), offset=0)
    >>> compose(whole((6,)), permute(whole((2, 3)), (1, 0))) is None
    True
    """
    shape, strides, offset = outer
    base_shape, base_strides, base_offset = inner
    if 0 in shape:
        return View(shape, whole(shape)[1], base_offset)
    if _packed(base_shape, base_strides):
        return View(shape, strides, base_offset + offset) if base_offset else outer
    if is_whole(outer, base_shape):
        return inner
    extents, steps = _merged(base_shape, base_strides)
    if len(extents) == 1:
        step = steps[0]
        return View(shape, tuple([step * s for s in strides]), base_offset + step * offset)
    return _compose_digits(outer, extents, steps, base_offset)


def finer(outer: View, inner: View) -> Integers | None:
    """The shape of `outer` with axes split, so that `compose` can follow each of them through
    `inner`. None if no such shape was found.

    >>> finer(whole((10, 6)), expand(whole((5, 1, 6)), (5, 2, 6)))
    (5, 2, 6)
    >>> finer(whole((30,)), permute(whole((5, 6)), (1, 0)))
    (6, 5)
    """
    extents, _ = _merged(inner.shape, inner.strides)
    split: list[int] = []
    for extent, stride in zip(outer.shape, outer.strides, strict=True):
        bound, step, left = 1, stride, extent
        parts: list[int] = []
        for each in reversed(extents[1:]):  # where the linear index carries into the next axis
            bound *= each
            if step > 0 and bound > step and bound % step == 0:
                count = bound // step
                if count < left and left % count == 0:
                    parts.append(count)
                    left //= count
                    step = bound
        split += [left, *reversed(parts)]
    shape = tuple(split)
    if shape == outer.shape:
        return None
    seen = reshape(outer, shape)
    return shape if seen is not None and compose(seen, inner) is not None else None


def _compose_digits(outer: View, extents: Integers, steps: Integers, start: int) -> View | None:
    """Compose over several axes that do not merge.

    A linear index has one digit for each of these axes. One step along an axis of `outer` changes
    the digits by some amounts; where no digit ever leaves its range by adding up these amounts, no
    carry happens, so positions in the base add up as well.
    """
    shape, strides, offset = outer
    first = _digits(offset, extents)
    low, high = list(first), list(first)
    composed = []
    for extent, stride in zip(shape, strides, strict=True):
        moved = 0
        if stride and extent != 1:
            after = _digits(offset + stride, extents)
            for axis, digit in enumerate(after):
                change = digit - first[axis]
                if change < 0:
                    low[axis] += change * (extent - 1)
                    if low[axis] < 0:
                        return None
                elif change:
                    high[axis] += change * (extent - 1)
                    if high[axis] >= extents[axis]:
                        return None
                moved += change * steps[axis]
        composed.append(moved)
    for digit, step in zip(first, steps, strict=True):
        start += digit * step
    return View(shape, tuple(composed), start)


def along_axes(view: View, extents: Integers) -> tuple[Integers, tuple[Integers, ...]] | None:
    """A view's indices along the axes of its base: of its first element, and by how much they
    change with a step along each of its own axes. None if they do not change evenly, or if the base
    has no elements.

    >>> along_axes(View((3, 2), (4, -1), 1), (3, 4))
    ((0, 1), ((1, 0), (0, -1)))
    """
    shape, strides, offset = view
    if any(type(extent) is int and not extent for extent in extents):
        return None
    first = _digits(offset, extents)
    low, high = list(first), list(first)
    moves: list[Integers] = []
    for extent, stride in zip(shape, strides, strict=True):
        if not stride or extent == 1:
            moves.append((0,) * len(extents))
            continue
        after = _digits(offset + stride, extents)
        change = tuple([to - since for to, since in zip(after, first, strict=True)])
        for axis, step in enumerate(change):
            if step < 0:
                low[axis] += step * (extent - 1)
                if low[axis] < 0:
                    return None
            elif step:
                high[axis] += step * (extent - 1)
                if high[axis] >= extents[axis]:
                    return None
        moves.append(change)
    return tuple(first), tuple(moves)


def _digits(index: int, extents: Integers) -> list[int]:
    """A row-major linear index as one index for each axis."""
    digits = []
    for extent in reversed(extents):
        index, digit = divmod(index, extent)
        digits.append(digit)
    return digits[::-1]


# --- fewer axes ----------------------------------------------------------------------------------


def merge_axes(shape: Integers, strides: list[Integers]) -> tuple[Integers, list[Integers]]:
    """The same elements of all arrays in the same order, with as few axes as possible (at least 1).

    >>> merge_axes((2, 3, 1, 4), [(12, 4, 4, 1), (12, 4, 4, 1)])
    ((24,), [(1,), (1,)])
    >>> merge_axes((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
    ((6, 4), [(4, 1), (0, 1)])
    """
    if not strides:
        return (math.prod(shape),), []
    if strides.count(strides[0]) == len(strides):  # the common case: all lie alike
        extents, steps = _merged(shape, strides[0])
        return extents, [steps] * len(strides)
    kept: list[int] = []
    columns: list[Integers] = []  # for each axis that is kept, every array's stride
    for extent, column in zip(shape, zip(*strides, strict=True), strict=True):
        if extent == 1:
            continue
        if kept:
            for last, step in zip(columns[-1], column, strict=True):
                if last != step * extent:
                    break
            else:
                kept[-1] *= extent
                columns[-1] = column
                continue
        kept.append(extent)
        columns.append(column)
    if not kept:
        return (1,), [(1,)] * len(strides)
    return tuple(kept), list(zip(*columns, strict=True))


def _merged(shape: Integers, strides: Integers) -> tuple[Integers, Integers]:
    """`merge_axes` of one array."""
    extents: list[int] = []
    steps: list[int] = []
    for extent, step in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if extents and steps[-1] == step * extent:
            extents[-1] *= extent
            steps[-1] = step
        else:
            extents.append(extent)
            steps.append(step)
    return (tuple(extents), tuple(steps)) if extents else ((1,), (1,))
