"""CUDA's spellings."""

from __future__ import annotations

import re

from treadle.codegen.c_family.helpers import HELPERS as COMMON
from treadle.codegen.c_family.helpers import struct_float_helpers
from treadle.codegen.c_family.language import Helper, Language
from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.names import KEYWORDS
from treadle.codegen.c_family.scope import Scope
from treadle.codegen.cuda import atomics, copies, subgroups
from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Vector, align_of

_SCALARS = {
    "bool": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short",
    "u16": "unsigned short", "i32": "int", "u32": "unsigned int", "i64": "long long",
    "u64": "unsigned long long", "f16": "half", "bf16": "bfloat16", "f32": "float",
    "f64": "double",
}  # fmt: skip
_FEATURES = {"f16": "float16", "f64": "float64", "i64": "int64", "u64": "int64"}

# --- vectors -------------------------------------------------------------------------------------

_VECTORS = {
    "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint",
    "i64": "longlong", "u64": "ulonglong", "f32": "float", "f64": "double",
}  # fmt: skip
_OWN_VECTORS = {
    "bool": "bool", "f16": "half", "bf16": "bfloat", "i64": "wide_longlong",
    "u64": "wide_ulonglong", "f64": "wide_double",
}  # fmt: skip


def _vector(module: Module, type: Vector) -> tuple[str, str, str]:
    """CUDA's own vector type, or a struct where it has none of that layout."""
    element = type.element
    if element.name in _VECTORS and (element.bits < 64 or type.count < 4):
        name = f"{_VECTORS[element.name]}{type.count}"
        return name, name, f"make_{name}({{}})"
    name = f"{_OWN_VECTORS[element.name]}{type.count}"
    if name not in module.types:
        stored = module.stored(element)
        align = f"__align__({align_of(type)}) " if type.count != 3 else ""
        module.types[name] = (
            f"struct {align}{name} {{\n    {stored} {', '.join('xyzw'[: type.count])};\n}};"
        )
    return name, name, f"{name}{{{{{{}}}}}}"


# --- operations ----------------------------------------------------------------------------------

_FLOATS = {"f32": "f", "f64": ""}
_INTRINSICS: dict[tuple[str, str], str] = {
    (op, type): f"{name}{suffix}({', '.join(['{}'] * count)})"
    for type, suffix in _FLOATS.items()
    for op, name, count in (
        ("abs", "fabs", 1), ("sqrt", "sqrt", 1), ("floor", "floor", 1), ("ceil", "ceil", 1),
        ("trunc", "trunc", 1), ("rint", "rint", 1), ("fma", "fma", 3), ("fast_rsqrt", "rsqrt", 1),
        ("fast_exp2", "exp2", 1), ("fast_tanh", "tanh", 1), ("fast_min", "fmin", 2),
        ("fast_max", "fmax", 2),
    )
} | {
    (op, type): f"{op}({{}})"
    for type in _FLOATS
    for op in ("isnan", "isinf", "isfinite", "signbit")
} | {
    (f"fast_{name}", "f32"): f"__{name}f({', '.join(['{}'] * count)})"
    for name, count in (("exp", 1), ("log", 1), ("log2", 1), ("sin", 1), ("cos", 1), ("tan", 1),
                        ("pow", 2))
} | {
    (f"fast_{name}", "f64"): f"{name}({', '.join(['{}'] * count)})"
    for name, count in (("exp", 1), ("log", 1), ("log2", 1), ("sin", 1), ("cos", 1), ("tan", 1),
                        ("pow", 2))
} | {
    ("popcount", "i32"): "__popc({})", ("popcount", "u32"): "__popc({})",
    ("popcount", "i64"): "__popcll({})", ("popcount", "u64"): "__popcll({})",
    ("clz", "i32"): "__clz({})", ("clz", "u32"): "__clz({})",
    ("clz", "i64"): "__clzll({})", ("clz", "u64"): "__clzll({})",
    # The trailing zeros are the leading ones of the reverse, of which 0 has as many as bits.
    ("ctz", "i32"): "__clz(__brev({}))", ("ctz", "u32"): "__clz(__brev({}))",
    ("ctz", "i64"): "__clzll(__brevll({}))", ("ctz", "u64"): "__clzll(__brevll({}))",
    ("reverse_bits", "i32"): "(int)__brev({})", ("reverse_bits", "u32"): "__brev({})",
    ("reverse_bits", "i64"): "(long long)__brevll({})", ("reverse_bits", "u64"): "__brevll({})",
    ("mul_high", "i32"): "__mulhi({}, {})", ("mul_high", "u32"): "__umulhi({}, {})",
    ("dot4_i8", "i32"): "__dp4a({}, {}, {})",
    ("mul_high", "i64"): "__mul64hi({}, {})", ("mul_high", "u64"): "__umul64hi({}, {})",
}  # fmt: skip

