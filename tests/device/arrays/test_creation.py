"""Tensors made of nothing but numbers, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

NARROW = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32",
          "complex64"]  # fmt: skip
WIDE = ["int64", "uint64", "float64", "complex128"]


def dtypes_of(device):
    wide = [d for d, need in zip(WIDE, ["int64", "int64", "float64", "float64"], strict=True)
            if device.backend != "webgpu" or need in device.features]  # fmt: skip
    return NARROW + wide


def same(ours, expected):
    assert ours.shape == expected.shape
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours.numpy(), expected)


# --- one value -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (3, 0), (2, 3, 5)], ids=str)
def test_one_value(device, shape):
    for dtype in dtypes_of(device):
        same(td.zeros(shape, dtype=dtype), np.zeros(shape, dtype))
        same(td.ones(shape, dtype=dtype), np.ones(shape, dtype))
        same(td.full(shape, 1, dtype=dtype), np.full(shape, 1, dtype))
        assert td.empty(shape, dtype=dtype).numpy().shape == shape


def test_extreme_values(device):
    for value in (-0.0, np.inf, -np.inf, np.nan, 1e300, 3.4e38, 2.0**-149):
        with np.errstate(over="ignore"):
            expected = np.full(3, value).astype(np.float32)
        made = td.full(3, value, dtype=td.float32).numpy()
        assert made.tobytes() == expected.tobytes() or (np.isnan(value) and np.isnan(made).all())
    assert td.full(2, 0.1, dtype="float16").numpy().tolist() == [np.float16(0.1)] * 2
    for dtype in dtypes_of(device):
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            for value in (limits.min, limits.max):
                same(td.full(3, int(value), dtype=dtype), np.full(3, value, dtype))
            with pytest.raises(OverflowError, match="does not fit"):
                td.full(3, int(limits.max) + 1, dtype=dtype)
    same(td.full(2, -0.0 - 2j), np.full(2, -0.0 - 2j, np.complex64))
    with pytest.raises(td.errors.DtypeError):
        td.full(2, 1j, dtype=td.float32)
    assert td.full(3, 2.9, dtype=td.int32).tolist() == [2, 2, 2]


def test_full_of_an_array(device):
    row = td.asarray([1.5, 2.5])
    wide = td.full((2, 2), row)
    row[0] = 0.0
    assert wide.tolist() == [[1.5, 2.5]] * 2
    wide[0, 0] = 9.0
    assert wide.tolist() == [[9.0, 2.5], [1.5, 2.5]]
    assert td.full(2, td.full((), 3), dtype=td.float32).tolist() == [3.0, 3.0]
    with pytest.raises(td.errors.ShapeError):
        td.full((2, 3), row)


@pytest.mark.parametrize("make", [td.zeros, td.ones, lambda n: td.full(n, 5.0)],
                         ids=["zeros", "ones", "full"])  # fmt: skip
def test_constants_are_written_as_arrays_are(device, make):
    x, same_value = make(5), make(5)
    before = x + 1
    part = x[1:3]
    part[...] = 7
    x[4] = -1
    value = same_value.tolist()[0]
    assert x.tolist() == [value, 7, 7, value, -1]
    assert same_value.tolist() == [value] * 5
    assert before.tolist() == [value + 1] * 5
    assert part.tolist() == [7, 7]
    x += x
    assert x.tolist() == [2 * value, 14, 14, 2 * value, -2]


def test_kernels_write_constants(device):
    @td.kernel
    def count(x: td.Array[td.f32]):
        x[td.grid(1)] += 1.0

    x = td.zeros(4)
    y = x * 10
    for _ in range(3):
        count.launch(4, x)
    assert x.tolist() == [3.0] * 4
    assert y.tolist() == [0.0] * 4
    assert td.zeros(4).tolist() == [0.0] * 4


def test_what_is_pending_is_no_part_of_a_recording(device):
    @td.kernel
    def double(x: td.Array[td.f32]):
        x[td.grid(1)] *= 2.0

    x, before = td.ones(4), td.ones(4) + 2
    double.launch(4, x)
    graph = td.Graph(device)
    x, y = td.ones(4), td.zeros(4)
    with graph.capture():
        double.launch(4, x)
        y[...] = x + before
    graph.replay()
    graph.replay()
    assert x.tolist() == [4.0] * 4
    assert y.tolist() == [7.0] * 4


def test_like(device):
    x = td.asarray(np.ones((2, 3), np.int16))
    same(td.zeros_like(x), np.zeros((2, 3), np.int16))
    same(td.ones_like(x.T, dtype=td.bool), np.ones((3, 2), bool))
    same(td.full_like(x, 4), np.full((2, 3), 4, np.int16))
    assert td.empty_like(x, dtype="float32").dtype == td.float32
    assert td.zeros_like(x, device="cpu").device.id == "cpu"
    assert td.zeros_like(x).device is device


# --- ranges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [(5,), (0,), (-3,), (2, 9), (2, 9, 3), (9, 2, -2), (0, 1, -1), (3, 3), (-5, 5, 7), (1, 2, 99)],
    ids=str,
)
def test_arange_of_integers(device, bounds):
    integer = td.arange(1).dtype.numpy
    same(td.arange(*bounds), np.arange(*bounds, dtype=integer))
    same(td.arange(*bounds, dtype=td.int8), np.arange(*bounds, dtype=np.int8))
    same(td.arange(*bounds, dtype=td.float32), np.arange(*bounds, dtype=np.float32))


def test_arange_is_exact(device):
    same(td.arange(2**24 - 2, 2**24 + 3, dtype=td.int32), np.arange(2**24 - 2, 2**24 + 3,
                                                                    dtype=np.int32))  # fmt: skip
    same(td.arange(-(2**31), 2**31, 2**29, dtype=td.int32),
         np.arange(-(2**31), 2**31, 2**29).astype(np.int32))  # fmt: skip
    same(td.arange(0, 256, 51, dtype=td.uint8), np.array([0, 51, 102, 153, 204, 255], np.uint8))
    if "int64" in dtypes_of(device):
        start = 2**53 + 1
        same(td.arange(start, start + 5, dtype="int64"), np.arange(start, start + 5))
        ends = np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], np.uint64)
        same(td.arange(2**64 - 3, 2**64, dtype="uint64"), ends)
        same(td.arange(-(2**63), 2**63, 2**62, dtype="int64"),
             np.array([-(2**63), -(2**62), 0, 2**62]))  # fmt: skip
    with pytest.raises(OverflowError, match="127"):
        td.arange(200, dtype=td.int8)
    with pytest.raises(OverflowError):
        td.arange(2**63, 2**63 + 2)


@pytest.mark.parametrize(
    "bounds",
    [(0.0, 1.0, 0.1), (1.0, 0.0, -0.125), (0.5,), (-1000, 1000, 0.75), (0, 5, 0.3), (3.0, 1.0),
     (1e-3, 2e-3, 1e-5), (0.0, 4.0)],
    ids=str,
)  # fmt: skip
def test_arange_of_floats(device, bounds):
    same(td.arange(*bounds, dtype=td.float32), _exact_range(*bounds).astype(np.float32))
    assert td.arange(*bounds).dtype == td.float32
    same(td.arange(*bounds, dtype=td.float16), _exact_range(*bounds).astype(np.float16))
    if "float64" in dtypes_of(device):
        made = td.arange(*bounds, dtype="float64").numpy()  # with one rounding or two
        np.testing.assert_allclose(made, _exact_range(*bounds), rtol=4e-16)


@pytest.mark.parametrize(
    "bounds",
    [(0.1, -7.9, -4.0), (1.0, 5.000001, 2.0), (-0.5, 2.5, 0.5), (0, 5, 1.5), (2.7,), (-3.9, 3.9)],
    ids=str,
)
def test_integers_from_floats_are_those_of_numpy(device, bounds):
    same(td.arange(*bounds, dtype="int32"), np.arange(*bounds, dtype=np.int32))
    for count in (0, 1, 4, 7):
        ends = (bounds[0], bounds[-1])
        same(td.linspace(*ends, count, dtype="int32"), np.linspace(*ends, count, dtype=np.int32))


def _exact_range(start, stop=None, step=1):
    if stop is None:
        start, stop = 0, start
    return start + np.arange(max(int(np.ceil((stop - start) / step)), 0)) * float(step)


def test_what_has_no_range(device):
    for wrong in [(0, 1, 0), (0, float("inf")), (float("nan"),), (0, 1, float("inf"))]:
        with pytest.raises(ValueError, match="arange"):
            td.arange(*wrong)
    with pytest.raises(TypeError, match="real"):
        td.arange(1j)
    assert td.arange(0.5, 4, dtype=td.int32).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 50])
@pytest.mark.parametrize("ends", [(0, 1), (-2.5, 7.1), (3, 3), (10, -10), (0.1, 1e30), (-1e9, 3)],
                         ids=str)  # fmt: skip
def test_linspace(device, ends, count):
    first, last = ends
    made = td.linspace(first, last, count)
    expected = np.linspace(first, last, count)
    assert made.shape == (count,)
    assert made.dtype == td.float32
    np.testing.assert_allclose(made.numpy(), expected, rtol=2e-7, atol=1e-7 * abs(first - last))
    if count:
        assert made.numpy()[0] == np.float32(first)
    if count > 1:
        assert made.numpy()[-1] == np.float32(last)
    opened = td.linspace(first, last, count, endpoint=False)
    longer = td.linspace(first, last, count + 1)
    np.testing.assert_array_equal(opened.numpy(), longer.numpy()[:-1])


def test_linspace_of_other_dtypes(device):
    assert td.linspace(0, 10, 4, dtype=td.int32).tolist() == [0, 3, 6, 10]
    same(td.linspace(0, 1j, 3), np.linspace(0, 1j, 3).astype(np.complex64))
    with pytest.raises(ValueError, match="linspace"):
        td.linspace(0, 1, -1)
    if "float64" in dtypes_of(device):
        largest = np.finfo(np.float64).max
        made = td.linspace(-largest, largest, 5, dtype="float64").numpy()
        np.testing.assert_allclose(made, np.array([-1, -0.5, 0, 0.5, 1]) * largest, rtol=4e-16)
        last = np.nextafter(3.0, 4.0)
        assert td.linspace(0, last, 4, dtype="float64").numpy()[-1] == last


def test_ranges_are_written_as_arrays_are(device):
    x = td.arange(5)
    later = x * 2
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    assert later.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("k", [-(10**30), -2, -1, 0, 1, 3, 10**30])
def test_eye(device, k):
    near = max(-9, min(k, 9))
    for rows, columns in [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0), (1, 1)]:
        same(td.eye(rows, columns, k=k), np.eye(rows, columns, near, np.float32))
    same(td.eye(3), np.eye(3, dtype=np.float32))
    for dtype in dtypes_of(device):
        same(td.eye(3, k=k, dtype=dtype), np.eye(3, k=near, dtype=dtype))


# --- asarray -------------------------------------------------------------------------------------


def test_lists_of_several_kinds(device):
    integer = td.arange(1).dtype
    for given, dtype in [
        ([True, False], td.bool), ([True, 3], integer), ([1, 2.5], td.float32),
        ([True, 0.5, 1j], td.complex64), ([], td.float32), ([[1], [2]], integer),
        ([float("nan"), float("inf"), 1], td.float32),
    ]:  # fmt: skip
        made = td.asarray(given)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made.numpy(), np.asarray(given, dtype.numpy))
    assert td.asarray([True, 3], dtype=td.int8).tolist() == [1, 3]
    assert td.asarray([1, 2**70], dtype=td.float32).tolist() == [1.0, 2.0**70]
    if "uint64" in dtypes_of(device):
        assert td.asarray([2**64 - 1], dtype="uint64").tolist() == [2**64 - 1]
    for wrong in ([-1, 2**64 - 1], [2**70], [2**63]):
        with pytest.raises(OverflowError):
            td.asarray(wrong)


def test_lists_of_tensors(device):
    """They keep their dtype, their device and their gradients."""
    x = td.asarray([1, 2], dtype="int8")
    made = td.asarray([x, x + 1])
    assert (made.dtype, made.device, made.tolist()) == (td.int8, device, [[1, 2], [2, 3]])
    assert td.asarray(([x], [x])).shape == (2, 1, 2)
    half = td.asarray(0.5, dtype="float16")
    assert td.asarray([half, 2]).dtype is td.float16
    assert td.asarray([half, x[0]]).dtype is td.float16
    assert td.asarray([half, x[0]], dtype=td.float32).tolist() == [0.5, 1.0]
    assert td.asarray([[half], []][:1]).tolist() == [[0.5]]
    y = td.asarray(3.0).requires_grad_()
    (td.asarray([y, 2 * y]) * td.asarray([1.0, 10.0])).sum().backward()
    assert y.grad.item() == 21.0
    with pytest.raises(td.errors.ShapeError, match="different lengths"):
        td.asarray([x, x[:1]])
    with pytest.raises(ValueError, match="copy=False"):
        td.asarray([x, x], copy=False)
    if device.backend != "cpu":
        with td.use_device("cpu"):  # where they are counts, as for one tensor
            assert td.asarray([x, x]).device is device
            assert td.asarray([x, x], device="cpu").device == td.device("cpu")
        with pytest.raises(td.errors.LaunchError, match="move one of them"):
            td.asarray([x, x.to("cpu")])


def test_masks_of_numpy_are_refused(device):
    masked = np.ma.array([1.0, 2.0], mask=[False, True], dtype=np.float32)
    kernel = td.kernel(_doubled)
    for use in (
        td.asarray,
        td.from_dlpack,
        lambda x: td.asarray([x, x]),
        lambda x: td.zeros(2) + x,
        lambda x: kernel.launch(2, x),
    ):
        with pytest.raises(td.errors.DtypeError, match=r"masked elements.*array\.filled"):
            use(masked)
    unmasked = np.ma.array([1.0, 2.0], dtype=np.float32)
    assert td.asarray(unmasked).tolist() == [1.0, 2.0]
    assert td.asarray(masked.filled(0)).tolist() == [1.0, 0.0]


def _doubled(x):
    i = td.grid(1)
    x[i] = x[i] * 2


def test_dtypes_of_python(device):
    """int, float, complex and bool are the device's defaults wherever a dtype is taken."""
    integer = td.arange(1).dtype
    x = td.ones((2, 2))
    for made in (
        td.zeros(2, dtype=int), td.arange(3.0, dtype=int), td.eye(2, dtype=int), x.to(int),
        x.astype(int), td.asarray([1.5], dtype=int), td.sum(x, dtype=int), td.full(2, 1, dtype=int),
        td.cumulative_sum(x, axis=0, dtype=int), td.linalg.trace(x, dtype=int),
        td.zeros_like(x, dtype=int), td.random.integers((2,), 0, 3, dtype=int),
        td.linspace(0, 1, 3, dtype=int),
    ):  # fmt: skip
        assert made.dtype is integer
    y = td.arange(4)
    for made in (
        y.to(float), td.zeros(2, dtype=float), td.fft.fftfreq(3, dtype=float),
        td.nn.functional.softmax(y, 0, dtype=float), td.random.normal((2,), dtype=float),
        td.nn.Linear(2, 2).to(float).weight, td.nn.Linear(2, 2, dtype=float).weight,
    ):  # fmt: skip
        assert made.dtype is td.float32
    assert y.to(bool).dtype is td.bool
    assert y.to(complex).dtype is td.ones(2, dtype=complex).dtype is td.complex64
    assert td.result_type(y, float) is td.float32
    assert td.can_cast(td.int8, int)
    assert (td.iinfo(int).bits, td.finfo(float).bits) == (td.arange(1, device=None).dtype.bits, 32)
    assert td.ones(2).to(int, device="cpu").dtype is td.int64


