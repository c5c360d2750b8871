"""Other libraries' GPU arrays, without a GPU: a driver that writes down what it is asked for, and
libraries that are made up of the attributes that are asked of them."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as td
from tests.support import fake_cuda
from treadle.runtime import devices, dlpack, foreign, sharing

ITEM = 4


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    """The made-up cuda:0."""
    backend = fake_cuda.FakeCuda()
    plain_backend, plain_infos = devices._backend, devices._infos
    infos = tuple(backend.list_devices())
    cpu = td.device("cpu")
    monkeypatch.setattr(
        devices, "_backend", lambda name: backend if name == "cuda" else plain_backend(name)
    )
    monkeypatch.setattr(
        devices,
        "_infos",
        lambda name, **choice: infos if name == "cuda" else plain_infos(name, **choice),
    )
    monkeypatch.setattr(devices, "_opened", {("cpu", cpu.info.api): cpu})
    monkeypatch.setattr(devices, "_default", cpu)
    monkeypatch.setattr(sharing, "_reached", {})
    return td.device("cuda:0")


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


def interface(data, /, **changes):
    """An array with `__cuda_array_interface__` alone; NumPy's memory is the GPU's."""
    found = {
        "version": 3,
        "shape": data.shape,
        "typestr": data.dtype.str,
        "data": (data.ctypes.data, False),
        "strides": data.strides,
        "stream": 1,
        **changes,
    }
    fake_cuda.foreign_memory[found["data"][0]] = "cuda:0"
    return SimpleNamespace(__cuda_array_interface__=found, data=data)


class Speaker:
    """An array with DLPack, of a library that nobody knows."""

    def __init__(self, data, number=0):
        self.data = data
        self.number = number
        self.streams = []

    def __dlpack_device__(self):
        return (dlpack.CUDA, self.number)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return dlpack.capsule(
            self.data.ctypes.data, (dlpack.CUDA, self.number), td.float32, self.data.shape,
            tuple(s // ITEM for s in self.data.strides), keep=self.data,
            versioned=max_version is not None,
        )  # fmt: skip


class Tensor:
    """What is asked of a PyTorch tensor."""

    requires_grad = False
    is_cpu = False
    is_cuda = True

    def __init__(self, data, number=0):
        self.data = data
        self.number = number
        self.dtype = f"torch.{data.dtype}"
        self.shape = data.shape

    def get_device(self):
        return self.number

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return self.data.ctypes.data

    def stride(self):
        return tuple(s // self.data.itemsize for s in self.data.strides)

    def untyped_storage(self):
        base = self.data if self.data.base is None else self.data.base
        return SimpleNamespace(data_ptr=lambda: base.ctypes.data, nbytes=lambda: base.nbytes)


Tensor.__module__ = "torch"


@pytest.fixture
def torch(monkeypatch):
    """PyTorch's stream: set `current` to be on another one than the legacy default stream."""
    library = SimpleNamespace(current=0, version=SimpleNamespace(hip=None))
    library.cuda = SimpleNamespace(
        current_stream=lambda number: SimpleNamespace(cuda_stream=library.current)
    )
    monkeypatch.setitem(sys.modules, "torch", library)
    return library


def diary(device):
    """What the driver was asked for since the last time."""
    entries = device.handle.diary.copy()
    device.handle.diary.clear()
    return [entry[1] if entry[0] == "default" and len(entry) == 2 else entry for entry in entries]


# --- arguments -----------------------------------------------------------------------------------


def test_arrays_with_the_interface_are_used_without_a_copy(cuda):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    saxpy[2, 64](2.0, interface(x), interface(y))
    np.testing.assert_array_equal(y, 2 * np.arange(100) + 1)
    saxpy.launch(50, 1.0, interface(x[::-2]), interface(y[:50], strides=None))
    np.testing.assert_array_equal(y[:50], 2 * np.arange(50) + 1 + np.arange(99, 0, -2))
    assert cuda.handle.diary.count(("default", "launch")) == 2


