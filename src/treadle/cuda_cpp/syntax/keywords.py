"""Keywords and specifiers of CUDA C++, and the type names that its headers declare."""

from __future__ import annotations

_FUNDAMENTAL = """
void bool char wchar_t char16_t char32_t short int long float double signed unsigned __int128
__signed__ __int64 _Bool
"""
FUNDAMENTAL_WORDS = frozenset(_FUNDAMENTAL.split())

# The names of specifiers in trees ("" for those that are ignored).
SPECIFIER_WORDS = {
    "__global__": "global",
    "__device__": "device",
    "__host__": "host",
    "__constant__": "constant",
    "__shared__": "shared",
    "__managed__": "managed",
    "__noinline__": "noinline",
    "__forceinline__": "forceinline",
    "__forceinline": "forceinline",
    "__grid_constant__": "grid_constant",
    "static": "static",
    "extern": "extern",
    "inline": "inline",
    "__inline": "inline",
    "__inline__": "inline",
    "constexpr": "constexpr",
    "consteval": "constexpr",
    "constinit": "",
    "explicit": "explicit",
    "virtual": "virtual",
    "friend": "friend",
    "mutable": "mutable",
    "thread_local": "thread_local",
    "register": "",
    "__extension__": "",
    "__cdecl": "",
    "__stdcall": "",
    "_Noreturn": "",
}

DEVICE_WORDS = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))

CV_WORDS = frozenset(("const", "volatile", "__const", "__const__", "__volatile__", "__volatile"))
RESTRICT_WORDS = frozenset(("__restrict__", "__restrict", "restrict"))

# Each takes arguments in parentheses.
_ATTRIBUTES = """
__attribute__ __attribute __declspec alignas _Alignas __align__ __builtin_align__
__launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__
"""
ATTRIBUTE_WORDS = frozenset(_ATTRIBUTES.split())

CLASS_WORDS = frozenset(("struct", "class", "union"))
DECLTYPE_WORDS = frozenset(("decltype", "__typeof__", "__typeof", "typeof"))

_OTHER_KEYWORDS = """
alignof _Alignof __alignof __alignof__ asm __asm __asm__ auto break case catch co_await co_return
co_yield concept const_cast continue decltype default delete do dynamic_cast else enum export false
for goto if namespace new noexcept nullptr operator private protected public reinterpret_cast
requires return sizeof static_assert _Static_assert static_cast switch template this throw true try
typedef typeid typename __typeof__ __typeof typeof using while
"""

KEYWORDS = (
    FUNDAMENTAL_WORDS
    | SPECIFIER_WORDS.keys()
    | CV_WORDS
    | RESTRICT_WORDS
    | ATTRIBUTE_WORDS
    | CLASS_WORDS
    | frozenset(_OTHER_KEYWORDS.split())
)

# Alternative tokens ([lex.digraph]).
ALTERNATIVE_SPELLINGS = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "bitand": "&",
    "bitor": "|",
    "xor": "^",
    "compl": "~",
    "and_eq": "&=",
    "or_eq": "|=",
    "xor_eq": "^=",
    "not_eq": "!=",
}

# A statement that begins with one of these is a declaration.
DECLARATION_WORDS = (
    SPECIFIER_WORDS.keys()
    | CV_WORDS
    | ATTRIBUTE_WORDS
    | CLASS_WORDS
    | frozenset(("typedef", "using", "template", "static_assert", "_Static_assert", "enum"))
    | frozenset(("auto", "namespace"))
)

_VECTORS = frozenset(
    f"{base}{width}"
    for base in (
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong",
        "ulonglong", "float", "double",
    )
    for width in (1, 2, 3, 4)
)  # fmt: skip

_HEADER_TYPES = """
dim3 uint3 size_t ssize_t ptrdiff_t intptr_t uintptr_t intmax_t uintmax_t
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
int_fast8_t int_fast16_t int_fast32_t int_fast64_t
uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t
int_least8_t int_least16_t int_least32_t int_least64_t
uint_least8_t uint_least16_t uint_least32_t uint_least64_t
half half2 __half __half2 __half_raw __half2_raw __nv_bfloat16_raw __nv_bfloat162_raw
nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162
__nv_fp8_e4m3 __nv_fp8_e5m2 __nv_fp8_storage_t
cudaTextureObject_t cudaSurfaceObject_t cudaError_t cudaStream_t cudaEvent_t
clock_t time_t wint_t va_list FILE uint ushort ulong
cuComplex cuFloatComplex cuDoubleComplex
"""

# What <type_traits> asks the compiler, as GCC's header does: predicates of types, and types made of
# types. `lower/traits.py` has what they mean.
_TRAITS = """
is_void is_null_pointer is_integral is_floating_point is_arithmetic is_fundamental is_enum
is_scoped_enum is_class is_union is_empty is_array is_pointer is_reference is_lvalue_reference
is_rvalue_reference is_member_pointer is_member_function_pointer is_scalar is_object
is_signed is_unsigned is_trivially_copyable is_trivially_destructible is_base_of is_convertible
"""
_TRANSFORMS = """
remove_reference remove_pointer remove_extent remove_all_extents decay make_signed make_unsigned
underlying_type common_type
"""
TRAITS = frozenset(f"__treadle_{name}" for name in _TRAITS.split())
TRANSFORMS = frozenset(f"__treadle_{name}" for name in _TRANSFORMS.split())

# Types that need no declaration in the text: CUDA's and C's headers declare them.
BUILT_IN_TYPE_NAMES = _VECTORS | frozenset(_HEADER_TYPES.split())
