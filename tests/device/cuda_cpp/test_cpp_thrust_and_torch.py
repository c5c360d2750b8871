"""What kernels take of Thrust, and of the headers of PyTorch's extensions."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

THRUST = """
#include <thrust/complex.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/tuple.h>
__device__ thrust::tuple<float3, int> both(float a)
{
    return thrust::make_tuple(make_float3(a, a + 1, a + 2), (int)a);
}
__global__ void values(int *out)
{
    auto t = both(3);
    *out++ = thrust::get<0>(t).y;
    *out++ = thrust::get<1>(t);
    thrust::pair<int, int> p = thrust::make_pair(1, 2);
    *out++ = p.second;
    thrust::complex<float> z(1, 2);
    z = z * thrust::conj(z);
    *out++ = z.real();
    *out++ = thrust::abs(thrust::complex<float>(3, 4));
    int a[5] = {5, 3, 1, 4, 2}, v[5] = {0, 1, 2, 3, 4};
    thrust::sort_by_key(thrust::seq, a, a + 5, v);
    *out++ = a[0] * 10 + v[0];
    thrust::sort(thrust::seq, a, a + 5, thrust::greater<int>());
    *out++ = a[0];
    *out++ = thrust::reduce(thrust::seq, a, a + 5, 0, thrust::maximum<int>());
    thrust::exclusive_scan(thrust::seq, a, a + 5, a);
    *out++ = a[4];
    *out++ = thrust::count(thrust::device, v, v + 5, 2);
    thrust::swap(a[0], a[1]);
    *out++ = a[0];
}
__global__ void pointed(thrust::device_ptr<int> x, std::aligned_storage<4, 4>::type *y)
{
    __shared__ typename std::aligned_storage<sizeof(int) * 4, alignof(int)>::type storage;
    int *four = reinterpret_cast<int *>(&storage);
    four[1] = 6;
    x[1] = four[1] + *thrust::raw_pointer_cast(x + 2);
}
int main()
{
    thrust::device_vector<int> d(4);
    return thrust::reduce(d.begin(), d.end(), 0, thrust::plus<int>());
}
"""


def test_thrust_in_device_code(device):
    expected = [4, 3, 2, 5, 5, 12, 5, 5, 14, 1, 5]
    out = td.full((len(expected),), -77, dtype=td.int32, device=device)
    td.cuda_module(THRUST).values[1, 1](out)
    assert out.tolist() == expected
    pointed = td.arange(4, dtype=td.int32, device=device)
    td.cuda_module(THRUST).pointed[1, 1]((pointed,), td.zeros(4, dtype=td.uint8, device=device))
    assert pointed.tolist() == [0, 8, 2, 3]


TORCH = """
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
template <typename scalar_t>
__global__ void rows(const at::PackedTensorAccessor64<scalar_t, 2, at::RestrictPtrTraits> x,
                     at::PackedTensorAccessor32<float, 1, at::RestrictPtrTraits> out)
{
    at::acc_type<scalar_t, true> sum = 0;
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= x.size(0))
        return;
    auto row = x[r];
    for (int j = 0; j < row.size(0); ++j)
        sum += row[j] * x[r][j];
    out[r] = sum;
}
C10_LAUNCH_BOUNDS_1(64)
__global__ void count(torch::PackedTensorAccessor64<float, 3> x)
{
    CUDA_KERNEL_LOOP(i, x.size(0) * x.size(1) * x.size(2)) {
        x[i / (x.size(1) * x.size(2))][i / x.stride(1) % x.size(1)][i % x.size(2)] += i;
    }
}
at::Tensor rows_cuda(const at::Tensor &x)
{
    TORCH_CHECK(x.dim() == 2, "two dimensions");
    auto out = at::zeros({x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rows", ([&] {
        rows<scalar_t><<<1, 64>>>(x.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
                                  out.packed_accessor32<float, 1, at::RestrictPtrTraits>());
    }));
    return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("rows", &rows_cuda); }
