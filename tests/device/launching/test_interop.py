"""Arguments that are not treadle's: NumPy arrays and numbers, other libraries' arrays, values."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.bfloat16 import BFLOAT16


class Foreign:
    """An array of another library, which knows DLPack and nothing else of NumPy."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class OnAnotherDevice(Foreign):
    def __dlpack_device__(self):
        return (10, 0)  # ROCm


class Unwilling(Foreign):
    def __dlpack__(self, **options):
        raise BufferError("Can't export tensors that require gradient")


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def double(x):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] * 2


@td.kernel
def add_grid(x: td.Array[td.f32, 2], y: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j] += x[i, j]


# --- DLPack --------------------------------------------------------------------------------------


def test_foreign_memory_is_used_without_a_copy():
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    saxpy[2, 64](2.0, Foreign(x), Foreign(y))
    np.testing.assert_array_equal(y, 2 * np.arange(100) + 1)


def test_foreign_and_our_own_memory_together():
    x, y = np.arange(5, dtype=np.float32), td.ones(5, device="cpu")
    saxpy.launch(5, 2.0, Foreign(x), y)
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[::-1], np.s_[3:40:5], np.s_[7:]], ids=str)
def test_foreign_views(cut):
    x = np.arange(50, dtype=np.float32)
    expected = x.copy()
    expected[cut] *= 2
    double.launch(x[cut].size, Foreign(x[cut]))
    np.testing.assert_array_equal(x, expected)


def test_overlapping_views_of_one_foreign_memory():
    x = np.arange(100, dtype=np.float32)
    saxpy[1, 32](1.0, Foreign(x[50:82]), Foreign(x[10:42]))
    expected = np.arange(100, dtype=np.float32)
    expected[10:42] += np.arange(50, 82)
    np.testing.assert_array_equal(x, expected)
    saxpy.launch(100, 1.0, Foreign(x), Foreign(x))
    np.testing.assert_array_equal(x, 2 * expected)


def test_foreign_memory_transposed(rng):
    x, y = rng.standard_normal((2, 6, 9)).astype(np.float32)
    expected = y[:6, :6].T + x[:6, :6]
    add_grid.launch((6, 6), Foreign(x[:, :6]), Foreign(y[:, :6].T))
    np.testing.assert_array_equal(y[:, :6].T, expected)


def test_empty_foreign_memory():
    double.launch(4, Foreign(np.zeros(0, np.float32)))
    double[0, 64](Foreign(np.zeros(0, np.int32)))


def test_read_only_foreign_memory_can_be_read_but_not_written():
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    saxpy[1, 4](1.0, Foreign(x), Foreign(y))
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(td.errors.LaunchError, match=r"argument 3 \(y\).*read-only"):
        saxpy[1, 4](1.0, Foreign(y), Foreign(x))
    assert x.tolist() == [0, 1, 2, 3]


def test_foreign_memory_stays_with_the_cpu(device):
    x = np.ones(4, np.float32)
    if device.backend == "cpu":
        saxpy[1, 4](1.0, Foreign(x), td.ones(4))
        return
    with pytest.raises(td.errors.LaunchError, match=r"argument 2 \(x\).*td\.asarray"):
        saxpy[1, 4](1.0, Foreign(x), td.ones(4))
    # Alone it says where the launch is.
    saxpy[1, 4](1.0, Foreign(x), Foreign(x))
    assert x.tolist() == [2.0] * 4


def test_memory_that_nobody_here_can_reach(device):
    with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*on another device"):
        double[1, 4](OnAnotherDevice(np.ones(4)))


def test_a_library_that_refuses_is_quoted():
    with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*require gradient"):
        double[1, 4](Unwilling(np.ones(4, np.float32)))


def test_foreign_memory_interpreted():
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    with td.interpret():
        saxpy[1, 4](2.0, Foreign(x), Foreign(y))
    assert y.tolist() == [1, 3, 5, 7]
    with td.interpret(), pytest.raises(td.errors.LaunchError, match="require gradient"):
        double[1, 4](Unwilling(x))


