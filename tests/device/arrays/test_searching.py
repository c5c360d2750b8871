"""Searching, taking, sorting and sets of tensors, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError, ShapeError

SHAPES = [(0,), (1,), (7,), (3, 0), (2, 3, 5)]


def default_integer(device):
    return td.int32 if device.backend == "webgpu" else td.int64


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nonzero_and_argwhere(device, rng, shape):
    x = rng.integers(0, 2, shape).astype(np.float32)
    tensor = td.asarray(x, device=device)
    found = td.nonzero(tensor)
    assert isinstance(found, tuple)
    for mine, wanted in zip(found, np.nonzero(x), strict=True):
        assert mine.dtype is default_integer(device)
        assert mine.tolist() == wanted.tolist()
    where = td.argwhere(tensor)
    assert where.shape == np.argwhere(x).shape
    assert where.tolist() == np.argwhere(x).tolist()


def test_what_nonzero_takes_for_true(device):
    x = td.asarray([0.0, -0.0, math.nan, 1e-30, math.inf], device=device)
    assert td.nonzero(x[::-1])[0].tolist() == [0, 1, 2]
    assert td.nonzero(x > 0)[0].tolist() == [3, 4]
    with pytest.raises(ShapeError, match="axes"):
        td.nonzero(td.asarray(1.0, device=device))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(device, rng, side):
    x = np.sort(rng.integers(0, 9, 13)).astype(np.float32)
    values = rng.integers(-1, 11, (2, 3, 2)).astype(np.float32)
    here = td.asarray(x, device=device)
    found = td.searchsorted(here, td.asarray(values, device=device), side=side)
    assert found.dtype is default_integer(device)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x, values, side))
    order = rng.permutation(13)
    found = td.searchsorted(
        here[order.tolist()], td.asarray(values, device=device), side=side,
        sorter=td.asarray(np.argsort(order).astype(np.int32), device=device),
    )  # fmt: skip
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x, values, side))


def test_searchsorted_of_nothing_and_of_two_dtypes(device):
    x = td.asarray([1, 3, 5], dtype=td.int32, device=device)
    assert td.searchsorted(x, td.asarray([2.5, 3.0], device=device)).tolist() == [1, 1]
    assert td.searchsorted(x, td.zeros((2, 0), device=device)).shape == (2, 0)
    assert td.searchsorted(x[:0], td.asarray([1, 2], device=device)).tolist() == [0, 0]
    assert int(td.searchsorted(x, 4)) == 2
    with pytest.raises(ShapeError, match="one axis"):
        td.searchsorted(x[None], x)
    with pytest.raises(ValueError, match="side"):
        td.searchsorted(x, x, side="middle")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take(device, rng, axis):
    x = rng.integers(0, 99, (3, 4, 5)).astype(np.int32)
    places = np.array([2, -1, 0, 0], np.int32)
    tensor = td.asarray(x, device=device)
    wanted = np.take(x, places, axis)
    for indices in (td.asarray(places, device=device), places, places.tolist()):
        np.testing.assert_array_equal(td.take(tensor, indices, axis=axis).numpy(), wanted)
    assert td.take(tensor, [], axis=axis).numpy().shape == np.take(x, np.zeros(0, int), axis).shape


def test_take_needs_its_axis(device):
    x = td.asarray([[1, 2], [3, 4]], device=device)
    assert td.take(x[0], td.asarray([1, 1], device=device)).tolist() == [2, 2]
    with pytest.raises(ShapeError, match="axis=0"):
        td.take(x, [0])
    with pytest.raises(DtypeError, match="integers"):
        td.take(x, [True, False], axis=0)
    with pytest.raises(IndexError, match="outside"):
        td.take(x, [2], axis=0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_along_axis(device, rng, axis):
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    tensor = td.asarray(x, device=device)
    for count in (0, 1, 6):
        shape = list(x.shape)
        shape[axis] = count
        places = rng.integers(-x.shape[axis], x.shape[axis], shape).astype(np.int32)
        wanted = np.take_along_axis(x, places, axis)
        found = td.take_along_axis(tensor, td.asarray(places, device=device), axis=axis)
        np.testing.assert_array_equal(found.numpy(), wanted)
        found = td.take_along_axis(tensor[::-1, :, ::-1], places, axis=axis)
        wanted = np.take_along_axis(x[::-1, :, ::-1], places, axis)
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_take_along_axis_broadcasts(device):
    x = td.asarray([[1, 2, 3], [4, 5, 6]], device=device)
    one = td.asarray([[2, 0]], dtype=td.int32, device=device)
    assert td.take_along_axis(x, one).tolist() == [[3, 1], [6, 4]]
    assert td.take_along_axis(x[:1], td.asarray([[0], [2]], device=device)).tolist() == [[1], [3]]
    with pytest.raises(ShapeError, match="as many axes"):
        td.take_along_axis(x, td.asarray([0], device=device))


@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort_along_axes(device, rng, axis, descending):
    x = rng.integers(0, 4, (3, 5, 2)).astype(np.float32)
    tensor = td.asarray(x, device=device)
    order = np.argsort(-x if descending else x, axis, kind="stable")
    found = td.argsort(tensor, axis=axis, descending=descending)
    assert found.dtype is default_integer(device)
    np.testing.assert_array_equal(found.numpy(), order)
    found = td.sort(tensor, axis=axis, descending=descending)
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(x, order, axis))


def test_sort_fits_into_expressions(device):
    x = td.asarray([[3.0, 1.0], [2.0, 5.0]], device=device)
    assert (td.sort(x * 2, axis=0) + 1).tolist() == [[5, 3], [7, 11]]
    assert td.sort(x[:, ::-1])[0].tolist() == [1, 3]
    assert td.sort(x[:0]).shape == (0, 2)
    assert td.argsort(x[:, :0]).shape == (2, 0)
    with pytest.raises(IndexError, match="axis 2"):
        td.sort(x, axis=2)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (11,), (3, 5)], ids=str)
def test_unique(device, rng, dtype, shape):
    x = rng.integers(0, 5, shape).astype(dtype)
    values, indices, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    found = td.unique_all(td.asarray(x, device=device))
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    np.testing.assert_array_equal(found.values.numpy(), values)
    np.testing.assert_array_equal(found.indices.numpy(), indices)
    np.testing.assert_array_equal(found.inverse_indices.numpy(), inverse.reshape(shape))
    np.testing.assert_array_equal(found.counts.numpy(), counts)
    assert {part.dtype for part in found[1:]} == {default_integer(device)}


def test_unique_of_special_values(device):
    x = td.asarray([math.nan, 0.0, -0.0, math.nan, math.inf, 0.0], device=device)
    found = td.unique_counts(x[::-1])
    assert found.counts.tolist() == [3, 1, 1, 1]
    assert found.values.tolist()[:2] == [0, math.inf]
    assert td.unique_inverse(x).inverse_indices.tolist()[1:3] == [0, 0]


def test_unique_of_complex_numbers(device):
    x = np.array([1 + 2j, 1 - 2j, math.nan, 1 + 2j, 0, -0.0, 1 + 1j, complex(1, math.nan)])
    found = td.unique_all(td.asarray(x.astype(np.complex64), device=device))
    assert found.values.tolist()[:4] == [0, 1 - 2j, 1 + 1j, 1 + 2j]
    assert found.counts.tolist() == [2, 1, 1, 2, 1, 1]
    assert found.indices.tolist() == [4, 1, 6, 0, 7, 2]
    assert found.inverse_indices.tolist() == [3, 1, 5, 3, 0, 0, 2, 4]
    assert td.unique_values(td.zeros(0, dtype=td.complex64, device=device)).shape == (0,)


def test_methods(device):
    x = td.asarray([3.0, 0.0, 2.0], device=device)
    assert x.sort(descending=True).tolist() == [3, 2, 0]
    assert x.take(x.argsort(dim=0)).tolist() == [0, 2, 3]
    assert x.nonzero()[0].tolist() == x.argwhere()[:, 0].tolist() == [0, 2]
    assert x.sort().searchsorted(x).tolist() == [2, 0, 1]
    assert [float(part) for part in x] == [3, 0, 2]


def test_contains(device):
    x = td.asarray([[1.0, 2.0], [3.0, math.nan]], device=device)
    assert 3 in x
    assert 4.0 not in x
    assert math.nan not in x
    assert 1 not in x[:0]


def test_representation_reads_corners(device, monkeypatch):
    x = td.arange(5000, dtype=td.int32, device=device)
    read = []
    whole = td.Tensor.numpy
    monkeypatch.setattr(td.Tensor, "numpy", lambda self: read.append(self.size) or whole(self))
    assert repr(x).startswith("tensor([   0,    1,    2, ..., 4997, 4998, 4999], dtype=int32")
    assert "shape=(5000,)" in repr(x)
    assert read == [6, 6]


@pytest.mark.parametrize("shape", [(1001,), (40, 50), (3, 2000), (4, 5, 60)], ids=str)
def test_representation_is_as_numpy_says(shape):
    x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    text = np.array2string(x, separator=", ", prefix="tensor(")
    assert repr(td.asarray(x, device="cpu")).startswith(f"tensor({text}, dtype=float32")


def test_representation_of_odd_tensors():
    assert repr(td.zeros((0, 3), device="cpu")) == (
        'tensor([], dtype=float32, device="cpu", shape=(0, 3))'
    )
    assert repr(td.asarray(2.5, device="cpu")) == 'tensor(2.5, dtype=float32, device="cpu")'
    assert repr(td.zeros((2,) * 12, device="cpu")).startswith("tensor(..., dtype")
    one = td.zeros(2000, dtype=td.bfloat16, device="cpu")
    numbers = repr(one).replace("0.", "0")  # as NumPy writes them without ml_dtypes
    assert numbers.startswith("tensor([0, 0, 0, ..., 0, 0, 0], dtype=bfloat16")
    assert repr(td.zeros(2, dtype=td.complex64, device="cpu")).startswith("tensor([0.+0.j, 0.+0.j]")
    assert f"{td.asarray(1.25, device='cpu'):.1f}" == "1.2"
