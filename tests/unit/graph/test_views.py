"""Views against NumPy: a view of a base of numbers 0, 1, 2, … shows which elements it holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.core.errors import ShapeError
from treadle.graph import views
from treadle.graph.views import View, whole

SHAPES = [(), (1,), (7,), (2, 3), (3, 1, 4), (1, 1), (0,), (2, 0, 3), (2, 3, 2, 3)]
extents = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 6])
shapes = st.lists(extents, max_size=4).map(tuple)
full_shapes = st.lists(st.sampled_from([1, 2, 2, 3, 4, 6]), max_size=4).map(tuple)


def held(view: View) -> np.ndarray[Any, Any]:
    """The linear indices that a view holds."""
    shape, strides, offset = view
    found = np.full(shape, offset)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent) * stride
        found += steps.reshape(-1, *[1] * (len(shape) - axis - 1))
    return found


def base(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(math.prod(shape)).reshape(shape)


def same(view: View | None, wanted: np.ndarray[Any, Any]) -> None:
    assert view is not None
    assert view.shape == wanted.shape
    assert len(view.strides) == len(view.shape)
    assert np.array_equal(held(view), wanted)


@st.composite
def steps_of(draw: Any, shape: tuple[int, ...], most: int = 4) -> View:
    """A view of a whole base after a few drawn operations."""
    view = whole(shape)
    for _ in range(draw(st.integers(0, most))):
        rank = len(view.shape)
        kind = draw(st.sampled_from(["permute", "flip", "slice", "unsqueeze", "expand", "reshape"]))
        if kind == "unsqueeze":
            view = views.unsqueeze(view, draw(st.integers(0, rank)))
        elif kind == "reshape":
            shape = draw(factors(math.prod(view.shape)))
            view = views.reshape(view, shape) or view
        elif not rank:
            continue
        elif kind == "permute":
            view = views.permute(view, draw(st.permutations(range(rank))))
        elif kind == "flip":
            view = views.flip(view, draw(st.sets(st.integers(0, rank - 1))))
        elif kind == "slice":
            axis = draw(st.integers(0, rank - 1))
            picked = draw(st.slices(view.shape[axis])).indices(view.shape[axis])
            count = len(range(*picked))
            view = views.slice_axis(view, axis, picked[0], picked[2], count)
        else:
            wider = tuple(n if n != 1 else draw(st.integers(1, 3)) for n in view.shape)
            view = views.expand(view, wider)
    return view


@st.composite
def factors(draw: Any, size: int) -> tuple[int, ...]:
    """A shape of this many elements."""
    shape: list[int] = []
    while size > 1 and len(shape) < 4:
        shape.append(draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])))
        size //= shape[-1]
    if size != 1 or draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), size)
    return tuple(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_whole(shape: tuple[int, ...]) -> None:
    same(whole(shape), base(shape))
    assert views.is_whole(whole(shape), shape)
    assert not views.is_whole(whole((*shape, 2)), shape)


def test_what_is_not_whole() -> None:
    assert not views.is_whole(View((2,), (1,), 1), (2,))
    assert not views.is_whole(View((2, 2), (1, 2), 0), (2, 2))
    assert not views.is_whole(View((2, 3), (3, 1), 0), (3, 2))
    assert views.is_whole(View((1, 3), (99, 1), 0), (1, 3))
    assert views.is_whole(View((0, 3), (7, 7), 5), (0, 3))


@given(shapes, st.data())
def test_operations_are_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    view = data.draw(steps_of(shape))
    array, rank = held(view), len(view.shape)
    order = data.draw(st.permutations(range(rank)))
    same(views.permute(view, order), array.transpose(order))
    axes = tuple(data.draw(st.sets(st.integers(0, rank - 1)))) if rank else ()
    same(views.flip(view, axes), np.flip(array, axes))
    place = data.draw(st.integers(0, rank))
    same(views.unsqueeze(view, place), np.expand_dims(array, place))
    ones = tuple(axis for axis in range(rank) if view.shape[axis] == 1)
    same(views.squeeze(view, ones), array.squeeze(ones))
    wider = (2, *(n if n != 1 else data.draw(st.integers(0, 3)) for n in view.shape))
    same(views.expand(view, wider), np.broadcast_to(array, wider))
    if rank >= 2:
        first, second = order[:2]
        offset = data.draw(st.integers(-4, 4))
        wanted = np.diagonal(array, offset, first, second)
        same(views.diagonal(view, offset, first, second), wanted)


def test_expand_names_shapes_and_axis() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\) does not broadcast to \(4, 2, 5\): axis 1 has"):
        views.expand(whole((2, 3)), (4, 2, 5))
    with pytest.raises(ShapeError, match=r"\(2, 3\) does not broadcast to \(3,\): it has 2 axes"):
        views.expand(whole((2, 3)), (3,))


def test_steps_never_made_do_not_grow_strides() -> None:
    assert views.slice_axis(whole((2, 5)), 1, 4, 10**30, 1) == View((2, 1), (5, 1), 4)
    assert views.slice_axis(whole((2, 5)), 0, 0, -(10**30), 0) == View((0, 5), (5, 1), 0)


def test_squeeze_refuses_longer_axes() -> None:
    with pytest.raises(ShapeError, match=r"axis 1 of shape \(1, 3\) has extent 3"):
        views.squeeze(whole((1, 3)), (1,))


@given(shapes, st.data())
def test_reshape_fails_only_where_numpy_copies(shape: tuple[int, ...], data: st.DataObject) -> None:
    view = data.draw(steps_of(shape))
    wanted = data.draw(factors(math.prod(view.shape)))
    found = views.reshape(view, wanted)
    if found is not None:
        same(found, held(view).reshape(wanted))
    # What NumPy says of these strides; the elements' addresses are not followed.
    room = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), view.shape, view.strides)
    try:
        room.reshape(wanted, copy=False)
    except ValueError:
        assert found is None
    else:
        assert found is not None


def test_reshape_refuses_another_size() -> None:
    with pytest.raises(ShapeError, match=r"6 elements of shape \(2, 3\) cannot have shape \(4,\)"):
        views.reshape(whole((2, 3)), (4,))


@given(shapes, st.data())
def test_reach_and_overlaps(shape: tuple[int, ...], data: st.DataObject) -> None:
    view = data.draw(steps_of(shape))
    indices = held(view).ravel()
    low, high = views.reach(view)
    assert (low, high) == ((indices.min(), indices.max() + 1) if indices.size else (low, low))
    # The drawn operations overlap by broadcasting alone, which is always told apart.
    assert views.overlaps(view) == (len(set(indices.tolist())) < indices.size)


def test_overlaps_of_other_strides() -> None:
    assert views.overlaps(View((3, 3), (1, 2), 0))
    assert not views.overlaps(View((3, 2), (1, -3), 3))
    assert not views.overlaps(views.diagonal(whole((4, 5, 6)), 1, 0, 2))
    assert views.overlaps(View((3, 2), (2, 3), 0))  # distinct, but that takes a search


def fits_strides(array: np.ndarray[Any, Any]) -> bool:
    """Whether linear indices are those of some view."""
    if not array.size:
        return True
    origin = array[(0,) * array.ndim]
    strides = []
    for axis, extent in enumerate(array.shape):
        second = [0] * array.ndim
        second[axis] = min(1, extent - 1)
        strides.append(int(array[tuple(second)] - origin))
    return bool(np.array_equal(held(View(array.shape, tuple(strides), int(origin))), array))


@settings(max_examples=400)
@given(full_shapes, st.data())
def test_compose_maps_every_index(shape: tuple[int, ...], data: st.DataObject) -> None:
    inner = data.draw(steps_of(shape))
    outer = data.draw(steps_of(inner.shape))
    wanted = held(inner).ravel()[held(outer)]
    found = views.compose(outer, inner)
    if found is not None:
        same(found, wanted)
    else:
        assert not fits_strides(wanted)


def test_compose_undoes_a_reshape_of_a_transpose() -> None:
    turned = views.permute(whole((4, 6)), (1, 0))
    split = whole((3, 2, 4))
    same(views.compose(split, turned), base((4, 6)).T.reshape(3, 2, 4))
    assert views.compose(whole((24,)), turned) is None
    row = View((4,), (1,), 8)  # a part that needs no carry
    assert views.compose(row, turned) == View((4,), (6,), 2)


@given(shapes, st.data())
def test_merge_axes_keeps_every_element(shape: tuple[int, ...], data: st.DataObject) -> None:
    arrays = [data.draw(steps_of(shape)) for _ in range(data.draw(st.integers(1, 3)))]
    arrays = [view for view in arrays if view.shape == shape] or [whole(shape)]
    extents, strides = views.merge_axes(shape, [view.strides for view in arrays])
    assert len(strides) == len(arrays)
    for view, steps in zip(arrays, strides, strict=True):
        merged = View(extents, steps, view.offset)
        assert np.array_equal(held(merged).ravel(), held(view).ravel())
    assert views.merge_axes(extents, strides) == (extents, strides)  # nothing is left to merge


def test_merge_axes_of_nothing() -> None:
    assert views.merge_axes((), [(), ()]) == ((1,), [(1,), (1,)])
    assert views.merge_axes((1, 1), [(5, 0)]) == ((1,), [(1,)])
    assert views.merge_axes((2, 3), []) == ((6,), [])