# --- sharing memory ------------------------------------------------------------------------------


def test_numpy_sees_a_tensor_of_the_cpu():
    x = td.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device="cpu")
    seen = np.from_dlpack(x[:, 1::2].reshape(3, 2))
    np.testing.assert_array_equal(seen, [[1, 3], [5, 7], [9, 11]])
    seen = np.from_dlpack(x[::-1, 1::2])
    np.testing.assert_array_equal(seen, [[9, 11], [5, 7], [1, 3]])
    double.launch(4, x[2])
    assert seen[0].tolist() == [18, 22]
    seen[1, 0] = -1
    assert x[1, 1].item() == -1


def test_memory_lent_is_not_used_for_anything_else(device):
    if device.backend == "webgpu":
        with pytest.raises(BufferError, match=r'x\.to\("cpu"\)'):
            td.zeros(3).__dlpack__()
        return
    if device.backend == "cuda":  # as test_interop_cuda says of libraries that reach it
        return
    seen = np.from_dlpack(td.full(1000, 7.0))
    others = [td.full(1000, float(n)) for n in range(10)]
    assert (seen == 7).all()
    del others


def test_a_host_copy_for_those_who_ask(device):
    x = td.asarray(np.arange(6, dtype=np.int32))
    host = np.from_dlpack(x[::2], device="cpu", copy=True)
    x[0] = 9
    assert host.tolist() == [0, 2, 4]
    assert np.from_dlpack(x, device="cpu").tolist() == [9, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "float16", "float64", "int64"])
def test_dtypes_there_and_back(name):
    data = np.arange(5).astype(name)
    x = td.from_dlpack(Foreign(data))
    assert x.dtype == name
    back = np.from_dlpack(x)
    assert back.dtype == data.dtype
    assert np.shares_memory(back, data)


def test_from_dlpack_shares_the_memory_of_the_cpu(device):
    data = np.arange(6, dtype=np.float32)
    x = td.from_dlpack(data)
    assert x.device.id == "cpu"
    double.launch(6, x[1:])
    assert data.tolist() == [0, 2, 4, 6, 8, 10]
    elsewhere = td.from_dlpack(Foreign(data), device=device)
    assert elsewhere.device is device
    assert elsewhere.tolist() == data.tolist()
    copy = td.from_dlpack(data, copy=True)
    data[0] = 5
    assert x[0].item() == 5
    assert copy[0].item() == 0
    # Two that share, in one launch, are one memory.
    whole, part = td.from_dlpack(data), td.from_dlpack(data[2:])
    saxpy.launch(4, 1.0, whole[:4], part)
    saxpy.launch(4, 1.0, Foreign(data), part)


def test_from_dlpack_of_what_may_not_be_written():
    data = np.arange(4, dtype=np.float32)
    data.flags.writeable = False
    x = td.from_dlpack(data)
    y = td.zeros(4, device="cpu")
    saxpy.launch(4, 1.0, x, y)
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*read-only"):
        double.launch(2, x[1:3])
    with pytest.raises(ValueError, match="this tensor is read-only"):
        x[0] = 1
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    assert td.asarray(x, copy=True)._array.key.read_only is False


def test_asarray_of_what_speaks_dlpack(device):
    data = np.arange(4, dtype=np.float32)
    x = td.asarray(Foreign(data), device=device)
    wide = td.asarray(Foreign(data), dtype=td.int32)
    data[:] = 7
    assert x.tolist() == ([7.0] * 4 if device.backend == "cpu" else [0.0, 1.0, 2.0, 3.0])
    assert wide.tolist() == [0, 1, 2, 3]
    assert td.asarray(data, copy=False, device="cpu").tolist() == [7.0] * 4
    with pytest.raises(ValueError, match="copy=False"):
        td.asarray(data, copy=False, dtype=td.int32, device="cpu")
    assert td.asarray(Foreign(data), copy=True, device="cpu").tolist() == [7.0] * 4


