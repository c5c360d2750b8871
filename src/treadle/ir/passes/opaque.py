"""Opaque matrices for targets that have none: fields of words in the layout of `ir.matrices`.

Each lane loads and stores its elements one by one, and two operations of 16 x 8 sums multiply.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.matrices import FIRST, SECOND
from treadle.ir.opaque import ELEMENTS, OPAQUE_FIRST, OPAQUE_SECOND
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_kernel
from treadle.ir.types import COMPONENTS, F32, U16, U32, Scalar, Struct, Vector, size_of

_PAIR = 2  # elements in a word


def uses_opaque(kernel: n.Kernel) -> bool:
    """Whether a kernel has opaque matrices: they are in memories of its threads."""
    owners: tuple[n.Kernel | n.Function, ...] = (kernel, *kernel.functions)
    return any(memory.element in ELEMENTS for owner in owners for memory in owner.memories)


def without_opaque(kernel: n.Kernel) -> n.Kernel:
    """The kernel with loads, stores and products of opaque matrices made of words."""
    if not uses_opaque(kernel):
        return kernel
    names = Names(kernel)

    def change(node: Node) -> Node:
        if isinstance(node, n.OpaqueStore):
            return tuple(_stored(node, names))
        if not isinstance(node, n.Subgroup) or node.op not in n.OPAQUE_OPERATIONS:
            return node
        match node.op:
            case "opaque_multiply":
                return tuple(_multiplied(node, names))
            case "opaque_fill":
                return tuple(_filled(node, names))
        return tuple(_loaded(node, names))

    return rewrite_kernel(kernel, change)


def _lane(op: str, by: int) -> n.Expression:
    return ir.binary(op, n.Builtin("lane"), by)


def _held(value: n.Expression, name: str, names: Names) -> tuple[n.Variable, n.Declare]:
    """A variable for what is used several times."""
    variable = n.Variable(names.fresh(name), value.type)
    return variable, n.Declare(variable, value)


def _starts(type: Struct) -> list[tuple[int, int]]:
    """The rows and columns that the parts of a lane are from its first one: those of words of two
    for a factor, of numbers for sums, in the order of the fields."""
    if type == OPAQUE_FIRST:
        return [(0, 0), (8, 0), (0, 8), (8, 8)]
    if type == OPAQUE_SECOND:
        return [(0, 0), (8, 0), (0, 8), (8, 8)]
    return [(row, 8 * half + column) for half in (0, 1) for row in (0, 8) for column in (0, 1)]


class _Elements:
    """Where a lane's elements of a matrix are in memory."""

    def __init__(
        self, place: n.Element, stride: n.Expression, type: Struct, columns: bool, names: Names
    ) -> None:
        element = ELEMENTS[type]
        # Bits are moved, so that the array may be of any type.
        self.type: Scalar = F32 if element == F32 else U16
        self.memory, self.columns = place.memory, columns
        many = size_of(place.type) // size_of(element)  # of the matrix in one of the array
        group, quarter = _lane("shr", 2), _lane("and", 3)
        twice = ir.mul(quarter, 2)
        row, column = (twice, group) if type == OPAQUE_SECOND else (group, twice)
        far, near = (column, row) if columns else (row, column)
        scaled = ir.mul(stride, many) if many > 1 else stride
        self.stride, held = _held(scaled, "matrix.stride", names)
        start = ir.mul(place.index, many) if many > 1 else place.index
        begin = ir.add(ir.add(start, _like(near, start)), _like(ir.mul(far, self.stride), start))
        self.start, first = _held(begin, "matrix.start", names)
        self.declared = (held, first)

    def at(self, row: int, column: int) -> n.Element:
        """The element that is so many rows and columns from the lane's first one."""
        far, near = (column, row) if self.columns else (row, column)
        index: n.Expression = self.start
        if far:
            index = ir.add(index, _like(ir.mul(self.stride, far), index))
        return n.Element(self.memory, ir.add(index, near) if near else index, self.type)


