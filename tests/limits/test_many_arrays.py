"""Kernels with more arrays than a device binds: some of them are copied to one buffer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.small_devices import BUFFERS, small_device, windowed_device

COUNT = 13
assert COUNT > BUFFERS

_NAMES = [f"a{i}" for i in range(COUNT)]
# Each is changed by itself and by the sum of those after it, so that a wrong place shows.
_PYTHON = "\n".join(
    [
        "@td.kernel",
        f"def shifted({', '.join(_NAMES)}, out):",
        "    i = td.grid(1)",
        "    if i < out.size:",
        f"        out[i] = {' + '.join(f'{k + 1} * {name}[i]' for k, name in enumerate(_NAMES))}",
    ]
)
_CPP = f"""
struct Triple {{ float x, y, z; }};
__constant__ int scales[3];
__global__ void mixed({", ".join(f"const float *a{i}" for i in range(6))}, const int *places,
        const unsigned char *bytes, const float4 *four, Triple *triples, float *sums,
        unsigned *count, short *narrow, const double *nothing, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int j = places[i];
    float4 f = four[i];
    triples[i].y += {" + ".join(f"a{i}[j]" for i in range(6))};
    triples[i].z = bytes[i] * scales[j % 3];
    sums[j] = f.x + f.y * f.z - f.w;
    narrow[j] -= i;
    if (!nothing) atomicAdd(count, j);
}}
"""


@pytest.fixture(params=["webgpu", "dawn"])
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    try:
        found = small_device(64, request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@pytest.fixture(scope="module")
def shifted():
    return td.kernel(source=_PYTHON)


@pytest.fixture
def rng():
    return np.random.default_rng()


def _wanted(arrays):
    return sum((k + 1) * array for k, array in enumerate(arrays))


@pytest.mark.parametrize("length", [1, 67, 1021])
def test_a_python_kernel(device, shifted, rng, length):
    hosts = [rng.integers(-99, 99, length).astype(np.float32) for _ in _NAMES]
    given = [td.asarray(host) for host in hosts]
    out = td.full(length, np.nan)
    shifted.launch(length, *given, out)
    assert out.tolist() == _wanted(hosts).tolist()
    for array, host in zip(given, hosts, strict=True):
        assert array.tolist() == host.tolist()
    given[3] += 1  # and with other contents
    hosts[3] += 1
    shifted.launch(length, *given, out)
    assert out.tolist() == _wanted(hosts).tolist()


def test_slices_and_strides(device, shifted, rng):
    whole = rng.integers(-99, 99, (COUNT, 40)).astype(np.float32)
    given = [td.asarray(row)[1:36:2] if k % 2 else td.asarray(row)[3:21]
             for k, row in enumerate(whole)]  # fmt: skip
    hosts = [row[1:36:2] if k % 2 else row[3:21] for k, row in enumerate(whole)]
    out = td.full(20, 5.0)
    shifted.launch(18, *given, out[1:19])
    assert out.tolist() == [5.0, *_wanted(hosts).tolist(), 5.0]


def test_arrays_that_share_memory_stay_shared(device, rng):
    """Sums along an array, whose parts are arguments of one kernel."""
    names = ", ".join(_NAMES)
    text = f"@td.kernel\ndef steps({names}):\n" + "\n".join(
        f"    a{k + 1}[0] = a{k + 1}[0] + a{k}[0]" for k in range(COUNT - 1)
    )
    steps = td.kernel(source=text)
    host = rng.integers(0, 99, 4).astype(np.float32)
    x, others = td.asarray(host), [td.full(1, float(k)) for k in range(COUNT - 4)]
    given = [x[0:1], x[1:2], *others, x[2:3], x[1:2]]
    steps.launch(1, *given)
    host[1] += host[0]
    sum = host[1]
    for k, one in enumerate(others):
        sum += k
        assert one.item() == sum
    host[2] += sum
    host[1] += host[2]
    assert x.tolist() == host.tolist()


def test_cuda_cpp_of_many_types(device, rng):
    module = td.cuda_module(_CPP, double="float")
    module.constants["scales"] = [2, 3, 5]
    n = 77
    a = [rng.integers(-9, 9, n).astype(np.float32) for _ in range(6)]
    places = rng.permutation(n).astype(np.int32)
    bytes = rng.integers(0, 255, n).astype(np.uint8)
    four = rng.integers(-9, 9, (n, 4)).astype(np.float32)
    triples = rng.integers(-9, 9, (n, 3)).astype(np.float32)
    narrow = rng.integers(-99, 99, n).astype(np.int16)
    sums = np.full(n, np.nan, np.float32)
    count = np.array([7], np.uint32)
    on_device = [td.asarray(one) for one in (*a, places, bytes, four)]
    results = [td.asarray(one) for one in (triples, sums, count, narrow)]
    nothing = td.zeros(1)
    module.mixed[2, 64](*on_device, *results, nothing, n)
    hosts = [one.copy() for one in (triples, sums, count, narrow)]
    module.mixed[2, 64](*a, places, bytes, four, *hosts, None, n)  # NumPy's, and a null pointer
    triples[:, 1] += sum(one[places] for one in a)
    triples[:, 2] = bytes * np.array([2, 3, 5])[places % 3]
    sums[places] = four[:, 0] + four[:, 1] * four[:, 2] - four[:, 3]
    narrow[places] -= np.arange(n, dtype=np.int16)
    for found, host, wanted in zip(results, hosts, (triples, sums, count, narrow), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)
        more = places.sum() if wanted is count else 0
        np.testing.assert_array_equal(host, wanted + more)


def test_what_is_pending_reads_what_was_there(device, shifted):
    given = [td.ones(5) for _ in _NAMES]
    out = td.zeros(5)
    before = out + 1  # computed when it is read
    shifted.launch(5, *given, out)
    assert before.tolist() == [1.0] * 5
    assert out.tolist() == [COUNT * (COUNT + 1) / 2] * 5


def test_in_graphs_and_compiled_functions(device, shifted):
    given = [td.full(9, float(k)) for k in range(COUNT)]
    out = td.zeros(9)
    graph = td.Graph(device)
    with graph.capture():
        shifted.launch(9, *given, out)
    given[0][...] = 100.0
    graph.replay()
    wanted = _wanted([100.0, *range(1, COUNT)])
    assert out.tolist() == [wanted] * 9
    out[...] = 0
    graph.replay()
    assert out.tolist() == [wanted] * 9

    @td.compile
    def step(x):
        y = td.zeros_like(x)
        shifted.launch(x.size, x, *given[1:], y)
        return y * 2

    for size in (9, 9, 9, 4):
        x = td.full(size, 3.0)
        assert step(x).tolist() == [2 * _wanted([3.0, *range(1, COUNT)])] * size


def test_arrays_that_are_too_large_together(shifted):
    device = windowed_device(1 << 14)
    most = device.limits.max_buffers_per_kernel
    names = [f"a{k}" for k in range(most + 3)]
    text = (
        f"@td.kernel\ndef many({', '.join(names)}):\n    i = td.grid(1)\n    a0[i] = "
        + " + ".join(f"{name}[i]" for name in names[1:])
    )
    with td.use_device(device):
        many = td.kernel(source=text)
        given = [td.full(4000, float(k)) for k in range(len(names))]
        with pytest.raises(td.errors.CompileError, match="too large to be copied to one"):
            many.launch(4000, *given)
        small = [one[-7:] for one in given]  # of which little is copied
        many.launch(7, *small)
        assert given[0].tolist() == [0.0] * 3993 + [sum(range(len(names)))] * 7


def test_shared_memory_that_not_every_device_has():
    """Text for no device says what to ask of one; a device's own limit holds."""
    module = td.cuda_module(
        "__global__ void turn(float *x) { __shared__ float s[8000]; int i = threadIdx.x;"
        "  s[7999 - i] = x[i]; __syncthreads(); x[i] = s[7936 + i]; }"
    )
    text = module.turn.source("wgsl")
    assert "// requiredLimits: maxComputeWorkgroupStorageSize 32000" in text
    device = td.device("webgpu")
    assert device.limits.max_shared_memory >= 32000  # what the driver has, not WebGPU's 16,384
    x = td.arange(64, dtype=td.float32, device=device)
    module.turn[1, 64](x)
    assert x.tolist() == [float(63 - i) for i in range(64)]
    small = td.zeros(64, device=small_device(64))
    with pytest.raises(td.errors.LaunchError, match=r"32000 bytes of shared.*device has 16384"):
        module.turn[1, 64](small)


def test_printed_without_a_device(shifted):
    text = shifted.source("wgsl", *[td.zeros(3) for _ in range(COUNT + 1)], block=32)
    assert f"@group(0) @binding({BUFFERS - 1})" in text
    assert f"@binding({BUFFERS})" not in text
    assert "in one buffer, each from its offset on" in text
    assert "out (written)" in text
    mixed = td.cuda_module(_CPP, double="float").mixed.source("wgsl")
    assert f"@binding({BUFFERS})" not in mixed
