"""Small matrices in kernels: made of numbers, indexed, and what is computed of them.

A matrix is a struct of its rows. `lang.matrices` has the formulas.
"""

from __future__ import annotations

import ast
from typing import Any

from treadle.core.dtypes import BY_SHORT_NAME
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import matrices
from treadle.lang.lower import operators
from treadle.lang.lower.arrays import load, part_of, place_of, static_number
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, number, typed
from treadle.lang.lower.values import (
    EXPRESSIONS,
    ArrayView,
    FixedArrayPlace,
    PythonObject,
    TupleValue,
    Value,
    describe,
    spelled,
)
from treadle.lang.lower.variable_items import item_of_tuple, item_of_vector
from treadle.lang.rules import Literal


def shape_of(value: Any) -> tuple[int, int] | None:
    """The rows and columns of a value, if it is a matrix."""
    return t.matrix_shape(value.type) if isinstance(value, EXPRESSIONS) else None


def _row_type(type: t.Type) -> t.Vector:
    assert isinstance(type, t.Struct)
    row = type.fields[0].type
    assert isinstance(row, t.Vector)
    return row


def rows_of(cx: Context, value: n.Expression, node: ast.AST) -> list[n.Expression]:
    """The rows of a matrix, in variables."""
    row = _row_type(value.type)
    count = len(value.type.fields)  # type: ignore[union-attr]
    kept = value if isinstance(value, n.Load) else cx.spill(value, "matrix")
    found = [part_of(cx, kept, f"row{i}", row, node) for i in range(count)]
    return [cx.spill(each, "row") for each in found if isinstance(each, EXPRESSIONS)]


def _numbers(cx: Context, row: n.Expression, node: ast.AST) -> list[n.Expression]:
    assert isinstance(row.type, t.Vector)
    names = t.COMPONENTS[: row.type.count]
    return [n.Extract(row, name, row.type.element, cx.span(node)) for name in names]


def _of_rows(cx: Context, rows: list[n.Expression], node: ast.AST) -> n.Construct:
    row = rows[0].type
    assert isinstance(row, t.Vector)
    type = t.matrix_type(len(rows), row.count, row.element)
    return n.Construct(tuple(rows), type, cx.span(node))


def _vector(cx: Context, numbers: list[n.Expression], node: ast.AST) -> n.Construct:
    element = numbers[0].type
    assert isinstance(element, t.Scalar)
    return n.Construct(tuple(numbers), t.Vector(element, len(numbers)), cx.span(node))


def make(cx: Context, target: Any, values: list[Value], node: ast.Call) -> Value:
    """A matrix of its rows, of its numbers row by row, of an array, of one number, which is put on
    the diagonal, or of nothing."""
    type: t.Struct = target.__treadle_struct__
    rows, columns = target.rows, target.columns
    row = _row_type(type)
    parts = [part for value in values for part in _flat(cx, value, (rows, columns), node)]
    if len(parts) <= 1:
        one = cx.spill(cast(cx, parts[0] if parts else Literal(0), row.element, node))
        zero = cast(cx, Literal(0), row.element, node)
        parts = [one if i == j else zero for i in range(rows) for j in range(columns)]
    if len(parts) != rows * columns:
        raise cx.error(
            f"{spelled(type)} has {rows * columns} numbers, and {len(parts)} are given: give all, "
            "row by row, or one for the diagonal",
            node,
        )
    numbers = [cast(cx, each, row.element, node) for each in parts]
    lines = [numbers[i * columns : (i + 1) * columns] for i in range(rows)]
    return _of_rows(cx, [_vector(cx, line, node) for line in lines], node)


def _flat(cx: Context, value: Value, shape: tuple[int, int], node: ast.AST) -> list[Value]:
    """The numbers in an argument."""
    if isinstance(value, TupleValue):
        return [part for item in value.items for part in _flat(cx, item, shape, node)]
    if isinstance(value, FixedArrayPlace):
        return [_at(cx, value, Literal(i), node) for i in range(value.type.length)]
    if isinstance(value, ArrayView):
        if value.ndim == 2:
            places = [TupleValue((Literal(i), Literal(j)))
                      for i in range(shape[0]) for j in range(shape[1])]  # fmt: skip
            return [_at(cx, value, place, node) for place in places]
        if value.ndim == 1 and isinstance(value.element, t.Scalar):
            return [_at(cx, value, Literal(i), node) for i in range(shape[0] * shape[1])]
        raise cx.error(f"a matrix is made of numbers, not of {describe(value)}", node)
    found = number(cx, value, node)
    if shape_of(found) is not None:
        assert not isinstance(found, Literal)
        return [part for row in rows_of(cx, found, node) for part in _numbers(cx, row, node)]
    if not isinstance(found, Literal) and isinstance(found.type, t.Vector):
        return list(_numbers(cx, cx.spill(found), node))
    return [found]


