"""The headers that we bring: values against NumPy and mpmath, and words for those we lack."""

from __future__ import annotations

import re

import mpmath
import numpy as np
import pytest

from treadle.cuda_cpp.source.headers import header_name, header_text, why_missing
from treadle.cuda_cpp.source.preprocessor import preprocess

FILE = "kernel.cu"


def expanded(text: str, **defines: object) -> str:
    result = preprocess(text, FILE, defines)
    assert result.errors == ()
    tokens = result.tokens[:-1]
    return " ".join(token.text for token in tokens if not token.file.startswith("<"))


def value(header: str, name: str) -> float:
    """What an integer or floating macro is worth."""
    text = expanded(f"#include <{header}>\n{name}")
    assert text != name, f"{name} is not defined"
    numbers = re.sub(r"(?<=[\d.])(?:[uU]?[lL]{0,2}|[fF])\b", "", text)
    return eval(numbers, {"__builtins__": {}})


@pytest.mark.parametrize(
    ("prefix", "dtype"),
    [
        ("SCHAR", np.int8), ("SHRT", np.int16), ("INT", np.int32), ("LONG", np.int64),
        ("LLONG", np.int64), ("CHAR", np.int8),
    ],
)  # fmt: skip
def test_limits(prefix: str, dtype: type[np.signedinteger]) -> None:
    info = np.iinfo(dtype)
    assert value("limits.h", f"{prefix}_MIN") == info.min
    assert value("climits", f"{prefix}_MAX") == info.max
    unsigned = {"SCHAR": "UCHAR", "CHAR": "UCHAR", "SHRT": "USHRT"}.get(prefix, f"U{prefix}")
    assert value("limits.h", f"{unsigned}_MAX") == 2 * info.max + 1


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_stdint(bits: int) -> None:
    info = np.iinfo(f"int{bits}")
    for kind in ("", "_LEAST"):
        assert value("stdint.h", f"INT{kind}{bits}_MIN") == info.min
        assert value("cstdint", f"INT{kind}{bits}_MAX") == info.max
        assert value("stdint.h", f"UINT{kind}{bits}_MAX") == 2 * info.max + 1
    assert value("stdint.h", f"INT{bits}_C(7)") == 7
    assert value("stdint.h", f"UINT{bits}_C(7)") == 7
    assert f"typedef unsigned {'char' if bits == 8 else ''}".strip() in header_text("stdint.h")


def test_stdint_has_its_widest_types() -> None:
    assert value("stdint.h", "INTMAX_MAX") == value("stdint.h", "INTPTR_MAX") == 2**63 - 1
    assert value("stdint.h", "SIZE_MAX") == value("stdint.h", "UINT_FAST32_MAX") == 2**64 - 1
    assert expanded("#include <stdint.h>\nUINT64_C(1) INTMAX_C(2)") == "1UL 2L"


def test_float_h() -> None:
    for prefix, info in (("FLT", np.finfo(np.float32)), ("DBL", np.finfo(np.float64))):
        for name, expected in (
            ("MAX", info.max), ("MIN", info.tiny), ("EPSILON", info.eps),
            ("TRUE_MIN", info.smallest_subnormal),
        ):  # fmt: skip
            assert info.dtype.type(value("float.h", f"{prefix}_{name}")) == expected
        assert value("cfloat", f"{prefix}_MANT_DIG") == info.nmant + 1
        assert value("float.h", f"{prefix}_DIG") == info.precision
        assert value("float.h", f"{prefix}_MAX_EXP") == info.maxexp
        assert value("float.h", f"{prefix}_MIN_EXP") == info.minexp + 1


