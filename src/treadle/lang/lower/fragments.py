"""Matrix fragments: `td.fragment`, its methods, and the operations that these are made of."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import FunctionType

from treadle.core.dtypes import BY_SHORT_NAME
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.matrices import FIRST, operand_types
from treadle.lang import fragment_methods as methods
from treadle.lang import fragments as library
from treadle.lang.fragments import FragmentKind
from treadle.lang.lower import opaque_fragments
from treadle.lang.lower.arrays import check_number_of, own_array, place_of, static_number
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import typed
from treadle.lang.lower.expressions import in_order
from treadle.lang.lower.functions import call_with
from treadle.lang.lower.values import (
    ArrayView,
    FragmentMethod,
    PythonObject,
    TupleValue,
    Value,
    describe,
    spelled,
)
from treadle.lang.rules import Literal
from treadle.lang.source import source_of

NOTHING = PythonObject(None, "None")
_NAMES = {
    "fill": ("value",),
    "multiply_add": ("a", "b"),
    "part": ("i", "j"),
    "row": ("i",),
    "column": ("i",),
    "load": ("array", "index", "stride", "layout", "aligned"),
    "store": ("array", "index", "stride", "layout"),
}
_USAGE = {
    "fill": "fragment.fill(value)",
    "multiply_add": "sums.multiply_add(a, b)",
    "part": "fragment.part(i, j)",
    "row": "fragment.row(i)",
    "column": "fragment.column(i)",
    "load": 'fragment.load(array, index, stride, layout="row", aligned=False)',
    "store": 'fragment.store(array, index, stride, layout="row")',
}
_LEAST = {"fragment": 4, "load": 2, "store": 2}


def new(cx: Context, node: ast.Call, name: str) -> Value:
    """`td.fragment(rows, columns, dtype, use=…)`, filled with zeros."""
    given = _arguments(cx, node, "fragment", ("rows", "columns", "dtype", "use", "indexed"))
    extents = (static_number(cx, given["rows"]), static_number(cx, given["columns"]))
    dtype, use = (_object(given[each]) for each in ("dtype", "use"))
    indexed = _object(given.get("indexed", Literal(True)))
    kind = library.kind_of(*extents, dtype, use, indexed)
    if isinstance(kind, str):
        raise cx.error(f"td.fragment(rows, columns, dtype, use): {kind}", node)
    if not kind.indexed:
        return opaque_fragments.new(cx, kind, name, node)
    held = PythonObject(kind.held, f"td.{kind.held.short}")
    array = own_array(cx, "local", Literal(kind.words), held, name or "fragment", node)
    _run(cx, methods.filler(kind), [array, Literal(0)], node)
    return replace(array, fragment=kind)


def call_method(cx: Context, method: FragmentMethod, node: ast.Call) -> Value:
    """A call of a fragment's method."""
    array, kind = method.array, method.array.fragment
    assert kind is not None
    given = _arguments(cx, node, method.name, _NAMES[method.name])
    own = array if not kind.indexed else replace(array, fragment=None)
    match method.name:
        case "fill" if not kind.indexed:
            opaque_fragments.fill(cx, own, given["value"], node)
            return NOTHING
        case "part" if kind.indexed:
            raise cx.error(f"part is a method of fragments with indexed=False, not of {kind}", node)
        case "part":
            return opaque_fragments.part(cx, own, given, node)
        case "row" | "column" if not kind.indexed:
            raise cx.error(f"{kind} has no places of its numbers: store it to td.shared", node)
        case "fill":
            return _run(cx, methods.filler(kind), [own, given["value"]], node)
        case "row" | "column":
            axis = 0 if method.name == "row" else 1
            if kind.use != "accumulator":
                raise cx.error(f"{method.name} is a method of accumulators, not of {kind}", node)
            check_number_of(cx, kind, given["i"], node)
            return _run(cx, methods.place_finder(kind, axis), [given["i"]], node)
        case "multiply_add":
            return _multiply(cx, own, kind, given, node)
    return _memory(cx, method.name, own, kind, given, node)