def _like(value: n.Expression, other: n.Expression) -> n.Expression:
    return value if value.type == other.type else ir.cast(value, other.type)


def _loaded(node: n.Subgroup, names: Names) -> Iterator[n.Statement]:
    first, stride = node.operands
    type = node.result.type
    assert isinstance(first, n.Load)
    assert isinstance(first.place, n.Element)
    assert isinstance(type, Struct)
    elements = _Elements(first.place, stride, type, node.op == "opaque_columns", names)
    yield from elements.declared
    parts: list[n.Expression] = []
    # The two elements of a word are neighbours along the inner axis.
    down, right = (1, 0) if type == OPAQUE_SECOND else (0, 1)
    for row, column in _starts(type):
        place = elements.at(row, column)
        part: n.Expression = n.Load(place, place.type)
        if elements.type == U16:
            other = elements.at(row + down, column + right)
            part = _word(part, n.Load(other, other.type))
        variable, declared = _held(part, "matrix.part", names)
        yield declared
        parts.append(variable)
    yield n.Assign(node.result, _made(type, parts), node.span)


def _word(low: n.Expression, high: n.Expression) -> n.Expression:
    return ir.binary("or", n.Cast(low, U32), ir.binary("shl", n.Cast(high, U32), 16))


def _made(type: Struct, parts: list[n.Expression]) -> n.Expression:
    """A matrix of its lane's parts, in order."""
    fields: list[n.Expression] = []
    for each in type.fields:
        assert isinstance(each.type, Vector)
        fields.append(n.Construct(tuple(parts[: each.type.count]), each.type))
        parts = parts[each.type.count :]
    return n.Construct(tuple(fields), type)


def _filled(node: n.Subgroup, names: Names) -> Iterator[n.Statement]:
    (value,) = node.operands
    type = node.result.type
    assert isinstance(type, Struct)
    if ELEMENTS[type] != F32:
        bits, declared = _held(n.Bitcast(value, U16), "matrix.bits", names)
        yield declared
        value = _word(bits, bits)
    part, declared = _held(value, "matrix.part", names)
    yield declared
    yield n.Assign(node.result, _made(type, [part] * len(_starts(type))), node.span)


def _multiplied(node: n.Subgroup, names: Names) -> Iterator[n.Statement]:
    first, second, sums = node.operands
    halves: list[n.Expression] = []
    for field in ("left", "right"):
        total = n.Variable(names.fresh("matrix.total"), ir.extract(sums, field).type)
        words = (n.Extract(first, "words", FIRST), n.Extract(second, field, SECOND))
        yield n.Declare(total, None, node.span)
        given = (*words, ir.extract(sums, field))
        yield n.Subgroup("multiply_f16", given, total, None, node.span)
        halves.append(total)
    yield n.Assign(node.result, n.Construct(tuple(halves), node.result.type), node.span)


def _stored(node: n.OpaqueStore, names: Names) -> Iterator[n.Statement]:
    type = node.value.type
    assert isinstance(type, Struct)
    elements = _Elements(node.place, node.stride, type, node.columns, names)
    yield from elements.declared
    value, declared = _held(node.value, "matrix.value", names)
    yield declared
    starts = iter(_starts(type))
    for each in type.fields:
        assert isinstance(each.type, Vector)
        whole = n.Extract(value, each.name, each.type)
        for component in COMPONENTS[: each.type.count]:
            yield from _stored_part(ir.extract(whole, component), elements, next(starts), type)


def _stored_part(
    part: n.Expression, elements: _Elements, start: tuple[int, int], type: Struct
) -> Iterator[n.Statement]:
    row, column = start
    if elements.type != U16:
        yield n.Assign(elements.at(row, column), part)
        return
    down, right = (1, 0) if type == OPAQUE_SECOND else (0, 1)
    for at in range(_PAIR):
        bits = ir.binary("shr", part, 16 * at) if at else part
        yield n.Assign(elements.at(row + down * at, column + right * at), n.Cast(bits, U16))
