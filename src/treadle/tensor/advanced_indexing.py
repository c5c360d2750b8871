"""Advanced indexing: reading and writing through index arrays and masks, by an index plan.

A read is one gather from the base array: every index becomes a linear index into the base, computed
by integer operations in the kernel that gathers. Indices in a tensor are not read on the host, so
one outside its axis raises no IndexError, as others do: it gives 0, and a write there is dropped.
Under TREADLE_CHECK=1 they are read and checked. The same holds for the elements of a window that
begins at an integer on the device.

The true elements of a mask have to be counted, which waits for the device, unless one value is
written to all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, bool_, int32, int64, uint8, uint32
from treadle.core.errors import DtypeError
from treadle.graph import history as histories
from treadle.graph import views
from treadle.graph.calls import call
from treadle.graph.history import recording
from treadle.graph.node import GATHER, INDEX, Node, computed, constant, view_of
from treadle.graph.placeholders import record_composite, within
from treadle.graph.realize import finish_readers, realize
from treadle.graph.views import Integers, View
from treadle.kernels.scatter import put as scatter
from treadle.kernels.scatter import scattered
from treadle.kernels.select import positions
from treadle.runtime.arrays import DeviceArray, numpy_dtype
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.checks import looked_at
from treadle.tensor.composites import as_one_node
from treadle.tensor.conversions import cast, is_number, mixed_devices, number_as
from treadle.tensor.creation import asarray
from treadle.tensor.device_windows import Window
from treadle.tensor.indexing import Pick, Plan, basic, check_inside, parse, resolve
from treadle.tensor.operands import values_for, values_of
from treadle.tensor.tensor import Tensor, from_cell, from_node

_MOST_INT32 = (1 << 31) - 1
_MOST_UINT32 = (1 << 32) - 1


def part_of(tensor: Tensor, index: Any, /) -> Tensor:
    """`x[index]`: a view for integers, slices (any step), `...` and None (a new axis); a copy for
    arrays of integers and for masks, whose true elements are counted."""
    base = tensor._view or views.whole(tensor._cell.value.shape)
    view = basic(index, base)
    if view is None:
        plan = parse(index, base)
        if not plan.basic:
            return picked(tensor, plan)
        if plan.copied:
            return tensor._seen_through(plan.view).copied()
        view = plan.view
    return tensor._seen_through(view)


def write_part(tensor: Tensor, index: Any, value: Any, /) -> None:
    """`x[index] = value`: write numbers or an array into a part of the tensor; they are broadcast
    and cast. Of several values for one element the last one stays."""
    tensor._check_unlocked()
    cell = tensor._cell
    base = tensor._view or views.whole(cell.value.shape)
    view = basic(index, base)
    if view is None or type(cell.value.dtype) is not DType:
        # What is recorded cannot read an index, but can write where it says.
        recorded = cell.value.device.default_stream.capturing is not None
        plan = parse(index, base, recorded)
        if not plan.basic or type(cell.value.dtype) is not DType:
            put(tensor, plan, value)
            return
        view = plan.view
    if type(value) is Tensor and value._cell is cell and value._where == view:
        return  # the last step of `x[1:3] += 1`
    part = tensor._whole_or(view)
    values = values_for(value, part)
    if values.size:
        if tensor._boundary is not None and recording.get() and tensor._history is not None:
            raise tensor._boundary.refusal(tensor)
        part._write(values)


def picked(tensor: Tensor, plan: Plan) -> Tensor:
    """The elements that a plan with picks or windows selects, in new memory."""
    if type(tensor.dtype) is not DType:
        return _picked_structs(tensor, plan)
    plan = _resolved(plan, tensor.device)
    source = tensor._whole
    if not source.size:  # there is nothing in memory to gather from
        return from_node(gathered_from_empty(source, plan.shape))
    return from_node(gathered(source, linear_index(plan, source)))


def gathered_from_empty(source: Node, shape: Integers) -> Node:
    """The result of a gather from an array without elements: zeros, since every index is
    outside."""
    made = constant(number_as(0, source.dtype), shape, source.dtype, source.device)
    if source.history is not None and histories.recording.get():
        no_part = View(source.shape, (0,) * len(source.shape), 0)
        record_composite(histories.derivatives["assembled"], [made], [source], [no_part])
    return made


def gathered(source: Node, index: Node) -> Node:
    """The elements of a whole array at linear indices; 0 for indices outside."""
    if source.op == "cast" and source.array is None:  # cast the gathered elements only
        return cast(gathered(source.sources[0], index), source.dtype)
    return Node(GATHER, (source, index), index.shape, source.dtype, source.device)


def scattered_at(
    x: Node, places: Node, values: Node, how: str = "put", distinct: bool = False
) -> Node:
    """A copy of an array with values written, added or combined at linear indices; those outside
    are dropped. There is one value, or one for each index."""
    made = call(scattered, (x, places, values), x.shape, x.dtype, (how, distinct))
    if made.history is not None:
        derivative = histories.derivatives[f"scattered {how}"]
        record_composite(derivative, [made], [x, places, values], distinct)
    return made


def put(tensor: Tensor, plan: Plan, value: ArrayLike) -> None:
    """Write to the elements that a plan selects. Of several values for one element the last one
    stays."""
    part = tensor._whole_or(plan.view)
    if type(tensor.dtype) is not DType:
        _put_structs(tensor, plan, value)
    elif _is_one_mask(plan) and not plan.windows and _is_one_value(plan, value):
        _put_where(part, plan, value)
    else:
        distinct = not plan.picks or _is_one_mask(plan)
        plan = _resolved(plan, tensor.device)
        single = is_number(value) and type(value) is not Tensor
        shape = (1,) if single else plan.shape
        values = values_of(value, shape, tensor.dtype, tensor.device)
        if 0 not in plan.shape and plan.view.shape.count(0) == 0 and tensor._cell.value.size:
            _scatter(tensor, plan, values, distinct)


# --- masks whose true elements need not be counted
# --------------------------------------------------------------


def _is_one_mask(plan: Plan) -> bool:
    return len(plan.picks) == 1 and plan.picks[0].mask


def _is_one_value(plan: Plan, value: Any) -> bool:
    """Whether the plan has one mask, and the value is the same for all elements that it selects."""
    shape = () if is_number(value) else np.shape(value) if _is_list(value) else tuple(value.shape)
    behind = len(plan.kept) - plan.place  # axes after the picked one
    return len(shape) <= behind or shape[len(shape) - behind - 1] == 1


def _is_list(value: Any) -> bool:
    return not hasattr(value, "shape")


def _put_where(part: Tensor, plan: Plan, value: Any) -> None:
    """The old elements, or the value where the mask is true: one kernel."""
    shape, place, kept = plan.view.shape, plan.place, plan.kept
    extents = [shape[axis] for axis in kept]
    wanted = (*extents[:place], 1, *extents[place:])
    new = values_of(value, wanted, part.dtype, part.device)
    pick = plan.picks[0]
    if 0 in shape or 0 in pick.values.shape:
        return
    node = _index_node(pick.values, part.device)
    steps = views.whole(wanted).strides
    kept_steps = dict(zip(kept, (*steps[:place], *steps[place + 1 :]), strict=True))
    value_view = View(shape, tuple([kept_steps.get(axis, 0) for axis in range(len(shape))]), 0)
    mask_steps = dict(zip(pick.axes, views.whole(node.shape).strides, strict=True))
    masked = View(shape, tuple([mask_steps.get(axis, 0) for axis in range(len(shape))]), 0)
    old = part._node
    part._write(_op("where", old.dtype, view_of(node, masked), view_of(new, value_view), old))


# --- linear indices ------------------------------------------------------------------------------


class Term(NamedTuple):
    """A term of a linear index: indices along an axis, as a view with the result's axes."""

    places: Node
    inside: Node | None  # whether each is inside its axis; None if all are known to be
    seen: View
    stride: int


