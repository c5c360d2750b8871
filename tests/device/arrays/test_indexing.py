"""Indexing tensors: what is read and written, against NumPy's own indexing."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import treadle as td
from treadle.core.dtypes import as_dtype
from treadle.core.errors import DtypeError, LaunchError, ShapeError
from treadle.graph.views import permute
from treadle.tensor.dtypes import supports


def drawn_parts(draw, shape, kinds):
    """An index that fits a shape, as NumPy takes it. Index arrays of one index broadcast."""
    common = [draw.randrange(1, 4) for _ in range(draw.randrange(1, 3))]
    parts = []
    axis = masks = 0
    while axis < len(shape) and draw.random() < 0.9:
        kind, left = draw.choice(kinds), shape[axis:]
        if kind == "none":
            parts.append(None)
        elif kind == "dots" and Ellipsis not in [p for p in parts if not hasattr(p, "shape")]:
            parts.append(Ellipsis)
            axis += draw.randint(0, len(left))
        elif kind == "mask" and not masks:
            extents = left[: draw.randint(1, min(2, len(left)))]
            flags = [draw.random() < 0.5 for _ in range(math.prod(extents))]
            parts.append(np.array(flags, bool).reshape(extents))
            axis += len(extents)
            masks += 1
        elif kind == "integers" and left[0]:
            mine = [draw.choice([n, n, 1]) for n in common][draw.randint(0, len(common) - 1) :]
            drawn = [draw.randrange(-left[0], left[0]) for _ in range(math.prod(mine))]
            parts.append(np.array(drawn, draw.choice(["i1", "i4"])).reshape(mine))
            axis += 1
        elif kind == "integer" and left[0]:
            parts.append(draw.randrange(-left[0], left[0]))
            axis += 1
        else:
            ends = [draw.choice([None, draw.randint(-6, 6)]) for _ in range(2)]
            parts.append(slice(*ends, draw.choice([None, 1, 2, 3, -1, -2])))
            axis += 1
    return parts[0] if len(parts) == 1 and draw.random() < 0.5 else tuple(parts)


def on_device(index, device):
    """The same index with its arrays in tensors."""
    if isinstance(index, tuple):
        return tuple(on_device(part, device) for part in index)
    return td.asarray(index, device=device) if isinstance(index, np.ndarray) else index


KINDS = {
    "basic": ["integer", "slice", "slice", "none", "dots"],
    "integers": ["integer", "slice", "slice", "none", "dots", "integers", "integers"],
    "masks": ["integer", "slice", "none", "dots", "mask", "mask"],
}


@pytest.mark.parametrize("kinds", KINDS)
def test_drawn_indices(device, rng, kinds):
    draw = random.Random(int(rng.integers(1 << 30)))
    rounds = 40 if device.backend == "cpu" else 8
    for _ in range(rounds):
        shape = tuple(draw.choice([0, 1, 2, 3, 3, 5]) for _ in range(draw.randrange(5)))
        x = rng.integers(-99, 99, shape).astype(np.float32)
        order = list(range(len(shape)))
        draw.shuffle(order)
        index = drawn_parts(draw, [shape[axis] for axis in order], KINDS[kinds])
        wanted = x.transpose(order)
        tensor = td.asarray(x, device=device)
        tensor = tensor._seen_through(permute(tensor._where, order))
        mine = draw.choice([index, on_device(index, device)])
        note = (shape, order, index)
        try:
            picked = wanted[index]
        except IndexError:  # `...` has room for fewer axes than were drawn
            with pytest.raises(IndexError):
                tensor[index]
            continue
        found = tensor[mine]
        assert found.shape == picked.shape, note
        np.testing.assert_array_equal(found.numpy(), picked, err_msg=str(note))
        value = draw.choice([7.0, rng.integers(-99, 99, picked.shape).astype(np.float32)])
        wanted[index] = value
        tensor[mine] = value
        np.testing.assert_array_equal(tensor.numpy(), wanted, err_msg=str(note))


def test_the_last_of_several_values_stays(device):
    x = td.zeros(5, device=device)
    x[td.asarray([3, 1, 3, -2, 1], device=device)] = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert x.tolist() == [0, 5, 0, 4, 0]


def test_indices_in_tensors_that_lie_outside(device):
    x = td.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device)
    rows = td.asarray([2, 3, -4, -3], dtype=td.int32, device=device)
    columns = td.asarray([0, -1, 0, 1], dtype=td.int32, device=device)
    assert x[rows].tolist() == [[5, 6], [0, 0], [0, 0], [1, 2]]
    assert x[rows, columns].tolist() == [5, 0, 0, 2]
    x[rows, columns] = [10, 20, 30, 40]
    assert x.tolist() == [[1, 40], [3, 4], [10, 6]]


def test_checked_indices_raise(monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    x = td.zeros((2, 3), device="cpu")
    with pytest.raises(IndexError, match="index 3 at 1 of an index array is outside axis 1"):
        x[:, td.asarray([0, 3], device="cpu")]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64", "uint64"])
def test_dtypes_of_indices(device, dtype):
    if not supports(device, as_dtype(dtype)):
        with pytest.raises(DtypeError, match="has no"):
            td.zeros(3, dtype=dtype, device=device)
        return
    x = td.arange(300, dtype=td.int32, device=device)
    index = td.asarray(np.array([0, 100, 127], dtype), device=device)
    assert x[index].tolist() == [0, 100, 127]
    if not dtype.startswith("u"):
        assert x[td.asarray(np.array([-1, -128], dtype), device=device)].tolist() == [299, 172]


def test_large_64_bit_indices_do_not_wrap():
    x = td.arange(3, device="cpu")
    assert x[td.asarray([1, 1 + (1 << 32), -(1 << 32)], device="cpu")].tolist() == [1, 0, 0]


@pytest.mark.parametrize("values", [9.0, [[9.0]], [[1.0], [2.0]], [5.0, 6.0, 7.0]], ids=str)
def test_masks_with_values_that_broadcast(device, values):
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    mask = np.array([True, False, True, True])
    for index in [(slice(None), slice(None), mask), (1, slice(None), mask)]:
        mine, wanted = td.asarray(x, device=device), x.copy()
        try:
            wanted[index] = values
        except ValueError:
            with pytest.raises(ShapeError):
                mine[on_device(index, device)] = values
            continue
        mine[on_device(index, device)] = values
        np.testing.assert_array_equal(mine.numpy(), wanted)


def test_masks_without_axes_and_of_no_elements(device):
    x = td.asarray([1.0, 2.0, 3.0], device=device)
    yes, no = td.asarray(True, device=device), td.asarray(False, device=device)
    assert x[yes].tolist() == [[1, 2, 3]]
    assert x[no].shape == (0, 3)
    assert x[td.zeros(0, dtype=td.bool, device=device)].shape == (0,)
    x[no] = 5.0
    assert x.tolist() == [1, 2, 3]
    x[yes] = 5.0
    x[td.zeros(0, dtype=td.bool, device=device)] = 9.0
    assert x.tolist() == [5, 5, 5]
    one = td.asarray(4.0, device=device)
    one[yes] = float("nan")
    assert math.isnan(float(one))


def test_in_place_operators_on_indices(device):
    x = td.zeros((3, 2), device=device)
    rows = td.asarray([2, 0, 2], device=device)
    x[rows] += 1
    assert x.tolist() == [[1, 1], [0, 0], [1, 1]]
    x[x > 0] *= 4
    x[1:, 0] -= 2
    assert x.tolist() == [[4, 4], [-2, 0], [2, 4]]


def test_writes_wait_for_readers_and_are_seen_in_views(device):
    x = td.asarray([1.0, 2.0, 3.0, 4.0], device=device)
    before = x * 10
    view = x[::-1]
    x[td.asarray([0, 3], device=device)] = [7.0, 8.0]
    assert before.tolist() == [10, 20, 30, 40]
    assert view.tolist() == [8, 3, 2, 7]
    view[td.asarray([True, False, False, False], device=device)] = 0
    assert x.tolist() == [7, 2, 3, 0]


def test_values_made_of_what_they_replace(device):
    x = td.asarray([1.0, 2.0, 3.0, 4.0], device=device)
    tail = x[1:]
    tail *= 2
    assert x.tolist() == [1, 4, 6, 8]
    less = x[1:] - 2
    x[1:] = less
    x[:2] = less[:2] * 5
    assert x.tolist() == [10, 20, 4, 6]
    assert less.tolist() == [2, 4, 6]
    x[1:] = x[:-1]
    assert x.tolist() == [10, 10, 20, 4]


def test_picks_are_copies(device):
    x = td.asarray([1.0, 2.0, 3.0], device=device)
    picked = x[[0, 1]]
    x[0] = 9
    picked[1] = 5
    assert picked.tolist() == [1, 5]
    assert x.tolist() == [9, 2, 3]


def test_picks_of_what_is_not_computed_yet(device):
    x = td.asarray([1.0, 2.0, 3.0], device=device)
    assert ((x + 1)[[2, 0]] * 2).tolist() == [8, 4]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "complex64"])
def test_dtypes_of_elements(device, dtype):
    x = td.asarray([1, 0, 1, 1], device=device).to(dtype)
    x[[0, 1]] = x[[1, 0]]
    mask = td.asarray([True, False, False, False], device=device)
    assert x[~mask].tolist() == [1, 1, 1]
    assert x.tolist() == [0, 1, 1, 1]
    x[mask] = 1
    x[~mask] = x[[3, 2, 0]]
    assert x.tolist() == [1, 1, 1, 1]


def test_structs(device):
    record = np.dtype([("a", "i4"), ("b", "f4")])
    data = np.array([(1, 2.0), (3, 4.0), (5, 6.0)], record)
    x = td.asarray(data, device=device)
    assert x[[2, 0]].tolist() == [(5, 6.0), (1, 2.0)]
    assert x[data["a"] > 2].tolist() == [(3, 4.0), (5, 6.0)]
    x[[0, 2]] = x[[2, 0]]
    x[1] = np.array((7, 8.0), record)
    assert x.tolist() == [(5, 6.0), (7, 8.0), (1, 2.0)]


def test_what_does_not_fit(device):
    x = td.zeros((2, 3), device=device)
    with pytest.raises(IndexError, match="index -3 is outside axis 0"):
        x[-3]
    with pytest.raises(IndexError, match=r"mask of shape \(3,\) does not fit"):
        x[td.ones(3, dtype=td.bool, device=device)]
    with pytest.raises(ShapeError, match="broadcast"):
        x[[0, 1]] = [1.0, 2.0]
    with pytest.raises(ShapeError, match="broadcast"):
        x[0:0] = [1.0, 2.0]
    if device.id != "cpu":
        with pytest.raises(LaunchError, match="indexing"):
            x[td.asarray([0], device="cpu")]