def _at(
    cx: Context, array: ArrayView | FixedArrayPlace, index: Value, node: ast.AST
) -> n.Expression:
    return cx.spill(typed(cx, load(cx, place_of(cx, array, index, node), node), node))


# --- operators -----------------------------------------------------------------------------------


def binary(cx: Context, op: str, left: Value, right: Value, node: ast.AST) -> Value:
    """`left op right`, of numbers and vectors, too."""
    shapes = [shape_of(left), shape_of(right)]
    if shapes == [None, None]:
        if op == "@":
            for each in (left, right):
                number(cx, each, node)
            raise cx.refusal("MatMult", node)
        return operators.binary(cx, op, left, right, node)
    first, second = (_spilled(cx, each, node) for each in (left, right))
    if op == "@":
        return _product(cx, first, second, node)
    known = [shape for shape in shapes if shape is not None]
    vector = any(isinstance(getattr(each, "type", None), t.Vector) for each in (first, second))
    fault = matrices.elementwise_fault(op, known, vector)
    if fault is not None:
        raise cx.error(fault, node)
    sides = [
        rows_of(cx, each, node) if shape is not None else [each] * known[0][0]  # type: ignore[arg-type]
        for each, shape in zip((first, second), shapes, strict=True)
    ]
    pairs = zip(*sides, strict=True)
    rows = [operators.binary(cx, op, one, other, node) for one, other in pairs]
    return _of_rows(cx, rows, node)  # type: ignore[arg-type]


def _spilled(cx: Context, value: Value, node: ast.AST) -> n.Expression | Literal:
    """An operand that is used more than once."""
    found = number(cx, value, node)
    if isinstance(found, Literal) or (isinstance(found, n.Load) and shape_of(found) is not None):
        return found  # of a matrix in memory, rows are loaded
    return cx.spill(found)


def _product(
    cx: Context, left: n.Expression | Literal, right: n.Expression | Literal, node: ast.AST
) -> Value:
    extents: list[tuple[int, ...]] = []
    for each in (left, right):
        shape = shape_of(each)
        if shape is None:
            type = None if isinstance(each, Literal) else each.type
            if not isinstance(type, t.Vector):
                raise cx.error(
                    f"@ is of matrices and vectors, and this is {describe(each)}: write * for a "
                    "product with a number",
                    node,
                )
            extents.append((type.count,))
        else:
            extents.append(shape)
    fault = matrices.product_fault(*extents)
    if fault is not None:
        raise cx.error(fault, node)
    assert not isinstance(left, Literal)
    assert not isinstance(right, Literal)
    rows = rows_of(cx, left, node) if len(extents[0]) == 2 else [left]
    inner = rows_of(cx, right, node) if len(extents[1]) == 2 else _numbers(cx, right, node)
    lines = [_numbers(cx, row, node) for row in rows]
    found = matrices.product(lines, inner, _doing(cx, node))
    if len(extents[0]) == 1:
        result: n.Expression = found[0]
        return result
    return _of_rows(cx, found, node) if len(extents[1]) == 2 else _vector(cx, found, node)


def _doing(cx: Context, node: ast.AST) -> matrices.Do:
    def do(op: str, left: Any, right: Any) -> n.Expression:
        one = Literal(left) if isinstance(left, int) else left
        other = Literal(right) if isinstance(right, int) else right
        made = operators.binary(cx, op, one, other, node)
        assert isinstance(made, EXPRESSIONS)
        return cx.spill(made)

    return do


def unary(cx: Context, op: type[ast.unaryop], value: Value, node: ast.AST) -> Value:
    """`-m`, and `+x`, `~x` of numbers and vectors."""
    if shape_of(value) is None:
        return operators.unary(cx, op, value, node)
    assert isinstance(value, EXPRESSIONS)
    if op is ast.Invert:
        raise cx.error("~ does not work on matrices", node)
    rows = [operators.unary(cx, op, row, node) for row in rows_of(cx, value, node)]
    return _of_rows(cx, rows, node)  # type: ignore[arg-type]