def linear_index(plan: Plan, source: Node) -> Node:
    """The linear indices of a resolved plan's elements in the base array of its view."""
    view, shape, place = plan.view, plan.shape, plan.place
    if not plan.picks and len(plan.windows) == 1:  # as a cache is written: one node
        window = plan.windows[0]
        _start_of(window, source)  # is checked
        start, axis, step, extent = window.start, window.axis, window.step, window.extent
        made: Node = _index_of_window(start, view, axis, step, extent, source.size)._cell.value
        return made
    if not plan.windows and len(plan.picks) == 1 and len(plan.picks[0].axes) == 1:
        (pick,) = plan.picks
        (axis,) = pick.axes
        if type(pick.values) is Tensor and not pick.inside:  # the usual one: one node
            _looked_into(pick, view.shape[axis], source)
            one = _index_of_pick(pick.values, view, axis, place, source.size)
            found: Node = one._cell.value
            return found
    picked_shape = plan.picked_shape
    before, behind = (0,) * place, (0,) * (len(shape) - place - len(picked_shape))
    moved = {window.axis: window for window in plan.windows}
    kept = [0 if axis in moved else view.strides[axis] for axis in plan.kept]
    steps = (*kept[:place], *(0,) * len(picked_shape), *kept[place:])
    terms = []
    for pick in plan.picks:
        for axis in pick.axes:
            node, inside = places_along(pick, view.shape[axis], source)
            seen = views.expand(views.whole(node.shape), picked_shape)
            seen = View(shape, before + seen.strides + behind, seen.offset)
            terms.append(Term(node, inside, seen, view.strides[axis]))
    for at, axis in enumerate(plan.kept):
        if axis in moved:
            window = moved[axis]
            start = _start_of(window, source)
            node, inside = _window_places(
                start, window.count, window.step, window.extent, index_dtype(source.size)
            )
            own = at if at < place else at + len(picked_shape)  # the axis of the result
            seen = View(shape, tuple([int(other == own) for other in range(len(shape))]), 0)
            terms.append(Term(node, inside, seen, view.strides[axis]))
    return sum_of(View(shape, steps, view.offset), terms, source.size, source.device)


