"""GPU arrays of PyTorch, CuPy, Numba and JAX, those that are installed: both ways, and in order."""

from __future__ import annotations

import gc
import importlib
import os
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import treadle as td

pytestmark = pytest.mark.cuda

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the whole card


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
def double_grid(x: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] *= 2


@td.kernel
def late(x: td.Array[td.f32], y: td.Array[td.f32], rounds: td.i32):
    """y = 2 x, after a while."""
    i = td.grid(1)
    if i < y.size:
        v = x[i]
        for _ in range(rounds):
            v = td.sqrt(v * v)
        y[i] = 2 * v


LONG = 20_000  # rounds: milliseconds
N = 1 << 16


@pytest.fixture(autouse=True)
def cuda():
    try:
        found = td.device("cuda")
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


def _library(name: str) -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):  # their own, about each other
            return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")


def has_cuda(torch: Any) -> bool:
    return bool(torch.cuda.is_available())


@pytest.fixture
def torch():
    library = _library("torch")
    if not has_cuda(library):
        pytest.skip("this PyTorch has no CUDA")
    return library


@dataclass
class Library:
    """How a library's GPU arrays are made of NumPy's and become NumPy's."""

    name: str
    make: Any
    read: Any
    take: Any  # its array of ours, without a copy
    writable: bool = True


def _torch() -> Library:
    torch = _library("torch")
    if not has_cuda(torch):
        pytest.skip("this PyTorch has no CUDA")
    return Library(
        "torch", lambda a: torch.from_numpy(a).cuda(), lambda x: x.cpu().numpy(), torch.from_dlpack
    )


def _cupy() -> Library:
    cupy = _library("cupy")
    return Library("cupy", cupy.asarray, cupy.asnumpy, cupy.from_dlpack)


def _numba() -> Library:
    cuda = _library("numba.cuda")
    return Library("numba", cuda.to_device, lambda x: x.copy_to_host(), cuda.as_cuda_array)


def _jax() -> Library:
    jax = _library("jax")
    try:
        where = jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("this JAX has no CUDA")
    return Library(
        "jax", lambda a: jax.device_put(a, where), np.asarray, jax.numpy.from_dlpack, writable=False
    )


LIBRARIES = {"torch": _torch, "cupy": _cupy, "numba": _numba, "jax": _jax}


@pytest.fixture(params=list(LIBRARIES))
def library(request):
    return LIBRARIES[request.param]()


# --- arguments -----------------------------------------------------------------------------------


def test_arrays_are_used_without_a_copy(library, rng):
    data = rng.standard_normal(N).astype(np.float32)
    x, y = library.make(data), td.asarray(data)
    saxpy.launch(N, 2.0, x, y)
    np.testing.assert_allclose(y.numpy(), 3 * data, rtol=1e-6)
    if not library.writable:
        with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*read-only"):
            double.launch(N, x)
        return
    saxpy.launch(N, 1.0, y, x)
    np.testing.assert_allclose(library.read(x), 4 * data, rtol=1e-6)


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "float16", "float64", "int64"])
def test_dtypes(library, name):
    if library.name == "jax" and name in ("float64", "int64"):
        pytest.skip("JAX makes 32 bits of it")
    data = (np.arange(100) % 2).astype(name)
    assert td.from_dlpack(library.make(data)).numpy().tolist() == data.tolist()
    if library.writable and name != "bool":
        x = library.make(data)
        double.launch(100, x)
        np.testing.assert_array_equal(library.read(x), data * 2)


@pytest.mark.parametrize(
    "cut", [np.s_[:, 3], np.s_[1:, 2:9], np.s_[::3, ::2], np.s_[5:5], np.s_[2]], ids=str
)
def test_views(library, cut):
    data = np.arange(200, dtype=np.float32).reshape(20, 10)
    if library.name == "numba" and cut == np.s_[::3, ::2]:
        pytest.skip("Numba slices with steps elsewhere")
    part = library.make(data)[cut]
    assert td.from_dlpack(part).numpy().tolist() == data[cut].tolist()
    if library.writable and part.ndim == 1 and len(part):
        double.launch(len(part), part)
        np.testing.assert_array_equal(td.from_dlpack(part).numpy(), 2 * data[cut])


def test_views_of_pytorch(torch):
    x = torch.arange(24.0, device="cuda").reshape(4, 6)
    double_grid.launch((6, 4), x.T)
    double_grid.launch((4, 2), x[:, 1:3])
    expected = torch.arange(24.0).reshape(4, 6) * 2
    expected[:, 1:3] *= 2
    assert torch.equal(x.cpu(), expected)
    # Each offset, so that wide loads are of what lies for them.
    for start in range(9):
        part = torch.ones(64, device="cuda")[start:]
        double.launch(len(part), part)
        assert bool((part == 2).all())


