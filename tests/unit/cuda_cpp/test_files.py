"""Files as people have them: programs with a main, host classes, streams, launches, headers."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, CompileErrors, CompileWarning

PROGRAM = r"""
// A program as it is compiled with nvcc: most of it is for the host.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <thrust/device_vector.h>
#include <helper_cuda.h>
#include "scaling.cuh"

#define CHECK(call)                                                            \
    do {                                                                       \
        cudaError_t error = (call);                                            \
        if (error != cudaSuccess) {                                            \
            std::cerr << "CUDA: " << cudaGetErrorString(error) << std::endl;   \
            exit(EXIT_FAILURE);                                                \
        }                                                                      \
    } while (0)
#define BLOCK 64
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#ifdef __CUDA_ARCH__
#define WHERE 1
#else
#define WHERE 2
#endif

using namespace std;
using Real = float;

static const int CHUNK = BLOCK / 2;
const float OFFSETS[3] = {0.5f, 1.5f, 2.5f};
int host_only = rand();
static std::vector<std::string> names = {"one", "two"};
__constant__ Real factors[4] = {1, 2, 3, 4};
__device__ unsigned int visited;

class Timer {
  public:
    Timer() : start_(clock()) {}
    ~Timer() { printf("%f s\n", (double)(clock() - start_) / CLOCKS_PER_SEC); }
    template <typename F> void time(F &&f) { auto t = [&]() { f(); }; t(); }

  private:
    clock_t start_;
    std::string name{"timer"};
};

struct Options {
    int n = 1000;
    bool verbose;
    std::vector<float> data;
    static Options parse(int argc, char **argv);
};

Options Options::parse(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; i++) {
        std::string arg = argv[i];
        if (arg == "-n" && i + 1 < argc)
            options.n = std::stoi(argv[++i]);
        try {
            options.data.push_back(std::stof(arg));
        } catch (const std::exception &e) {
            goto done;
        }
    }
done:
    return options;
}

template <typename T>
void print(const std::vector<T> &values)
{
    for (const auto &value : values)
        cout << value << (value > 0 ? ", " : "\n");
}

__host__ __device__ inline int divide_up(int a, int b) { return (a + b - 1) / b; }

__device__ Real polynomial(Real x)
{
    Real y = 0;
#pragma unroll
    for (int i = 3; i >= 0; --i)
        y = y * x + factors[i];
    return y;
}

/** y = scale(p(x)) + a */
__global__ void __launch_bounds__(BLOCK) transform(const Real *__restrict__ x, Real *__restrict__ y,
                                                   Real a, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = scaled(polynomial(x[i])) + MIN(a, 100) * WHERE;
    atomicAdd(&visited, 1u);
}

template <class T, int N>
__global__ void fold(T *data, int n)
{
    __shared__ T part[N];
    part[threadIdx.x] = threadIdx.x < n ? data[threadIdx.x] : T();
    __syncthreads();
#if BLOCK > 32
    if (threadIdx.x < CHUNK) part[threadIdx.x] += part[threadIdx.x + CHUNK];
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        T sum = 0;
        for (int i = 0; i < MIN(N, CHUNK); i++) sum += part[i];
        data[0] = sum;
        data[1] = divide_up(n, 3);
    }
}

// The same on the host, to compare with.
void reference(const float *x, float *y, float a, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = std::fma(x[i], a, (float)std::max(i, 3));
}

extern "C" int run(int n);

int main(int argc, char **argv)
{
    Options options = Options::parse(argc, argv);
    int n = options.n;
    std::vector<float> x(n), y(n);
    std::generate(x.begin(), x.end(), []() { return rand() / (float)RAND_MAX; });
    float *dx = nullptr, *dy = nullptr;
    CHECK(cudaMalloc(&dx, n * sizeof(float)));
    CHECK(cudaMalloc((void **)&dy, n * sizeof(float)));
    CHECK(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    dim3 grid(divide_up(n, BLOCK)), block(BLOCK);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    transform<<<grid, block, 0, stream>>>(dx, dy, 2.0f, n);
    fold<float, BLOCK><<<1, BLOCK>>>(dy, n);
    CHECK(cudaGetLastError());
    thrust::device_vector<int> v(10);
    printf("done %d%%\n", 100);
    cudaFree(dx);
    return 0;
}
"""
SCALING = """
#pragma once
#ifndef SCALE
#define SCALE 10
#endif
#include "more/base.h"
__device__ __forceinline__ float scaled(float x) { return x * SCALE + BASE; }
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.h").write_text("#define BASE 0.25f\n")
    (tmp_path / "scaling.cuh").write_text(SCALING)
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM)
    return path