def test_what_is_no_array_to_share():
    with pytest.raises(TypeError, match="DLPack"):
        td.from_dlpack([1, 2])
    with pytest.raises(BufferError, match="require gradient"):
        td.from_dlpack(Unwilling(np.ones(3)))
    with pytest.raises(td.errors.DtypeError, match="the array: "):
        td.from_dlpack(np.zeros(3, np.clongdouble))


# --- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[::-1], np.s_[3:40:5], np.s_[:0]], ids=str)
def test_numpy_views(device, cut):
    x = np.arange(50, dtype=np.float32)
    expected = x.copy()
    expected[cut] *= 2
    double[1, 64](x[cut])
    np.testing.assert_array_equal(x, expected)


def test_numpy_transposed(device, rng):
    x, y = rng.standard_normal((2, 5, 7)).astype(np.float32)
    expected = y.T + x.T
    add_grid.launch((7, 5), x.T, y.T)
    np.testing.assert_array_equal(y.T, expected)


def test_read_only_numpy_arrays(device):
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    x.flags.writeable = False
    saxpy[1, 4](1.0, x, y)
    assert y.tolist() == [1, 2, 3, 4]
    with pytest.raises(td.errors.LaunchError, match=r"argument 3 \(y\).*read-only.*copy"):
        saxpy[1, 4](1.0, y, x)
    with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*read-only"):
        double[1, 4](np.broadcast_to(np.float32(1), 4))
    saxpy[1, 4](1.0, np.broadcast_to(np.float32(1), 4), y)
    assert y.tolist() == [2, 3, 4, 5]


@td.kernel
def first_and_last(x: td.Array[td.i32], y: td.Array[td.i32]):
    x[0] = 1
    y[y.size - 1] = 2


def test_the_same_numpy_array_twice_is_one_array(device):
    x = np.zeros(4, np.int32)
    first_and_last[1, 1](x, x)
    assert x.tolist() == [1, 0, 0, 2]
    double[1, 4](x)
    assert x.tolist() == [2, 0, 0, 4]


def test_overlapping_numpy_arrays_are_one_memory(device):
    x = np.arange(10, dtype=np.int32)
    first_and_last[1, 1](x[2:8], x[::-1])
    assert x.tolist() == [2, 1, 1, 3, 4, 5, 6, 7, 8, 9]
    # Interleaved, but with no element in common.
    first_and_last[1, 1](x[1::2], x[0::2])
    assert x.tolist() == [2, 1, 1, 3, 4, 5, 6, 7, 2, 9]


def test_fields_of_a_packed_record(device):
    data = np.zeros(5, [("a", "i1"), ("b", "f4")])
    data["b"] = 1.5
    double[1, 8](data["b"])
    np.testing.assert_array_equal(data["b"], 3.0)
    other = np.zeros(5, np.dtype([("x", "f4"), ("y", "f4")]))
    other["x"] = 1
    saxpy[1, 8](2.0, other["x"], other["y"])
    np.testing.assert_array_equal(other["y"], 2.0)


def test_dtypes_that_no_kernel_has(device):
    for bad in (np.zeros(3, np.clongdouble), np.array(["a"]), np.array([object()])):
        with pytest.raises(td.errors.DtypeError):
            double[1, 4](bad)


def test_the_other_byte_order(device):
    x = np.arange(3).astype(">i4")
    assert td.asarray(x).tolist() == [0, 1, 2]
    double[1, 4](x)
    assert x.tolist() == [0, 2, 4]
    record = np.zeros(2, np.dtype([("x", ">f4"), ("y", ">i2"), ("z", ">i2")]))
    record["x"] = 1.5
    assert td.asarray(record).numpy()["x"].tolist() == [1.5, 1.5]
    with pytest.raises(td.errors.LaunchError, match="byte order"):
        first_and_last[1, 1](x, x)


