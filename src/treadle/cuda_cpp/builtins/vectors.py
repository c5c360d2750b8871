"""make_float4 and its like: vectors of two to four numbers."""

from __future__ import annotations

from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import Table
from treadle.ir import nodes as n
from treadle.ir import types as t

# CUDA's names of element types. (On Linux `long` has 64 bits.)
ELEMENTS: dict[str, t.Scalar] = {
    "char": t.I8, "uchar": t.U8, "short": t.I16, "ushort": t.U16, "int": t.I32, "uint": t.U32,
    "long": t.I64, "ulong": t.U64, "longlong": t.I64, "ulonglong": t.U64, "float": t.F32,
    "double": t.F64,
}  # fmt: skip


def _vector(maker: Maker, *components: n.Expression) -> n.Expression:
    element = components[0].type
    assert isinstance(element, t.Scalar)
    return n.Construct(components, t.Vector(element, len(components)))


FUNCTIONS: Table = {
    f"make_{name}{count}": (Overload((type,) * count, t.Vector(type, count), _vector),)
    for name, type in ELEMENTS.items()
    for count in (2, 3, 4)
}
