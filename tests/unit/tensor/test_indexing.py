"""Plans of index expressions, carried out by NumPy and compared with NumPy's own indexing."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from treadle.core import dtypes
from treadle.core.errors import DtypeError
from treadle.graph.views import whole
from treadle.tensor.indexing import Plan, parse, resolve


class Remote:
    """An array whose data nobody may look at, as a tensor on a device."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.shape = self.data.shape
        self.dtype = dtypes.as_dtype(self.data.dtype)

    def __index__(self) -> int:
        return int(self.data)


def local(values: Any) -> Any:
    return values.data if isinstance(values, Remote) else values


def find(mask: Any) -> list[np.ndarray[Any, Any]]:
    """What a device does to a mask."""
    return list(local(mask).nonzero()) if mask.shape else [np.zeros(int(local(mask)), np.int64)]


def carry_out(plan: Plan, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a plan names, index by index."""
    plan = resolve(plan, find)
    shape, strides, offset = plan.view
    linear = np.full(shape, offset)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        linear += (np.arange(extent) * stride).reshape(-1, *[1] * (len(shape) - axis - 1))
    if not plan.basic:
        # Kept axes go last, picked ones first, where one tuple of equal arrays indexes them all.
        front = [axis for pick in plan.picks for axis in pick.axes]
        linear = linear.transpose(*front, *plan.kept)
        wide = [
            np.broadcast_to(local(pick.values), plan.picked_shape)
            for pick in plan.picks
            if pick.axes
        ]
        picked = len(plan.picked_shape)
        linear = (
            linear[tuple(wide)]
            if wide
            else np.broadcast_to(linear, (*plan.picked_shape, *linear.shape))
        )
        linear = np.moveaxis(linear, range(picked), range(plan.place, plan.place + picked))
    assert linear.shape == plan.shape
    return array.ravel()[linear]


def base(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(math.prod(shape)).reshape(shape)


def as_numpy(index: Any) -> Any:
    return tuple(map(local, index)) if isinstance(index, tuple) else local(index)


def agree(shape: tuple[int, ...], index: Any) -> bool:
    """Compare with NumPy; whether it takes the index at all."""
    array = base(shape)
    try:
        wanted = array[as_numpy(index)]
    except IndexError:
        with pytest.raises(IndexError):
            carry_out(parse(index, whole(shape)), array)
        return False
    try:
        found = carry_out(parse(index, whole(shape)), array)
    except IndexError:
        if wanted.size:
            raise
        return False  # NumPy checks no index where another one picks nothing
    assert found.shape == wanted.shape, (shape, as_numpy(index))
    assert np.array_equal(found, wanted), (shape, as_numpy(index))
    return True


def drawn_index(draw: random.Random, shape: tuple[int, ...], kinds: list[str]) -> Any:
    """An index that mostly fits a shape. Index arrays of one index broadcast; masks may not."""
    common = [draw.randrange(4) for _ in range(draw.randrange(3))]
    parts: list[Any] = []
    axis = 0
    while len(parts) < 7 and draw.random() < 0.9:
        kind = draw.choice(kinds)
        left = shape[axis:]
        if kind == "none":
            parts.append(None)
        elif kind == "bool":
            value = draw.random() < 0.5
            parts.append(draw.choice([value, np.bool_(value), np.array(value), Remote(value)]))
        elif kind == "dots" and not any(part is Ellipsis for part in parts):
            parts.append(Ellipsis)
            axis += draw.randint(0, len(left))
        elif kind == "mask" and left:
            extents = left[: draw.randint(1, len(left))]
            flags = [draw.random() < 0.5 for _ in range(math.prod(extents))]
            mask = np.array(flags, bool).reshape(extents)
            parts.append(draw.choice([mask, mask.tolist(), Remote(mask)] if mask.size else [mask]))
            axis += len(extents)
        elif kind == "integers" and left:
            parts.append(drawn_integers(draw, left[0], common))
            axis += 1
        elif kind == "integer" and left and left[0]:
            value = draw.randrange(-left[0], left[0])
            parts.append(draw.choice([value, np.int8(value), np.array(value), Remote(value)]))
            axis += 1
        elif left:
            ends = [draw.choice([None, draw.randint(-6, 6)]) for _ in range(2)]
            parts.append(slice(*ends, draw.choice([None, 1, 2, 3, -1, -2, 10**30, -(10**30)])))
            axis += 1
    return parts[0] if len(parts) == 1 and draw.random() < 0.5 else tuple(parts)


def drawn_integers(draw: random.Random, extent: int, common: list[int]) -> Any:
    """An index array whose shape broadcasts to a common one."""
    mine = [draw.choice([n, n, 1]) for n in common][draw.randint(0, len(common)) :] or [1]
    if not extent:
        mine = [*mine[:-1], 0]
    low = draw.choice([0, -extent])
    drawn = [draw.randrange(low, extent) for _ in range(math.prod(mine))]
    values = np.array(drawn, np.int32).reshape(mine)
    fitting = values.astype(np.uint8 if low == 0 else np.int8)
    forms = [values, fitting, Remote(np.where(values < 0, values + extent, values))]
    return draw.choice([*forms, values.tolist()] if values.ndim else forms)


BASIC = ["integer", "slice", "slice", "none", "dots"]
INTEGERS = ["integer", "slice", "slice", "none", "dots", "integers", "integers"]
MASKS = ["integer", "slice", "none", "dots", "integers", "mask", "mask", "bool"]


@pytest.mark.parametrize("kinds", [BASIC, INTEGERS, MASKS], ids=["basic", "integers", "masks"])
def test_drawn_indices(kinds: list[str]) -> None:
    draw = random.Random(4)
    refused = 0
    for _ in range(1000):
        shape = tuple(draw.choice([0, 1, 2, 3, 3, 4, 5]) for _ in range(draw.randrange(5)))
        refused += not agree(shape, drawn_index(draw, shape, kinds))
    assert refused < 500


@pytest.mark.parametrize(
    "index",
    [
        ([0, 1], slice(None), [1, 2]),  # apart: in front
        (slice(None), [0, 1], [1, 2]),  # neighbours: in place
        (0, slice(None), [1, 2]),  # an integer counts as an array beside one
        (slice(None), 0, [1, 2]),
        (slice(None), [0, 1], None, [1, 2]),
        (slice(None), [0, 1], ..., [1, 2]),  # `...` of no axes
        (True, slice(None), 1),
        (..., range(1, 4, 2)),
        (slice(None), (0, 2)),
        (slice(10**30, None, -(10**30)), None),
        ([[]],),
        (),
    ],
)
def test_where_picked_axes_go(index: Any) -> None:
    agree((2, 3, 4), index)


def test_a_plan_leaves_masks_and_remote_arrays_alone() -> None:
    mask, rows = Remote([[True, False], [False, True]]), Remote([1, -1])
    plan = parse((mask, ..., rows), whole((2, 2, 3, 5)))
    assert [(pick.axes, pick.values, pick.mask) for pick in plan.picks] == [
        ((0, 1), mask, True),
        ((3,), rows, False),
    ]
    assert not plan.resolved
    assert not plan.picks[1].inside
    known = resolve(plan, find)
    assert known.resolved
    assert known.shape == (2, 3)
    assert [pick.axes for pick in known.picks] == [(0,), (1,), (3,)]


def test_host_integers_come_out_counted_from_the_start() -> None:
    (pick,) = parse([-1, 1, -3], whole((3, 2))).picks
    assert pick.inside
    assert pick.values.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, "index 3 is outside axis 0 of extent 3: it must be from -3 to 2"),
        ((0, -5), "index -5 is outside axis 1 of extent 4"),
        ((..., 0), "index 0 is outside axis 2 of extent 0, which has no elements"),
        (
            (slice(None), [[1, 2], [9, 0]]),
            r"index 9 at \(1, 0\) of an index array is outside axis 1",
        ),
        ([0, -4], "index -4 at 1 of an index array is outside axis 0 of extent 3"),
        ((0, 0, 0, 0), r"too many indices \(4\) for a tensor of shape \(3, 4, 0\), .* 3 axes"),
        ((..., None, ...), "only one ..."),
        (np.zeros((3, 3), bool), r"mask of shape \(3, 3\) does not fit axes 0 to 1 of .*\(3, 4\)"),
        ((0, Remote([True])), r"mask of shape \(1,\) does not fit axis 1 of shape \(4,\)"),
        (([0, 1], [0, 1, 2]), r"of shapes \(2,\), \(3,\), do not broadcast"),
    ],
)
def test_refused_positions(index: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        parse(index, whole((3, 4, 0)))


def test_masks_are_counted_when_resolved() -> None:
    plan = parse((np.array([True, True, False]), [0, 1, 2]), whole((3, 4)))
    with pytest.raises(IndexError, match=r"of shapes \(2,\), \(3,\), do not broadcast"):
        resolve(plan, find)


@pytest.mark.parametrize("index", ["a", 1.0, {0: 1}, (0, object())])
def test_refused_types(index: Any) -> None:
    with pytest.raises(TypeError, match=r"indexed by integers, slices, .* and arrays"):
        parse(index, whole((3, 4)))


@pytest.mark.parametrize("index", [[1.0], np.float32(1), np.zeros(2), ["a"], Remote([0.5])])
def test_refused_dtypes(index: Any) -> None:
    with pytest.raises(DtypeError, match="holds integers or bools, not"):
        parse(index, whole((3, 4)))


def test_refused_lists() -> None:
    with pytest.raises(TypeError, match="different lengths"):
        parse([[0], [1, 2]], whole((3, 4)))