"""


def test_accessors_take_tensors(device):
    module = td.cuda_module(TORCH)
    x = np.random.default_rng().normal(size=(5, 7)).astype(np.float32)
    out = td.full((5,), -77.0, device=device)
    module.kernel("rows", td.f32)[1, 64](td.asarray(x, device=device), out)
    assert out.numpy() == pytest.approx((x.astype(float) ** 2).sum(1), rel=1e-5)
    counted = td.zeros((2, 3, 4), device=device)
    module.kernel("count")[1, 32](counted)
    assert counted.numpy().ravel().tolist() == list(range(24))
    with pytest.raises(td.errors.DtypeError, match="it takes 3 dimensions"):
        module.kernel("count")[1, 32](out)


INDEXED = """
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/cuda/detail/TensorInfo.cuh>
using at::cuda::detail::IndexToOffset;
using at::cuda::detail::TensorInfo;
__global__ void indexed(const TensorInfo<float, int> x, float *out, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    out[i] = x.data[IndexToOffset<float, int, -1>::get(i, x)];
    if (i < x.dims) out[n + i] = x.sizes[i] + 100 * x.strides[i];
}
__global__ void seeds(at::PhiloxCudaState state, unsigned long long *out)
{
    auto seeds = at::cuda::philox::unpack(state);
    out[0] = std::get<0>(seeds);
    out[1] = std::get<1>(seeds);
    out[2] = WARP_SHFL((int)threadIdx.x + 10, 3) + WARP_BALLOT(threadIdx.x < 2);
}
"""


def test_tensors_of_any_number_of_dimensions(device):
    module = td.cuda_module(INDEXED)
    x = np.random.default_rng().normal(size=(2, 3, 4)).astype(np.float32)
    out = td.full((2, 24), -77.0, device=device)
    module.indexed[1, 32](td.asarray(x, device=device), out, 24)
    got = out.numpy()
    assert (got[0] == x.ravel()).all()
    assert got[1, :3].tolist() == [1202, 403, 104]
    with pytest.raises(td.errors.DtypeError, match="it takes 25 dimensions"):
        module.indexed[1, 32](td.zeros((1,) * 26, device=device), out, 24)


def test_seeds_of_philox():
    out = td.zeros(3, dtype=td.uint64)
    td.cuda_module(INDEXED).seeds[1, 32]((1 << 60, 7), out)
    assert out.tolist() == [1 << 60, 7, 16]


def test_engines_and_distributions(device):
    """The standard says what the ten thousandth number of an engine is; others by Python."""
    module = td.cuda_module("""
    #include <thrust/random.h>
    __global__ void engines(unsigned *out, float *x, int *n)
    {
        int i = threadIdx.x;
        thrust::default_random_engine rng, own(i);
        thrust::minstd_rand0 old;
        rng.discard(9999); old.discard(9999); own.discard(5);
        out[0] = rng(); out[1] = old(); out[2 + i] = own();
        thrust::uniform_real_distribution<float> real(-2.0f, 3.0f);
        thrust::uniform_int_distribution<int> whole(-3, 6);
        thrust::random::normal_distribution<float> bell(1.0f, 2.0f);
        x[i] = real(own); n[i] = whole(own); x[256 + i] = bell(own);
    }
    """)
    out, n = (td.zeros(k, dtype=t, device=device) for k, t in ((258, td.uint32), (256, td.int32)))
    x = td.zeros(512, device=device)
    module.engines[1, 256](out, x, n)
    states = [max(i, 1) * 48271**6 % 2147483647 for i in range(256)]
    assert out.tolist() == [399268537, 1043618065, *states]
    states = [state * 48271 % 2147483647 for state in states]
    real = [(state - 1) / 2147483646 * 5 - 2 for state in states]
    found = x.numpy().reshape(2, 256)
    np.testing.assert_allclose(found[0], real, atol=1e-5)
    states = [state * 48271 % 2147483647 for state in states]
    assert n.tolist() == [(state - 1) * 10 // 2147483646 - 3 for state in states]
    assert abs(found[1].mean() - 1) < 0.7
    assert abs(found[1].std() - 2) < 0.6
