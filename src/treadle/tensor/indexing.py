"""Index expressions: `x[...]` parsed into a plan before anything is read or copied.

`parse` splits an index as NumPy does. Integers, slices, `...` and None are the basic part: a view.
The others are picks (arrays of integers, and masks, that select along axes of that view) and
windows (slices that begin at an integer on the device). A plan never reads a device's data, so the
number of elements that a mask selects is known only after `resolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_dtype
from treadle.core.errors import DtypeError
from treadle.core.sizes import Size, slice_of
from treadle.graph.placeholders import within
from treadle.graph.views import Integers, View
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.device_windows import PLAIN_BOUNDS, Window, window_of

newaxis = None  # in an index: a new axis of extent 1
_NUMPY_KINDS = {"b": "bool", "i": "int", "u": "uint"}


@dataclass(frozen=True, slots=True)
class Pick:
    """An array in an index, and the axes of the plan's view that it indexes.

    Integers index one axis. A mask indexes as many axes as it has, and none if it is one bool; then
    `resolve` leaves integers without an axis, which only have a shape.
    """

    axes: Integers
    values: Any  # has a shape and a dtype: a NumPy array, a Tensor
    mask: bool = False
    inside: bool = False  # the integers are known to be neither negative nor too large


@dataclass(frozen=True, slots=True)
class Plan:
    """The elements that an index selects: those of a view, picked along some of its axes.

    The axes of the result are those of the view without picks, in order, with the axes of the picks
    (broadcast to one shape) inserted before axis `place`.
    """

    view: View  # of the same base as the indexed view; along windows, from the axis's beginning
    picks: tuple[Pick, ...] = ()
    place: int = 0
    windows: tuple[Window, ...] = ()
    copied: bool = False  # whether what is read is a copy, though there may be a view

    @property
    def basic(self) -> bool:
        """Whether the view alone says which elements these are."""
        return not self.picks and not self.windows

    @property
    def resolved(self) -> bool:
        """Whether there are no masks, so that all shapes are known."""
        return not any(pick.mask for pick in self.picks)

    @property
    def reached(self) -> View:
        """The view, with no more elements along a window than its axis has."""
        extents = list(self.view.shape)
        for window in self.windows:
            extents[window.axis] = min(extents[window.axis], window.extent)
        return View(tuple(extents), self.view.strides, self.view.offset)

    @property
    def kept(self) -> Integers:
        """The axes of the view without picks."""
        picked = {axis for pick in self.picks for axis in pick.axes}
        return tuple(axis for axis in range(len(self.view.shape)) if axis not in picked)

    @property
    def picked_shape(self) -> Integers:
        """The shape to which the picks broadcast; for a resolved plan."""
        assert self.resolved, "a mask's true elements are not counted yet"
        return _broadcast(self.picks)

    @property
    def shape(self) -> Integers:
        """The shape of the result; for a resolved plan."""
        extents = self.view.shape
        if not self.picks:
            return extents
        kept = [extents[axis] for axis in self.kept]
        return (*kept[: self.place], *self.picked_shape, *kept[self.place :])


def basic(index: ArrayLike, base: View) -> View | None:
    """A fast path: the view that an index of ints and slices selects. None for anything else and
    for errors: `parse` reports these.

    >>> basic((slice(None), -1), View((2, 3), (3, 1), 0))
    View(shape=(2,), strides=(3,), offset=2)
    """
    shape, strides, offset = base
    parts = index if type(index) is tuple else (index,)
    if len(parts) > len(shape):
        return None
    extents: list[int] = []
    steps: list[int] = []
    axis = 0
    for part in parts:
        kind = type(part)
        if kind is int or kind is Size:
            extent = shape[axis]
            if part < 0:
                part += extent
            if not 0 <= part < extent:
                return None
            offset += part * strides[axis]
        elif kind is slice:
            if type(part.start) not in PLAIN_BOUNDS:
                return None
            start, count, step = slice_of(part, shape[axis])
            stride = strides[axis]
            if count:
                offset += start * stride
            extents.append(count)
            steps.append(stride * step if count > 1 else stride)
        else:
            return None
        axis += 1
    return View((*extents, *shape[axis:]), (*steps, *strides[axis:]), offset)


def parse(index: ArrayLike, base: View, keeps_scalars: bool = False) -> Plan:
    """The plan of an index into a view. With `keeps_scalars` a tensor of one integer without axes
    is a pick, while else it is read, since integers make views.

    IndexError for integers outside their axis, too many indices, masks and index arrays that do not
    fit; TypeError for anything that is not an index.

    >>> parse((slice(None), -1), View((2, 3), (3, 1), 0)).view
    View(shape=(2,), strides=(3,), offset=2)
    >>> plan = parse((0, ..., [2, 2, 1]), View((4, 5, 3), (15, 3, 1), 0))
    >>> plan.view.shape, plan.picks[0].axes, plan.place, plan.shape
    ((5, 3), (1,), 0, (3, 5))
    """
    shape = base.shape
    parts: list[Any] = []
    taken = dots = 0
    for part in index if isinstance(index, tuple) else (index,):
        kind = type(part)
        if kind is slice or kind is int or kind is Size:
            taken += 1
            if kind is slice and type(part.start) not in PLAIN_BOUNDS:
                part = window_of(part)
        elif part is Ellipsis:
            dots += 1
        elif part is not None:
            part = _part(part, keeps_scalars)
            taken += _axes_taken(part)
        parts.append(part)
    if taken > len(shape):
        raise IndexError(
            f"too many indices ({taken}) for a tensor of shape {shape}, which has {len(shape)} "
            f"ax{'i' if len(shape) == 1 else 'e'}s"
        )
    if dots > 1:
        raise IndexError("an index may contain only one ...")
    if not dots:
        parts.append(Ellipsis)
    return _split(parts, base, len(shape) - taken)


def resolve(plan: Plan, find: Callable[[Any], Sequence[Any]]) -> Plan:
    """The plan with integers in place of masks.

    `find` takes a mask and returns the indices of its true elements, an array of integers for each
    axis, in row-major order; for a mask without axes, one array with a zero for each true element.
    IndexError if the masks do not select as many elements as the other index arrays.
    """
    picks: list[Pick] = []
    for pick in plan.picks:
        if not pick.mask:
            picks.append(pick)
        elif pick.axes:
            found = find(pick.values)
            picks += [Pick((a,), v, inside=True) for a, v in zip(pick.axes, found, strict=True)]
        else:
            picks.append(Pick((), find(pick.values)[0], inside=True))
    _broadcast(picks)
    return replace(plan, picks=tuple(picks))


# --- the parts of an index
# ---------------------------------------------------------------------------


def _part(part: Any, keeps_scalars: bool) -> Any:
    """A part that is not an int, slice, None or `...`, as an int or as a pick without axes."""
    if isinstance(part, (bool, np.bool_)):
        return _one_bool(bool(part))
    if isinstance(part, (list, tuple, range)):
        return _of_array(_listed(part), False)
    if hasattr(part, "shape") and hasattr(part, "dtype"):
        return _of_array(part, keeps_scalars)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise TypeError(
        "a tensor is indexed by integers, slices, ..., None, and arrays of integers or bools, not "
        f"{type(part).__name__}"
    )


def _of_array(array: Any, keeps_scalars: bool) -> Any:
    kind = _kind(array.dtype)
    if kind in ("int", "uint"):
        # Within td.vmap the integer differs from example to example.
        keeps = (within.get() is not None or keeps_scalars) and not isinstance(array, np.ndarray)
        return Pick((), array) if array.shape or keeps else array.__index__()
    if kind != "bool":
        raise DtypeError(
            f"an index array holds integers or bools, not {array.dtype}: cast it to an integer "
            "dtype, or compare it to make a mask"
        )
    if array.shape or not isinstance(array, np.ndarray):
        return Pick((), array, mask=True)
    return _one_bool(bool(array))


def _one_bool(value: bool) -> Pick:
    """A bool as a pick: an axis of extent 1 for True, of extent 0 for False."""
    return Pick((), np.zeros(int(value), np.int64), inside=True)


def _listed(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError("nested lists of different lengths are not an index") from None
    return array if array.size else array.astype(np.int64)


def _kind(dtype: Any) -> str:
    if isinstance(dtype, DType):
        return dtype.kind
    if isinstance(dtype, np.dtype):
        return _NUMPY_KINDS.get(dtype.kind, "other")
    try:
        return as_dtype(str(dtype).split(".")[-1]).kind  # another library's: torch.int64
    except DtypeError:
        return "other"


def _axes_taken(part: Any) -> int:
    """How many axes of the indexed array an integer or a pick takes."""
    if not isinstance(part, Pick):  # an integer, a slice or a window
        return 1
    return len(part.values.shape) if part.mask else 0 if part.inside else 1


# --- the view, and the picks along its axes -----------------------------------------------------


def _split(parts: list[Any], base: View, missing: int) -> Plan:
    """The plan of parts that fit; `...` stands for `missing` axes."""
    shape, strides, offset = base
    extents: list[int] = []
    steps: list[int] = []
    axis = 0
    picks: list[Pick] = []
    windows: list[Window] = []
    copied = False
    for part in parts:
        kind = type(part)
        if kind is Window:
            window = replace(part, axis=len(extents), extent=shape[axis])
            copied = True
            extents.append(part.count)
            if (place := window.begin_inside()) is not None:
                offset += place * strides[axis]
                steps.append(strides[axis] * part.step if part.count > 1 else strides[axis])
            else:
                windows.append(window)
                steps.append(strides[axis])
            axis += 1
        elif kind is slice:
            start, count, step = slice_of(part, shape[axis])
            if count:
                offset += start * strides[axis]
            extents.append(count)
            steps.append(strides[axis] * step if count > 1 else strides[axis])
            axis += 1
        elif kind is int or kind is Size:
            offset += _inside(part, axis, shape[axis]) * strides[axis]
            axis += 1
        elif part is None:
            extents.append(1)
            steps.append(shape[axis] * strides[axis] if axis < len(shape) else 1)
        else:
            after = axis + (missing if part is Ellipsis else _axes_taken(part))
            if part is not Ellipsis:
                picks.append(_fitted(part, len(extents), axis, shape[axis:after]))
            extents += shape[axis:after]
            steps += strides[axis:after]
            axis = after
    view = View(tuple(extents), tuple(steps), offset)
    if not picks:
        return Plan(view, windows=tuple(windows), copied=copied)
    _broadcast([pick for pick in picks if not pick.mask])  # raises for shapes that do not fit
    return Plan(view, tuple(picks), _place(parts, missing), tuple(windows))


def _inside(position: int, axis: int, extent: int) -> int:
    """A position along an axis, made non-negative. IndexError if it is outside."""
    if -extent <= position < extent:
        return position if position >= 0 else position + extent
    raise IndexError(f"index {position} is outside axis {axis} of extent {extent}{_bounds(extent)}")


def _bounds(extent: int) -> str:
    return f": it must be from {-extent} to {extent - 1}" if extent else ", which has no elements"


def _fitted(pick: Pick, first: int, axis: int, extents: Integers) -> Pick:
    """A pick along the view's axes from `first` on, checked against the extents that it indexes."""
    axes = tuple(range(first, first + len(extents)))
    if pick.mask:
        mask_shape = tuple(pick.values.shape)
        if mask_shape != extents:
            if all(mine in (0, full) for mine, full in zip(mask_shape, extents, strict=True)):
                return Pick(axes, np.zeros(mask_shape, np.bool_), mask=True)  # nothing is true
            where = f"axis {axis}" if len(axes) == 1 else f"axes {axis} to {axis + len(axes) - 1}"
            raise IndexError(
                f"a mask of shape {mask_shape} does not fit {where} of shape {extents}: a mask has "
                "the shape of what it masks"
            )
    elif axes and isinstance(pick.values, np.ndarray):
        return Pick(axes, all_inside(pick.values, axis, extents[0]), inside=True)
    return Pick(axes, pick.values, pick.mask, pick.inside)


