"""Arrays that are larger than what a kernel may see of one, on devices that allow very little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.small_devices import windowed_device

BINDING = 1 << 14  # bytes: 4096 float32


@pytest.fixture(params=["webgpu", "dawn"])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    try:
        found = windowed_device(BINDING, request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@pytest.fixture
def data() -> np.ndarray:
    return np.random.default_rng(7).standard_normal((131, 97)).astype(np.float32)


def same(result, expected, tolerance=0.0):
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_chains_and_broadcasts(device, data):
    x = td.asarray(data)
    same(x * 2 + 1, data * 2 + 1)
    same(x + td.asarray(data[0]), data + data[0])
    same(x * td.asarray(data[:, :1]), data * data[:, :1])
    same(td.where(x > 0, x, 5.0), np.where(data > 0, data, np.float32(5)))
    flat = data.reshape(-1)
    same(td.asarray(flat)[1:] - td.asarray(flat)[:-1], flat[1:] - flat[:-1])
    row = td.asarray(data[0])  # small ones make a large one
    same(row[:, None] * row[None, :], data[0][:, None] * data[0][None, :])


@pytest.mark.parametrize("length", [4096, 4097, 3 * 4096 - 8, 12289, 20000])
def test_lengths_about_the_ends_of_windows(device, length):
    data = np.arange(length, dtype=np.float32)
    x = td.asarray(data)
    same(x + 1, data + 1)
    same(x[3:] * 2, data[3:] * 2)
    same(td.sum(td.astype(x, td.int32)), length * (length - 1) // 2)
    same(td.arange(length), np.arange(length))
    same(td.full(length, 3.0), np.full(length, 3.0))


def test_other_axes_orders(device, data):
    x, square = td.asarray(data), td.asarray(data[:97])
    same(x.T + 0, data.T)
    same(square + square.T, data[:97] + data[:97].T)
    same(x[::-1, ::-2] * 3, data[::-1, ::-2] * 3)
    same(td.flip(x.reshape(-1)) + 0, data.reshape(-1)[::-1])
    cube = np.arange(13 * 31 * 29, dtype=np.float32).reshape(13, 31, 29)
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        same(td.permute_dims(td.asarray(cube), order) - 1, cube.transpose(order) - 1)


def test_slices_are_seen_through_one_window(device, data):
    x = td.asarray(data)
    small = td.asarray(data[120, 3:40])
    same(small + 1, data[120, 3:40] + 1)
    same(x[120, 3:40] + 1, data[120, 3:40] + 1)  # the same expression, of memory that is larger
    same(x[50:60, ::3] * 2, data[50:60, ::3] * 2)
    same(td.sum(x[-1]), data[-1].sum(), 1e-5)
    assert x[130, 96].item() == data[130, 96]


def test_what_is_joined(device, data):
    x, row = td.asarray(data), td.asarray(data[0])
    around, expected = x * -4, data * np.float32(-4)
    for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
        around = around + td.roll(x, shift, axis=axis)
        expected = expected + np.roll(data, shift, axis)
    same(around, expected, 1e-5)
    same(td.roll(x, (5, -7), axis=(0, 1))[1:, ::2] * 2, np.roll(data, (5, -7), (0, 1))[1:, ::2] * 2)
    both, right = td.concat([x, row[None, :], x * 2]), np.concatenate([data, data[:1], data * 2])
    same(both, right)
    same(both[100:240] + 1, right[100:240] + 1)
    same(td.sum(both, axis=0), right.sum(0), 1e-4)
    same(td.max(both, axis=1), right.max(1))
    small, some = td.concat([row, row + 1]), np.concatenate([data[0], data[0] + 1])
    same(small[None, :97] + x, some[None, :97] + data)  # a small one beside a large one
    same(td.stack([x, x + 1], axis=1), np.stack([data, data + 1], axis=1))


def test_only_corners_are_printed(device, data):
    text = repr(td.asarray(data))
    assert str(np.round(data[-1, -1] * 1e4) / 1e4)[:6] in text
    assert "..." in text
    assert text.count(",") == repr(td.asarray(np.ones((131, 97), np.float32))).count(",")


@pytest.mark.parametrize("name", ["sum", "max", "var"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(device, data, name, axis):
    data = 1 + data / 100
    x = td.asarray(data)
    expected = getattr(np, name)(data.astype(np.float64), axis=axis)
    same(getattr(td, name)(x, axis=axis), expected, 1e-4)
    same(getattr(td, name)(x.T * 1.0, axis=axis), getattr(np, name)(data.T, axis=axis), 1e-3)


def test_reductions_with_expressions_before_and_after(device, data):
    x = td.asarray(data)
    same(td.sqrt(td.sum(x * x)) + 1, np.sqrt((data * data).sum()) + 1, 1e-5)
    same(td.sum(abs(x), axis=0) / td.asarray(data[0]), abs(data).sum(0) / data[0], 1e-4)
    same(x - td.mean(x), data - data.mean(), 1e-5)
    same(x - td.mean(x, axis=0), data - data.mean(0), 1e-5)
    same(x / td.max(x, axis=1, keepdims=True), data / data.max(1, keepdims=True), 1e-6)
    same(td.sum(x.T), data.sum(), 1e-3)


def test_many_long_rows_in_few_parts(device):
    data = np.arange(3 * 5000, dtype=np.int32).reshape(3, 5000) % 1009
    x = td.asarray(data)
    same(td.sum(x, axis=0), data.sum(0))
    same(td.max(x + 1, axis=0), data.max(0) + 1)
    same(td.argmax(x, axis=0), data.argmax(0))
    same(td.sum(x, axis=1), data.sum(1))
    long = td.asarray(data.reshape(-1))
    same(td.sum(long.reshape(5, 3, 1000), axis=(0, 2)), data.reshape(5, 3, 1000).sum((0, 2)))


def test_rows_of_nothing(device, data):
    x = td.asarray(data)
    same(td.sum(x[:, 97:], axis=1), np.zeros(131))
    same(td.sum(x[131:]) + x[0], data[0])
    same(x + td.sum(x[131:, :], axis=0), data)
    same(td.sum(x[131:] * x[0], axis=1), np.zeros(0))


def test_where_and_any_and_counts(device, data):
    data[77, 5] = 9
    x = td.asarray(data)
    assert td.any(x == 9).item()
    assert not td.any(x > 9).item()
    assert td.all(x <= 9).item()
    assert not td.all(x < 9).item()
    same(td.all(x < 9, axis=0), (data < 9).all(0))
    same(td.sum(x > 0, axis=1), (data > 0).sum(1))
    same(td.count_nonzero(x > 0), np.count_nonzero(data > 0))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_places_of_values(device, axis):
    rng = np.random.default_rng(3)
    data = rng.integers(0, 50, (131, 97)).astype(np.float32)  # many are equal: the first one wins
    x = td.asarray(data)
    same(td.argmax(x, axis=axis), data.argmax(axis))
    same(td.argmin(x, axis=axis), data.argmin(axis))
    data[100, 3] = data[120, 3] = np.nan
    same(td.argmax(td.asarray(data), axis=axis), data.argmax(axis))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "float16", "int32", "uint32", "bool", "complex64"]
)
def test_dtypes(device, data, dtype):
    if device.backend == "dawn" and dtype not in ("int8", "bool"):
        return  # how windows are cut knows sizes of elements alone
    data = np.tile(data[:, :96], (4, 1))
    data = (data > 0) if dtype == "bool" else np.round(abs(data) * 2).astype(dtype)
    x = td.asarray(data)
    np.testing.assert_array_equal(x.numpy(), data)
    np.testing.assert_array_equal(td.where(x == x[0, 0], x, x[1]).numpy(),
                                  np.where(data == data[0, 0], data, data[1]))  # fmt: skip
    np.testing.assert_array_equal(td.asarray(x.T, copy=True).numpy(), data.T)
    expected = data.sum(0).astype(np.complex128 if dtype == "complex64" else np.float64)
    found = td.sum(x, axis=0).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    x[1:300:2, 5] = x[0, 0]
    data[1:300:2, 5] = data[0, 0]
    np.testing.assert_array_equal(x.numpy(), data)


def test_writes(device, data):
    x = td.asarray(data)
    x[5:120:2] = 7.0
    data[5:120:2] = 7
    x[:, 3] *= 2
    data[:, 3] *= 2
    same(x, data)
    x[1:] = x[:-1]  # reads what it writes
    data[1:] = data[:-1].copy()
    x[::-1] += 1
    data += 1
    same(x, data)
    x[40:60] = td.asarray(data[:20].copy())
    data[40:60] = data[:20]
    same(td.concat([x, x * 2]), np.concatenate([data, data * 2]))


def test_a_second_turn_takes_other_arrays(device, data):
    for turn in range(3):
        x = td.asarray(data + turn)
        same(td.sum(x * turn, axis=0), ((data + turn) * turn).sum(0), 1e-4)
        same(x * turn, (data + turn) * turn)


@td.kernel
def double(source, target):
    i = td.grid(1)
    if i < source.shape[0]:
        target[i] = source[i] * 2


def test_kernels_take_slices(device):
    data = np.arange(20000, dtype=np.float32)
    x = td.asarray(data)
    double.launch(1000, x[15000:16000], x[16000:17000])
    data[16000:17000] = data[15000:16000] * 2
    out = td.zeros(20000, dtype=td.float32)
    for start in range(0, 20000, 4000):
        double.launch(4000, x[start : start + 4000], out[start : start + 4000])
    same(out, data * 2)


def test_what_needs_all_of_an_array_is_refused(device):
    x = td.asarray(np.arange(20000, dtype=np.float32))
    limit = r"8.,... bytes.*at most 16,384 bytes of one array.*slices"
    with pytest.raises(td.errors.LaunchError, match=limit):
        double.launch(20000, x, td.zeros(20000, dtype=td.float32))
    with pytest.raises(td.errors.LaunchError, match=limit):
        double.launch(10, x[:10], x[-10:])  # one array for a kernel, and too far apart
    with pytest.raises(td.errors.LaunchError, match=limit):
        td.sort(x).numpy()
    with pytest.raises(td.errors.UnsupportedOnTarget, match=limit):
        td.take(x, td.asarray([3, 19999], dtype=td.int32)).numpy()
    with pytest.raises(td.errors.UnsupportedOnTarget, match="whole rows"):
        td.argmax(td.asarray(np.ones((131, 97), np.float32)).T).numpy()
    same(x + 1, np.arange(20000) + 1)  # and nothing is broken after that


def test_writes_that_are_refused_leave_the_old_elements(device):
    data = np.arange(20000, dtype=np.float32)
    x, places = td.asarray(data), td.asarray(np.arange(20000)[::-1].astype(np.int32))

    def read_after(write):
        write()
        x.numpy()

    for write in (
        lambda: x.__iadd__(td.sort(x)),
        lambda: x.__setitem__(slice(5, 9), td.take(x, places)[5:9]),
        lambda: x.__setitem__(..., td.cumulative_sum(x)),
        lambda: x.__setitem__(places, 7.0),
    ):
        with pytest.raises((td.errors.LaunchError, td.errors.UnsupportedOnTarget)):
            read_after(write)
        same(x, data)
    x += 1
    same(x, data + 1)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "halves"), [(70, 130, 90, False), (9, 9000, 8, True)]
)
def test_products_of_matrices(device, rows, inner, columns, halves):
    """Factors and results are larger than what a kernel sees; halves are rounded once."""
    rng = np.random.default_rng(3)
    x, y = (
        rng.integers(-4, 4, shape).astype(np.float32) for shape in ((rows, inner), (inner, columns))
    )
    dtype = td.bfloat16 if halves else td.float32
    found = td.asarray(x).to(dtype) @ td.asarray(y).to(dtype)
    same(found.to(td.float32) + 1, (x @ y).astype(dtype.numpy).astype(np.float32) + 1)


def test_parts_of_large_stacks_are_multiplied(device):
    stacks = np.random.default_rng(3).integers(-4, 4, (5, 30, 40)).astype(np.float32)
    many = td.asarray(stacks)
    same(many[:, 1:] @ many[0].mT, stacks[:, 1:] @ stacks[0].T)


def test_convolutions_of_parts_of_the_batch(device):
    """More images than a kernel sees at once."""
    x, weight = td.ones((9, 3, 20, 20)), td.ones((2, 3, 3, 3))
    wanted = np.full((9, 2, 18, 18), 27.0)
    same(td.nn.functional.conv2d(x, weight), wanted)
    with pytest.raises(td.errors.ShapeError, match=r"\(1, 3, 99, 99\).*29403 elements.*4096"):
        td.nn.functional.conv2d(td.ones((1, 3, 99, 99)), weight)