def test_asarray_copies_when_asked(device):
    x = td.asarray([1, 2, 3])
    alias, same_one = td.asarray(x), td.asarray(x, copy=False)
    copied = td.asarray(x, copy=True)
    part = td.asarray(x[1:], copy=True)
    x[...] = 0
    assert alias.tolist() == same_one.tolist() == [0, 0, 0]
    assert copied.tolist() == [1, 2, 3]
    part[0] = 9
    assert (part.tolist(), x.tolist()) == ([9, 3], [0, 0, 0])
    with pytest.raises(ValueError, match="copy"):
        td.asarray(x, dtype=td.float32, copy=False)
    with pytest.raises(ValueError, match="copy"):
        td.asarray([1], copy=False)
    assert td.asarray(x).device is device


def test_astype(device):
    values = {"float": [0.0, -1.5, 300.0, float("nan")], "int": [0, 1, -1, 100],
              "uint": [0, 1, 200], "bool": [False, True], "complex": [0j, 1j, 2 - 1j]}  # fmt: skip
    for source in dtypes_of(device):
        kind = getattr(td, source).kind
        x = td.asarray(values[kind], dtype=source)
        assert td.astype(x, td.bool).tolist() == [value != 0 for value in values[kind]]
        assert td.astype(x, source) is not x
        if kind == "complex":
            with pytest.raises(td.errors.DtypeError, match="imaginary"):
                td.astype(x, td.float32)
        else:
            wide = td.astype(x, td.complex64).numpy()
            np.testing.assert_array_equal(wide.real, x.numpy().astype(np.float32))
            assert (wide.imag == 0).all()
    moved = td.astype(td.asarray([1.5]), td.int32, device="cpu")
    assert (moved.device.id, moved.tolist()) == ("cpu", [1])
