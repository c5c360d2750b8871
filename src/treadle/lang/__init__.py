"""The kernel language: Python functions that run on every device.

`decorators` has the decorators and their classes, `types` the annotations, `builtins` the functions
that kernels call, `namespace` all names, `lower` the lowering to IR, `interpreter` the execution as
plain Python, `refusals` the constructs that are not allowed.
"""

from typing import TYPE_CHECKING

from treadle.core.deferred_imports import exports

if TYPE_CHECKING:  # "go to definition" leads here from the stub, and further from here
    from treadle.lang.namespace import *  # noqa: F403

NAMES = {
    "treadle.lang.decorators": "func kernel",
    "treadle.lang.interpreter_state": "interpret",
    "treadle.lang.namespace": (
        "abs acos acosh add Array asin asinh atan atan2 atanh atomic_add atomic_and "
        "atomic_cas atomic_exchange atomic_max atomic_min atomic_or atomic_sub atomic_xor "
        "ballot bf16 bfloat16 bitcast bitwise_and bitwise_invert bitwise_left_shift "
        "bitwise_or bitwise_right_shift bitwise_xor block_dim block_idx bool c128 c64 cbrt "
        "ceil clip clz complex128 complex64 copysign cos cosh cross ctz divide dot dot4_i8 dot4_u8 "
        "dot4_u8i8 e equal erf erfc erfinv "
        "exp exp2 expm1 f16 f32 f64 float16 float32 float64 floor floor_divide fma fragment gamma "
        "greater greater_equal grid grid_dim grid_size hypot i16 i32 i64 i8 inf int16 int32 "
        "int64 int8 isfinite isinf isnan lane length less less_equal lgamma local log log10 log1p "
        "log2 logaddexp logical_and logical_not logical_or logical_xor mat2x2 mat2x3 mat2x4 mat3x2 "
        "mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 maximum minimum "
        "GridPos mul_high multiply nan negative nextafter normalize not_equal pi popcount positive "
        "pow rand_normal rand_uniform reciprocal remainder reverse_bits round rsqrt shared "
        "shuffle shuffle_down shuffle_up shuffle_xor sigmoid sign signbit sin sinh sqrt "
        "square static_range struct subgroup_max subgroup_min subgroup_prefix_sum "
        "subgroup_size subgroup_sum subtract sync_subgroup sync_threads tan tanh thread_fence "
        "thread_fence_block thread_idx trunc u16 u32 u64 u8 uint16 uint32 uint64 uint8 vec2 "
        "vec3 vec4 vote_all vote_any where"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
