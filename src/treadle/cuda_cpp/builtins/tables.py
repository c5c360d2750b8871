"""All built-in functions of CUDA without side effects, by name."""

from __future__ import annotations

from treadle.cuda_cpp.builtins import (
    conversions,
    fast,
    halves,
    integers,
    mathematics,
    outputs,
    packed,
)
from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import Table, merged
from treadle.ir import nodes as n
from treadle.ir import types as t

# --- make_float4 and its like: vectors of two to four numbers -------------------------------------

# CUDA's names of element types. (On Linux `long` has 64 bits.)
_ELEMENTS: dict[str, t.Scalar] = {
    "char": t.I8, "uchar": t.U8, "short": t.I16, "ushort": t.U16, "int": t.I32, "uint": t.U32,
    "long": t.I64, "ulong": t.U64, "longlong": t.I64, "ulonglong": t.U64, "float": t.F32,
    "double": t.F64,
}  # fmt: skip


def _vector(maker: Maker, *components: n.Expression) -> n.Expression:
    element = components[0].type
    assert isinstance(element, t.Scalar)
    return n.Construct(components, t.Vector(element, len(components)))


_VECTORS: Table = {
    f"make_{name}{count}": (Overload((type,) * count, t.Vector(type, count), _vector),)
    for name, type in _ELEMENTS.items()
    for count in (2, 3, 4)
}

# --- all of them ----------------------------------------------------------------------------------

FUNCTIONS: Table = merged(
    mathematics.FUNCTIONS,
    fast.FUNCTIONS,
    integers.FUNCTIONS,
    packed.FUNCTIONS,
    conversions.FUNCTIONS,
    halves.FUNCTIONS,
    _VECTORS,
)
OUTPUTS: dict[str, tuple[OutputOverload, ...]] = outputs.OUTPUTS

# See `mathematics.FLOATING`.
FLOATING: frozenset[str] = mathematics.FLOATING

# Functions of CUDA's mathematics that are refused: the reason and what to write instead.
_ARRAY = "reads an array through a pointer: use norm3d or norm4d, or sqrt of a sum in a loop"

_SYNC = "was removed from CUDA with Volta: {} takes a mask of the participating threads"
_WITHOUT_MASKS = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot")

REFUSED: dict[str, str] = {
    **{name: _SYNC.format(f"{name}_sync") for name in _WITHOUT_MASKS},
    "norm": _ARRAY,
    "normf": _ARRAY,
    "rnorm": _ARRAY,
    "rnormf": _ARRAY,
}
