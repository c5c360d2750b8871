"""Opaque matrices as Metal's own: four of 8 x 8 elements that a SIMD group holds together."""

from __future__ import annotations

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.scope import SUM, Scope
from treadle.codegen.records import Target
from treadle.ir import nodes as n
from treadle.ir.opaque import ELEMENTS
from treadle.ir.types import Struct, size_of

NAMES = (
    "Matrix16", "matrix_load", "matrix_fill", "matrix_multiply", "matrix_store",
    "simdgroup_matrix", "simdgroup_load", "simdgroup_store", "simdgroup_multiply_accumulate",
    "make_filled_simdgroup_matrix",
)  # fmt: skip

_TYPE = """\
// A matrix of 16 x 16 elements: four that a SIMD group holds together.
template <typename T> struct Matrix16 {
    simdgroup_matrix<T, 8, 8> parts[4];
};"""

# By operation; an array is counted in elements of the matrix.
_HELPERS = {
    "matrix_load": """\
template <typename T> inline Matrix16<T> matrix_load(
    const threadgroup T* from, uint stride, bool columns) {
    Matrix16<T> result;
    #pragma unroll
    for (uint part = 0; part < 4; part++) {
        uint row = part / 2 * 8, column = part % 2 * 8;
        uint at = columns ? column * stride + row : row * stride + column;
        simdgroup_load(result.parts[part], from + at, stride, ulong2(0, 0), columns);
    }
    return result;
}""",
    "matrix_fill": """\
template <typename T> inline Matrix16<T> matrix_fill(T value) {
    Matrix16<T> result;
    #pragma unroll
    for (uint part = 0; part < 4; part++) {
        result.parts[part] = make_filled_simdgroup_matrix<T, 8, 8>(value);
    }
    return result;
}""",
    "matrix_multiply": """\
inline Matrix16<float> matrix_multiply(Matrix16<half> a, Matrix16<half> b, Matrix16<float> sums) {
    #pragma unroll
    for (uint part = 0; part < 8; part++) {
        uint row = part / 4 * 2, inner = part / 2 % 2, column = part % 2;
        simdgroup_multiply_accumulate(
            sums.parts[row + column], a.parts[row + inner], b.parts[inner * 2 + column],
            sums.parts[row + column]);
    }
    return sums;
}""",
    "matrix_store": """\
template <typename T> inline void matrix_store(
    Matrix16<T> value, threadgroup T* to, uint stride, bool columns) {
    #pragma unroll
    for (uint part = 0; part < 4; part++) {
        uint row = part / 2 * 8, column = part % 2 * 8;
        uint at = columns ? column * stride + row : row * stride + column;
        simdgroup_store(value.parts[part], to + at, stride, ulong2(0, 0), columns);
    }
}""",
}


def has_opaque(kernel: n.Kernel, target: Target) -> bool:
    """Every GPU of Apple's that runs Metal 2.3 and newer has these matrices, in float16 too."""
    del kernel
    return {"float16", "subgroups"} <= target.features


def register(module: Module, type: Struct) -> str | None:
    """The type of an opaque matrix; None for another struct."""
    element = ELEMENTS.get(type)
    if element is None:
        return None
    module.types.setdefault("matrix", _TYPE)
    return f"Matrix16<{module.scalar(element)}>"


def _helper(module: Module, name: str) -> str:
    module.required.add("subgroups")
    module.types.setdefault("matrix", _TYPE)
    module.helpers.setdefault(name, _HELPERS[name])
    return name


def operation(scope: Scope, node: n.Subgroup) -> str:
    """The value of a load, a fill or a product."""
    module, type = scope.module, node.result.type
    assert isinstance(type, Struct)
    if node.op == "opaque_multiply":
        given = ", ".join(scope.text(operand) for operand in node.operands)
        return f"{_helper(module, 'matrix_multiply')}({given})"
    if node.op == "opaque_fill":
        element = module.scalar(ELEMENTS[type])
        return f"{_helper(module, 'matrix_fill')}<{element}>({scope.text(node.operands[0])})"
    first, stride = node.operands
    assert isinstance(first, n.Load)
    assert isinstance(first.place, n.Element)
    where = _place(scope, first.place, stride, type, node.op == "opaque_columns")
    return f"{_helper(module, 'matrix_load')}({where})"


def store(scope: Scope, node: n.OpaqueStore) -> str:
    """A store, as a call."""
    assert isinstance(node.value.type, Struct)
    where = _place(scope, node.place, node.stride, node.value.type, node.columns)
    return f"{_helper(scope.module, 'matrix_store')}({scope.text(node.value)}, {where})"


def _place(
    scope: Scope, place: n.Element, stride: n.Expression, type: Struct, columns: bool
) -> str:
    element = scope.module.scalar(ELEMENTS[type])
    many = size_of(place.type) // size_of(ELEMENTS[type])
    pointer = f"{scope.memories[place.memory].name} + {scope.text(place.index, SUM)}"
    if place.type != ELEMENTS[type]:
        pointer = f"(threadgroup {element}*)({pointer})"
    step = f"(uint){scope.text(stride, 0)}" + (f" * {many}" if many > 1 else "")
    return f"{pointer}, {step}, {'true' if columns else 'false'}"
