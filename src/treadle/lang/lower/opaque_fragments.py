"""Fragments whose elements kernels do not see: `td.fragment(…, indexed=False)`.

Such a fragment is a local array of opaque matrices (`ir.opaque`), which are loaded from shared
memory, filled, multiplied and stored there. Nothing else guards these accesses, so a load or store
that would leave the array does not happen: the fragment is zeros then. Neither does one whose first
element or stride is not at a multiple of 16 bytes, which Vulkan's matrices need.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.matrices import FIRST
from treadle.ir.opaque import ELEMENTS, SIDE
from treadle.lang.fragments import FragmentKind
from treadle.lang.lower.arrays import static_number
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, typed
from treadle.lang.lower.values import ArrayView, TupleValue, Value, describe

_ALIGNMENT = 16  # bytes
_VECTORS = (FIRST, t.Vector(t.F32, 4))  # of 16 bytes, for the library's own kernels


def new(cx: Context, kind: FragmentKind, name: str, node: ast.AST) -> ArrayView:
    """A fragment, filled with zeros."""
    span = cx.span(node)
    down, across = kind.tiles
    memory = n.Memory(cx.unique(name or "fragment"), "local", kind.opaque, down * across, span)
    cx.memories.append(memory)
    count = n.Constant(down * across, t.I32, span)
    array = ArrayView(memory.name, kind.opaque, (count,), count, fragment=kind)
    fill(cx, array, ir.constant(0, ELEMENTS[kind.opaque]), node)
    return array


def part(cx: Context, own: ArrayView, given: dict[str, Value], node: ast.AST) -> ArrayView:
    """`fragment.part(i, j)`: the part of 16 x 16 there, as a fragment."""
    kind = own.fragment
    assert kind is not None
    down, across = kind.tiles
    numbers = [static_number(cx, given[name]) for name in ("i", "j")]
    i, j = (each if isinstance(each, int) else -1 for each in numbers)
    if not 0 <= i < down or not 0 <= j < across:
        raise cx.error(
            f"the parts of {kind} are those of part(i, j) with constant i below {down} and j below "
            f"{across}",
            node,
        )
    one = n.Constant(1, t.I32)
    first = _first(own) + i * across + j
    small = replace(kind, rows=SIDE, columns=SIDE)
    at = n.Constant(first, t.I32)
    return replace(own, extents=(one,), size=one, offset=at, fragment=small)


def _first(own: ArrayView) -> int:
    """Where the parts of a fragment, which may be a part of another, begin."""
    return int(own.offset.value) if isinstance(own.offset, n.Constant) else 0


def fill(cx: Context, own: ArrayView, value: Value, node: ast.AST) -> None:
    """`fragment.fill(value)`."""
    assert own.fragment is not None
    number = cx.spill(cast(cx, typed(cx, value, node), ELEMENTS[own.fragment.opaque], node), "fill")
    down, across = own.fragment.tiles
    for at in range(down * across):
        _receive(cx, own, at, "opaque_fill", (number,), node)


def multiply(
    cx: Context, own: ArrayView, first: ArrayView, second: ArrayView, node: ast.AST
) -> None:
    """`sums.multiply_add(a, b)`."""
    assert own.fragment is not None
    assert first.fragment is not None
    down, across = own.fragment.tiles
    deep = first.fragment.tiles[1]
    for i in range(down):
        for j in range(across):
            for k in range(deep):
                at = i * across + j
                parts = ((first, i * deep + k), (second, k * across + j), (own, at))
                given = tuple(n.Load(_part(*part), part[0].element) for part in parts)
                _receive(cx, own, at, "opaque_multiply", given, node)


def move(
    cx: Context,
    name: str,
    own: ArrayView,
    array: ArrayView,
    index: Value,
    stride: Value,
    turned: bool,
    node: ast.AST,
) -> None:
    """`load` and `store`."""
    kind = own.fragment
    assert kind is not None
    _check_array(cx, name, kind, array, node)
    pitch: n.Expression
    if array.ndim == 1:
        places = [_number(cx, index, node)]
        pitch = _number(cx, stride, node)
    else:
        assert isinstance(index, TupleValue)
        places = [_number(cx, each, node) for each in index.items]
        pitch = array.extents[1]
    per = max(_ALIGNMENT // t.size_of(array.element), 1)
    for number in (places[-1], pitch):
        if (_known(number) or 0) % per:
            raise cx.error(
                f"the place of {kind} in memory, and the distance of its lines, are multiples of "
                f"{_ALIGNMENT} bytes: {per} elements of td.{array.element}, not {_known(number)}",
                node,
            )
    if _inside(kind, array, places, pitch, turned) == n.FALSE:
        # Compilers refuse constant places outside, even where nothing gets there.
        if name == "load":
            fill(cx, own, ir.constant(0, ELEMENTS[kind.opaque]), node)
        return
    if not cx.lowering.checked:
        _move_all(cx, name, own, array, places, pitch, turned, node)
        return
    # All lanes use what the first one says.
    places, pitch = [_agreed(cx, each, node) for each in places], _agreed(cx, pitch, node)
    inside = _inside(kind, array, places, pitch, turned)
    for number in (places[-1], pitch):
        if per > 1 and _known(number) is None:
            aligned = ir.equal(ir.binary("and", number, per - 1), 0)
            inside = aligned if inside == n.TRUE else ir.both(inside, aligned)
    if inside == n.TRUE:
        _move_all(cx, name, own, array, places, pitch, turned, node)
        return
    span = cx.span(node)
    agreed = cx.temporary(t.BOOL, span, "inside")
    cx.emit(n.Subgroup("vote_all", (inside,), agreed, None, span))
    with cx.block() as then:
        _move_all(cx, name, own, array, places, pitch, turned, node)
    with cx.block() as otherwise:
        if name == "load":
            fill(cx, own, ir.constant(0, ELEMENTS[kind.opaque]), node)
    cx.emit(n.If(agreed, tuple(then), tuple(otherwise), span))


def _check_array(
    cx: Context, name: str, kind: FragmentKind, array: ArrayView, node: ast.AST
) -> None:
    shared = {memory.name for memory in cx.memories if memory.space == "shared"}
    if array.memory not in shared or array.strides is not None:
        raise cx.error(
            f"a fragment with indexed=False is loaded from td.shared arrays of the same function, "
            f"and stored there: copy to one; {name} was given {describe(array)}",
            node,
        )
    element = ELEMENTS[kind.opaque]
    if array.element != element and array.element not in _VECTORS:
        raise cx.error(
            f"{kind} takes an array of td.{element} for its {name}, not {describe(array)}", node
        )


def _number(cx: Context, value: Value, node: ast.AST) -> n.Expression:
    return cx.spill(cast(cx, typed(cx, value, node), t.I32, node), "at")


def _agreed(cx: Context, value: n.Expression, node: ast.AST) -> n.Expression:
    """A number as the first lane has it."""
    if isinstance(value, n.Constant):
        return value
    span = cx.span(node)
    result = cx.temporary(t.I32, span, "agreed")
    cx.emit(n.Subgroup("shuffle", (value, n.Constant(0, t.I32)), result, None, span))
    return result


def _many(kind: FragmentKind, array: ArrayView) -> int:
    """The elements of the matrix in one of the array."""
    return t.size_of(array.element) // t.size_of(ELEMENTS[kind.opaque])


def _inside(
    kind: FragmentKind,
    array: ArrayView,
    places: list[n.Expression],
    pitch: n.Expression,
    turned: bool,
) -> n.Expression:
    """Whether all elements of a fragment are inside an array."""
    far, near = (kind.columns, kind.rows) if turned else (kind.rows, kind.columns)
    near //= _many(kind, array)
    conditions: list[n.Expression] = []
    if array.ndim == 1:
        (start,) = places
        last = ir.add(ir.add(start, ir.mul(pitch, far - 1)), near)
        size = cast_size(array.size)
        # A stride beyond the array would wrap around.
        conditions += [ir.binary("ge", start, 0), ir.binary("ge", pitch, 0)]
        conditions += [ir.binary("le", pitch, size), ir.binary("le", start, size)]
        conditions.append(ir.binary("le", last, size))
    else:
        for place, extent, length in zip(places, array.extents, (far, near), strict=True):
            conditions += [ir.binary("ge", place, 0), ir.binary("le", place, cast_size(extent))]
            conditions.append(ir.binary("le", ir.add(place, length), cast_size(extent)))
    return _all(conditions)


def cast_size(size: n.Expression) -> n.Expression:
    """An extent of shared memory, which 32 bits count."""
    return size if size.type == t.I32 else ir.cast(size, t.I32)


def _all(conditions: list[n.Expression]) -> n.Expression:
    """Whether all hold, without those that constants decide."""
    left = []
    for each in conditions:
        known = _value(each)
        if known is False:
            return n.FALSE
        if known is None:
            left.append(each)
    result: n.Expression = n.TRUE
    for each in left:
        result = each if result == n.TRUE else ir.both(result, each)
    return result


def _value(condition: n.Expression) -> bool | None:
    """What a comparison of constants, sums and products of them gives."""
    assert isinstance(condition, n.Binary)
    left, right = _known(condition.left), _known(condition.right)
    if left is None or right is None:
        return None
    return left >= right if condition.op == "ge" else left <= right


def _known(value: n.Expression) -> int | None:
    if isinstance(value, n.Constant):
        return int(value.value)
    if isinstance(value, n.Binary) and value.op in ("add", "mul"):
        left, right = _known(value.left), _known(value.right)
        if left is not None and right is not None:
            return left + right if value.op == "add" else left * right
    return None


def _move_all(
    cx: Context,
    name: str,
    own: ArrayView,
    array: ArrayView,
    places: list[n.Expression],
    pitch: n.Expression,
    turned: bool,
    node: ast.AST,
) -> None:
    kind = own.fragment
    assert kind is not None
    span = cx.span(node)
    start = places[0]
    if array.ndim > 1:
        start = ir.add(ir.mul(places[0], pitch), places[1])
    start = cx.spill(start, "start")
    for at, offset in enumerate(_offsets(kind, array, pitch, turned)):
        index = ir.add(start, offset) if offset is not None else start
        place = n.Element(array.memory, index, array.element, (), span)
        if name == "load":
            op = "opaque_columns" if turned else "opaque_rows"
            _receive(cx, own, at, op, (n.Load(place, array.element), pitch), node)
        else:
            value = n.Load(_part(own, at), own.element)
            cx.emit(n.OpaqueStore(place, pitch, value, turned, span))


def _offsets(
    kind: FragmentKind, array: ArrayView, pitch: n.Expression, turned: bool
) -> Iterator[n.Expression | None]:
    """How far the parts of a fragment are from its first element, in elements of the array."""
    many = _many(kind, array)
    down, across = kind.tiles
    for i in range(down):
        for j in range(across):
            far, near = (j, i) if turned else (i, j)
            along = n.Constant(near * SIDE // many, t.I32) if near else None
            steps: n.Expression | None = None
            if far:
                steps = ir.mul(pitch, far * SIDE)
            if steps is None or along is None:
                yield steps or along
            else:
                yield ir.add(steps, along)


def _part(own: ArrayView, at: int) -> n.Element:
    return n.Element(own.memory, n.Constant(_first(own) + at, t.I32), own.element)


def _receive(
    cx: Context,
    own: ArrayView,
    at: int,
    op: str,
    operands: tuple[n.Expression, ...],
    node: ast.AST,
) -> None:
    """Part `at` becomes the result of an operation."""
    span = cx.span(node)
    result = cx.temporary(own.element, span, "part")
    cx.emit(n.Subgroup(op, operands, result, None, span))
    cx.emit(n.Assign(_part(own, at), result, span))