def test_a_consumer_that_refuses_raises_its_own_error():
    x = td.ones(3, dtype=td.bf16, device="cpu")
    with pytest.raises((RuntimeError, BufferError), match=r"(?i)dtype"):
        np.from_dlpack(x)
    assert (x * 2)._cell.value.array is None  # and it has let go


def test_errors_on_their_way_meet_memory_that_is_let_go():
    def fail(x):
        seen = np.from_dlpack(x)
        return seen[5:][{}]

    for _ in range(100):
        with pytest.raises(IndexError):
            fail(td.ones(9, device="cpu"))


def test_read_only_memory_stays_so_with_numpy():
    data = np.arange(3, dtype=np.float32)
    data.flags.writeable = False
    x = td.from_dlpack(data)
    seen = np.from_dlpack(x)
    assert not seen.flags.writeable
    with pytest.raises(BufferError, match=r"DLPack 1\.0.*copy it first"):
        x.__dlpack__()


# --- NumPy's functions and tensors ---------------------------------------------------------------


def test_numpy_arrays_of_tensors(device):
    x = td.arange(6, dtype=td.f32).reshape(2, 3) * 2
    copies = [np.array(x), np.asarray(x, copy=True), np.asarray(x, np.int32), x.numpy()]
    if device.traits.host_memory:
        seen = np.asarray(x, copy=False)
        assert seen is not np.asarray(x)
        assert np.shares_memory(seen, np.asarray(x[1:]))
        seen[0] = -1
        assert x.tolist() == [[-1] * 3, [6, 8, 10]]
        with pytest.raises(ValueError, match="copied to be int32"):
            np.asarray(x, np.int32, copy=False)
    else:
        with pytest.raises(ValueError, match=r"cannot reach .*x\.numpy\(\)"):
            np.asarray(x, copy=False)
    for copy in copies:
        assert copy.flags.writeable
        copy[1, 1] += 1
        assert copy.tolist() == [[0, 2, 4], [6, 9, 10]]
    assert x[1, 1].item() == 8


def test_numpy_functions_give_numpy_arrays(device):
    x = td.asarray(np.array([[3, 1], [2, 4]], np.float32))
    data = x.numpy()
    pairs = [
        (np.sin(x), np.sin(data)), (np.add(x, 1), data + 1), (np.fmax(x, data), data),
        (np.sum(x, axis=0), data.sum(0)), (np.mean(x), data.mean()), (np.sort(x), np.sort(data)),
        (np.concatenate([x, data]), np.concatenate([data, data])), (np.stack((x, x)), [data, data]),
        (np.where(x > 2, x, 0), np.where(data > 2, data, 0)), (np.reshape(x, 4), data.reshape(4)),
        (np.linalg.det(x), np.linalg.det(data)), (np.einsum("ij->j", x), data.sum(0)),
    ]  # fmt: skip
    for result, expected in pairs:
        assert isinstance(result, (np.ndarray, np.generic))
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_allclose(x, data)
    assert np.shape(x) == (2, 2)


