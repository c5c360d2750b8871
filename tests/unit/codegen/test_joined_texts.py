"""Texts of several kernels as one text."""

from __future__ import annotations

from treadle.codegen.c_family.joined import joined

FIRST = """\
// first: its head

struct Pair {
    int a;
};

// Of both.
__device__ inline int twice(int a) {
    return a * 2;
}

__device__ inline int size() {
    return 8;
}

extern "C" __global__ void first(int* x) {
    x[0] = twice(size());
}
"""
NAMED = """\
// third: its head

__device__ inline int first(int a) {
    return a;
}

extern "C" __global__ void __launch_bounds__(64) third(int* x) {
    x[0] = first(x[1]);
}
"""
SECOND = """\
// second: its head

struct Pair {
    int a;
};

__device__ inline int size() {
    return 16;
}

__device__ inline int twice(int a) {
    return a * 2;
}

__device__ inline float twice(float a) {
    return a * 2;
}

__device__ inline int twice(const int* a) {
    return *a * 2;
}

extern "C" __global__ void second(int* x) {
    x[0] = twice(size()) + (int)twice(1.0f);
}
"""


def test_what_kernels_share_is_declared_once_and_the_rest_has_names_of_its_own():
    text = joined([FIRST, SECOND, NAMED])
    assert text.count("struct Pair {") == 1
    assert text.count("int twice(int a) {") == 1
    assert text.count("float twice(float a) {") == 1
    assert text.count("int twice(const int* a) {") == 1
    assert "int size() {\n    return 8;" in text
    assert "int size_2() {\n    return 16;" in text
    assert "x[0] = twice(size());" in text
    assert "x[0] = twice(size_2()) + (int)twice(1.0f);" in text
    assert "int first_2(int a) {" in text
    assert "x[0] = first_2(x[1]);" in text
    assert '// second: its head\nextern "C" __global__ void second(int* x) {' in text
