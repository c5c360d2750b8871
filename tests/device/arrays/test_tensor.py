"""The plain tensor: made, viewed, written, moved, read, as NumPy has it."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


def test_making(device):
    assert td.zeros((2, 3)).numpy().tolist() == [[0.0] * 3] * 2
    assert td.ones(4).dtype == td.float32
    assert td.full((2,), 2.5).tolist() == [2.5, 2.5]
    assert td.full((), 7).item() == 7
    assert td.empty((5, 0)).shape == (5, 0)
    assert td.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert td.arange(10, 0, -3).tolist() == [10, 7, 4, 1]
    assert td.arange(0.0, 1.0, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75]


def test_default_dtypes(device):
    integer = td.int32 if device.backend == "webgpu" else td.int64
    assert td.arange(3).dtype == integer
    assert td.asarray([1, 2]).dtype == integer
    assert td.asarray([1.0]).dtype == td.float32
    assert td.asarray(True).dtype == td.bool
    assert td.full(2, 3).dtype == integer
    assert td.full(2, 3.0).dtype == td.float32


def test_numpy_arrays_keep_their_dtype(device):
    for dtype in (np.int8, np.uint16, np.int32, np.float16, np.float32, np.bool_):
        data = np.arange(5).astype(dtype)
        x = td.asarray(data)
        assert x.dtype == data.dtype
        np.testing.assert_array_equal(x.numpy(), data)


def test_big_endian_and_fortran_order(device):
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.testing.assert_array_equal(td.asarray(np.asfortranarray(data)).numpy(), data)
    np.testing.assert_array_equal(td.asarray(data.astype(">i4")).numpy(), data)
    np.testing.assert_array_equal(td.asarray(data[::-1, ::2]).numpy(), data[::-1, ::2])


INDICES = [
    0, -1, 2, slice(None), slice(1, 3), slice(None, None, -1), slice(4, 0, -2), slice(2, 2),
    (1, 2), (slice(1, None), 0), (..., 1), (None, slice(None), 3), (0, ..., slice(1, 4)),
    (slice(None, None, 2), slice(None, None, -3)), (..., None), (-1, -1, -1),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_slices_are_views(device, index):
    data = np.arange(5 * 4 * 6, dtype=np.float32).reshape(5, 4, 6)
    x = td.asarray(data)
    view = x[index]
    assert view.shape == data[index].shape
    np.testing.assert_array_equal(view.numpy(), data[index])
    x[index] = -1.0
    data[index] = -1.0
    np.testing.assert_array_equal(x.numpy(), data)
    np.testing.assert_array_equal(view.numpy(), data[index])


def test_views_of_views(device):
    data = np.arange(100, dtype=np.int32)
    x = td.asarray(data)
    view = x[10:90][::-2][3:20:4]
    np.testing.assert_array_equal(view.numpy(), data[10:90][::-2][3:20:4])
    assert view.strides == (-8,)


def test_writing_broadcasts_and_casts(device):
    x = td.zeros((3, 4))
    x[1] = [1, 2, 3, 4]
    x[:, 0] = np.array([7.5, 8.5, 9.5])
    x[2, 1:] = td.ones(3)
    assert x.tolist() == [[7.5, 0, 0, 0], [8.5, 2, 3, 4], [9.5, 1, 1, 1]]


@pytest.mark.parametrize(
    ("index", "error"),
    [(5, IndexError), (-6, IndexError), ((0, 0, 0), IndexError), ("x", TypeError), (1.5, TypeError),
     ((..., ...), IndexError)],
)  # fmt: skip
def test_bad_indices(device, index, error):
    with pytest.raises(error):
        td.zeros((5, 4))[index]


def test_reshape(device):
    x = td.arange(12, dtype=td.f32)
    y = x.reshape(3, -1)
    assert y.shape == (3, 4)
    y[0, 1] = 50.0
    assert x.tolist()[1] == 50.0
    assert y[:, ::2].reshape(6).tolist() == y.numpy()[:, ::2].reshape(6).tolist()
    assert x.reshape((2, 2, 3)).shape == (2, 2, 3)
    for shape in [(5,), (-1, 5), (-1, -1), (13,)]:
        with pytest.raises(td.errors.ShapeError, match=r"\(12,\)"):
            x.reshape(shape)


def test_moving_and_casting(device):
    x = td.asarray(np.array([1.9, -1.9, 300.0, np.nan, np.inf, -np.inf], np.float32))
    assert x.to(td.i32).tolist() == [1, -1, 300, 0, 2**31 - 1, -(2**31)]
    assert x.to("uint8").tolist() == [1, 0, 255, 0, 255, 0]
    assert x.to(dtype=td.f16).dtype == td.f16
    assert x.to(x.dtype) is x
    moved = x.to("cpu")
    assert moved.device.id == "cpu"
    np.testing.assert_array_equal(moved.numpy(), x.numpy())
    back = moved.to(device)
    assert back.device is device


def test_numpy_takes_it(device):
    x = td.arange(6, dtype=td.f32).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(x), np.arange(6).reshape(2, 3))
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    assert float(np.sum(np.asarray(x))) == 15


def test_one_integer_is_an_index(device):
    two = td.full((), 2, dtype=td.i32)
    assert [5, 6, 7][two] == 7
    assert list(range(two)) == [0, 1]
    assert td.arange(5, dtype=td.i32)[two].item() == 2
    for other in (td.full((), 2.0), td.full((1,), 2, dtype=td.i32), td.full((), True)):
        with pytest.raises(TypeError, match="integers without axes"):
            range(other)


def test_item_len_repr(device):
    assert td.full((1, 1), 3.5).item() == 3.5
    with pytest.raises(td.errors.ShapeError, match="one element"):
        td.zeros(2).item()
    assert len(td.zeros((3, 2))) == 3
    with pytest.raises(TypeError):
        len(td.zeros(()))
    assert "float32" in repr(td.zeros(2))
    assert device.id in repr(td.zeros(2))
    x = td.zeros((3, 4), dtype=td.i16)
    assert (x.ndim, x.size, x.nbytes, x.strides) == (2, 12, 24, (4, 1))


def test_what_cannot_be_an_array(device):
    with pytest.raises(td.errors.ShapeError):
        td.asarray([[1, 2], [3]])
    with pytest.raises(td.errors.DtypeError):
        td.asarray(np.array(["text"]))
    with pytest.raises(td.errors.DtypeError):
        td.zeros(3, dtype="complex32")
    with pytest.raises(td.errors.ShapeError, match="negative"):
        td.zeros((2, -1))


def test_pickles_and_copies(device):
    import copy
    import pickle

    x = td.arange(6, dtype=td.f32).reshape(2, 3)
    back = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(back.numpy(), x.numpy())
    assert back.device.id == x.device.id
    twin = copy.deepcopy(x)
    twin[0] = 9.0
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_numbers_of_one_element(device):
    x = td.full(1, 2.5)
    assert (float(x), int(x), bool(x)) == (2.5, 2, True)
    assert not td.zeros(())
    with pytest.raises(td.errors.ShapeError, match=r"truth value .* 2 elements; .*any\(\)"):
        bool(td.zeros(2))
    assert (x == x).tolist() == [True]
    assert x in {x: 1}


def test_what_cannot_be_says_so(device):
    with pytest.raises(td.errors.ShapeError, match="broadcast"):
        td.zeros(8)[:] = np.zeros(3)
    with pytest.raises(td.errors.ShapeError, match="integer"):
        td.zeros(2.5)
    with pytest.raises(ValueError, match="step"):
        td.arange(0, 1, 0)