def test_numpy_functions_write_tensors_or_refuse(device):
    x = td.zeros(3)
    if device.traits.host_memory:
        np.copyto(x, [1, 2, 3])
        np.cumsum([1, 1, 1], out=x[:])
        assert x.tolist() == [1, 2, 3]
        return
    for write in (lambda: np.copyto(x, 1), lambda: np.cumsum([1, 1, 1], out=x)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert x.tolist() == [0] * 3


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!="])
def test_operators_between_the_two_give_tensors(device, symbol):
    x = td.asarray(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    data = x.numpy()
    others = [np.array([3, 1, 2], np.float32), np.float32(2), np.array(2, np.float32), data[:, :1]]
    for other in others if device.backend in ("cpu", "webgpu") else others[1:2]:
        for text in (f"a {symbol} b", f"b {symbol} a"):
            result = eval(text, {"a": x, "b": other})
            assert isinstance(result, td.Tensor)
            expected = eval(text, {"a": data, "b": other})
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
            assert result.dtype == expected.dtype


def test_operators_in_place_between_the_two(device):
    x, data = td.ones(3), np.arange(3, dtype=np.float32)
    same, array = x, data
    x += data
    assert x is same
    assert x.tolist() == [1, 2, 3]
    data *= x
    assert data is array
    assert data.tolist() == [0, 2, 6]
    with pytest.raises(td.errors.ShapeError, match="broadcast"):
        np.ones(2, np.float32) == x  # noqa: B015


SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>",
           "<", "<=", ">", ">=", "==", "!=")  # fmt: skip


def test_operators_with_arrays_of_other_libraries_say_what_to_call(device):
    class Cooperative(Foreign):
        def __radd__(self, other):
            return "theirs"

    x, other = td.ones(3), Foreign(np.ones(3, np.float32))
    for symbol in SYMBOLS:
        for text in (f"x {symbol} y", f"y {symbol} x"):
            with pytest.raises(
                TypeError, match=r"Foreign beside.*td\.asarray\(y, device=x\.device"
            ):
                eval(text, {"x": x, "y": other})
    with pytest.raises(TypeError, match=r"^\+ takes no"):
        x += other
    assert x + Cooperative(np.ones(3)) == "theirs"


def test_numpy_arrays_as_memory_of_tensors(device):
    data = np.arange(4, dtype=np.float32)
    copied = td.asarray(data)
    data[0] = 9
    assert copied.tolist() == [0, 1, 2, 3]
    if device.backend == "cpu":
        shared = td.asarray(data, copy=False)
        data[1] = 8
        assert shared.tolist() == [9, 8, 2, 3]
        for bad in (data[::-1].astype(">f4"), np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], [1.0]):
            with pytest.raises(ValueError, match="copy"):
                td.asarray(bad, copy=False)
    else:
        with pytest.raises(ValueError, match=r"copy=False.* must be copied"):
            td.asarray(data, copy=False)
    with pytest.raises(ValueError, match="must be copied to be int32"):
        td.asarray(data, dtype=td.i32, copy=False)


# --- numbers and values --------------------------------------------------------------------------


@td.kernel
def store(out, value):
    out[0] = value


NUMBERS = [
    True, 3, 2.5, np.bool_(True), np.int8(-3), np.uint8(200), np.int16(-300), np.uint16(60000),
    np.int32(-70000), np.uint32(1 << 31), np.float16(1.5), np.float32(0.1),
    *(number(2.5) for number in BFLOAT16),
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: f"{type(v).__name__}")
def test_numbers(device, value):
    dtype = {bool: td.bool, int: td.i32, float: td.f32}.get(type(value), np.asarray(value).dtype)
    out = td.zeros(1, dtype=dtype)
    store[1, 1](out, value)
    assert out.item() == value
    with td.interpret():
        store[1, 1](out, value)
    assert out.item() == value


def test_a_bfloat16_number_for_a_float_parameter(device):
    y = td.zeros(1)
    saxpy[1, 1](td.bfloat16.numpy.type(1.5), td.ones(1), y)
    assert y.item() == 1.5


def test_numbers_that_no_kernel_takes(device):
    for bad in (np.complex64(1), np.datetime64("2026-01-01"), np.str_("a"), None, 1j):
        with pytest.raises(td.errors.DtypeError, match=r"argument 2 \(value\)"):
            store[1, 1](td.zeros(1), bad)


@td.struct
class Pair:
    first: td.f32
    second: td.vec3[td.i32]


@td.kernel
def take(out: td.Array[td.f32], pair: Pair, v):
    out[0] = pair.first
    out[1] = td.f32(pair.second.z)
    out[2] = v.y


