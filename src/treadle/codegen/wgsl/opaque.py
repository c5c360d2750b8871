"""Opaque matrices as WGSL's subgroup matrices, which Tint has as an extension."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.codegen.records import Target
from treadle.codegen.wgsl.dialects import DIALECTS
from treadle.codegen.wgsl.matrix_parts import Parts, parts_of
from treadle.codegen.wgsl.scope import PRIMARY, Scope
from treadle.ir import nodes as n
from treadle.ir.opaque import ELEMENTS, LOADS, Unit, unit_of
from treadle.ir.passes.access import buffer_access
from treadle.ir.passes.opaque import uses_opaque
from treadle.ir.traverse import statements_in
from treadle.ir.types import Struct, size_of

_NEEDS = frozenset({"tensor_cores", "subgroups", "float16"})


def has_opaque(kernel: n.Kernel, target: Target) -> bool:
    """Whether a kernel's opaque matrices are printed as subgroup matrices. The arrays that these
    are loaded from must be declared with the type that is loaded."""
    has = target.features & DIALECTS[target.dialect].features
    if _NEEDS - has or not target.limits.subgroup_size or not uses_opaque(kernel):
        return False
    if unit_of(target.matrix_units) is None:
        return False
    access = buffer_access(kernel)
    moved = {place.memory for place in _places(kernel)}
    return all(len(access[name].elements) == 1 and not access[name].atomic for name in moved)


def has_operations(kernel: n.Kernel) -> bool:
    """Whether a lowered kernel still has opaque matrices."""
    return any(
        isinstance(node, n.Subgroup) and node.op in n.OPAQUE_OPERATIONS
        for node in statements_in(kernel.body)
    )


def _places(kernel: n.Kernel) -> Iterator[n.Element]:
    for node in statements_in(kernel.body):
        if isinstance(node, n.OpaqueStore):
            yield node.place
        elif isinstance(node, n.Subgroup) and node.op in LOADS:
            (first, _) = node.operands
            assert isinstance(first, n.Load)
            assert isinstance(first.place, n.Element)
            yield first.place


def operation(scope: Scope, node: n.Subgroup) -> None:
    """Print a load, a fill or a product."""
    scope.module.require("tensor_cores", node.op, node.span)
    unit = scope.module.unit
    assert unit is not None
    assert isinstance(node.result.type, Struct)
    result, parts = scope.name(node.result.name), parts_of(node.result.type, unit)
    if node.op == "opaque_multiply":
        _multiply(scope, node, result, unit)
        return
    if node.op == "opaque_fill":
        value = scope.text(node.operands[0])
        for i, j in parts.each():
            scope.emit(f"{parts.name(result, i, j)} = {parts.type}({value});")
        return
    first, stride = node.operands
    assert isinstance(first, n.Load)
    assert isinstance(first.place, n.Element)
    turned = node.op == "opaque_columns"
    major = "col_major" if turned else "row_major"
    at = _Offsets(scope, first.place, stride, node.result.type, parts, turned)
    for i, j in parts.each():
        loaded = f"subgroupMatrixLoad<{parts.type}, {major}>"
        scope.emit(f"{parts.name(result, i, j)} = {loaded}({at.arguments(i, j)});")


def store(scope: Scope, node: n.OpaqueStore) -> None:
    """Print a store."""
    unit = scope.module.unit
    assert unit is not None
    type = node.value.type
    assert isinstance(type, Struct)
    parts = parts_of(type, unit)
    value = scope.text(node.value, PRIMARY)
    major = "col_major" if node.columns else "row_major"
    at = _Offsets(scope, node.place, node.stride, type, parts, node.columns)
    for i, j in parts.each():
        memory, *numbers = at.parts(i, j)
        given = ", ".join((memory, numbers[0], parts.name(value, i, j), numbers[1]))
        scope.emit(f"subgroupMatrixStore<{major}>({given});")


class _Offsets:
    """Where the parts of a matrix are in memory, in elements of the array."""

    def __init__(
        self,
        scope: Scope,
        place: n.Element,
        stride: n.Expression,
        type: Struct,
        parts: Parts,
        turned: bool,
    ) -> None:
        self.memory = f"&{scope.plans[place.memory].variable}"
        self.index = f"u32({scope.text(place.index)})"
        self.stride = f"u32({scope.text(stride)})"
        self.turned, self.form = turned, parts
        self.many = size_of(place.type) // size_of(ELEMENTS[type])

    def parts(self, i: int, j: int) -> tuple[str, str, str]:
        """The array, the offset and the stride of one part."""
        row, column = i * self.form.rows, j * self.form.columns
        far, near = (column, row) if self.turned else (row, column)
        offset = self.index
        if far:
            offset += f" + {far}u * {self.stride}"
        if near:
            offset += f" + {near // self.many}u"
        return self.memory, offset, self.stride

    def arguments(self, i: int, j: int) -> str:
        """The same as text."""
        return ", ".join(self.parts(i, j))


def _multiply(scope: Scope, node: n.Subgroup, result: str, unit: Unit) -> None:
    values = [scope.text(operand, PRIMARY) for operand in node.operands]
    types = [operand.type for operand in node.operands]
    first, second, sums = (parts_of(type, unit) for type in types if isinstance(type, Struct))
    for i, j in sums.each():
        total = sums.name(values[2], i, j)
        into = sums.name(result, i, j)
        for k in range(first.across):
            given = (first.name(values[0], i, k), second.name(values[1], k, j), total)
            scope.emit(f"{into} = subgroupMatrixMultiplyAccumulate({', '.join(given)});")
            total = into
