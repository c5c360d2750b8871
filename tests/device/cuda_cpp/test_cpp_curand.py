"""<curand_kernel.h> beside the numbers of NVIDIA's library (cuRAND 10.3.10, computed on a CPU), and
beside the known answers that the authors of Philox publish."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import treadle as td

# Generator, seed, subsequence, offset, the numbers that follow; of Philox the last four by curand4.
NUMBERS = [
    ("xorwow", 0, 0, 0, [3179217846, 1883133293, 2220552389, 674260989]),
    ("xorwow", 1234, 0, 0, [624778773, 1867875844, 3739671282, 1954919316]),
    ("xorwow", 1234, 1, 1, [3978931785, 2198015705, 2308946676, 3475686971]),
    ("xorwow", 1234, 1000003, 1000000007, [1996854389, 3370371404, 1559109556, 1465220191]),
    ("xorwow", 16045690984503098046, 7, 5, [3092562295, 2421343499, 2595572580, 1951062511]),
    (
        "xorwow",
        16045690984503098046,
        20015998343868,
        4483583629026627,
        [3397858137, 2681325438, 592717830, 685218323],
    ),
    ("mrg", 0, 0, 0, [545508615, 1368065476, 1327943825, 3546985268]),
    ("mrg", 1234, 0, 0, [3379073520, 2521876100, 213678209, 1604391373]),
    ("mrg", 1234, 1, 1, [2890950871, 2749090064, 2410030135, 1992398857]),
    ("mrg", 1234, 1000003, 1000000007, [1173779395, 1898278192, 2628948704, 1089669838]),
    ("mrg", 16045690984503098046, 7, 5, [3935107357, 3174068751, 962564653, 3687385036]),
    (
        "mrg",
        16045690984503098046,
        20015998343868,
        4483583629026627,
        [552949273, 2796496184, 3536713834, 1802555995],
    ),
    (
        "philox",
        0,
        0,
        0,
        [
            1713891541,
            3781805453,
            3159862348,
            2600524760,
            4175744164,
            1555169499,
            2980410603,
            159317863,
            83534633,
            1372009126,
        ],
    ),
    (
        "philox",
        1234,
        0,
        0,
        [
            546353992,
            3665621163,
            1140953199,
            3419031310,
            2666454581,
            482218876,
            4196888723,
            343858512,
            1070188760,
            4228315704,
        ],
    ),
    (
        "philox",
        1234,
        1,
        1,
        [
            1392278645,
            3354607383,
            253049307,
            118660703,
            1698527859,
            495137217,
            2264860335,
            738435355,
            1259184545,
            1723463268,
        ],
    ),
    (
        "philox",
        1234,
        1000003,
        1000000007,
        [
            1206199807,
            1039563748,
            3395780549,
            709015334,
            3887354246,
            2826429869,
            272528246,
            2998172031,
            2104783784,
            4039989798,
        ],
    ),
    (
        "philox",
        16045690984503098046,
        7,
        5,
        [
            2470968922,
            2429486992,
            3647100771,
            1482675651,
            3758611873,
            3033220096,
            3204621007,
            4000643726,
            2416059478,
            1564840224,
        ],
    ),
    (
        "philox",
        16045690984503098046,
        20015998343868,
        4483583629026627,
        [
            2365548693,
            3161914632,
            4007247929,
            4057592246,
            3572480301,
            544382343,
            4239655080,
            548404511,
            3681335000,
            3043417418,
        ],
    ),
]
STATES = {
    "xorwow": "curandState",
    "mrg": "curandStateMRG32k3a_t",
    "philox": "curandStatePhilox4_32_10_t",
}
SOURCE = """
#include <curand_kernel.h>
template <class State> __global__ void numbers(const uint2 *given, unsigned int *out, int n)
{
    unsigned long long words[3];
    for (int i = 0; i < 3; i++)
        words[i] = (unsigned long long)given[i].y << 32 | given[i].x;
    State state;
    curand_init(words[0], words[1], words[2], &state);
    for (int i = 0; i < n; i++)
        out[i] = curand(&state);
}
__global__ void fours(const uint2 *given, unsigned int *out)
{
    unsigned long long words[3];
    for (int i = 0; i < 3; i++)
        words[i] = (unsigned long long)given[i].y << 32 | given[i].x;
    curandStatePhilox4_32_10_t state;
    curand_init(words[0], words[1], words[2], &state);
    for (int i = 0; i < 6; i++)
        out[i] = curand(&state);
    uint4 last = curand4(&state);
    out[6] = last.x; out[7] = last.y; out[8] = last.z; out[9] = last.w;
}
__global__ void known(const unsigned int *x, unsigned int *out)
{
    uint4 made = curand_Philox4x32_10(make_uint4(x[0], x[1], x[2], x[3]), make_uint2(x[4], x[5]));
    out[0] = made.x; out[1] = made.y; out[2] = made.z; out[3] = made.w;
}
__global__ void floats(float *out)
{
    curandState x;
    curand_init(1234, 0, 0, &x);
    for (int i = 0; i < 4; i++) *out++ = curand_uniform(&x);
    curandStateMRG32k3a_t m;
    curand_init(1234, 0, 0, &m);
    for (int i = 0; i < 4; i++) *out++ = curand_uniform(&m);
    curandStatePhilox4_32_10_t p;
    curand_init(1234, 0, 0, &p);
    for (int i = 0; i < 2; i++) *out++ = curand_uniform(&p);
    float4 u = curand_uniform4(&p);
    *out++ = u.x; *out++ = u.y; *out++ = u.z; *out++ = u.w;
}
__global__ void normals(float *out)
{
    curandState x;
    curand_init(1234, 0, 0, &x);
    for (int i = 0; i < 4; i++) *out++ = curand_normal(&x);
    float2 two = curand_normal2(&x);
    *out++ = two.x; *out++ = two.y;
    *out++ = curand_log_normal(&x, 0.5f, 0.25f);
    curandStatePhilox4_32_10_t p;
    curand_init(1234, 0, 0, &p);
    *out++ = curand_normal(&p);
    *out++ = curand_normal(&p);
    float4 four = curand_normal4(&p);
    *out++ = four.x; *out++ = four.y; *out++ = four.z; *out++ = four.w;
}
__global__ void doubles(double *out)
{
    curandState x;
    curand_init(1234, 0, 4, &x);
    out[0] = curand_uniform_double(&x);
    curand_init(1234, 0, 8, &x);
    out[1] = curand_normal_double(&x);
    out[2] = curand_normal_double(&x);
    curandStateMRG32k3a_t m;
    curand_init(1234, 0, 4, &m);
    out[3] = curand_uniform_double(&m);
    out[4] = curand_normal(&m);
    out[5] = curand_normal(&m);
}
__global__ void sobol(unsigned int *out)
{
    unsigned int vectors[32];
    vectors[0] = 1u << 31;
    for (int i = 1; i < 32; i++) vectors[i] = vectors[i - 1] ^ (vectors[i - 1] >> 1);
    curandStateSobol32_t plain;
    curand_init(vectors, 5, &plain);
    for (int i = 0; i < 6; i++) *out++ = curand(&plain);
    curandStateScrambledSobol32_t scrambled;
    curand_init(vectors, 12345u, 5, &scrambled);
    for (int i = 0; i < 6; i++) *out++ = curand(&scrambled);
}
__global__ void setup(curandState *states, int seed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(seed, i, 0, &states[i]);
}
__global__ void draw(curandState *states, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState own = states[i];
    out[i] = curand_uniform(&own);
    states[i] = own;
}
"""


@functools.cache
def module():
    return td.cuda_module(SOURCE)


def run(device, kernel, size, *given, dtype=td.uint32, template=()):
    out = td.zeros(size, dtype=dtype, device=device)
    arrays = [td.asarray(one, device=device) for one in given]
    module().kernel(kernel, *template)[1, 1](*arrays, out, *([size] * bool(template)))
    return out.numpy()


def words_of(*numbers):
    return np.array(numbers, np.uint64).view(np.uint32).reshape(3, 2)


@pytest.mark.parametrize("generator", STATES)
def test_integers_are_those_of_nvidia(device, generator):
    if device.backend == "webgpu" and "int64" not in device.features:
        return  # of seeds
    for name, *numbers, expected in NUMBERS:
        if name != generator:
            continue
        given = words_of(*numbers)
        if generator == "philox":
            made = run(device, "fours", 10, given)
        else:
            made = run(device, "numbers", 4, given, template=(STATES[name],))
        assert made.tolist() == expected


def test_known_answers_of_philox(device):
    """The published test vectors: counters and keys of zeros, of ones, and of digits of pi."""
    for given, expected in (
        ([0] * 6, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 6, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ):
        assert run(device, "known", 4, np.array(given, np.uint32)).tolist() == expected


def test_uniform_numbers_are_the_same_bits(device):
    expected = [
        0.145467639, 0.434898734, 0.870710075, 0.455165118,
        0.786751866, 0.587170064, 0.0497508347, 0.373551488,
        0.12720795, 0.853468955, 0.265648872, 0.796055257, 0.620832324, 0.112275332,
    ]  # fmt: skip
    made = run(device, "floats", 14, dtype=td.float32)
    assert made.tolist() == np.array(expected, np.float32).tolist()


def test_normal_numbers(device):
    expected = [
        0.780973554, -1.80157816, 0.14628233, -0.505464077, -0.27490738, -0.482539803, 1.06643426,
        -1.61649048, 1.22915542, -1.56054044, 0.464621365, 0.633082867, 0.743367076,
    ]  # fmt: skip
    made = run(device, "normals", 13, dtype=td.float32)
    np.testing.assert_allclose(made, expected, rtol=2e-6, atol=2e-7)


def test_numbers_of_double():
    expected = [
        0.58241812519857272, -1.311805409387784, -0.53396034319483165, 0.52457002355603854,
        0.123897441, -0.170371205,
    ]  # fmt: skip
    made = run("cpu", "doubles", 6, dtype=td.float64)
    np.testing.assert_allclose(made[:4], expected[:4], rtol=1e-15)
    np.testing.assert_allclose(made[4:], expected[4:], rtol=1e-6)


def test_sobol_sequences(device):
    expected = [
        3758096384, 536870912, 2684354560, 1342177280, 3489660928, 268435456,
        3758108729, 536883257, 2684366905, 1342189625, 3489673273, 268447801,
    ]  # fmt: skip
    assert run(device, "sobol", 12).tolist() == expected


def test_states_stay_in_memory(device):
    """The usual two kernels, with 48 bytes for each thread's state."""
    assert "__treadle" not in repr(module().constants)
    states = td.zeros((64, 12), dtype=td.uint32, device=device)
    module().setup[2, 32](states, 1234)
    draws = []
    for _ in range(2):
        out = td.zeros(64, device=device)
        module().draw[2, 32](states, out)
        draws.append(out.numpy())
    assert draws[0][0] == np.float32(0.145467639)
    assert draws[1][0] == np.float32(0.434898734)
    assert np.unique(draws).size == 128
    assert (np.array(draws) > 0).all()
    assert (np.array(draws) <= 1).all()