def all_inside(values: np.ndarray[Any, Any], axis: int, extent: int) -> np.ndarray[Any, Any]:
    """An array in the host's memory, each integer of it checked and made non-negative as by
    `_inside`."""
    low = check_inside(values, axis, extent)
    wide = values.astype(np.int64)
    if low < 0:
        wide[wide < 0] += extent
    return wide


def check_inside(values: np.ndarray[Any, Any], axis: int, extent: int) -> int:
    """The least of indices. IndexError if one is outside."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, -1)
    if low < -extent or high >= extent:
        at = tuple(np.argwhere((values < -extent) | (values >= extent))[0].tolist())
        raise IndexError(
            f"index {values[at]} at {at if len(at) > 1 else at[0]} of an index array is outside "
            f"axis {axis} of extent {extent}{_bounds(extent)}"
        )
    return low


def _place(parts: list[Any], missing: int) -> int:
    """The place of the picked axes in the result: that of the first integer or array if these are
    adjacent in the index, else the front."""
    picking = [at for at, part in enumerate(parts) if type(part) in (int, Size, Pick)]
    first, last = picking[0], picking[-1]
    if last - first >= len(picking):
        return 0
    return sum(missing if part is Ellipsis else 1 for part in parts[:first])


def _broadcast(picks: Sequence[Pick]) -> Integers:
    """The common shape of index arrays."""
    shapes = [tuple(pick.values.shape) for pick in picks]
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"the index arrays, of shapes {', '.join(map(str, shapes))}, do not broadcast: counted "
            "from the right, extents must be equal or 1 (a mask counts its true elements)"
        ) from None
