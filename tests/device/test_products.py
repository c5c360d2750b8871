"""`matmul`, `tensordot`, `vecdot`, `dot`, `outer` and `@`, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.tensor.dtypes import supports

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((7,), (7,)),
    ((7,), (7, 3)),
    ((3, 7), (7,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((3,), (2, 3, 4)),
    ((2, 4, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((2, 0, 3, 4), (1, 4, 2)),
    ((17, 131), (131, 13)),
]


def integers(rng, shape, dtype=np.float32):
    return rng.integers(-8, 8, shape).astype(dtype)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul(device, rng, shapes):
    x, y = (integers(rng, shape) for shape in shapes)
    found = td.matmul(td.asarray(x), td.asarray(y))
    assert found.shape == np.matmul(x, y).shape
    assert found.dtype == td.float32
    np.testing.assert_array_equal(found.numpy(), np.matmul(x, y))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "float64", "bool"])
def test_dtypes(device, rng, dtype):
    if not supports(device, getattr(td, dtype)):
        with pytest.raises(td.errors.DtypeError, match=f"has no {dtype}"):
            td.asarray(np.zeros((2, 2), dtype))
        return
    x, y = (rng.integers(0, 200, shape).astype(dtype) for shape in ((5, 6), (6, 3)))
    found = td.asarray(x) @ td.asarray(y)
    assert found.dtype == getattr(td, dtype)
    np.testing.assert_array_equal(found.numpy(), x @ y)


@pytest.mark.parametrize(("dtype", "total"), [("float16", 3000.0), ("bfloat16", 3008.0)])
def test_halves_are_added_up_in_float32(device, dtype, total):
    ones = td.full((2, 3000), 1.0, dtype=dtype)
    assert (ones @ ones[0]).tolist() == [total, total]
    assert td.vecdot(ones, ones).dtype == getattr(td, dtype)


def test_complex(device, rng):
    x, y = ((integers(rng, s) + 1j * integers(rng, s)).astype(np.complex64) for s in [(3, 4)] * 2)
    a, b = td.asarray(x), td.asarray(y)
    assert (a @ b[0]).dtype == td.complex64
    np.testing.assert_array_equal((a @ b[0]).numpy(), x @ y[0])
    np.testing.assert_array_equal(td.vecdot(a, b).numpy(), (x.conj() * y).sum(-1))
    np.testing.assert_array_equal(td.tensordot(a, b).numpy(), np.tensordot(x, y))
    nothing = td.zeros((2, 0), dtype=td.complex64) @ td.zeros((0, 2), dtype=td.complex64)
    assert nothing.tolist() == [[0, 0], [0, 0]]


def test_strided_operands(device, rng):
    x, y = integers(rng, (6, 8)), integers(rng, (8, 6))
    found = td.asarray(x)[::-1, ::2] @ td.asarray(y)[1::2, :0:-2]
    np.testing.assert_array_equal(found.numpy(), x[::-1, ::2] @ y[1::2, :0:-2])


def test_operator(device, rng):
    x, y = integers(rng, (3, 3)), integers(rng, (3, 3))
    a, b = td.asarray(x), td.asarray(y)
    np.testing.assert_array_equal((a @ y).numpy(), x @ y)
    np.testing.assert_array_equal((x @ b).numpy(), x @ y)
    before = a[0]
    a @= b
    np.testing.assert_array_equal(a.numpy(), x @ y)
    np.testing.assert_array_equal(before.numpy(), (x @ y)[0])
    np.testing.assert_array_equal((a @ b + 1).numpy(), x @ y @ y + 1)


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        (((2, 3, 4), (3, 4, 5)), 2),
        (((2, 3), (4,)), 0),
        (((2, 3, 4), (4, 3, 5)), ((1, 2), (1, 0))),
        (((2, 3), (2, 3)), ((-1,), (1,))),
        (((2, 3), (2, 3)), 0),
        (((), ()), 0),
        (((2, 0), (0, 2)), 1),
        (((3, 3), (3, 3)), ((0, 1), (1, 0))),
    ],
)
def test_tensordot(device, rng, shapes, axes):
    x, y = (integers(rng, shape) for shape in shapes)
    found = td.tensordot(td.asarray(x), td.asarray(y), axes=axes)
    np.testing.assert_array_equal(found.numpy(), np.tensordot(x, y, axes=axes))


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [(((5,), (5,)), -1), (((3, 5), (5,)), -1), (((4, 1, 5), (3, 5)), -1), (((4, 3), (4, 1)), 0),
     (((2, 4, 3), (4, 3)), 1), (((3, 0), (3, 0)), -1)],
)  # fmt: skip
def test_vecdot(device, rng, shapes, axis):
    x, y = (integers(rng, shape) for shape in shapes)
    expected = (x * y).sum(axis=axis)
    found = td.vecdot(td.asarray(x), td.asarray(y), axis=axis)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_dot_and_outer(device, rng):
    for shapes in [((4,), (4,)), ((2, 4), (4,)), ((2, 4), (4, 3)), ((2, 4), (5, 4, 3))]:
        x, y = (integers(rng, shape) for shape in shapes)
        np.testing.assert_array_equal(td.dot(td.asarray(x), td.asarray(y)).numpy(), np.dot(x, y))
    assert td.ones(3).dot(td.ones(3)).item() == 3 == td.ones(3).matmul(td.ones(3)).item()
    x, y = integers(rng, 5), integers(rng, 3)
    np.testing.assert_array_equal(td.outer(td.asarray(x), td.asarray(y)).numpy(), np.outer(x, y))


def test_what_follows_is_in_the_same_kernel(device, rng):
    x, y = integers(rng, (4, 6)), integers(rng, (6, 4))
    found = td.maximum(td.asarray(x) * 2 @ (td.asarray(y) - 1) + 3, 0)
    np.testing.assert_array_equal(found.numpy(), np.maximum((x * 2) @ (y - 1) + 3, 0))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda x: x @ 2, TypeError, "unsupported operand"),
        (lambda x: td.matmul(x, 2), TypeError, "not numbers"),
        (lambda x: x @ td.ones(()), td.errors.ShapeError, "arrays with axes"),
        (lambda x: x @ x, td.errors.ShapeError, "axis 1 of shape"),
        (lambda x: td.ones((2, 2, 3)) @ td.ones((3, 3, 4)), td.errors.ShapeError, "broadcast"),
        (lambda x: td.tensordot(x, x, axes=1), td.errors.ShapeError, "must be equal"),
        (lambda x: td.tensordot(x, x, axes=3), td.errors.ShapeError, "axes=3"),
        (lambda x: td.tensordot(x, x, axes=((0, 0), (0, 0))), ValueError, "named twice"),
        (lambda x: td.vecdot(x, td.ones(2)), td.errors.ShapeError, "must be equal"),
        (lambda x: td.vecdot(x, x, axis=2), IndexError, "axis 2"),
        (lambda x: td.outer(x, x), td.errors.ShapeError, "one axis"),
    ],
)
def test_refusals(make, error, says):
    with td.use_device("cpu"):
        x = td.ones((2, 3))
        with pytest.raises(error, match=says):
            make(x)
