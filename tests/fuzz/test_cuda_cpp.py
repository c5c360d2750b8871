"""Whatever text comes: the front end of CUDA C++ says what is wrong with it, soon and in words."""

from __future__ import annotations

import resource
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.cuda_sources import MUTATIONS, SOURCES, Mutation, lowered, mutated, tokens_of
from treadle.core.errors import TreadleError

pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")

_SECONDS = 2.0
_LARGE_SECONDS = 10.0  # for texts of a million tokens, on a slow machine
_MEBIBYTES = 1024  # that one text may add to the process

# Most mutations should leave something that is still read to its end.
_KINDS = (*MUTATIONS, *["alike"] * 8, *["statement"] * 6)
_NUMBER = st.integers(0, (1 << 16) - 1)
_MUTATIONS = st.lists(
    st.builds(Mutation, st.sampled_from(_KINDS), _NUMBER, _NUMBER), min_size=1, max_size=5
)


def check(text: str, seconds: float = _SECONDS) -> None:
    """Read the text and lower its kernels, within a bound of time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with suppress(TreadleError):
        lowered(text)
    took = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert took < seconds, f"{took:.1f} s"
    assert grown < _MEBIBYTES, f"{grown} MiB"


@pytest.mark.parametrize("source", SOURCES)
def test_the_sources_are_right(source: str) -> None:
    assert "".join(tokens_of(source)) == source
    module = td.cuda_module(source)
    assert lowered(source) == list(module.kernels)


@pytest.mark.timeout(3000)  # for all the examples together
@given(st.sampled_from(SOURCES), _MUTATIONS)
def test_broken_files(source: str, mutations: list[Mutation]) -> None:
    check(mutated(source, mutations))


@pytest.mark.timeout(3000)
@settings(max_examples=settings.default.max_examples // 2)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_any_text(text: str) -> None:
    check(text)
    check(f"__global__ void k(int *x, int n) {{ {text} }}")


def in_kernel(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(int *x, int n, float f) {{\n{body}\n}}"


_CALLS = "".join(
    f"__device__ int f{i}(int *a) {{ return f{i - 1}(a) + f{i - 1}(a); }}\n" for i in range(1, 30)
)
# What once did not come to an end, took all memory, or came out as an error of Python's.
_ONCE = {
    "a namespace that is also a variable": "namespace a { }\nint a;\nnamespace a { int b; }",
    "an array of 10^9 values": in_kernel("int a[1000000000] = {1}; x[0] = a[n];"),
    "an array of 10^9 zeros": in_kernel("int a[1000000000] = {}; x[0] = a[n];"),
    "an alignment of a gibibyte": in_kernel(
        "S s; x[0] = s.a;", "struct __align__(1 << 30) S { int a; };"
    ),
    "calls that double": in_kernel(
        "x[0] = f29(x);", "__device__ int f0(int *a) { return *a; }\n" + _CALLS
    ),
    "a number of 100,000 digits": in_kernel("x[0] = 0x" + "f" * 100_000 + ";"),
    "the size of void": in_kernel("x[0] = sizeof(void) + sizeof(k) + sizeof(int[]);"),
    "a field of void": in_kernel("S s; s.a = 1;", "struct S { int a; void b; };"),
    "a variable of void": "__device__ void v;" + in_kernel("x[0] = 1;"),
    "a case of infinity": in_kernel("switch (n) { case 1e999: x[0] = 1; }"),
    "a parameter of void": "__global__ void k(void v, int *x) { x[0] = 1; }",
    "macros that double": "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 40))
    + "#define A0 1\n"
    + in_kernel("x[0] = A39;"),
    "a template that makes itself": in_kernel(
        "x[0] = f<1>();", "template <int N> __device__ int f() { return f<N + 1>(); }"
    ),
    "a class that makes itself": in_kernel(
        "A<1> a;", "template <int N> struct A { A<N + 1> inner; };"
    ),
    "a class in itself": in_kernel("S s;", "struct S { S s; };"),
    "a loop unrolled 10^9 times": in_kernel(
        "#pragma unroll\nfor (int i = 0; i < 1000000000; i++) x[i] = i;"
    ),
    "loops unrolled in one another": in_kernel(
        "".join(f"#pragma unroll\nfor (int i{k} = 0; i{k} < 100; i{k}++)\n" for k in range(6))
        + "x[i0] = i5;"
    ),
    "shifts by more than there is": in_kernel("x[0] = 1 << 1000000000; x[1] = 1ll << -1 >> n;"),
    "division by zero": in_kernel("x[0] = 1 / 0 + 1 % 0; int a[1 / 0];"),
    "a product of 3,000 numbers": in_kernel("x[0] = " + "*".join(["99999"] * 3000) + ";"),
    "parentheses": in_kernel("x[0] = " + "(" * 5000 + "1" + ")" * 5000 + ";"),
    "a long chain of conditions": in_kernel(
        "if (n == 0) ;" + "".join(f"else if (n == {i}) x[0] = {i};" for i in range(1000))
    ),
    "a long switch": in_kernel(
        "switch (n) {" + "".join(f"case {i}: x[0] += {i};" for i in range(1000)) + "}"
    ),
    "shared memory of a tebibyte": in_kernel("__shared__ int a[1ll << 40]; x[0] = a[n];"),
    "a variable of an exbibyte": "__device__ float a[1ull << 58];" + in_kernel("x[0] = a[n];"),
}


@pytest.mark.parametrize("text", _ONCE.values(), ids=_ONCE.keys())
def test_what_once_was_no_error_of_the_text(text: str) -> None:
    check(text, _LARGE_SECONDS)