def test_a_whole_program(program):
    module = td.cuda_module(program, defines={"SCALE": 2})
    assert module.kernels == ("transform", "fold")
    assert module.templates == ("fold",)
    x = np.linspace(-1, 1, 100).astype(np.float32)
    with td.use_device("cpu"):
        y = td.zeros(100)
        module.transform[2, 64](td.asarray(x), y, 5, 100)
        expected = (1 + x * (2 + x * (3 + x * 4))) * 2 + 0.25 + 5
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
        assert module.constants["visited"] == 100
        data = td.asarray(np.arange(1, 61), dtype=td.int32)
        module.kernel("fold", td.int32, 64)[1, 64](data, 60)
        assert data.tolist()[:3] == [60 * 61 // 2, 20, 3]


def test_unknown_headers_are_noted(program):
    report = td.cuda_module(program).report()
    noted = {note.construct for note in report.notes}
    assert "#include <helper_cuda.h>" in noted
    assert not any("thrust" in one for one in noted)  # a part of it is for kernels
    assert not any("cstdio" in one or "cuda_runtime" in one for one in noted)


MIXED = (
    "#include <map>\n#include <iostream>\nint total = 4;\n"
    "int on_the_host(int x) { return x; }\n"
    "class Table { std::map<int, int> cells; };\n"
    "int printed(int x) { std::cout << x; return x; }\n"
    "__global__ void k(int *out) { int i = threadIdx.x;\nBODY\n}\n"
    "__global__ void fine(int *out) { out[0] = 3; }\n"
)


def test_the_host_in_a_kernel(tmp_path):
    path = tmp_path / "mixed.cu"
    for value, words in [
        ("on_the_host(i)", "on_the_host is a host function: declare it"),
        ("total", "total is a host variable: declare it __device__"),
        ("printed(i)", "printed is a host function"),
    ]:
        path.write_text(MIXED.replace("BODY", f"    out[i] = {value};"))
        with pytest.raises(CompileErrors) as caught:
            td.cuda_module(path)
        (error,) = caught.value.errors
        assert words in error.message
        assert (error.file, error.line, error.span.column) == (str(path), 8, 14)


def test_a_class_of_the_host_in_a_kernel(tmp_path):
    path = tmp_path / "mixed.cu"
    path.write_text(MIXED.replace("BODY", "    Table table;\n    out[i] = 1;"))
    module = td.cuda_module(path)
    with pytest.raises(
        CompileError, match=r"std::map is from the C\+\+ standard library"
    ) as caught:
        module.k.source("ir")
    assert (caught.value.file, caught.value.line) == (str(path), 5)
    assert "fine" in module.fine.source("ir")  # the others are not concerned


def test_errors_in_headers_name_the_header(tmp_path):
    header = tmp_path / "broken.h"
    header.write_text(
        "#define TWICE(x) ((x) * 2)\n__device__ int f(int a)\n{\n    return a +;\n}\n"
    )
    path = tmp_path / "use.cu"
    path.write_text('#include "broken.h"\n__global__ void k(int *x) { x[0] = TWICE(f(1)); }\n')
    with pytest.raises(CompileError) as caught:
        td.cuda_module(path)
    assert f"{header}:4:15: expected an expression, found ';'" in str(caught.value)
    header.write_text("__device__ int f(int a)\n{\n    return unknown(a);\n}\n")
    with pytest.raises(CompileError) as caught:
        td.cuda_module(path, defines={"TWICE(x)": "x"}).k.source("ir")
    assert (caught.value.file, caught.value.line) == (str(header), 3)


def test_several_errors_of_a_file():
    source = textwrap.dedent("""
        __global__ void a(int *x) { x[0] = (1 + ; }
        __device__ int fine(int x) { return x; }
        __global__ void b(int *x)
        {
            for (int i = 0; i < 3 i++) x[i] = 0;
            x[1] = fine(2;
        }
        __global__ void c(int *x) { x[0] = fine(1) }
    """)
    with pytest.raises(CompileError) as caught:
        td.cuda_module(source)
    lines = [error.line for error in caught.value.errors]
    assert {2, 6} <= set(lines)
    assert lines == sorted(lines)
    assert len(lines) >= 4
    assert "expected ';'" in str(caught.value)


CONDITIONS = r"""
#if defined(USE_DOUBLE) && USE_DOUBLE
typedef double real;
#elif !defined(REAL)
typedef float real;
#else
typedef REAL real;
#endif
#define PASTE(a, b) a##b
#define NAME(x) PASTE(kernel_, x)
#define TEXT(x) #x
#define LIST(X) X(add, +) X(times, *)
#define DEFINE(name, op) \
    __global__ void NAME(name)(real *x, real y) { x[threadIdx.x] = x[threadIdx.x] op y; }
LIST(DEFINE)
#define SUM(first, ...) (first + more(__VA_ARGS__))
__device__ int more(int a, int b = 10) { return a * b; }
#if __CUDACC_VER_MAJOR__ >= 9 && __CUDA_ARCH__ >= 300
#define SHUFFLES 1
#endif
#undef NAME
__global__ void sizes(int *out)
{
    out[0] = sizeof(real);
    out[1] = sizeof(TEXT(a b));
    out[2] = SUM(1, 2) + SUM(1, 2, 3);
    out[3] = __LINE__;
#ifdef SHUFFLES
    out[4] = SHUFFLES;
#endif
#if 0
    this is no code at all '
#endif
}
"""


@pytest.mark.parametrize(
    ("defines", "size"), [({}, 4), ({"USE_DOUBLE": True}, 8), ({"REAL": "short"}, 2)]
)
def test_the_preprocessor_decides(defines, size):
    module = td.cuda_module(CONDITIONS, defines=defines)
    assert module.kernels == ("kernel_add", "kernel_times", "sizes")
    with td.use_device("cpu"):
        out = td.zeros(5, dtype=td.int32)
        module.sizes[1, 1](out)
    line = CONDITIONS.split("\n").index("    out[3] = __LINE__;") + 1
    assert out.tolist() == [size, 4, 1 + 20 + 1 + 6, line, 1]


def test_names_that_only_differ_in_their_namespace():
    module = td.cuda_module("""
        namespace a { namespace b { __global__ void set(int *x) { x[0] = 1; } } }
        namespace c { __global__ void set(int *x) { x[0] = 2; } }
        static void host() { a::b::set<<<1, 1>>>(nullptr); }
    """)
    assert module.kernels == ("a::b::set", "c::set")
    with td.use_device("cpu"):
        x = td.zeros(1, dtype=td.int32)
        module.kernel("c::set")[1, 1](x)
        assert x.tolist() == [2]
        with pytest.raises(AttributeError, match="a::b::set and c::set: say which"):
            module.kernel("set")


@pytest.mark.parametrize("text", ["", "\n\n", "int x;", "// nothing", "int main() { return 0; }"])
def test_files_without_kernels(text):
    with pytest.warns(CompileWarning, match="there are no kernels"):
        module = td.cuda_module(text)
    assert module.kernels == ()
    with pytest.raises(AttributeError, match="has no kernels"):
        module.k  # noqa: B018


CODED = """// größer: 数
__constant__ char text[] = "é\\xe9";
__global__ void k(int *x) { x[0] = 7; x[1] = sizeof(text); x[2] = (unsigned char)text[1]; }
"""


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]
)
@pytest.mark.parametrize("included", [False, True])
def test_encodings(tmp_path, encoding, included):
    mark = "" if encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32") else "\ufeff"
    path = tmp_path / "kernel.cu"
    path.write_bytes((mark + CODED.replace("\n", "\r\n")).encode(encoding))
    if included:
        path, inner = tmp_path / "main.cu", path
        path.write_text(f'#include "{inner.name}"\n')
    x = td.zeros(3, dtype=td.int32, device="cpu")
    td.cuda_module(path).k[1, 1](x)
    assert x.tolist() == [7, 4, 0xA9]


