"""Metal's spellings."""

from __future__ import annotations

import re

from treadle.codegen.c_family.helpers import HELPERS as COMMON
from treadle.codegen.c_family.helpers import struct_float_helpers
from treadle.codegen.c_family.language import Helper, Language
from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.names import KEYWORDS
from treadle.codegen.c_family.scope import Scope
from treadle.codegen.msl import atomics, opaque, subgroups
from treadle.codegen.msl.builtins import use
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.source import NOWHERE
from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Vector, align_of

_SCALARS = {
    "bool": "bool", "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int",
    "u32": "uint", "i64": "long", "u64": "ulong", "f16": "half", "bf16": "bfloat16",
    "f32": "float", "f64": "double",
}  # fmt: skip
_FEATURES = {"f16": "float16", "i64": "int64", "u64": "int64"}

# --- vectors -------------------------------------------------------------------------------------

_NATIVE_ELEMENTS = frozenset(_SCALARS) - {"bool", "bf16", "f64"}
_OPERATORS = {
    "f32": frozenset({"add", "sub", "mul", "div", "neg"}),
    "f16": frozenset({"add", "sub", "mul", "neg"}),
    "u32": frozenset({"add", "sub", "mul", "invert"}),
    "u64": frozenset({"add", "sub", "mul", "invert"}),
}
_FUNCTIONS = frozenset({"abs", "floor", "ceil", "trunc", "rint", "fma", "dot"})  # of float32


def _is_native(type: Vector) -> bool:
    wide = type.element.bits == 64 and type.count == 3  # Metal lacks a packed type for it
    return type.element.name in _NATIVE_ELEMENTS and not wide


def _native_vector(op: str, type: Vector) -> bool:
    """Whether Metal has an operation on whole vectors, with the meaning of the IR's. It has the
    "operators" of all its vectors, some with another."""
    if not _is_native(type):
        return False
    if op == "operators":
        return True
    if type.element.name == "f32" and op in _FUNCTIONS:
        return True
    return op in _OPERATORS.get(type.element.name, ())


def _vector(module: Module, type: Vector) -> tuple[str, str, str]:
    """Metal's own vector type, packed in memory if it has three components; or a struct."""
    element = module.language.scalars[type.element.name]
    if _is_native(type):
        name = f"{element}{type.count}"
        return name, f"packed_{name}" if type.count == 3 else name, f"{name}({{}})"
    name = f"{element}_{type.count}"
    if name not in module.types:
        stored = module.stored(type.element)
        align = f"alignas({align_of(type)}) " if type.count != 3 else ""
        module.types[name] = (
            f"struct {align}{name} {{\n    {stored} {', '.join('xyzw'[: type.count])};\n}};"
        )
    return name, name, f"{name}{{{{{{}}}}}}"


# --- operations ----------------------------------------------------------------------------------

_INTRINSICS: dict[tuple[str, str], str] = {
    (op, "f32"): f"{name}({', '.join(['{}'] * count)})"
    for op, name, count in (
        ("abs", "fabs", 1), ("sqrt", "precise::sqrt", 1), ("floor", "floor", 1),
        ("ceil", "ceil", 1), ("trunc", "trunc", 1), ("rint", "rint", 1), ("fma", "fma", 3),
        ("fast_min", "fmin", 2), ("fast_max", "fmax", 2), ("isnan", "isnan", 1),
        ("isinf", "isinf", 1), ("isfinite", "isfinite", 1), ("signbit", "signbit", 1),
        *((f"fast_{name}", f"fast::{name}", 1) for name in
          ("rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh")),
        ("fast_pow", "fast::pow", 2),
    )
} | {
    (op, type): form
    for type in ("i32", "u32")
    for op, form in (
        ("popcount", "(int)popcount({})"), ("clz", "(int)clz({})"), ("ctz", "(int)ctz({})"),
        ("reverse_bits", "reverse_bits({})"), ("mul_high", "mulhi({}, {})"),
    )
}  # fmt: skip

_BITCASTS = {
    (old, new): f"as_type<{_SCALARS[new]}>({{}})"
    for group in (("f32", "i32", "u32"), ("f16", "i16", "u16"))
    for old in group
    for new in group
    if old != new and ("f" in old[0] or "f" in new[0])
} | {
    ("bf16", "u16"): "({}).bits", ("bf16", "i16"): "(short)({}).bits",
    ("u16", "bf16"): "bfloat16{{(ushort)({})}}", ("i16", "bf16"): "bfloat16{{(ushort)({})}}",
    ("f16", "bf16"): "bfloat16{{as_type<ushort>({})}}",
    ("bf16", "f16"): "as_type<half>(({}).bits)",
}  # fmt: skip

_SPECIAL = {("nan", "f32"): "NAN", ("inf", "f32"): "INFINITY"}

# --- helpers -------------------------------------------------------------------------------------


def _extreme(name: str, sign: str, first: str) -> Helper:
    return Helper(
        f"{{fn}} {{T}} {name}({{T}} a, {{T}} b) {{{{\n"
        "    if (a != a || b != b) {{\n        return a + b;\n    }}\n"
        f"    return a {sign} b || (a == b && signbit({first})) ? a : b;\n}}}}",
        (),
        "NaN if an operand is, and the zeros in order, which the built-in ones do not promise.",
    )


