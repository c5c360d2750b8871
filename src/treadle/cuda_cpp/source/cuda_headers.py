"""CUDA's headers: macros and typedefs. Functions and types are built in."""

from __future__ import annotations

# Include guards such as __CUDA_RUNTIME_H__ are defined because code tests them.

# What nvcc includes before the first line of a file. CUDA's own header includes the C headers;
# <assert.h> and <stdint.h> are added here, since many kernels rely on them.
_CUDA_RUNTIME = """
#pragma once
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __DRIVER_TYPES_H__
#define __HOST_DEFINES_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_TYPES_H__
#define CUDART_VERSION 12080
#define __CUDART_API_VERSION CUDART_VERSION
#define CUDARTAPI
#define CUDART_CB
#define __builtin_align__(bytes) __align__(bytes)
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
struct cudaPitchedPtr { void *ptr; size_t pitch; size_t xsize; size_t ysize; };
struct cudaExtent { size_t width; size_t height; size_t depth; };
struct cudaPos { size_t x; size_t y; size_t z; };
"""

_CUDA = """
#pragma once
#define __cuda_cuda_h__
#define CUDA_VERSION 12080
#define CUDAAPI
#define CUDA_CB
typedef unsigned long long CUdeviceptr;
typedef cudaTextureObject_t CUtexObject;
typedef cudaSurfaceObject_t CUsurfObject;
"""

_CUDA_FP16 = """
#pragma once
#define __CUDA_FP16_H__
#define __CUDA_FP16_TYPES_EXIST__
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000U)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
"""

_CUDA_BF16 = """
#pragma once
#include <cuda_fp16.h>
#define __CUDA_BF16_H__
#define __CUDA_BF16_TYPES_EXIST__
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001U)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7F7FU)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
"""