def test_the_library_orders_itself_behind_the_legacy_stream(cuda):
    x = Speaker(np.ones(8, np.float32))
    double[1, 8](x)
    assert x.streams == [1]
    assert x.data.tolist() == [2.0] * 8
    # Nobody knows its stream, so it could not be told to wait.
    assert diary(cuda) == ["launch", "synchronize"]


def test_pytorch_on_the_default_stream_costs_no_call(cuda, torch):
    x, y = Tensor(np.ones(8, np.float32)), Tensor(np.ones(8, np.float32))
    saxpy[1, 8](2.0, x, y)
    assert y.data.tolist() == [3.0] * 8
    assert diary(cuda) == ["launch"]


def test_pytorch_on_a_stream_of_its_own(cuda, torch):
    torch.current = 77
    x = Tensor(np.ones(8, np.float32))
    double[1, 8](x)
    name = "default"
    assert diary(cuda) == [(name, "wait_for", 77), "launch", (name, "precede", 77)]
    stream = cuda.stream()
    default = cuda.default_stream.handle.number
    double[1, 8, 0, stream](x)
    assert diary(cuda) == [
        ("other", "wait_for", default), ("other", "wait_for", 77), ("other", "launch"),
        ("other", "precede", default), ("other", "precede", 77),
    ]  # fmt: skip


def test_the_stream_that_the_interface_names(cuda):
    for stream in (None, 1, 2, 99):
        double[1, 4](interface(np.ones(4, np.float32), stream=stream))
        mine = "default"
        assert (
            diary(cuda)
            == {
                None: ["launch", "synchronize"],
                1: ["launch"],
                2: [(mine, "wait_for", 2), "launch", (mine, "precede", 2)],
                99: [(mine, "wait_for", 99), "launch", (mine, "precede", 99)],
            }[stream]
        )


def test_what_may_not_be_written(cuda, monkeypatch):
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    locked = interface(x, data=(x.ctypes.data, True))
    saxpy[1, 4](1.0, locked, interface(y))
    assert y.tolist() == [1, 2, 3, 4]
    with pytest.raises(td.errors.LaunchError, match=r"argument 3 \(y\).*read-only"):
        saxpy[1, 4](1.0, interface(y), locked)
    assert x.tolist() == [0, 1, 2, 3]


def test_an_immutable_library_is_read_and_held_until_it_was(cuda, monkeypatch):
    class Array(Speaker):
        __module__ = "jaxlib.xla"

    data = np.ones(4, np.float32)
    before = sys.getrefcount(data)
    y = td.zeros(4, device=cuda)
    diary(cuda)
    saxpy[1, 4](3.0, Array(data), y)
    assert y.tolist() == [3.0] * 4
    assert diary(cuda) == ["launch", "record"]
    assert sys.getrefcount(data) > before
    cuda.handle.reached = True
    saxpy[1, 4](3.0, Array(np.ones(4, np.float32)), y)
    assert sys.getrefcount(data) == before
    with pytest.raises(td.errors.LaunchError, match="read-only"):
        double[1, 4](Array(data))


def test_memory_of_another_device(cuda, torch):
    x = Tensor(np.ones(4, np.float32), 1)
    double[1, 4](x)
    assert td.device("cuda:1").handle.diary == [("default", "launch")]
    with pytest.raises(
        td.errors.LaunchError,
        match=r"argument 2 \(x\).*memory of torch on cuda:1; the launch is on cuda:0.*"
        r'Launch on device "cuda:1".*device="cuda:0"',
    ):
        saxpy[1, 4](1.0, x, td.zeros(4, device=cuda))
    with pytest.raises(td.errors.LaunchError, match=r"on cuda:1; the launch is on cpu"):
        saxpy[1, 4](1.0, x, td.zeros(4, device="cpu"))
    with pytest.raises(td.errors.DeviceNotFound, match=r"memory of torch.*cuda:7"):
        double[1, 4](Tensor(np.ones(4, np.float32), 7))


def test_an_address_says_the_device_where_nothing_else_does(cuda):
    x = interface(np.ones(4, np.float32))
    fake_cuda.foreign_memory[x.data.ctypes.data] = "cuda:1"
    double[1, 4](x)
    assert (
        td.device("cuda:1").handle.diary == [("default", "launch"), ("default", "synchronize")][:1]
    )


