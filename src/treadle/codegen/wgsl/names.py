"""Names that WGSL accepts, as near to the user's own as can be."""

from __future__ import annotations

import re

# Keywords, reserved words, and every predeclared name that the printer writes itself: a user's
# variable of one of these names would hide it.
_WORDS = """
alias break case const const_assert continue continuing default diagnostic discard else enable
false fn for if let loop override requires return struct switch true var while
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
cast catch class co_await co_return co_yield coherent column_major common compile
compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete
demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough
filter final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset partial pass patch pixelfragment precise precision premerge
priv protected pub public readonly ref regardless register reinterpret_cast require resource
restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super
target template this thread_local throw trait try type typedef typeid typename typeof union unless
unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield
bool i32 u32 i64 u64 f16 f32 f64 array atomic vec2 vec3 vec4 mat2x2 ptr sampler bitcast select
vec2f vec3f vec4f vec2i vec3i vec4i vec2u vec3u vec4u vec2h vec3h vec4h
abs min max clamp floor ceil trunc round sqrt inverseSqrt exp exp2 log log2 sin cos tan tanh pow
fma dot sign length any all firstLeadingBit firstTrailingBit extractBits insertBits
countOneBits countLeadingZeros countTrailingZeros reverseBits
pack2x16float unpack2x16float pack4x8snorm
workgroupBarrier storageBarrier subgroupBarrier workgroupUniformLoad
atomicLoad atomicStore atomicAdd atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor
atomicExchange atomicCompareExchangeWeak
subgroupAdd subgroupExclusiveAdd subgroupInclusiveAdd subgroupMin subgroupMax subgroupAll
subgroupAny subgroupBallot subgroupShuffle subgroupBroadcast subgroupElect
subgroup_matrix_left subgroup_matrix_right subgroup_matrix_result row_major col_major
subgroupMatrixLoad subgroupMatrixStore subgroupMatrixMultiplyAccumulate
parameters Parameters local_id workgroup_id num_workgroups local_index
thread_idx block_idx grid_dim lane subgroup_size subgroup_lane subgroup_width subgroup_present
unknown_one storage read read_write function private workgroup uniform
"""
_TAKEN = frozenset(_WORDS.split())

# What the functions that read and write an array call their own variables: no array may be hidden
# there by one of them.
IN_ACCESSES = frozenset({
    "index", "bound", "inside", "byte", "word", "value", "shift", "old", "old_value", "attempt",
    "expected", "desired", "result",
    *(f"{name}_{k}" for name in ("index", "bits") for k in range(8)),
})  # fmt: skip


def mangle(name: str) -> str:
    """An identifier from any name: dots and other signs become underscores."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = "n" + name
    if name.startswith("__") or name == "_":
        name = "n" + name
    return name


class Names:
    """Hands out names that are unique within it and its parent."""

    def __init__(self, parent: Names | None = None) -> None:
        self._parent = parent
        self._taken: set[str] = set()

    def _is_taken(self, name: str) -> bool:
        if name in self._taken or name in _TAKEN:
            return True
        return self._parent is not None and self._parent._is_taken(name)

    def fresh(self, wanted: str) -> str:
        """`wanted`, mangled, with a number behind it if it is taken."""
        base = mangle(wanted)
        if base in _TAKEN:
            base += "_"
        name, count = base, 1
        while self._is_taken(name):
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def avoid(self, name: str) -> None:
        """Never hand out this name."""
        self._taken.add(name)


def is_reserved(name: str) -> bool:
    """Whether WGSL or the printer itself has a use for this name."""
    return name in _TAKEN