TRUE_VALUES = {
    "M_E": "e", "M_LOG2E": "1/log(2)", "M_LOG10E": "1/log(10)", "M_LN2": "log(2)",
    "M_LN10": "log(10)", "M_PI": "pi", "M_PI_2": "pi/2", "M_PI_4": "pi/4", "M_1_PI": "1/pi",
    "M_2_PI": "2/pi", "M_2_SQRTPI": "2/sqrt(pi)", "M_SQRT2": "sqrt(2)", "M_SQRT1_2": "sqrt(2)/2",
    "CUDART_SQRT_TWO": "sqrt(2)", "CUDART_SQRT_HALF": "sqrt(2)/2", "CUDART_THIRD": "1/three",
    "CUDART_TWOTHIRD": "2/three", "CUDART_PIO4": "pi/4", "CUDART_PIO2": "pi/2",
    "CUDART_3PIO4": "3*pi/4", "CUDART_2_OVER_PI": "2/pi", "CUDART_PI": "pi",
    "CUDART_SQRT_2PI": "sqrt(2*pi)", "CUDART_SQRT_PIO2": "sqrt(pi/2)",
    "CUDART_SQRT_2OPI": "sqrt(2/pi)", "CUDART_L2E": "1/log(2)", "CUDART_L2T": "log(10)/log(2)",
    "CUDART_LG2": "log(2)/log(10)", "CUDART_LGE": "1/log(10)", "CUDART_LN2": "log(2)",
    "CUDART_LNT": "log(10)", "CUDART_LNPI": "log(pi)", "CUDART_LN2_X_1024": "1024*log(2)",
    "CUDART_LN2_X_1025": "1025*log(2)", "CUDART_LN2_X_1075": "1075*log(2)",
    "CUDART_LG2_X_1024": "1024*log(2)/log(10)", "CUDART_LG2_X_1075": "1075*log(2)/log(10)",
    "CUDART_TWO_TO_23": "2**23", "CUDART_TWO_TO_52": "2**52", "CUDART_TWO_TO_53": "2**53",
    "CUDART_TWO_TO_54": "2**54", "CUDART_TWO_TO_M54": "1/mpf(2**54)",
    "CUDART_TWO_TO_M1022": "1/mpf(2**1022)", "CUDART_TRIG_PLOSS": "2**31",
    "CUDART_DBL2INT_CVT": "3*2**51", "CUDART_MIN_DENORM": "1/mpf(2**1074)",
    "CUDART_SQRT_HALF_F": "sqrt(2)/2", "CUDART_SQRT_TWO_F": "sqrt(2)", "CUDART_THIRD_F": "1/three",
    "CUDART_PIO4_F": "pi/4", "CUDART_PIO2_F": "pi/2", "CUDART_3PIO4_F": "3*pi/4",
    "CUDART_2_OVER_PI_F": "2/pi", "CUDART_SQRT_2_OVER_PI_F": "sqrt(2/pi)", "CUDART_PI_F": "pi",
    "CUDART_L2E_F": "1/log(2)", "CUDART_L2T_F": "log(10)/log(2)", "CUDART_LG2_F": "log(2)/log(10)",
    "CUDART_LGE_F": "1/log(10)", "CUDART_LN2_F": "log(2)", "CUDART_LNT_F": "log(10)",
    "CUDART_LNPI_F": "log(pi)", "CUDART_TWO_TO_M126_F": "1/mpf(2**126)",
    "CUDART_TWO_TO_126_F": "2**126", "CUDART_TWO_TO_23_F": "2**23", "CUDART_TWO_TO_24_F": "2**24",
    "CUDART_TWO_TO_31_F": "2**31", "CUDART_TWO_TO_32_F": "2**32",
    "CUDART_MIN_DENORM_F": "1/mpf(2**149)", "CUDART_MAX_NORMAL_F": "2**128-2**104",
    "CUDART_NORM_HUGE_F": "2**128-2**104", "CUDART_ONE": "1", "CUDART_ONE_F": "1",
}  # fmt: skip


def exact(formula: str) -> mpmath.mpf:
    names = {"e": +mpmath.e, "pi": +mpmath.pi, "three": mpmath.mpf(3), "log": mpmath.log}
    return mpmath.mpf(eval(formula, {**names, "sqrt": mpmath.sqrt, "mpf": mpmath.mpf}))


@pytest.mark.parametrize("name", TRUE_VALUES)
def test_constants(name: str) -> None:
    header = "cmath" if name.startswith("M_") else "math_constants.h"
    with mpmath.workprec(400):
        expected = float(exact(TRUE_VALUES[name]))
    found = value(header, name)
    if name.endswith("_F"):
        assert np.float32(found) == np.float32(expected)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "name",
    ["SQRT_HALF", "PIO4", "PIO2", "PI", "SQRT_2PI", "SQRT_PIO2", "L2E", "LG2", "LGE", "LN2", "LNT"],
)
def test_constants_in_two_parts(name: str) -> None:
    with mpmath.workprec(400):
        whole = exact(TRUE_VALUES[f"CUDART_{name}"])
        high = value("math_constants.h", f"CUDART_{name}_HI")
        assert value("math_constants.h", f"CUDART_{name}_LO") == float(whole - mpmath.mpf(high))