def test_bytes_of_another_encoding(tmp_path):
    path = tmp_path / "kernel.cu"
    text = '// größer\n__constant__ char t[] = "é";\n'.encode("latin-1")
    code = b"__global__ void k(int *x) { x[0] = sizeof(t) + (unsigned char)t[0]; }"
    path.write_bytes(text + code)
    x = td.zeros(1, dtype=td.int32, device="cpu")
    td.cuda_module(path).k[1, 1](x)
    assert x.tolist() == [2 + 0xE9]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CODED.encode("utf-16-le"), "has null bytes, so it is not text in UTF-8: save it as UTF-8"),
        (b"\x7fELF\x02\0\0", "has null bytes"),
        (b"\xff\xfea", "begins with the mark of UTF-16-LE, but is not valid"),
        (b"\xfe\xff\xd8\x00\x00a", "begins with the mark of UTF-16-BE, but is not valid"),
        (b"\xff\xfe\0\0\0\0\xff\xff", "begins with the mark of UTF-32-LE, but is not valid"),
    ],
)
@pytest.mark.parametrize("included", [False, True])
def test_what_is_no_text(tmp_path, content, words, included):
    path = tmp_path / "kernel.cu"
    path.write_bytes(content)
    if included:
        path, inner = tmp_path / "main.cu", path
        path.write_text(f'#include "{inner.name}"\n')
    with pytest.raises(td.errors.CompileError, match=words):
        td.cuda_module(path)