def test_struct_and_vector_values(device):
    out = td.zeros(3)
    pair, vector = Pair(1.5, (1, 2, 3)), td.vec2[td.f32](4, 5)
    take[1, 1](out, pair, vector)
    assert out.tolist() == [1.5, 3.0, 5.0]
    record = np.zeros(2, Pair.dtype)
    record["first"], record["second"] = 2.5, [4, 5, 6]
    take[1, 1](out, record[1], vector)
    assert out.tolist() == [2.5, 6.0, 5.0]
    with td.interpret():
        take[1, 1](out, record[1], vector)
    assert out.tolist() == [2.5, 6.0, 5.0]
    with pytest.raises(td.errors.DtypeError, match=r"argument 2 \(pair\) of kernel take is Pair"):
        take[1, 1](out, vector, vector)


# --- source --------------------------------------------------------------------------------------

MARKS = {"wgsl": "@compute", "llvm": "define", "ir": "kernel"}


@pytest.mark.parametrize("target", MARKS)
def test_source_of_any_arguments(target):
    mark = MARKS[target]
    host = np.zeros(4, np.float32)
    tensor = td.zeros(4, device="cpu")
    plain = saxpy.source(target)
    assert mark in plain
    for array in (host, tensor, host[::2], np.zeros(0, np.float32), Foreign(host)):
        assert saxpy.source(target, 2.0, array, array) == plain
    for a in (1, np.float16(1), *(number(1) for number in BFLOAT16), True):
        assert saxpy.source(target, a, host, host) == plain
    # Strided memory that is used where it lies has its stride as a parameter.
    assert saxpy.source(target, 2.0, tensor[::2], tensor) != plain
    assert saxpy.source(target, 2.0, Foreign(host[::2]), Foreign(host)) != plain


@pytest.mark.parametrize("target", MARKS)
def test_source_without_annotations(target):
    assert MARKS[target] in double.source(target, np.zeros((), np.int8))
    assert MARKS[target] in take.source(target, td.zeros(3), Pair(), td.vec2[td.f32](1))
    with pytest.raises(td.errors.CompileError, match="parameter x has no annotation"):
        double.source(target)
    with pytest.raises(td.errors.LaunchError, match="takes 1 argument "):
        double.source(target, 1, 2)
    with pytest.raises(td.errors.DtypeError, match="complex64"):
        double.source(target, np.complex64(1))


def test_source_needs_a_known_target():
    with pytest.raises(td.errors.CompileError, match=r"unknown target 'glsl'.*wgsl"):
        double.source("glsl", np.zeros(3))


# --- PyTorch, where it is installed (the tests do not ask for it) ---------------------------------

try:
    import torch
except ImportError:
    torch = None