def _multiply(
    cx: Context, own: ArrayView, kind: FragmentKind, given: dict[str, Value], node: ast.Call
) -> Value:
    factors: list[ArrayView] = []
    for name in ("a", "b"):
        value = given[name]
        if not isinstance(value, ArrayView) or value.fragment is None:
            raise cx.error(
                f"{_USAGE['multiply_add']} takes two fragments, and {name} is {describe(value)}",
                node,
            )
        factors.append(value)
    first, second = (value.fragment for value in factors)
    assert first is not None
    assert second is not None
    fault = library.multiplied_fault(kind, first, second)
    if fault is not None:
        raise cx.error(fault, node)
    if not kind.indexed:
        opaque_fragments.multiply(cx, own, factors[0], factors[1], node)
        return NOTHING
    plain = [replace(value, fragment=None) for value in factors]
    return _run(cx, methods.multiplier(first, second), [own, *plain], node)


def _memory(
    cx: Context,
    name: str,
    own: ArrayView,
    kind: FragmentKind,
    given: dict[str, Value],
    node: ast.Call,
) -> Value:
    """`load` and `store`."""
    array, index = given["array"], given["index"]
    asked = _object(given.get("layout", PythonObject("row", "'row'")))
    if asked not in library.LAYOUTS:
        raise cx.error(f"layout is 'row' or 'column', not {asked!r}", node)
    layout: library.Layout = "column" if asked == "column" else "row"
    if not isinstance(array, ArrayView) or array.ndim not in (1, 2) or array.fragment is not None:
        raise cx.error(
            f"a fragment's {name} takes an array of one or two axes, not {describe(array)}", node
        )
    if kind.indexed and (not isinstance(array.element, t.Scalar) or array.element == t.BOOL):
        raise cx.error(f"{kind} has numbers, and this is {describe(array)}", node)
    if name == "store" and kind.use != "accumulator":
        raise cx.error(f"only accumulators are stored, not {kind}", node)
    stride = given.get("stride", Literal(0))
    if array.ndim == 2:
        if "stride" in given:
            raise cx.error("an array of two axes has its own stride: leave it out", node)
        if not isinstance(index, TupleValue) or len(index.items) != 2:
            raise cx.error(
                f"the index into an array of two axes is (row, column), not {describe(index)}", node
            )
    elif "stride" not in given or isinstance(index, TupleValue):
        raise cx.error(
            "an array of one axis needs the index of the first element, and the stride between "
            f"rows (between columns for layout='column'): {_USAGE[name]}",
            node,
        )
    if not kind.indexed:
        if _flag(cx, given.get("aligned"), node):
            raise cx.error("aligned=True is for fragments that are indexed: leave it out", node)
        opaque_fragments.move(cx, name, own, array, index, stride, layout == "column", node)
        return NOTHING
    assert isinstance(array.element, t.Scalar)
    dtype = BY_SHORT_NAME[array.element.name]
    if name == "store":
        made = methods.storer(kind, layout, array.ndim, dtype)
    elif _flag(cx, given.get("aligned"), node):
        fault = library.aligned_fault(kind, layout, kind.dtype == dtype.short)
        if array.strides is not None:
            fault = "aligned=True needs an array whose elements follow each other in memory"
        if fault is not None:
            raise cx.error(fault, node)
        made = methods.aligned_loader(kind, layout, array.ndim)
    else:
        made = methods.loader(kind, layout, array.ndim)
    return _run(cx, made, [own, array, index, stride], node)


def _flag(cx: Context, value: Value | None, node: ast.AST) -> bool:
    if value is None:
        return False
    if not isinstance(value, Literal) or not isinstance(value.value, bool):
        raise cx.error(f"aligned is True or False, not {describe(value)}", node)
    return value.value


def _run(cx: Context, function: FunctionType, values: list[Value], node: ast.AST) -> Value:
    return call_with(cx, function, source_of(function), values, node, unused=False)