# A name that ends in _HI is the nearest double, and _LO its error.
_MATH_CONSTANTS = """
#pragma once
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_MIN_DENORM_F 1.40129846e-45f
#define CUDART_MAX_NORMAL_F 3.40282347e+38f
#define CUDART_NEG_ZERO_F (-0.0f)
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F 0.70710677f
#define CUDART_SQRT_HALF_HI_F 0.70710677f
#define CUDART_SQRT_HALF_LO_F 1.21016175e-8f
#define CUDART_SQRT_TWO_F 1.4142135f
#define CUDART_THIRD_F 0.33333334f
#define CUDART_PIO4_F 0.7853982f
#define CUDART_PIO2_F 1.5707964f
#define CUDART_3PIO4_F 2.3561945f
#define CUDART_2_OVER_PI_F 0.63661975f
#define CUDART_SQRT_2_OVER_PI_F 0.7978846f
#define CUDART_PI_F 3.1415927f
#define CUDART_L2E_F 1.442695f
#define CUDART_L2T_F 3.321928f
#define CUDART_LG2_F 0.30103f
#define CUDART_LGE_F 0.4342945f
#define CUDART_LN2_F 0.6931472f
#define CUDART_LNT_F 2.3025851f
#define CUDART_LNPI_F 1.1447299f
#define CUDART_TWO_TO_M126_F 1.17549435e-38f
#define CUDART_TWO_TO_126_F 8.507059e+37f
#define CUDART_NORM_HUGE_F 3.40282347e+38f
#define CUDART_TWO_TO_23_F 8388608.0f
#define CUDART_TWO_TO_24_F 16777216.0f
#define CUDART_TWO_TO_31_F 2147483648.0f
#define CUDART_TWO_TO_32_F 4294967296.0f
#define CUDART_REMQUO_BITS_F 3U
#define CUDART_REMQUO_MASK_F (~((~0U) << CUDART_REMQUO_BITS_F))
#define CUDART_TRIG_PLOSS_F 105615.0f
#define CUDART_INF __longlong_as_double(0x7ff0000000000000LL)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ULL)
#define CUDART_NEG_ZERO (-0.0)
#define CUDART_MIN_DENORM 4.9406564584124654e-324
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO 1.4142135623730951
#define CUDART_SQRT_HALF 0.7071067811865476
#define CUDART_SQRT_HALF_HI 0.7071067811865476
#define CUDART_SQRT_HALF_LO (-4.833646656726457e-17)
#define CUDART_THIRD 0.3333333333333333
#define CUDART_TWOTHIRD 0.6666666666666666
#define CUDART_PIO4 0.7853981633974483
#define CUDART_PIO4_HI 0.7853981633974483
#define CUDART_PIO4_LO 3.061616997868383e-17
#define CUDART_PIO2 1.5707963267948966
#define CUDART_PIO2_HI 1.5707963267948966
#define CUDART_PIO2_LO 6.123233995736766e-17
#define CUDART_3PIO4 2.356194490192345
#define CUDART_2_OVER_PI 0.6366197723675814
#define CUDART_PI 3.141592653589793
#define CUDART_PI_HI 3.141592653589793
#define CUDART_PI_LO 1.2246467991473532e-16
#define CUDART_SQRT_2PI 2.5066282746310007
#define CUDART_SQRT_2PI_HI 2.5066282746310007
#define CUDART_SQRT_2PI_LO (-1.8328579980459167e-16)
#define CUDART_SQRT_PIO2 1.2533141373155003
#define CUDART_SQRT_PIO2_HI 1.2533141373155003
#define CUDART_SQRT_PIO2_LO (-9.164289990229583e-17)
#define CUDART_SQRT_2OPI 0.7978845608028654
#define CUDART_L2E 1.4426950408889634
#define CUDART_L2E_HI 1.4426950408889634
#define CUDART_L2E_LO 2.0355273740931033e-17
#define CUDART_L2T 3.321928094887362
#define CUDART_LG2 0.3010299956639812
#define CUDART_LG2_HI 0.3010299956639812
#define CUDART_LG2_LO (-2.8037281277851704e-18)
#define CUDART_LGE 0.4342944819032518
#define CUDART_LGE_HI 0.4342944819032518
#define CUDART_LGE_LO 1.098319650216765e-17
#define CUDART_LN2 0.6931471805599453
#define CUDART_LN2_HI 0.6931471805599453
#define CUDART_LN2_LO 2.3190468138462996e-17
#define CUDART_LNT 2.302585092994046
#define CUDART_LNT_HI 2.302585092994046
#define CUDART_LNT_LO (-2.1707562233822494e-16)
#define CUDART_LNPI 1.1447298858494002
#define CUDART_LN2_X_1024 709.782712893384
#define CUDART_LN2_X_1025 710.475860073944
#define CUDART_LN2_X_1075 745.1332191019412
#define CUDART_LG2_X_1024 308.25471555991675
#define CUDART_LG2_X_1075 323.60724533877976
#define CUDART_TWO_TO_23 8388608.0
#define CUDART_TWO_TO_52 4503599627370496.0
#define CUDART_TWO_TO_53 9007199254740992.0
#define CUDART_TWO_TO_54 18014398509481984.0
#define CUDART_TWO_TO_M54 5.551115123125783e-17
#define CUDART_TWO_TO_M1022 2.2250738585072014e-308
#define CUDART_TRIG_PLOSS 2147483648.0
#define CUDART_DBL2INT_CVT 6755399441055744.0
"""

# Types alone: the library's functions are for the host.
_CUFFT = """
#pragma once
#include <cuComplex.h>
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
"""