_HELPERS: dict[str, Helper] = {
    "minimum f32": _extreme("minimum", "<", "a"),
    "maximum f32": _extreme("maximum", ">", "b"),
    "float_rem f32": Helper("""\
{fn} float float_rem(float a, float b) {{
    uint sign = as_type<uint>(a) & 0x80000000u;
    uint left = as_type<uint>(a) & 0x7fffffffu, right = as_type<uint>(b) & 0x7fffffffu;
    if (right == 0 || left >= 0x7f800000u || right > 0x7f800000u) {{
        return NAN;
    }}
    if (left < right) {{
        return a;
    }}
    int exponent = max(left >> 23, 1u), last = max(right >> 23, 1u);
    left = left >> 23 == 0 ? left : (left & 0x7fffffu) | 0x800000u;
    right = right >> 23 == 0 ? right : (right & 0x7fffffu) | 0x800000u;
    left %= right;
    for (; exponent > last; exponent--) {{
        left = left * 2 >= right ? left * 2 - right : left * 2;
    }}
    if (left == 0) {{
        return as_type<float>(sign);
    }}
    for (; left < 0x800000u && last > 1; last--) {{
        left *= 2;
    }}
    uint bits = left < 0x800000u ? left : ((uint)last << 23) + (left - 0x800000u);
    return as_type<float>(sign | bits);
}}""", (), "The exact remainder, by long division: the built-in one is the remainder of a quotient "
       "that was rounded."),
    "type bf16": Helper("// A bfloat16, which is computed with in float32.\n"
                        "struct bfloat16 {{\n    ushort bits;\n}};"),
    "to_float bf16": Helper("""\
{fn} float to_float(bfloat16 value) {{
    return as_type<float>((uint)value.bits << 16);
}}"""),
    "to_bfloat16": Helper("""\
{fn} bfloat16 to_bfloat16(float value) {{
    uint bits = as_type<uint>(value);
    uint rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return bfloat16{{(ushort)(value != value ? bits >> 16 | 0x40 : rounded)}};
}}"""),
    **struct_float_helpers("bf16", "bfloat16"),
}  # fmt: skip

_WORDS = """
kernel vertex fragment device constant threadgroup thread metal uint uchar ushort ulong size_t
ptrdiff_t sampler texture array patch visible object_data ray_data Parameters parameters
thread_idx block_idx grid_dim lane thread_number load inside dot min max abs
clamp mix step sign length atomic as_type mem_flags memory_order_relaxed precise fast
packed_float3 atomic_int atomic_uint atomic_float simd_vote
"""


def _reserved() -> frozenset[str]:
    """The names that the printer itself may write."""
    texts = [helper.text for helper in (COMMON | _HELPERS).values()]
    texts += [*_INTRINSICS.values(), *_BITCASTS.values()]
    called = re.findall(r"\b([A-Za-z_]\w*)\(", " ".join(texts))
    vectors = [f"{name}{i}" for name in _SCALARS.values() for i in (2, 3, 4)]
    own = [*atomics.NAMES, *subgroups.NAMES, *vectors, *_WORDS.split(), *called]
    return KEYWORDS | frozenset(own)


# --- places and threads --------------------------------------------------------------------------

_SPACES = {"global": "device", "shared": "threadgroup", "local": "thread"}


def _pointer(scope: Scope, memory: str, stored: str) -> str:
    found = scope.memories[memory]
    const = "" if found.writes else "const "
    return f"{_SPACES[found.space]} {const}{stored}*"


def _allow(module: Module, type: Scalar, node: n.Expression | None) -> None:
    """Refuse float64, which no Apple GPU has."""
    if type.name == "f64":
        error = UnsupportedOnTarget(
            "Metal has no float64: use float32, or two of them where one is not enough",
            node.span if node is not None else NOWHERE,
        )
        error.missing = type.name
        raise error
    if feature := _FEATURES.get(type.name):
        module.required.add(feature)


def _builtin(scope: Scope, node: n.Builtin) -> str:
    if node.name == "subgroup_size":
        return "32"
    if node.name == "lane":
        scope.module.required.add("subgroups")
        return use(scope.module, "lane")
    use(scope.module, node.name)
    return f"{node.name}.{'xyz'[node.axis]}"


def _barrier(scope: Scope, node: n.Barrier) -> None:
    flags = ["mem_flags::mem_threadgroup"]
    if scope.module.exchanges:
        flags.insert(0, "mem_flags::mem_device")
    name = "threadgroup_barrier" if node.scope == "block" else "simdgroup_barrier"
    scope.emit(f"{name}({' | '.join(flags)});")


def _fence(scope: Scope, node: n.Fence) -> None:
    del scope
    if node.scope == "block":
        raise UnsupportedOnTarget(
            "Metal has no memory fence for the block but a barrier, and not all threads of the "
            "block come by here: use sync_threads() where they do",
            node.span,
        )
    raise UnsupportedOnTarget(
        f"Metal has no memory fence for the {node.scope}; between the threads of a block use "
        "sync_threads(), between blocks use atomics or a second kernel",
        node.span,
    )


def _clock(scope: Scope, node: n.Clock) -> str:
    del scope
    raise UnsupportedOnTarget(
        "a kernel in Metal cannot read a clock: time whole launches from the host", node.span
    )


MSL = Language(
    title="Metal",
    function="inline",
    scalars=_SCALARS,
    suffixes={"u32": "u", "i64": "L", "u64": "UL"},
    structs=frozenset({"bf16"}),
    reserved=_reserved(),
    declared=frozenset(),  # all of it is in the namespace metal
    helpers=COMMON | _HELPERS,
    vector=_vector,
    native_vector=_native_vector,
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
    opaque=opaque.register,
    opaque_store=opaque.store,
)