def _object(value: Value) -> object:
    """An argument that is one of Python's objects; what describes it if it is not."""
    return value.value if isinstance(value, (PythonObject, Literal)) else describe(value)


def _arguments(cx: Context, node: ast.Call, name: str, names: tuple[str, ...]) -> dict[str, Value]:
    """The arguments of a call, by position or by name."""
    usage = _USAGE.get(name, "td.fragment(rows, columns, dtype, use)")
    if len(node.args) > len(names):
        raise cx.error(f"{usage} takes {len(names)} arguments, not {len(node.args)}", node)
    given: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in names or keyword.arg in given:
            twice = "twice " if keyword.arg in given else ""
            raise cx.error(f"{usage} does not take {keyword.arg} {twice}".rstrip(), node)
        given[keyword.arg] = keyword.value
    for needed in names[: _LEAST.get(name, len(names))]:
        if needed not in given:
            raise cx.error(f"{usage} needs {needed}", node)
    return dict(zip(given, in_order(cx, list(given.values())), strict=True))


# --- what the methods are made of -----------------------------------------------------------------


def exchange(cx: Context, op: str, values: list[Value], node: ast.Call) -> Value:
    """An operation on matrices that the lanes of a subgroup hold together."""
    operands = []
    for value, type in zip(values, operand_types(op), strict=True):
        found = typed(cx, value, node)
        if found.type != type:
            raise cx.error(f"td.{op} takes {spelled(type)}, not {spelled(found.type)}", node)
        operands.append(found)
    result = cx.temporary(operand_types(op)[-1], cx.span(node), op)
    cx.emit(n.Subgroup(op, tuple(operands), result, span=cx.span(node)))
    return result


def sixteen_bytes(cx: Context, array: Value, index: Value, node: ast.Call) -> Value:
    """Four words that begin at an element whose offset in memory is a multiple of 16 bytes. They
    are zeros where that element is outside the array."""
    if not isinstance(array, ArrayView) or not isinstance(array.element, (t.Scalar, t.Vector)):
        raise cx.error(f"td.sixteen_bytes takes an array of numbers, not {describe(array)}", node)
    place = place_of(cx, array, index, node)
    assert isinstance(place, n.Element)
    shift = (16 // t.size_of(array.element)).bit_length() - 1
    type = array.index_type
    if cx.lowering.asserts and cx.lowering.checked:
        rest = ir.binary("and", place.index, n.Constant((1 << shift) - 1, type))
        message = "aligned=True loads from places that are multiples of 16 bytes in memory"
        cx.emit(n.Assert(ir.equal(rest, n.Constant(0, type)), message, span=cx.span(node)))
    at = n.Binary("shr", place.index, n.Constant(shift, type), type)
    return n.Load(replace(place, index=at, type=FIRST), FIRST, cx.span(node))


def number_at(cx: Context, array: Value, index: Value, node: ast.Call) -> Value:
    """The number at an index that counts numbers, of an array of numbers or of vectors."""
    if not isinstance(array, ArrayView) or not isinstance(array.element, (t.Scalar, t.Vector)):
        raise cx.error(f"td.number_at takes an array of numbers, not {describe(array)}", node)
    place = place_of(cx, of_numbers(cx, array, node), index, node)
    return n.Load(place, place.type, cx.span(node))


def of_numbers(cx: Context, array: ArrayView, node: ast.AST) -> ArrayView:
    """An array of vectors as one of their numbers, which its extents and its offset count, too."""
    if not isinstance(array.element, t.Vector):
        return array
    if array.strides is not None or array.ndim != 1:
        raise cx.error("the numbers of vectors are those of contiguous arrays of one axis", node)
    count = array.element.count
    return replace(
        array,
        element=array.element.element,
        extents=tuple(ir.mul(extent, count) for extent in array.extents),
        size=ir.mul(array.size, count),
        offset=None if array.offset is None else ir.mul(array.offset, count),
    )