def sum_of(base: View, terms: Sequence[Term], size: int, device: Device) -> Node:
    """The linear index of a view's elements plus the terms; -1 for an index outside its axis. The
    base of the view has `size` elements."""
    dtype = index_dtype(size)
    total: Node | None = None
    if any(base.strides) or base.offset:
        counted = Node(INDEX, (), (size,), dtype, device)
        total = view_of(counted, base)
    valid: Node | None = None
    for places, inside, seen, stride in terms:
        term = view_of(places, seen)
        if stride != 1:
            term = _op("multiply", dtype, term, _like(term, stride))
        total = term if total is None else _op("add", dtype, total, term)
        if inside is not None:
            within = view_of(inside, seen)
            valid = within if valid is None else _op("logical_and", bool_, valid, within)
    if total is None:  # of one element, or of a mask without axes
        total = constant(0, base.shape, dtype, device)
    return total if valid is None else _op("where", dtype, valid, total, _like(total, -1))


def index_dtype(size: int) -> DType:
    """The dtype of linear indices into an array of this size."""
    return int32 if size <= _MOST_INT32 else int64


def places_along(pick: Pick, extent: int, source: Node) -> tuple[Node, Node | None]:
    """Indices along an axis, made non-negative, and whether each is inside (None if all are known
    to be)."""
    dtype, device = index_dtype(source.size), source.device
    if isinstance(pick.values, np.ndarray):  # `parse` has checked them
        return _index_node(pick.values.astype(dtype.numpy), device), None
    if pick.inside:
        return cast(_index_node(pick.values, device), dtype), None
    return _counted(_looked_into(pick, extent, source), extent, dtype)


def _looked_into(pick: Pick, extent: int, source: Node) -> Node:
    """The indices of a pick. IndexError if they are looked at, and one is outside."""
    node = _index_node(pick.values, source.device)
    if looked_at(source.device):
        check_inside(_read(node), pick.axes[0], extent)
    return node


def _counted(node: Node, extent: int, dtype: DType) -> tuple[Node, Node]:
    """Indices made non-negative, and whether each is inside."""
    node = _from_front(node, extent, dtype)
    if node.dtype is uint32 and extent > _MOST_UINT32:
        inside = constant(True, node.shape, bool_, node.device)
    else:
        inside = _is_inside(node, extent)
    return cast(node, dtype), inside