def test_overlapping_arrays_are_one_buffer(cuda):
    x = np.arange(100, dtype=np.float32)
    saxpy[1, 32](1.0, interface(x[50:82]), interface(x[60:92]))
    expected = np.arange(100, dtype=np.float32)
    expected[60:92] += np.arange(50, 82)
    # Run in order by the cpu: what was written is read.
    assert x[60] == 110
    saxpy.launch(100, 1.0, interface(x), interface(x))
    assert x[60] == 220


def test_a_tensor_of_ours_and_its_export_are_one_buffer(cuda, torch):
    x = td.asarray(np.arange(64, dtype=np.float32), device=cuda)
    there = np.frombuffer(x._array.buffer.memory, np.float32)[:64]
    saxpy.launch(32, 1.0, x[:32], Tensor(there[16:48]))
    assert x.numpy()[16:20].tolist() == [16.0, 18.0, 20.0, 22.0]
    shared = td.from_dlpack(Tensor(there[16:48]))
    assert shared._array.storage is x._array.storage or shared._array.buffer is not x._array.buffer


def test_alignment(cuda):
    data = np.zeros(400, np.uint8)
    first = -data.ctypes.data % 16
    whole = data[first : first + 160].view(np.float32)
    for start in range(5):
        part = whole[start : start + 8]
        part[:] = start
        double[1, 8](interface(part))
        assert part.tolist() == [2 * start] * 8
    odd = data[first + 2 : first + 34].view(np.float32)
    with pytest.raises(td.errors.LaunchError, match="not aligned to their size"):
        double[1, 8](interface(odd))
    pair = np.dtype([("a", np.float32), ("b", np.int16)], align=True)
    records = data[first + 8 : first + 88].view(pair)
    assert td.asarray(interface(records, descr=pair.descr)).dtype == pair
    apart = np.zeros(4, np.dtype([("x", "f4"), ("y", "i2")]))["x"]
    with pytest.raises(td.errors.LaunchError, match="not multiples of the size"):
        double[1, 4](interface(apart))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"typestr": "<c32"}, td.errors.DtypeError, "complex256"),
        ({"typestr": ">f4"}, td.errors.LaunchError, "byte order"),
        ({"mask": object()}, td.errors.LaunchError, "mask"),
        ({"typestr": "|V8"}, td.errors.DtypeError, "V8"),
    ],
)
def test_arrays_that_cannot_be_used(cuda, changes, error, message):
    with pytest.raises(error, match=rf"argument 1 \(x\).*{message}"):
        double[1, 4](interface(np.zeros(4, np.float32), **changes))


def test_empty_arrays(cuda):
    double.launch(4, interface(np.zeros(0, np.float32), data=(0, False)))
    assert td.from_dlpack(Speaker(np.zeros((2, 0), np.float32))).shape == (2, 0)


def test_a_replay_is_ordered_and_not_the_capture(cuda, torch):
    torch.current = 77
    x = Tensor(np.ones(4, np.float32))
    graph = td.Graph(cuda)
    with graph.capture():
        double[1, 4](x)
    assert diary(cuda) == ["launch"]
    data = x.data
    del x
    torch.current = 88
    graph.replay()
    assert data.tolist() == [2.0] * 4
    assert diary(cuda) == [("default", "wait_for", 88), ("default", "precede", 88)]


def test_interpreted(cuda, torch):
    x, y = Tensor(np.arange(4, dtype=np.float32)), Tensor(np.ones(8, np.float32)[::2])
    with td.interpret():
        saxpy[1, 4](2.0, x, y)
    assert y.data.tolist() == [1.0, 3.0, 5.0, 7.0]


def test_source_of_other_libraries_arrays(cuda):
    x = np.zeros(8, np.float32)
    plain = saxpy.source("ir")
    assert saxpy.source("ir", 1.0, interface(x), interface(x)) == plain
    assert saxpy.source("ir", 1.0, interface(x[::2]), interface(x)) != plain