def test_vectors_of_pytorch(torch):
    @td.kernel
    def total(x: td.Array[td.vec4[td.f32]], y: td.Array[td.f32]):
        i = td.grid(1)
        if i < x.size:
            v = x[i]
            y[i] = v.x + v.y + v.z + v.w

    x = torch.arange(36.0, device="cuda").reshape(9, 4)
    y = torch.zeros(9, device="cuda")
    total.launch(9, x, y)
    assert torch.equal(y, x.sum(1))
    with pytest.raises(td.errors.LaunchError, match="contiguous"):
        total.launch(8, x.reshape(-1)[1:33].reshape(8, 4), y)


def test_what_pytorch_knows_of_a_tensor(torch):
    x = torch.arange(8, dtype=torch.bfloat16, device="cuda")
    double.launch(8, x)
    assert x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    with pytest.raises(td.errors.LaunchError, match=r"argument 1 \(x\).*detach"):
        double.launch(4, torch.ones(4, device="cuda", requires_grad=True))
    double.launch(4, torch.ones(4, device="cuda", requires_grad=True).detach())
    with pytest.raises(td.errors.LaunchError):
        double.launch(4, torch.eye(4, device="cuda").to_sparse())
    z = torch.tensor([1 - 1j, 2j, 3, 0], dtype=torch.complex64, device="cuda")
    double.launch(4, z)
    assert z.tolist() == [2 - 2j, 4j, 6, 0]
    assert torch.equal(torch.from_dlpack(td.from_dlpack(z)), z)
    with pytest.raises(td.errors.DtypeError, match="float8"):
        double.launch(4, torch.zeros(4, dtype=torch.float8_e4m3fn, device="cuda"))
    with pytest.raises(td.errors.LaunchError, match=r"memory of torch on the CPU.*cuda:0"):
        saxpy.launch(4, 1.0, torch.ones(4), td.ones(4, device="cuda"))
    with pytest.raises(td.errors.LaunchError, match=r"torch on cuda:0; the launch is on cpu"):
        saxpy.launch(4, 1.0, td.ones(4, device="cpu"), torch.ones(4, device="cuda"))


def test_overlapping_arrays(torch):
    x = torch.arange(100.0, device="cuda")
    saxpy.launch(10, 1.0, x[10:20], x[50:60])
    saxpy.launch(10, 1.0, x[50:60], x[55:65])
    assert x[50:55].tolist() == [60, 62, 64, 66, 68]
    saxpy.launch(100, 1.0, x, x)
    assert x[1].item() == 2
    shared = td.from_dlpack(x[:50])
    saxpy.launch(10, 1.0, x[:10], shared[:10])
    assert x[1].item() == 4
    ours = td.ones(100)
    there = torch.from_dlpack(ours)
    saxpy.launch(50, 1.0, there[25:75], ours[:50])
    assert ours[:50].numpy().sum() >= 100


def test_elementwise_functions(torch):
    @td.elementwise
    def blend(x, y):
        return x + y * 2.0

    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert blend(x, x[0]).tolist() == [[0, 3, 6], [3, 6, 9]]


def test_interpreted(torch):
    x, y = torch.arange(4.0, device="cuda"), torch.ones(8, device="cuda")[::2]
    with td.interpret():
        saxpy[1, 4](2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]


def test_a_graph_with_pytorch(torch):
    x = torch.ones(N, device="cuda")
    graph = td.Graph()
    with graph.capture():
        double.launch(N, x)
        double.launch(N, x)
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            x.fill_(3)
            graph.replay()
            y = x.clone()
        torch.cuda.synchronize()
        assert bool((y == 12).all())


