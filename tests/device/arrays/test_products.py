"""`matmul`, `tensordot`, `vecdot`, `dot`, `outer` and `@`, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.kernels.device_code.matrix_product import (
    Form,
    Loading,
    Tile,
    line_multiplier,
    tile_multiplier,
)
from treadle.kernels.factors import Factor, Product
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import TILES
from treadle.kernels.transposed_copy import transposed, turning_of
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


@pytest.mark.parametrize("names", [("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int8")])
def test_bytes_are_multiplied_as_they_are(device, rng, names):
    """Sums have 32 bits, whatever the signs of the factors; the result's dtype is NumPy's."""
    shapes = (33, 48), (48, 20)
    x, y = (
        rng.integers(np.iinfo(name).min, np.iinfo(name).max + 1, shape).astype(name)
        for name, shape in zip(names, shapes, strict=True)
    )
    a, b = td.asarray(x), td.asarray(y)
    wanted = x.astype("i4") @ y.astype("i4")
    found = td.matmul(a, b, dtype=td.int32)
    assert "int32[33, 48]" not in td.explain(found)  # they are not converted in memory
    np.testing.assert_array_equal(found.numpy(), wanted)
    turned = td.matmul(td.asarray(x.T.copy()).mT, td.asarray(y.T.copy()).mT, dtype=td.int32)
    np.testing.assert_array_equal(turned.numpy(), wanted)
    np.testing.assert_array_equal(td.matmul(b.mT, a.mT, dtype=td.int32).numpy(), wanted.T)
    assert (a @ b).dtype == getattr(td, (x @ y).dtype.name)
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)


TURNED = [
    # Shape, strides and start of the view that is copied, of an array of 40,000 elements.
    ((64, 64), (1, 64), 0),
    ((68, 132), (1, 132), 4),
    ((3, 36, 40), (1600, 1, 40), 0),
    ((2, 260, 64), (0, 1, 300), 8),
]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("shape", "strides", "start"), TURNED)
def test_transposed_copies(device, rng, dtype, shape, strides, start):
    """Whole tiles and edges, stacks, arrays that begin within their memory."""
    if not supports(device, getattr(td, dtype)):
        return
    x = rng.integers(-128, 128, 40_000).astype(dtype)
    what = turning_of(getattr(td, dtype), shape, strides, start)
    assert what is not None
    seen = x[start:]
    places = sum(index * step for index, step in zip(np.indices(shape), strides, strict=True))
    with poisoned(device):
        found = transposed(td.asarray(x, device=device)._array, what)
    np.testing.assert_array_equal(found.to_host().reshape(shape), seen[places])


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "start"),
    [
        (td.float16, (64, 64), (1, 64), 0),
        (td.float32, (64, 64), (64, 1), 0),
        (td.float32, (16, 64), (1, 16), 0),
        (td.float32, (64, 64), (1, -64), 4032),
        (td.int8, (66, 64), (1, 66), 0),
        (td.int8, (64, 64), (1, 64), 2),
    ],
)
def test_what_is_no_transposed_copy(dtype, shape, strides, start):
    assert turning_of(dtype, shape, strides, start) is None


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


# --- products of matrices: kernels by tiles, BLAS, and cuBLASLt where it is ----------------------


@pytest.fixture
def fresh(device):
    """Memory that is not right by chance."""
    with poisoned(device):
        yield


@pytest.mark.parametrize(
    ("rows", "columns", "inner"),
    [(37, 41, 19), (33, 32, 17), (31, 65, 9), (64, 68, 72), (2, 300, 64), (131, 3, 40), (4, 4, 300),
     (3, 7, 523), (20, 24, 1030)],  # the last two in parts of the inner axis
)  # fmt: skip
def test_sizes_that_fill_no_tile(device, fresh, rng, rows, columns, inner):
    x, y = integers(rng, (rows, inner)), integers(rng, (inner, columns))
    found = td.asarray(x) @ td.asarray(y)
    assert "product" in td.explain(found)
    np.testing.assert_array_equal(found.numpy(), x @ y)


# What is multiplied, of arrays of shapes (40, 36), (4, 20, 36) and (36, 24), or of their views.
LAYOUTS = {
    "turned": lambda x, s, y: y.T @ x.T,
    "steps": lambda x, s, y: x[::-3, 1::2] @ y[:18, ::-1],
    "moved": lambda x, s, y: s[1:, 1:, 4:] @ y[4:, 3:],
    "stacks": lambda x, s, y: s @ s.mT,
    "parts of stacks": lambda x, s, y: s[:, ::2] @ y,
    "one of many": lambda x, s, y: y.T @ s.mT,
    "itself": lambda x, s, y: x @ x.T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device, fresh, rng, layout):
    arrays = [integers(rng, shape) for shape in ((40, 36), (4, 20, 36), (36, 24))]
    found = LAYOUTS[layout](*map(td.asarray, arrays))
    assert "copy" not in td.explain(found)  # it is read as it lies
    np.testing.assert_array_equal(found.numpy(), LAYOUTS[layout](*arrays))


def test_axes_in_any_order(device, fresh, rng):
    x, y = integers(rng, (3, 4, 20, 8)), integers(rng, (8, 3, 4, 24))
    a, b = td.asarray(x), td.asarray(y)
    # Stacks of two axes, read in place; the result lies in another order than it is wanted.
    found = td.matmul(a, b.permute_dims((1, 2, 0, 3)))
    np.testing.assert_array_equal(found.numpy(), x @ y.transpose(1, 2, 0, 3))
    # Inner axes that strides do not take together are copied.
    found = td.tensordot(a, b, axes=((1, 3), (2, 0)))
    np.testing.assert_array_equal(found.numpy(), np.tensordot(x, y, axes=((1, 3), (2, 0))))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_matrices_of_dtypes(device, fresh, rng, dtype):
    kind = getattr(td, dtype)
    if not supports(device, kind):
        return  # the refusal is tested above
    x, y = rng.integers(-9, 9, (21, 40)), rng.integers(-9, 9, (40, 23))
    expected = x @ y
    found = td.asarray(x, dtype=kind) @ td.asarray(y, dtype=kind)
    assert found.dtype == kind
    if dtype == "bfloat16":  # sums of float32, rounded once
        expected = expected.astype(kind.numpy).astype(np.float32)
        found = found.to(td.float32)
    elif dtype == "complex64":
        whole = td.asarray(x, dtype=td.int32)
        found = (whole + 1j * whole).to(kind) @ td.asarray(y, dtype=kind)
        expected = (x + 1j * x) @ y
    np.testing.assert_array_equal(found.numpy(), expected.astype(found.dtype.numpy))


def test_special_values_stay_in_their_rows(device, fresh):
    x, y = np.ones((33, 19), np.float32), np.ones((19, 33), np.float32)
    x[3, 7], x[5, 18], y[2, 9] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        expected = x @ y
    np.testing.assert_array_equal((td.asarray(x) @ td.asarray(y)).numpy(), expected)
    some = td.zeros((33, 19)) * -1.0 @ td.asarray(np.ones((19, 33), np.float32))
    assert not some.numpy().any()


def test_written_over_its_own_factor(device, fresh, rng):
    x = integers(rng, (24, 24))
    a = td.asarray(x)
    rows = a[2:]
    rows[:] = a[2:] @ a + 1
    expected = x.copy()
    expected[2:] = x[2:] @ x + 1
    np.testing.assert_array_equal(a.numpy(), expected)


def test_replayed(device, rng):
    x, y = integers(rng, (20, 32)), integers(rng, (32, 24))
    a, b = td.asarray(x), td.asarray(y)
    out = td.zeros((20, 24))
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)  # compiled
    graph = td.Graph()
    with graph.capture():
        out[:] = (a @ b) * 2
        out.realize()
    for _ in range(2):
        x = integers(rng, (20, 32))
        a._array.upload(x)
        graph.replay()
        np.testing.assert_array_equal(out.numpy(), x @ y * 2)


def test_profiles_know_what_a_product_does(device, rng):
    a, b = td.asarray(integers(rng, (20, 32))), td.asarray(integers(rng, (32, 24)))
    with td.profile() as found:
        (a @ b).numpy()
    (row,) = [row for row in found.table().rows if row.name == "product"]
    assert row.operations == 2 * 20 * 32 * 24
    assert row.bytes == 4 * (20 * 32 + 32 * 24 + 20 * 24)


ALL_TILES = sorted({tile._replace(unrolled=False) for row in TILES.values() for tile in row})


@pytest.mark.parametrize("tile", ALL_TILES, ids=lambda tile: "x".join(map(str, tile[:6])))
def test_tiles_of_the_table(rng, tile):
    """On the CPU, whose compiler is quick: what matters is which thread does what."""
    x, y = integers(rng, (150, 36)), integers(rng, (36, 140))
    a, b = (td.asarray(array, device="cpu")._array for array in (x, y))
    with poisoned(a.device):
        out = td.empty((1, 150, 140), device="cpu")._array
        first, second = Factor((), 36, 1, 0), Factor((), 1, 140, 0)
        by_tiles(a, b, out, Product((), 150, 140, 36, first, second), tile)
    np.testing.assert_array_equal(out.to_host()[0], x @ y)


@pytest.mark.parametrize("name", ["tile", "line"])
def test_indices_of_64_bits(rng, name):
    x, y = integers(rng, (9, 12), np.int32), integers(rng, (12, 10), np.int32)
    with td.use_device("cpu"):
        a, b, out = (td.asarray(array.reshape(-1)) for array in (x, y, np.zeros(90, np.int32)))
    numbers = (9, 10, 12, 1, 1, 0, 0, 0, 12, 1, 0, 0, 0, 0, 1, 10, 0)
    if name == "tile":
        form = Form(td.int32, 0, Loading(True, 1), Loading(False, 1), 1, False, big=True)
        tile_multiplier(form, Tile(32, 32, 8, 1, 1, warp_columns=8, unrolled=False))[(1, 1), 64](
            a, b, out, *numbers, 1, 12
        )
    else:
        line_multiplier(td.int32, td.int32, 0, True, td.int32)[(1, 2), 16](a, b, out, *numbers)
    np.testing.assert_array_equal(out.numpy().reshape(9, 10), x @ y)