# --- tensors -------------------------------------------------------------------------------------


def test_from_dlpack_shares_and_lets_go_in_order(cuda, torch):
    torch.current = 77
    data = np.arange(8, dtype=np.float32)
    before = sys.getrefcount(data)
    x = td.from_dlpack(Tensor(data))
    assert (x.device, x.shape, x.dtype) == (cuda, (8,), td.float32)
    assert diary(cuda) == [("default", "wait_for", 77)]
    double[1, 8](x)
    assert data[3] == 6
    assert diary(cuda) == ["launch"]
    del x
    assert diary(cuda) == []  # not in a finalizer, but when memory is asked for next
    td.empty(3, device=cuda)
    assert diary(cuda) == [("default", "use", 1), ("default", "precede", 77)]
    assert sys.getrefcount(data) == before
    torch.current = 0  # the legacy stream
    x = td.from_dlpack(Tensor(data))
    del x
    assert sys.getrefcount(data) == before
    assert diary(cuda) == []
    x = td.from_dlpack(Tensor(data))
    cuda.stream()
    del x
    td.empty(3, device=cuda)
    assert diary(cuda) == [("default", "use", 1)]


def test_parts_of_one_allocation_are_one_storage(cuda, torch):
    data = np.arange(8, dtype=np.float32)
    x, y = td.from_dlpack(Tensor(data[1:6])), td.from_dlpack(Tensor(data[3:]))
    assert x._array.storage is y._array.storage
    saxpy[1, 8](1.0, x, y)
    # Where the allocation is not known, what overlaps in part is refused.
    other = np.arange(8, dtype=np.float32)
    z = td.from_dlpack(Speaker(other[:5]))
    with pytest.raises(BufferError, match="share the whole array"):
        td.from_dlpack(Speaker(other[3:]))
    with pytest.raises(td.errors.LaunchError, match="share the whole array"):
        saxpy[1, 5](1.0, z, Speaker(other[3:]))
    assert td.from_dlpack(Speaker(other[1:3])).tolist() == [1.0, 2.0]
    # An allocation of which a part is shared already is not taken as a whole.
    rest = td.from_dlpack(Tensor(other[6:]))
    saxpy[1, 2](1.0, z[:2], rest)
    assert other[6:].tolist() == [6.0, 8.0]
    assert rest._array.storage.nbytes < other.nbytes


def test_asarray_copies_only_if_it_must(cuda, torch):
    data = np.arange(4, dtype=np.float32)
    array = Tensor(data)
    shared = td.asarray(array)
    assert shared.device is cuda
    copy = td.asarray(array, copy=True)
    host = td.asarray(array, device="cpu")
    peer = td.asarray(array, device="cuda:1")
    whole = td.asarray(array, dtype=td.int32)
    data[:] = 9
    assert shared.tolist() == td.asarray(array, copy=False).tolist() == [9.0] * 4
    for other in (copy, host, peer, whole):
        assert other.tolist() == [0, 1, 2, 3]
    assert td.device("cuda:1").handle.peers == 1
    for options in ({"device": "cpu"}, {"dtype": td.int32}):
        with pytest.raises(ValueError, match="copy=False"):
            td.asarray(array, copy=False, **options)


def test_between_devices_of_one_api(cuda):
    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device=cuda)
    assert x[:, 1:].to("cuda:1").tolist() == [[1, 2], [4, 5]]  # with gaps: through the host
    assert td.device("cuda:1").handle.peers == 0
    assert x[1].to("cuda:1").tolist() == [3, 4, 5]
    assert td.device("cuda:1").handle.peers == 1


# --- exports -------------------------------------------------------------------------------------