def test_another_card(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one card")
    x, y = torch.arange(N, dtype=torch.float32, device="cuda:1"), torch.ones(N, device="cuda:0")
    with pytest.raises(td.errors.LaunchError, match=r"cuda:1; the launch is on cuda:0"):
        saxpy.launch(N, 1.0, x, td.ones(N, device="cuda:0"))
    double.launch(N, x)
    moved = td.from_dlpack(x).to("cuda:0")
    saxpy.launch(N, 1.0, moved, y)
    assert torch.equal(y.cpu(), 2 * torch.arange(N) + 1)
    back = moved.to("cuda:1")
    double.launch(N, back)
    assert torch.equal(torch.from_dlpack(back).cpu(), 4.0 * torch.arange(N))


# --- order ---------------------------------------------------------------------------------------


@pytest.fixture(params=["default", "own"])
def theirs(request, torch):
    """PyTorch's current stream: the default one, or one of its own."""
    if request.param == "default":
        yield torch.cuda.current_stream()
        return
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield stream


@pytest.fixture(params=["default", "own"])
def ours(request, cuda):
    return None if request.param == "default" else cuda.stream()


def test_a_launch_comes_between_what_pytorch_does(torch, theirs, ours):
    x, y = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    for number in range(1, 30):
        torch.cuda._sleep(1_000_000)
        x.fill_(number)
        late[N // 256, 256, 0, ours](x, y, LONG if number % 3 == 0 else 1)
        after = y.clone()
        x.fill_(-1)
        torch.cuda.current_stream().synchronize()
        assert bool((after == 2 * number).all()), number


def test_memory_that_pytorch_uses_again(torch, theirs, ours):
    for number in range(1, 20):
        x = torch.full((N,), float(number), device="cuda")
        y = torch.zeros(N, device="cuda")
        late[N // 256, 256, 0, ours](x, y, LONG)
        after = y + 0
        del x, y
        again = [torch.full((N,), -5.0, device="cuda") for _ in range(3)]
        torch.cuda.current_stream().synchronize()
        assert bool((after == 2 * number).all()), number
        torch.cuda.synchronize()
        assert all(bool((one == -5).all()) for one in again), number


def test_shared_memory_is_let_go_in_order(torch, theirs):
    for number in range(1, 20):
        there = torch.full((N,), float(number), device="cuda")
        x = td.from_dlpack(there)
        y = td.zeros(N)
        late.launch(N, x, y, LONG)
        del x, there
        again = torch.full((N,), -5.0, device="cuda")
        assert (y.numpy() == 2 * number).all()
        torch.cuda.synchronize()
        assert bool((again == -5).all())


def test_exported_memory_comes_back_in_order(torch, theirs, ours):
    for number in range(1, 20):
        x, y = td.full(N, float(number)), td.zeros(N)
        late[N // 256, 256, 0, ours](x, y, LONG)
        there = torch.from_dlpack(y)
        torch.cuda._sleep(1_000_000)
        after = there + 1
        del y, there
        others = [td.full(N, -5.0) for _ in range(3)]
        torch.cuda.current_stream().synchronize()
        assert bool((after == 2 * number + 1).all()), number
        assert all((one.numpy() == -5).all() for one in others)


def test_cupy_on_a_stream_of_its_own():
    cupy = _library("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        for number in range(1, 20):
            x, y = cupy.full(N, number, np.float32), cupy.zeros(N, np.float32)
            late.launch(N, x, y, LONG)
            after = y + 1
            x.fill(-1)
            assert bool((after == 2 * number + 1).all()), number


def test_jax_lets_go_of_memory_that_is_read():
    library = _jax()
    for number in range(1, 20):
        x, y = library.make(np.full(N, number, np.float32)) + 0, td.zeros(N)
        late.launch(N, x, y, LONG)
        del x
        again = [library.make(np.zeros(N, np.float32)) + 7 for _ in range(4)]
        assert (y.numpy() == 2 * number).all(), number
        assert all((library.read(one) == 7).all() for one in again)


# --- exports -------------------------------------------------------------------------------------


def test_libraries_take_our_memory(library, rng):
    data = rng.standard_normal((50, 40)).astype(np.float32)
    x = td.asarray(data)
    double.launch(x.size, x.reshape(-1))
    there = library.take(x)
    np.testing.assert_array_equal(library.read(there), 2 * data)
    if library.name != "jax":  # which takes compact arrays only
        np.testing.assert_array_equal(library.read(library.take(x[3:, ::2])), 2 * data[3:, ::2])
    if library.writable:
        double.launch(x.size, x.reshape(-1))
        np.testing.assert_array_equal(library.read(there), 4 * data)


def test_our_memory_lives_as_long_as_theirs(library, cuda):
    gc.collect()
    before = cuda.memory_stats()["used"]
    x = td.full(N, 3.0)
    there = library.take(x)
    used = cuda.memory_stats()["used"]
    del x
    gc.collect()
    assert cuda.memory_stats()["used"] == used
    others = [td.full(N, -1.0) for _ in range(4)]
    assert (library.read(there) == 3).all()
    del others, there
    until = time.monotonic() + 5  # JAX lets go in a thread of its own
    while cuda.memory_stats()["used"] > before and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert cuda.memory_stats()["used"] <= before


def test_both_protocols(torch):
    x = td.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    for there in (torch.as_tensor(x, device="cuda"), torch.from_dlpack(x)):
        assert there.data_ptr() == x.__cuda_array_interface__["data"][0]
        assert there.tolist() == [[0, 1, 2], [3, 4, 5]]
    narrow = torch.from_dlpack(td.ones(3, dtype=td.bf16))
    assert narrow.dtype == torch.bfloat16
    back = td.from_dlpack(torch.from_dlpack(x)[1:])
    assert back._array.storage is x._array.storage
    assert np.from_dlpack(x, device="cpu").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert td.asarray(torch.ones(3, device="cuda")).device.id == "cuda:0"


def test_cupy_takes_both_protocols():
    cupy = _library("cupy")
    x = td.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    for there in (cupy.asarray(x), cupy.from_dlpack(x)):
        assert there.data.ptr == x.__cuda_array_interface__["data"][0]
        there += 1
    assert x.tolist() == [[2, 3, 4], [5, 6, 7]]
    back = td.from_dlpack(cupy.arange(10)[::-2])
    assert back.tolist() == [9, 7, 5, 3, 1]