_BITCASTS = {
    ("f32", "i32"): "__float_as_int({})", ("f32", "u32"): "__float_as_uint({})",
    ("i32", "f32"): "__int_as_float({})", ("u32", "f32"): "__uint_as_float({})",
    ("f64", "i64"): "__double_as_longlong({})",
    ("f64", "u64"): "(unsigned long long)__double_as_longlong({})",
    ("i64", "f64"): "__longlong_as_double({})",
    ("u64", "f64"): "__longlong_as_double((long long)({}))",
} | {
    pair: form
    for name, type in (("f16", "half"), ("bf16", "bfloat16"))
    for pair, form in (
        ((name, "u16"), "({}).bits"), ((name, "i16"), "(short)({}).bits"),
        (("u16", name), f"{type}{{{{(unsigned short)({{}})}}}}"),
        (("i16", name), f"{type}{{{{(unsigned short)({{}})}}}}"),
    )
} | {
    ("f16", "bf16"): "bfloat16{{({}).bits}}", ("bf16", "f16"): "half{{({}).bits}}",
}  # fmt: skip

_SPECIAL = {
    ("nan", "f32"): "__int_as_float(0x7fc00000)", ("inf", "f32"): "__int_as_float(0x7f800000)",
    ("nan", "f64"): "__longlong_as_double(0x7ff8000000000000LL)",
    ("inf", "f64"): "__longlong_as_double(0x7ff0000000000000LL)",
}  # fmt: skip

# --- helpers -------------------------------------------------------------------------------------


def _extreme(name: str, called: str) -> str:
    return (
        f"{{fn}} {{T}} {name}({{T}} a, {{T}} b) {{{{\n"
        f"    return a != a || b != b ? a + b : {called}(a, b);\n}}}}"
    )


_NAN = "NaN if an operand is; the hardware's would give the other one."
_HELPERS: dict[str, Helper] = {
    "minimum f32": Helper(_extreme("minimum", "fminf"), (), _NAN),
    "minimum f64": Helper(_extreme("minimum", "fmin"), (), _NAN),
    "maximum f32": Helper(_extreme("maximum", "fmaxf"), (), _NAN),
    "maximum f64": Helper(_extreme("maximum", "fmax"), (), _NAN),
    "float_rem f32": Helper(
        "{fn} {T} float_rem({T} a, {T} b) {{\n    return fmodf(a, b);\n}}",
    ),
    "float_rem f64": Helper(
        "{fn} {T} float_rem({T} a, {T} b) {{\n    return fmod(a, b);\n}}",
    ),
    "dot4_u8 i32": Helper("""\
{fn} int dot4_u8(int a, int b, int sum) {{
    return (int)__dp4a((unsigned int)a, (unsigned int)b, (unsigned int)sum);
}}"""),
    "dot4_u8i8 i32": Helper("""\
{fn} int dot4_u8i8(int a, int b, int sum) {{
    int result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}}""", (), "Unsigned bytes by signed ones."),
    # --- 16-bit floats ---
    "type f16": Helper("// A float16, which is computed with in float32.\n"
                       "struct half {{\n    unsigned short bits;\n}};"),
    "type bf16": Helper("// A bfloat16, which is computed with in float32.\n"
                        "struct bfloat16 {{\n    unsigned short bits;\n}};"),
    "to_float f16": Helper("""\
{fn} float to_float(half value) {{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}}"""),
    "to_half": Helper("""\
{fn} half to_half(float value) {{
    half result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}}"""),
    "to_float bf16": Helper("""\
{fn} float to_float(bfloat16 value) {{
    return __uint_as_float((unsigned int)value.bits << 16);
}}"""),
    "to_bfloat16": Helper("""\
{fn} bfloat16 to_bfloat16(float value) {{
    unsigned int bits = __float_as_uint(value);
    unsigned int rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return bfloat16{{(unsigned short)(value != value ? bits >> 16 | 0x40 : rounded)}};
}}"""),
    "odd_float f64": Helper("""\
{fn} float odd_float(double a) {{
    float near = (float)a;
    int bits = __float_as_int(near);
    if (near == a || bits & 1 || !isfinite(near)) {{
        return near;
    }}
    return __int_as_float(fabs((double)near) < fabs(a) ? bits + 1 : bits - 1);
}}""", (), "A float that may be rounded once more, and is right then."),
    **struct_float_helpers("f16", "half"),
    **struct_float_helpers("bf16", "bfloat16"),
}  # fmt: skip

