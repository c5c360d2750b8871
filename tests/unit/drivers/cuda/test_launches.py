"""Launches: the bytes that a kernel gets, and grids that do not fit."""

from __future__ import annotations

import struct

import pytest

from tests.unit.drivers.cuda.conftest import open_device, ptx
from treadle.codegen.records import ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError
from treadle.drivers.cuda import calls, calls_in_python
from treadle.ir.nodes import Parameter
from treadle.ir.types import SCALARS


def layout(*types: str) -> ParameterLayout:
    return ParameterLayout.of(tuple(Parameter(f"p{i}", SCALARS[t]) for i, t in enumerate(types)))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_kernel_gets_pointers_then_parameters(device, fake, monkeypatch, compiled):
    if not compiled:
        plain = calls_in_python
        functions = (plain.launch, plain.read, plain.call, plain.call)
        monkeypatch.setattr(calls, "_compiled", lambda: (None, *functions))
        device = open_device()
    parameters = layout("u32", "f64", "u8")
    kernel = device.compile(ptx(writes=(True, False), layout=parameters))
    x, y = device.allocate(4), device.allocate(4)
    packed = struct.pack(parameters.format, 7, 0.5, 1)
    assert len(packed) == 24
    device.default_stream.launch(kernel, Dim3(5, 2), (x, y), packed)
    # Four bytes of padding at the end are no part of what the kernel takes.
    assert fake.arguments == struct.pack("<QQ", x.address(), y.address()) + packed[:20]
    function, *shape, stream = fake.named("cuLaunchKernel")[-1]
    assert (function, stream) == (kernel.function, device.default_stream.handle)
    assert shape == [5, 2, 1, 64, 1, 1, 0]
    device.close()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_timed_launch_is_between_its_events(device, fake, monkeypatch, compiled):
    if not compiled:
        plain = calls_in_python
        functions = (plain.launch, plain.read, plain.call, plain.call)
        monkeypatch.setattr(calls, "_compiled", lambda: (None, *functions))
        device = open_device()
    kernel, x, y = device.compile(ptx()), device.allocate(4), device.allocate(4)
    stream = device.default_stream
    works = [
        (lambda: stream.launch(kernel, Dim3(1), (x,), b""), "cuLaunchKernel"),
        (lambda: stream.copy(x, 0, y, 0, 4), "cuMemcpyDtoDAsync"),
    ]
    for several in (False, True):  # then launches go the longer way, with an event of their own
        if several:
            device.create_stream()
        for work, name in works:
            start, end = stream.timed(work)
            made = [(n, a[0]) for n, a in fake.calls if n in (name, "cuEventRecord")]
            at = max(i for i, (n, _) in enumerate(made) if n == name)
            assert made[at - 1] == ("cuEventRecord", start.handle)
            assert ("cuEventRecord", end.handle) in made[at + 1 :]
    recorded = len(fake.named("cuEventRecord"))
    one = open_device()
    one.default_stream.launch(one.compile(ptx()), Dim3(1), (one.allocate(4),), b"")
    assert len(fake.named("cuEventRecord")) == recorded + 1  # the new device's reference alone
    one.close()
    device.close()


def test_a_timed_launch_that_is_refused_leaves_no_event(device, fake):
    kernel, x, stream = device.compile(ptx()), device.allocate(4), device.default_stream
    fake.failures["cuLaunchKernel"] = 1
    with pytest.raises(LaunchError):
        stream.timed(lambda: stream.launch(kernel, Dim3(1), (x,), b""))
    fake.failures.clear()
    fake.calls.clear()
    stream.launch(kernel, Dim3(1), (x,), b"")
    assert fake.named("cuEventRecord") == []


def test_a_kernel_without_anything(device, fake):
    kernel = device.compile(ptx(writes=()))
    device.default_stream.launch(kernel, Dim3(1), (), b"")
    assert fake.arguments == b""


def test_dynamic_shared_memory(device, fake):
    kernel = device.compile(ptx(shared_bytes=100_000, dynamic_shared=100_000))
    assert fake.named("cuFuncSetAttribute")[-1][:3] == (kernel.function, 8, 100_000)
    device.default_stream.launch(kernel, Dim3(1), (device.allocate(4),), b"")
    assert fake.named("cuLaunchKernel")[-1][7] == 100_000
    with pytest.raises(CompileError, match="232448"):
        device.compile(ptx(shared_bytes=1 << 20))


def test_grids(device, fake):
    x, stream = device.allocate(4), device.default_stream
    plain, folded = device.compile(ptx()), device.compile(ptx(folded=True))
    launches = lambda: len(fake.named("cuLaunchKernel"))  # noqa: E731
    for grid in (Dim3(0), Dim3(3, 0)):
        stream.launch(plain, grid, (x,), b"")
    assert launches() == 0
    for kernel in (plain, folded):
        stream.launch(kernel, Dim3((1 << 31) - 1), (x,), b"")
        assert fake.named("cuLaunchKernel")[-1][1:4] == ((1 << 31) - 1, 1, 1)
    stream.launch(folded, Dim3(3, 65536), (x,), b"")
    assert fake.named("cuLaunchKernel")[-1][1:4] == (3, 32768, 2)
    stream.launch(folded, Dim3(70_000, 70_000), (x,), b"")
    assert fake.named("cuLaunchKernel")[-1][1:4] == (70_000, 35_000, 2)
    for kernel, grid in (
        (plain, Dim3(1, 65536)),
        (folded, Dim3(-1)),
        (plain, Dim3(1, 1, 65536)),
        (folded, Dim3(1, 70_000, 70_000)),
    ):
        with pytest.raises(LaunchError, match="65535"):
            stream.launch(kernel, grid, (x,), b"")