# --- parts ---------------------------------------------------------------------------------------


def item(cx: Context, matrix: n.Expression, index: Value, node: ast.AST) -> Value:
    """`m[i]`, a row, or `m[i, j]`, a number."""
    row = _row_type(matrix.type)
    first, second = indices(cx, matrix.type, index, node)
    at = static_number(cx, first)
    if at is None:
        rows: tuple[Value, ...] = tuple(rows_of(cx, matrix, node))
        found = item_of_tuple(cx, rows, first, node)
    else:
        found = part_of(cx, matrix, row_name(cx, matrix.type, at, node), row, node)
    if second is None:
        return found
    assert isinstance(found, EXPRESSIONS)
    column = static_number(cx, second)
    if column is None:
        return item_of_vector(cx, found, second, node)
    return part_of(cx, found, column_name(cx, matrix.type, column, node), row.element, node)


def indices(cx: Context, type: t.Type, index: Value, node: ast.AST) -> tuple[Value, Value | None]:
    """The row and the column of an index; None for a whole row."""
    if not isinstance(index, TupleValue):
        return index, None
    if len(index.items) != 2:
        raise cx.error(
            f"{spelled(type)} takes one index, of a row, or two, not {len(index.items)}", node
        )
    return index.items[0], index.items[1]


def row_name(cx: Context, type: t.Type, at: Any, node: ast.AST) -> str:
    """The field of a row."""
    shape = t.matrix_shape(type)
    assert shape is not None
    return f"row{_inside(cx, type, at, shape[0], 'rows', node)}"


def column_name(cx: Context, type: t.Type, at: Any, node: ast.AST) -> str:
    """The component of a row."""
    shape = t.matrix_shape(type)
    assert shape is not None
    return t.COMPONENTS[_inside(cx, type, at, shape[1], "columns", node)]


def _inside(cx: Context, type: t.Type, at: Any, count: int, what: str, node: ast.AST) -> int:
    if isinstance(at, (bool, float)) or not 0 <= at < count:
        raise cx.error(
            f"{spelled(type)} has {count} {what}, from 0 to {count - 1}, and the index is {at}",
            node,
        )
    return int(at)


# --- attributes and methods ----------------------------------------------------------------------


def attribute(cx: Context, matrix: n.Expression, name: str, node: ast.AST) -> Value | None:
    """`m.T` and `m.shape`; None for other names."""
    shape = shape_of(matrix)
    assert shape is not None
    if name == "shape":
        return TupleValue(tuple(map(Literal, shape)))
    if name == "dtype":
        dtype = BY_SHORT_NAME[_row_type(matrix.type).element.name]
        return PythonObject(dtype, f"td.{dtype.short}")
    if name != "T":
        return None
    lines = [_numbers(cx, row, node) for row in rows_of(cx, matrix, node)]
    return _of_rows(cx, [_vector(cx, list(line), node) for line in zip(*lines, strict=True)], node)


def call_method(cx: Context, matrix: n.Expression, name: str, node: ast.Call) -> Value:
    """`m.determinant()` and `m.inverse()`."""
    if node.args or node.keywords:
        raise cx.error(f"{name}() takes no arguments", node)
    return _computed(cx, matrix, name, node)


def call_function(
    cx: Context, callee: PythonObject, name: str, values: list[Value], node: ast.Call
) -> Value:
    """`np.linalg.det(m)` and `np.linalg.inv(m)`."""
    if len(values) != 1 or shape_of(values[0]) is None:
        given = ", ".join(map(describe, values))
        raise cx.error(f"{callee.name} takes a small matrix in a kernel, not {given}", node)
    return _computed(cx, values[0], name, node)  # type: ignore[arg-type]


def _computed(cx: Context, matrix: n.Expression, name: str, node: ast.AST) -> Value:
    shape = shape_of(matrix)
    assert shape is not None
    lines = [_numbers(cx, row, node) for row in rows_of(cx, matrix, node)]
    try:
        matrices.check_square(shape, name)
        if name == "determinant":
            return matrices.determinant(lines, _doing(cx, node))  # type: ignore[no-any-return]
        matrices.check_floats(_row_type(matrix.type).element.is_float, spelled(matrix.type))
    except TypeError as error:
        raise cx.error(str(error), node) from None
    found = matrices.inverse(lines, _doing(cx, node))
    return _of_rows(cx, [_vector(cx, line, node) for line in found], node)