def test_bits_that_are_no_number() -> None:
    text = "#include <math_constants.h>\nCUDART_INF_F CUDART_NAN CUDART_REMQUO_MASK_F"
    assert expanded(text) == (
        "__int_as_float ( 0x7f800000 ) __longlong_as_double ( 0xfff8000000000000ULL ) "
        "( ~ ( ( ~ 0U ) << 3U ) )"
    )
    halves = expanded(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\nCUDART_ONE_FP16 CUDART_ONE_BF16"
    )
    assert "0x3C00U" in halves and "0x3F80U" in halves  # noqa: PT018
    assert np.uint16(0x3C00).view(np.float16) == 1
    assert np.uint32(0x3F80 << 16).view(np.float32) == 1


def test_what_is_there_unasked() -> None:
    text = "NULL INT_MAX EXIT_FAILURE CUDART_VERSION offsetof(S, m)"
    assert expanded(text) == "nullptr 2147483647 1 12080 __builtin_offsetof ( S , m )"
    result = preprocess("", FILE)
    ours = " ".join(token.text for token in result.tokens)
    for typedef in ("typedef unsigned int uint ;", "typedef unsigned char uint8_t ;"):
        assert typedef in ours
    assert result.headers == ()
    assert "<cuda_runtime.h>" in result.texts


def test_assert_keeps_its_text() -> None:
    call = "assert(n < 2 && p[0, 1] == N);"
    kept = '__treadle_assert ( ( n < 2 && p [ 0 , 1 ] == 4 ) , "n < 2 && p[0, 1] == N" ) ;'
    assert expanded(f"#include <cassert>\n#define N 4\n{call}") == kept
    assert expanded(f"#define NDEBUG\n#include <assert.h>\n{call}") == "( ( void ) 0 ) ;"
    assert expanded(call, NDEBUG=None) == "( ( void ) 0 ) ;"
    again = f"#define NDEBUG\n#include <assert.h>\n#undef NDEBUG\n#include <assert.h>\n{call}"
    assert expanded(again).startswith("__treadle_assert")


def test_headers_are_told_by_the_name_that_asked() -> None:
    text = "#include <cmath>\n#include <stdio.h>\n#include <sm_35_intrinsics.h>\n#include <cmath>"
    result = preprocess(text, FILE)
    assert result.headers == ("cmath", "stdio.h", "sm_35_intrinsics.h")
    assert result.unknown_headers == ()


@pytest.mark.parametrize(
    "name",
    [
        "cuda_runtime.h", "cuda.h", "device_launch_parameters.h", "cuda_fp16.h", "cuda_bf16.h",
        "math_constants.h", "math.h", "cmath", "stdint.h", "cstdint", "limits.h", "climits",
        "float.h", "cfloat", "stdio.h", "cstdio", "stdlib.h", "cstdlib", "string.h", "cstring",
        "assert.h", "cassert", "stdbool.h", "stddef.h", "cstddef", "vector_types.h",
        "vector_functions.h", "cuda_runtime_api.h", "sm_20_intrinsics.h", "crt/host_defines.h",
    ],
)  # fmt: skip
def test_each_header_can_be_read_alone_and_twice(name: str) -> None:
    assert header_name(name) is not None
    assert expanded(f'#include <{name}>\n#include <{name}>\n#include "{name}"\nx') == "x"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("curand_mtgp32_kernel.h", "td.random"),
        ("cute/tensor.hpp", "tensor-core"),
        ("vector", "the C++ standard library"),
        ("iostream", "for the host"),
        ("cublas_v2.h", "host calls"),
        ("cuda/semaphore", "libcu++"),
        ("helper_math.h", "include=["),
    ],
)
def test_why_a_header_is_missing(name: str, said: str) -> None:
    assert header_name(name) is None
    assert said in why_missing(name)


def test_our_headers_come_before_a_toolkit(tmp_path) -> None:
    (tmp_path / "cuda_fp16.h").write_text("#error a toolkit's")
    (tmp_path / "mine.h").write_text("mine")
    result = preprocess("#include <cuda_fp16.h>\n#include <mine.h>", FILE, include=[tmp_path])
    assert result.errors == ()
    assert result.headers == ("cuda_fp16.h",)


def test_names_that_tell_what_was_included() -> None:
    text = "#if defined(__CUDA_RUNTIME_H__) && !defined(__CUDA_FP16_H__)\nyes\n#endif\n"
    text += "#include <cuda_fp16.h>\n#ifdef __CUDA_FP16_H__\nhalf\n#endif"
    assert expanded(text) == "yes half"