def test_wrong_arguments(device, fake, install):
    kernel = device.compile(ptx(writes=(True, True), layout=layout("u32")))
    x, y = device.allocate(4), device.allocate(4)
    stream, four = device.default_stream, struct.pack("<I4x", 1)
    with pytest.raises(LaunchError, match="takes 2 buffers, not 1"):
        stream.launch(kernel, Dim3(1), (x,), four)
    with pytest.raises(LaunchError, match="8 bytes, not 4"):
        stream.launch(kernel, Dim3(1), (x, y), b"1234")
    device.free(y)
    with pytest.raises(LaunchError, match="freed"):
        stream.launch(kernel, Dim3(1), (x, y), four)
    other = open_device()
    with pytest.raises(LaunchError, match="not memory of cuda:0"):
        stream.launch(kernel, Dim3(1), (x, other.allocate(4)), four)
    other.close()
    assert fake.named("cuLaunchKernel") == []


@pytest.mark.parametrize("code", [1, 701])
def test_a_refusal_has_numbers_and_loses_nothing(device, fake, code):
    kernel = device.compile(ptx(block=Dim3(32, 32)))
    x, stream = device.allocate(4), device.default_stream
    fake.failures["cuLaunchKernel"] = code
    with pytest.raises(LaunchError, match=r"1024 threads × 80 registers = 81,920.*512 threads"):
        stream.launch(kernel, Dim3(1), (x,), b"")
    fake.failures.clear()
    stream.launch(kernel, Dim3(1), (x,), b"")
    stream.synchronize()


def test_a_thread_is_left_as_it_was(device, fake):
    kernel, x = device.compile(ptx()), device.allocate(4)
    for before, after in ((0, device.context), (0xBEEF, 0xBEEF)):
        fake.current = before
        seen = []
        fake.kernel = lambda *_: seen.append(fake.current)  # noqa: B023
        device.default_stream.launch(kernel, Dim3(1), (x,), b"")
        assert seen == [device.context]
        assert fake.current == after


def test_the_context_of_another_card_is_not_left_behind(install):
    from tests.support.fake_cuda_driver import FakeCard, FakeDriver

    fake = install(FakeDriver(cards=[FakeCard(), FakeCard()]))
    second = open_device(1)
    fake.current = 0
    second.default_stream.synchronize()
    assert fake.current == 0
    second.close()


# ---------------------------------------------------------------------- compiling


def test_ptx_becomes_machine_code_once(device, fake):
    kernel = device.compile(ptx(source="some ptx"))
    assert fake.linked == b"some ptx\0"
    image = device.binary(kernel)
    assert image == fake.cubin
    fake.calls.clear()
    device.compile(ptx(source="some ptx"), image)
    assert fake.named("cuLinkAddData") == []
    assert len(fake.named("cuFuncLoad")) == 1  # at once, not at the first launch
    device.compile(ptx(source="some ptx"), b"of another driver")
    assert len(fake.named("cuLinkAddData")) == 1


def test_ptx_that_moves_registers_is_loaded_as_it_is(device, fake):
    """A linker leaves them where they are."""
    source = "setmaxnreg.inc.sync.aligned.u32 240;"
    kernel = device.compile(ptx(source=source))
    assert fake.named("cuLinkAddData") == []
    assert device.binary(kernel) == source.encode() + b"\0"


def test_an_older_driver_loads_too(install):
    from tests.support.fake_cuda_driver import FakeDriver

    fake = install(FakeDriver(version=12000))
    device = open_device()
    device.compile(ptx())
    assert fake.named("cuFuncLoad") == []
    assert fake.named("cuFuncGetAttribute") != []
    device.close()


def test_refused_ptx_shows_the_drivers_words_and_has_the_source(device):
    with pytest.raises(CompileError, match="line 3: no such instruction") as caught:
        device.compile(ptx(source="wrong ptx"))
    assert caught.value.generated == "wrong ptx"
    device.compile(ptx())


def test_cuda_source_needs_nvrtc(device, monkeypatch):
    from treadle.drivers.cuda import modules

    monkeypatch.setattr(modules, "_nvrtc", lambda: None)
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvrtc"):
        device.compile(ptx(target="cuda"))


def test_nvrtc_makes_machine_code():
    pytest.importorskip("cuda.bindings.nvrtc")
    from treadle.drivers.cuda import modules

    good = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1.0f; }'
    assert modules.compile_source(ptx(target="cuda", source=good), 90)[:4] == b"\x7fELF"
    with pytest.raises(CompileError, match=r"(?s)kernel.cu\(1\): error.*int f\("):
        modules.compile_source(ptx(target="cuda", source="int f("), 90)


def test_cache_keys_differ_between_cards_and_drivers(device):
    assert device.cache_key() == "cuda/NVIDIA Fake/CUDA 13.0, driver 580.95.05/sm_90"