_WORDS = """
__global__ __device__ __shared__ __constant__ extern float2 threadIdx blockIdx blockDim gridDim
warpSize load inside dot lane thread_number warp_mask warp_size shared_memory
uint3 make_uint3 dim3 size_t abs min max
"""

# What NVIDIA's compiler declares without an include: no kernel or function may have such a name
# (found by compiling kernels of some four thousand names). The mathematics is there with f, too.
_MATHEMATICS = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0
cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin
fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround
modf nan nearbyint nextafter norm norm3d norm4d normcdf normcdfinv pow rcbrt remainder remquo
rhypot rint rnorm rnorm3d rnorm4d round rsqrt scalbln scalbn sin sincos sincospi sinh sinpi sqrt
tan tanh tgamma trunc y0 y1 yn
"""
_DECLARED = """
abs assert clock64 clock_t cudaStream_t dim3 free labs llabs llmax llmin malloc max min printf
ptrdiff_t ullmax ullmin umax umin va_list wchar_t
"""


def _declared() -> frozenset[str]:
    functions = _MATHEMATICS.split()
    return frozenset([*functions, *(f"{name}f" for name in functions), *_DECLARED.split()])


def _reserved() -> frozenset[str]:
    """The names that the printer itself may write."""
    texts = [helper.text for helper in (COMMON | _HELPERS).values()]
    texts += [*_INTRINSICS.values(), *_BITCASTS.values(), *_SPECIAL.values()]
    called = re.findall(r"\b([A-Za-z_]\w*)\(", " ".join(texts))
    vectors = [f"{name}{i}" for name in (*_VECTORS.values(), *_OWN_VECTORS.values())
               for i in (1, 2, 3, 4)]  # fmt: skip
    makers = [f"make_{name}" for name in vectors]
    own = [*atomics.NAMES, *subgroups.NAMES, *vectors, *makers, *_WORDS.split(), *called]
    return KEYWORDS | frozenset(own)


# --- places --------------------------------------------------------------------------------------


def _pointer(scope: Scope, memory: str, stored: str) -> str:
    return f"{stored}*" if scope.memories[memory].writes else f"const {stored}*"


def _allow(module: Module, type: Scalar, node: n.Expression | None) -> None:
    """CUDA has all types; note the features that they are."""
    del node
    if feature := _FEATURES.get(type.name):
        module.required.add(feature)


def _builtin(scope: Scope, node: n.Builtin) -> str:
    match node.name:
        case "subgroup_size":
            return "32"
        case "lane":
            return subgroups.lane(scope.module)
    name = {"thread_idx": "threadIdx", "block_idx": "blockIdx", "grid_dim": "gridDim"}[node.name]
    return f"{name}.{'xyz'[node.axis]}"


def _barrier(scope: Scope, node: n.Barrier) -> None:
    if node.part:
        operands = [one for one in node.part if not isinstance(one, n.Constant)]
        names = [
            str(one.value) if isinstance(one, n.Constant) else f"%{operands.index(one)}"
            for one in node.part
        ]
        given = ", ".join(f'"r"({scope.text(one)})' for one in operands)
        scope.emit(f'asm volatile("bar.sync {", ".join(names)};" :: {given} : "memory");')
        return
    if node.scope == "block":
        scope.emit("__syncthreads();")
        return
    mask = subgroups.mask(scope.module) if node.mask is None else scope.text(node.mask)
    scope.emit(f"__syncwarp({mask});")


def _fence(scope: Scope, node: n.Fence) -> None:
    names = {"block": "__threadfence_block", "device": "__threadfence"}
    scope.emit(f"{names.get(node.scope, '__threadfence_system')}();")


def _clock(scope: Scope, node: n.Clock) -> str:
    del node
    scope.module.required.add("int64")
    return "(unsigned long long)clock64()"


CUDA = Language(
    title="CUDA C++",
    function="__device__ inline",
    scalars=_SCALARS,
    suffixes={"u32": "u", "i64": "LL", "u64": "ULL"},
    structs=frozenset({"f16", "bf16"}),
    reserved=_reserved(),
    declared=_declared(),
    helpers=COMMON | _HELPERS,
    vector=_vector,
    native_vector=lambda op, type: False,
    special=_SPECIAL,
    intrinsics=_INTRINSICS,
    bitcasts=_BITCASTS,
    allow=_allow,
    builtin=_builtin,
    pointer=_pointer,
    atomic=atomics.atomic,
    subgroup=subgroups.subgroup,
    barrier=_barrier,
    fence=_fence,
    clock=_clock,
    copies=copies.copies,
)