# Which of several pieces of code a target has: a condition is 1 or 0, and the pieces are in
# parentheses. There is one target, the architecture that __CUDA_ARCH__ says.
_ARCHITECTURES = (35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90)
_NEWER_ARCHITECTURES = (100, 101, 103, 110, 120, 121)
_NV_TARGET = "\n".join(
    (
        "#pragma once",
        "#define NV_IS_DEVICE 1",
        "#define NV_IS_HOST 0",
        "#define NV_ANY_TARGET 1",
        "#define NV_NO_TARGET 0",
        *(f"#define NV_PROVIDES_SM_{each} 1" for each in _ARCHITECTURES),
        *(f"#define NV_PROVIDES_SM_{each} 0" for each in _NEWER_ARCHITECTURES),
        *(
            f"#define NV_IS_EXACTLY_SM_{each} {int(each == 90)}"
            for each in (*_ARCHITECTURES, *_NEWER_ARCHITECTURES)
        ),
        "#define NV_HAS_FEATURE_SM_90a 0",
        "#define __treadle_unpack(...) __VA_ARGS__",
        "#define __treadle_first(a, ...) a",
        "#define __treadle_if_1(yes, no) __treadle_unpack yes",
        "#define __treadle_if_0(yes, no) __treadle_unpack no",
        "#define __treadle_if(condition, yes, no) __treadle_if_##condition(yes, no)",
        "#define __treadle_else(...) __treadle_first(__VA_ARGS__ __VA_OPT__(,) (), 0)",
        "#define NV_IF_ELSE_TARGET(condition, yes, no) __treadle_if(condition, yes, no)",
        "#define NV_IF_TARGET(condition, yes, ...) "
        "__treadle_if(condition, yes, __treadle_else(__VA_ARGS__))",
        "#define NV_DISPATCH_TARGET(condition, yes, ...) "
        "__treadle_if(condition, yes, (__VA_OPT__(__treadle_dispatch_1(__VA_ARGS__))))",
        *(
            f"#define __treadle_dispatch_{each}(condition, yes, ...) __treadle_if(condition, yes, "
            f"(__VA_OPT__(__treadle_dispatch_{each + 1}(__VA_ARGS__))))"
            for each in range(1, 9)
        ),
        "",
    )
)

CUDA_HEADERS = {
    "nv/target": _NV_TARGET,
    "cuda_runtime.h": _CUDA_RUNTIME,
    "cuda.h": _CUDA,
    "cuda_fp16.h": _CUDA_FP16,
    "cuda_bf16.h": _CUDA_BF16,
    "math_constants.h": _MATH_CONSTANTS,
    "cufft.h": _CUFFT,
}

# Their declarations are built in, or in the header that is always included.
_PARTS_OF_RUNTIME = (
    "builtin_types.h", "channel_descriptor.h", "common_functions.h", "cuda_device_runtime_api.h",
    "cuda_runtime_api.h", "device_atomic_functions.h", "device_double_functions.h",
    "device_functions.h", "device_launch_parameters.h", "device_types.h", "driver_functions.h",
    "driver_types.h", "host_config.h", "host_defines.h", "library_types.h", "math_functions.h",
    "cuda_surface_types.h", "cuda_texture_types.h", "surface_functions.h",
    "surface_indirect_functions.h", "surface_types.h", "texture_fetch_functions.h",
    "texture_indirect_functions.h", "texture_types.h",
    "sm_20_atomic_functions.h", "sm_20_intrinsics.h", "sm_30_intrinsics.h",
    "sm_32_atomic_functions.h", "sm_32_intrinsics.h", "sm_35_atomic_functions.h",
    "sm_35_intrinsics.h", "sm_60_atomic_functions.h", "sm_61_intrinsics.h", "vector_functions.h",
    "vector_types.h",
)  # fmt: skip

SAME_AS = {
    **dict.fromkeys(_PARTS_OF_RUNTIME, "cuda_runtime.h"),
    **{f"crt/{name}": "cuda_runtime.h" for name in _PARTS_OF_RUNTIME},
    **{name.replace(".h", ".hpp"): "cuda_runtime.h" for name in _PARTS_OF_RUNTIME},
    "cuda_fp16.hpp": "cuda_fp16.h",
    "cuda_bf16.hpp": "cuda_bf16.h",
    "cufftXt.h": "cufft.h",
}