def test_the_interface_of_a_tensor(cuda):
    x = td.asarray(np.arange(12, dtype=np.int16).reshape(3, 4), device=cuda)[1:, ::2]
    diary(cuda)
    found = x.__cuda_array_interface__
    assert found == {
        "version": 3, "shape": (2, 2), "typestr": "<i2", "strides": (8, 4),
        "data": (x._array.buffer.address() + 8, False),
        "stream": cuda.default_stream.handle.number,
    }  # fmt: skip
    assert diary(cuda) == [("default", "use", 1)]
    assert td.zeros(3, dtype=td.bool, device=cuda).__cuda_array_interface__["typestr"] == "|b1"
    empty = td.zeros((0, 3), device=cuda).__cuda_array_interface__
    assert (empty["data"], empty["shape"]) == ((0, False), (0, 3))
    again = foreign.read(SimpleNamespace(__cuda_array_interface__=found), "x")
    assert (again.shape, again.strides) == ((2, 2), (4, 2))


def test_where_there_is_no_interface(cuda):
    assert not hasattr(td.zeros(3, device="cpu"), "__cuda_array_interface__")
    assert hasattr(td.zeros(3, device=cuda), "__cuda_array_interface__")
    narrow = td.zeros(3, dtype=td.bf16, device=cuda)
    assert not hasattr(narrow, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="DLPack"):
        _ = narrow.__cuda_array_interface__


@pytest.mark.parametrize(
    ("stream", "begins", "ends"),
    [
        (None, [("default", "use", 1)], []),
        (1, [("default", "use", 1)], []),
        (-1, [], []),
        (
            99,
            [("default", "use", 1), ("default", "precede", 99)],
            [("default", "wait_for", 99), ("default", "use", 1)],
        ),
    ],
)
def test_the_consumers_stream(cuda, stream, begins, ends):
    x = td.asarray(np.arange(4, dtype=np.float32), device=cuda)
    assert x.__dlpack_device__() == (dlpack.CUDA, 0)
    diary(cuda)
    taken = dlpack.Managed(x.__dlpack__(stream=stream, max_version=(1, 0)))
    assert (taken.device, taken.shape, taken.read_only) == ((dlpack.CUDA, 0), (4,), False)
    assert diary(cuda) == begins
    used = cuda.memory_stats()["used"]
    del x
    gc.collect()
    assert cuda.memory_stats()["used"] == used
    del taken
    assert cuda.memory_stats()["used"] < used
    assert diary(cuda) == ends


def test_exports_that_cannot_be(cuda):
    x = td.asarray(np.arange(4, dtype=np.float32), device=cuda)
    for stream in (0, -2, "a"):
        with pytest.raises(ValueError, match="legacy default stream"):
            x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="move it first"):
        x.__dlpack__(dl_device=(dlpack.CUDA, 1))
    with pytest.raises(BufferError, match="copied"):
        x.__dlpack__(dl_device=(dlpack.CPU, 0), copy=False)
    pair = td.zeros(3, dtype=np.dtype([("a", "f4"), ("b", "i4")]), device=cuda)
    with pytest.raises(BufferError, match="structs"):
        pair.__dlpack__()
    assert pair.__cuda_array_interface__["descr"] == [("a", "<f4"), ("b", "<i4")]
    locked = np.arange(4, dtype=np.float32)
    view = td.from_dlpack(interface(locked, data=(locked.ctypes.data, True)))
    with pytest.raises(BufferError, match="read-only"):
        view.__dlpack__()
    assert dlpack.Managed(view.__dlpack__(max_version=(1, 1))).read_only
    assert view.__cuda_array_interface__["data"][1]


def test_a_copy_for_the_host(cuda):
    x = td.asarray(np.arange(4, dtype=np.float32), device=cuda)
    host = np.from_dlpack(x, device="cpu")
    x[0] = 5
    assert host.tolist() == [0, 1, 2, 3]


def test_neighbours_do_not_overlap(cuda):
    """A buffer may begin a few bytes before its array, for alignment; those are not its own."""
    data = np.zeros(400, np.uint8)
    first = -data.ctypes.data % 16
    whole = data[first : first + 64].view(np.float32)
    x = td.from_dlpack(Speaker(whole[7:]))
    y = td.from_dlpack(Speaker(whole[2:7]))
    assert x._array.storage is not y._array.storage
    saxpy[1, 9](1.0, Speaker(whole[2:7]), x)
    saxpy[1, 9](1.0, Speaker(whole[:2]), y)