if torch is not None:

    def test_pytorch_tensors_are_used_without_a_copy():
        x, y = torch.arange(100, dtype=torch.float32), torch.ones(100)
        saxpy.launch(100, 2.0, x, y)
        assert torch.equal(y, 2 * torch.arange(100) + 1)
        matrix = torch.zeros(4, 6)
        add_grid.launch((6, 4), torch.ones(6, 4), matrix.T)
        assert torch.equal(matrix, torch.ones(4, 6))

    def test_pytorch_beside_tensors_says_what_to_call():
        x, y = td.ones(3, device="cpu"), torch.ones(3)
        for symbol in SYMBOLS:
            for text in (f"x {symbol} y", f"y {symbol} x"):
                with pytest.raises(TypeError, match=r"torch\.Tensor beside.*td\.asarray"):
                    eval(text, {"x": x, "y": y})
        for call in (
            lambda: torch.sin(x),
            lambda: torch.cat([y, x]),
            lambda: torch.nn.functional.linear(x, y),
            lambda: y.add_(x),
            lambda: y.__setitem__(slice(None), x),
        ):
            with pytest.raises(TypeError, match=r"PyTorch's .* takes no tensors of treadle: torch"):
                call()
        for convert in (torch.from_dlpack, torch.asarray, torch.as_tensor, torch.tensor):
            assert torch.equal(convert(x), y)
        assert td.add(x, y).tolist() == [2, 2, 2], "functions take them"

    def test_pytorch_tensors_that_require_gradients_say_so():
        with pytest.raises(td.errors.LaunchError, match="detach"):
            double[1, 4](torch.ones(4, requires_grad=True))

    def test_pytorch_tensors_of_bfloat16():
        x = torch.arange(4, dtype=torch.bfloat16)
        double[1, 4](x)
        assert x.tolist() == [0, 2, 4, 6]

    def test_pytorch_and_tensors_share_memory():
        x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device="cpu")
        there = torch.from_dlpack(x)
        there[1, 2] = 50
        assert x[1, 2].item() == 50
        back = td.from_dlpack(there[:, 1])
        assert back.tolist() == [1, 4]
        double.launch(2, back)
        assert there[:, 1].tolist() == [2, 8]
        assert td.from_dlpack(torch.ones(3, dtype=torch.bfloat16)).dtype == td.bf16
        narrow = torch.from_dlpack(td.ones(3, dtype=td.bf16, device="cpu"))
        assert narrow.dtype == torch.bfloat16
        with pytest.raises(BufferError, match="detach"):
            td.from_dlpack(torch.ones(3, requires_grad=True))

    @pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "bfloat16", "complex64"])
    @pytest.mark.parametrize("cut", [np.s_[:], np.s_[1, :0], np.s_[:, ::2], np.s_[1, 2]], ids=str)
    def test_pytorch_and_back(name, cut):
        x = td.asarray(np.arange(12).reshape(3, 4) % 3, device="cpu").to(name)
        there = torch.from_dlpack(x[cut])
        assert there.dtype == getattr(torch, name)
        assert there.tolist() == x[cut].tolist()
        back = td.from_dlpack(there)
        assert back.dtype == x.dtype
        there.fill_(1)
        assert back.tolist() == x[cut].tolist()
        back[...] = 0
        assert back.tolist() == x[cut].tolist() == there.tolist()

    def test_pytorch_writes_what_tensors_read():
        x = td.zeros(4, device="cpu")
        pending = x + 1
        there = torch.from_dlpack(x)
        there += 5
        assert (x * 2).tolist() == [10] * 4
        assert pending.tolist() == [1] * 4
        x[1:3] = 0
        assert there.tolist() == [5, 0, 0, 5]

    def test_pytorch_views_that_overlap():
        x = torch.arange(10, dtype=torch.float32)
        saxpy.launch(4, 1.0, x[2:6], x[3:7])
        assert x[3].item() == 5
        shared = td.from_dlpack(x)
        saxpy.launch(4, 1.0, x[2:6], shared[3:7])
        assert x[3].item() == 7

    def test_a_subclass_of_pytorchs_tensor():
        class Own(torch.Tensor):
            pass

        x = torch.ones(4).as_subclass(Own)
        double[1, 4](x)
        assert x.tolist() == [2.0] * 4

    def test_pytorch_tensors_without_memory():
        with pytest.raises(td.errors.LaunchError, match="on another device"):
            double[1, 4](torch.ones(4, device="meta"))
        with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\)"):
            double[1, 4](torch.eye(4).to_sparse())
        with pytest.raises(td.errors.DtypeError, match="float8"):
            double[1, 4](torch.zeros(4, dtype=torch.float8_e4m3fn))
        with pytest.raises(td.errors.LaunchError, match="resolve_conj"):
            double[1, 4](torch.zeros(4, dtype=torch.complex64).conj())


def test_elementwise_functions_of_foreign_arrays():
    @td.elementwise
    def blend(x, y):
        return x + y * 2.0

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with td.use_device("cpu"):
        assert blend(Foreign(x), Foreign(x[0].copy())).tolist() == [[0, 3, 6], [3, 6, 9]]
        assert blend(Foreign(x), td.ones(3)).tolist() == [[2, 3, 4], [5, 6, 7]]