@as_one_node
def _index_of_pick(values: Tensor, view: View, axis: int, place: int, size: int) -> Tensor:
    """The linear indices, into a base of `size` elements, of a view's elements at indices along one
    axis, whose axes are from `place` on among those of the result."""
    node, inside = _counted(values._node, view.shape[axis], index_dtype(size))
    own, count = views.whole(node.shape), len(node.shape)
    extents = (*view.shape[:axis], *view.shape[axis + 1 :])
    steps = (*view.strides[:axis], *view.strides[axis + 1 :])
    shape = (*extents[:place], *node.shape, *extents[place:])
    base = (*steps[:place], *(0,) * count, *steps[place:])
    behind = (0,) * (len(extents) - place)
    seen = View(shape, (*(0,) * place, *own.strides, *behind), own.offset)
    term = Term(node, inside, seen, view.strides[axis])
    return from_node(sum_of(View(shape, base, view.offset), [term], size, values.device))


def _from_front(node: Node, extent: int, dtype: DType) -> Node:
    """Indices with those that are negative counted from the front of their axis, in a dtype that
    holds its extent, except for a uint32."""
    own = node.dtype
    if own.itemsize < 4 or own is int32:
        node = cast(node, dtype)
        own = dtype
    if own.kind == "int":
        low = _op("less", bool_, node, _like(node, 0))
        node = _op("where", own, low, _op("add", own, node, _like(node, extent)), node)
    return node


def _is_inside(node: Node, extent: int) -> Node:
    below = _op("less", bool_, node, _like(node, extent))
    if node.dtype.kind == "uint":
        return below
    return _op("logical_and", bool_, _op("greater_equal", bool_, node, _like(node, 0)), below)


def _start_of(window: Window, source: Node) -> Node:
    """Where a window begins. IndexError if that is checked, and the window reaches outside."""
    start = _index_node(window.start, source.device)
    if looked_at(source.device):
        window.check(int(_read(start)))
    return start


def _window_places(
    start: Node, count: int, step: int, extent: int, dtype: DType
) -> tuple[Node, Node]:
    """The indices of a window along its axis, and whether each is inside."""
    start = _from_front(start, extent, dtype)
    if start.dtype.kind == "uint":  # beyond the axis by however much: sums must not wrap
        if start.dtype is not uint32 or extent <= _MOST_UINT32:
            far = _like(start, extent)
            start = _op("where", start.dtype, _op("less", bool_, start, far), start, far)
        start = cast(start, dtype)
    shape, own = (count,), start.dtype
    places = Node(INDEX, (), shape, own, start.device)
    if step != 1:
        places = _op("multiply", own, places, _like(places, step))
    places = _op("add", own, view_of(start, View(shape, (0,), 0)), places)
    return cast(places, dtype), _is_inside(places, extent)


@as_one_node
def _index_of_window(
    start: Tensor, view: View, axis: int, step: int, extent: int, size: int
) -> Tensor:
    """The linear indices of a view's elements, whose axis is a window that begins at `start`, into
    a base of `size` elements."""
    shape, strides, offset = view
    places, inside = _window_places(start._node, shape[axis], step, extent, index_dtype(size))
    own = [int(other == axis) for other in range(len(shape))]
    kept = [0 if is_own else stride for is_own, stride in zip(own, strides, strict=True)]
    term = Term(places, inside, View(shape, tuple(own), 0), strides[axis])
    return from_node(sum_of(View(shape, tuple(kept), offset), [term], size, start.device))


def _op(name: str, dtype: DType, *sources: Node) -> Node:
    first = sources[0]
    return Node(name, sources, first.shape, dtype, first.device)


def _like(node: Node, value: int) -> Node:
    return constant(value, node.shape, node.dtype, node.device)


def _index_node(values: Any, device: Device) -> Node:
    """An index array on a device. LaunchError for a tensor on another device."""
    if type(values) is not Tensor:
        values = asarray(values, device=device)
    if values.device is not device:
        raise mixed_devices("indexing", device, values.device)
    found: Node = values._node
    return found


def _read(node: Node) -> np.ndarray[Any, Any]:
    realize((node,))
    return node.whole_array.to_host()


# --- masks whose true elements are counted
# ----------------------------------------------------------------------


def _resolved(plan: Plan, device: Device) -> Plan:
    return plan if plan.resolved else resolve(plan, lambda mask: true_places(mask, device))


def true_places(mask: ArrayLike, device: Device) -> list[Any]:
    """The indices of a mask's true elements along each axis. If the mask is a tensor, they stay on
    its device and only their number is read."""
    if isinstance(mask, np.ndarray):
        return list(mask.nonzero())
    node = _index_node(mask, device)
    if not node.shape:
        return [np.zeros(int(_read(node)), np.int64)]
    flat = flat_places(node, index_dtype(node.size))
    return [from_node(each) for each in unraveled(flat, node.shape)]


