"""What `__constant__` and `__device__` variables hold before anybody sets them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, CompileErrors

STRUCTS = """
#include <cuda_fp16.h>
struct Pair { float a; int b; };
struct Gaps { char tag; double wide; short last; };
struct Nested { Pair pair; int more[2]; float2 point; };
struct Defaults { int n = 4; float f; float g = 0.5f; };
enum Mode { OFF, ON = 5 };
constexpr int SIZE = 3;
#define HALF 0.5f
"""

# name: (declaration without its specifier, the value as it is read)
VALUES = {
    "zero": ("int x", 0),
    "number": ("int x = -7", -7),
    "arithmetic": ("float x = 2 * HALF + SIZE", 4.0),
    "converted": ("int x = 2.75f", 2),
    "wrapped": ("unsigned char x = 300", 44),
    "braces": ("int x = {3}", 3),
    "empty braces": ("int x[2] = {}", [0, 0]),
    "bool": ("bool x[2] = {true, 3}", [True, True]),
    "enum": ("Mode x = ON", 5),
    "wide": ("unsigned long long x = 0xffffffffffffffffull", (1 << 64) - 1),
    "half": ("half x = 1.5f", 1.5),
    "double": ("double x = 1.0 / 3.0", 1 / 3),
    "array": ("float x[SIZE] = {1, 2.5}", [1, 2.5, 0]),
    "length from the list": ("int x[] = {1, 2, 3, 4}", [1, 2, 3, 4]),
    "rows": ("int x[2][3] = {{1}, {4, 5}}", [[1, 0, 0], [4, 5, 0]]),
    "rows without braces": ("int x[2][3] = {1, 2, 3, 4}", [[1, 2, 3], [4, 0, 0]]),
    "text": ('char x[5] = "abc"', [97, 98, 99, 0, 0]),
    "text in braces": ('char x[2][3] = {"ab", "c"}', [[97, 98, 0], [99, 0, 0]]),
    "vector": ("float4 x = {1, 2, 3}", [1, 2, 3, 0]),
    "vector by a function": ("float2 x[2] = {make_float2(1, 2), {3}}", [[1, 2], [3, 0]]),
    "vector without braces": ("float2 x[2] = {1, 2, 3}", [[1, 2], [3, 0]]),
    "packed vector": ("float3 x[2] = {{1, 2, 3}, {4, 5, 6}}", [[1, 2, 3], [4, 5, 6]]),
    "struct": ("Pair x = {1.5f, 2}", (1.5, 2)),
    "by name": ("Pair x = {.b = 2}", (0, 2)),
    "structs": ("Pair x[3] = {{1, 2}, {3}}", [(1, 2), (3, 0), (0, 0)]),
    "structs without braces": ("Pair x[2] = {1, 2, 3, 4}", [(1, 2), (3, 4)]),
    "gaps": ("Gaps x[2] = {{1, 2.5, 3}, {4, 5.5, 6}}", [(1, 2.5, 3), (4, 5.5, 6)]),
    "nested": ("Nested x = {{1, 2}, {3, 4}, {5, 6}}", ((1, 2), [3, 4], [5, 6])),
    "nested without braces": ("Nested x = {1, 2, 3, 4, 5, 6}", ((1, 2), [3, 4], [5, 6])),
    "defaults": ("Defaults x", (4, 0, 0.5)),
    "defaults of the rest": ("Defaults x[2] = {{1, 2}}", [(1, 2, 0.5), (4, 0, 0.5)]),
}


def plain(value):
    """NumPy's records and arrays as Python's tuples and lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("space", ["__constant__", "__device__"])
def test_first_values(case, space):
    declaration, expected = VALUES[case]
    module = td.cuda_module(f"{STRUCTS}\n{space} {declaration};")
    assert plain(module.constants["x"]) == expected


def test_a_long_array_costs_what_is_written_of_it():
    module = td.cuda_module("__device__ float x[1 << 22] = {1, 2};")
    assert module.constants["x"][:3].tolist() == [1, 2, 0]


def test_names_in_namespaces_and_with_static():
    module = td.cuda_module("""
        namespace inner { __constant__ int x = 3; }
        static __device__ int y = 4;
        namespace { __constant__ float z = 5; }
    """)
    assert module.constants["inner::x"] == 3
    assert module.constants["y"] == 4
    assert module.constants["z"] == 5


WRONG = [
    ("int x[2] = {1, 2, 3}", "3 values for"),
    ("Pair x = {1, 2, 3}", "3 values for Pair"),
    ("Pair x = {.c = 1}", "Pair has no field c"),
    ("int x = {1, 2}", "2 values for one int"),
    ('char x[2] = "abc"', "3 characters for"),
]


def test_what_no_compiler_takes_is_told_when_a_file_is_opened():
    for declaration, words in WRONG:
        with pytest.raises(CompileErrors, match=words) as caught:
            td.cuda_module(f"{STRUCTS}\n__device__ {declaration};")
        assert [one.line for one in caught.value.errors] == [STRUCTS.count("\n") + 2]


def test_what_cannot_be_a_first_value_is_told_to_kernels_that_use_it():
    words = "has pointers in it, and an initializer"
    module = td.cuda_module(f"""{STRUCTS}
        __device__ int y[2], *x = y;
        __global__ void uses(int *out) {{ out[0] = sizeof(x); }}
        __global__ void leaves(int *out) {{ out[0] = 1; }}
    """)
    assert "x" not in module.constants
    with pytest.raises(CompileError, match=words):
        module.constants["x"]
    with pytest.raises(CompileError, match=words) as caught:
        module.uses[1, 1]
    assert caught.value.line == 11
    out = td.zeros(1, dtype=td.int32, device="cpu")
    module.leaves[1, 1](out)
    assert out.tolist() == [1]