def flat_places(mask: Node, dtype: DType) -> Node:
    """The linear indices of a mask's true elements, whose number is read."""
    if not mask.size:
        return constant(0, (0,), dtype, mask.device)
    realize((mask,))
    return computed(positions(mask.whole_array, dtype))


def unraveled(flat: Node, shape: Integers) -> list[Node]:
    """Linear indices split into an index for each axis."""
    if len(shape) == 1:
        return [flat]
    found: list[Node] = []
    rest = flat
    for axis in range(len(shape) - 1, 0, -1):
        extent = _like(flat, shape[axis])
        found.append(_op("remainder", flat.dtype, rest, extent))
        rest = _op("floor_divide", flat.dtype, rest, extent)
    return [rest, *reversed(found)]


# --- writing at indices ---------------------------------------------------------------------------


def _scatter(tensor: Tensor, plan: Plan, values: Node, distinct: bool) -> None:
    """Write values into a tensor's memory now, after the pending kernels that read it."""
    _refuse_overlaps(plan.reached)
    source = tensor._cell.value
    index = linear_index(plan, source)
    # Tensors have no memory within td.vmap, and computed views have none of their own.
    if within.get() is not None or tensor._cell.base is not None:
        made = scattered_at(source, index, values, "put", distinct)
        tensor._whole_or(views.whole(source.shape))._write(made)
        return
    realize((source, index, values))
    array = source.whole_array
    if array.key.read_only:
        raise ValueError("this tensor is read-only: copy it first")
    made = computed(array)
    is_tracked = values.history is not None
    if histories.recording.get() and (is_tracked or source.history is not None):
        derivative = histories.derivatives["scattered put"]
        record_composite(derivative, [made], [source, index, values], distinct)
    tensor._replace(made, is_tracked)
    finish_readers(array.storage)
    scatter(array, index.whole_array, values.whole_array, distinct)


def _refuse_overlaps(view: View) -> None:
    if views.overlaps(view):
        raise ValueError(
            "several elements of this tensor are one in memory (it was broadcast): write to a "
            "copy of it, td.asarray(x, copy=True)"
        )


# --- arrays of structs ---------------------------------------------------------------------------


def _picked_structs(tensor: Tensor, plan: Plan) -> Tensor:
    """Structs are gathered word by word."""
    dtype = tensor.dtype
    words, word_plan = _as_words(tensor, plan)
    array = picked(words, word_plan)._array
    count = array.shape[-1]
    shape, offset = array.shape[:-1], array.offset // count
    return Tensor(DeviceArray(array.device, array.storage, dtype, shape, None, offset))


def _put_structs(tensor: Tensor, plan: Plan, value: Any) -> None:
    words, word_plan = _as_words(tensor, plan)
    if type(value) is not Tensor:
        value = asarray(np.asarray(value, numpy_dtype(tensor.dtype)), device=tensor.device)
    if value.dtype != tensor.dtype:
        raise DtypeError(f"{value.dtype} does not fit into a tensor of {tensor.dtype}")
    values = _words_of(value)
    if not word_plan.basic:
        put(words, word_plan, values)
        return
    _refuse_overlaps(plan.view)
    part = words._seen_through(word_plan.view)
    new = values_of(values, part.shape, part.dtype, part.device)
    if new.size:
        part._write_memory(new, words._array)


def _as_words(tensor: Tensor, plan: Plan) -> tuple[Tensor, Plan]:
    """The same memory as 32-bit words along a new last axis, and the plan for it."""
    whole = from_cell(tensor._cell, None)
    words = _words_of(whole)
    count = words.shape[-1]
    shape, strides, offset = plan.view
    view = View((*shape, count), (*[s * count for s in strides], 1), offset * count)
    plan = _resolved(plan, tensor.device)
    return words, replace(plan, view=view)


def _words_of(tensor: Tensor) -> Tensor:
    array = tensor._array
    if not array.contiguous:
        array = array.copy_to(array.device)
    size = array.dtype.itemsize
    word = uint8 if size % 4 else uint32
    count = size // word.itemsize
    shape = (*array.shape, count)
    return Tensor(DeviceArray(array.device, array.storage, word, shape, None, array.offset * count))
