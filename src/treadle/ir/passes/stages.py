"""Work on tiles in stages (`ir.stages`) for targets that have none: it happens at once, where it is
begun. Threads of the block copy elements, barriers separate filling from reading, and each thread
adds to its own sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from treadle.core.dim3 import Dim3
from treadle.core.source import Span
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir.matrices import SECOND
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_kernel, statements_in
from treadle.ir.types import COMPONENTS, F16, F32, I32, U16, U32, Scalar, Vector

_TF32_BIT, _BELOW_HALF = 13, 0xFFF  # the last bit that stays; what is less than half of it
_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000


def has_stages(kernel: n.Kernel) -> bool:
    """Whether a kernel works on tiles in stages."""
    return any(isinstance(node, n.Staged) for node in statements_in(kernel.body))


def without_stages(kernel: n.Kernel) -> n.Kernel:
    """The kernel with such work done at once. Its functions are inlined and it has a block."""
    if not has_stages(kernel):
        return kernel
    names, block = Names(kernel), kernel.block
    assert block is not None

    def change(node: Node) -> Node:
        if not isinstance(node, n.Staged):
            return node
        match node.op:
            case "claim" | "wait" | "meet":
                return n.Barrier("block", None, node.span)
            case "copy":
                return tuple(_copy(node, block, names))
            case "take":
                return tuple(_take(node))
            case "multiply":
                return tuple(_multiply(node, block, names))
            case "product":
                zeros = tuple(_cleared(place, node.span) for place in node.places)
                return (*zeros, *_multiply(node, block, names))
            case "multiply_held":
                return tuple(_multiply_held(node, block, names))
        return ()

    return rewrite_kernel(kernel, change)


def thread_number(block: Dim3) -> n.Expression:
    """The number of a thread in its block."""
    x, y, z = (n.Builtin("thread_idx", axis) for axis in range(3))
    found: n.Expression = x
    if block.y > 1 or block.z > 1:
        row = ir.add(y, ir.mul(z, block.y))
        found = ir.add(x, ir.mul(row, block.x))
    return found


def _permuted(element: Scalar, line: n.Expression, at: n.Expression) -> n.Expression:
    """Where element `at` of a line of a tile is, counted from the tile's beginning."""
    per = stages.PIECE_BYTES * 8 // element.bits
    number = ir.binary("shr", at, per.bit_length() - 1)
    piece = ir.binary("xor", number, ir.binary("and", line, 7))
    inside = ir.add(ir.mul(piece, per), ir.binary("and", at, per - 1))
    return ir.add(ir.mul(line, stages.line_of(element)), inside)


def _moved(place: n.Element, by: n.Expression) -> n.Element:
    return replace(place, index=ir.add(place.index, ir.cast(by, place.index.type)))


def _copy(node: n.Staged, block: Dim3, names: Names) -> Iterator[n.Statement]:
    """All threads copy elements of the box."""
    target, source, span = node.places[0], node.operands[0], node.span
    assert isinstance(target, n.Element)
    assert isinstance(source, n.Load)
    assert isinstance(source.place, n.Element)
    kind, element = source.place.index.type, source.type
    assert isinstance(element, Scalar)
    wide = stages.line_of(element)
    given = [n.Variable(names.fresh("tile.number"), kind) for _ in node.operands[1:]]
    for variable, operand in zip(given, node.operands[1:], strict=True):
        yield n.Declare(variable, ir.cast(operand, kind), span)
    _, extents, steps, places = stages.box_of((source, *given))
    near, far, *stacks = places
    item = n.Variable(names.fresh("tile.item"), I32)
    line = ir.binary("shr", item, wide.bit_length() - 1)
    at = ir.binary("and", item, wide - 1)
    near_at, far_at = ir.add(near, ir.cast(at, kind)), ir.add(far, ir.cast(line, kind))
    inside: n.Expression = ir.less(near_at, extents[0])
    for place, extent in zip((far_at, *stacks), extents[1:], strict=True):
        inside = ir.both(inside, ir.less(place, extent))
    offset: n.Expression = near_at
    for place, step in zip((far_at, *stacks), steps, strict=True):
        offset = ir.add(offset, ir.mul(place, step))
    to = _moved(target, _permuted(element, line, at))
    found = n.Variable(names.fresh("tile.element"), element)
    body = n.If(
        inside,
        (
            n.Declare(found, n.Load(_moved(source.place, offset), element, span), span),
            n.Assign(to, _rounded(found) if element == F32 else found, span),
        ),
        (n.Assign(to, ir.constant(0, element), span),),
        span,
    )
    first, count = thread_number(block), ir.as_expression(node.numbers[0] * wide)
    yield n.For(item, first, count, block.count, (body,), span=span)


def _rounded(value: n.Expression) -> n.Expression:
    """A number of float32 as the nearest one of TF32."""
    bits = n.Bitcast(value, U32)
    last = ir.binary("and", ir.binary("shr", bits, _TF32_BIT), 1)
    nearest = ir.binary("and", ir.add(bits, ir.add(last, _BELOW_HALF)), stages.TF32_BITS)
    is_nan = ir.binary("gt", ir.binary("and", bits, _MAGNITUDE), _INFINITY)
    return ir.select(is_nan, value, n.Bitcast(nearest, F32))


def _take(node: n.Staged) -> Iterator[n.Statement]:
    """A block is its own cluster."""
    source = node.operands[0]
    assert isinstance(source, n.Load)
    assert isinstance(source.place, n.Element)
    for at, place in enumerate(node.places):
        found = _moved(source.place, ir.as_expression(at))
        yield n.Assign(place, n.Load(found, found.type, node.span), node.span)


def _cleared(place: n.Place, span: Span) -> n.Assign:
    assert isinstance(place.type, Vector)
    zero = ir.constant(0, place.type.element)
    return n.Assign(place, n.Construct((zero,) * 4, place.type), span)


def _multiply_held(node: n.Staged, block: Dim3, names: Names) -> Iterator[n.Statement]:
    """A warp multiplies its words by fragments: a lane reads two words of the tile for each."""
    *words, tile = node.operands
    assert isinstance(tile, n.Load)
    assert isinstance(tile.place, n.Element)
    (near, lines), span, right = node.numbers, node.span, tile.place
    lane, line = (n.Variable(names.fresh(f"tile.{name}"), I32) for name in ("lane", "line"))
    yield n.Declare(lane, ir.binary("and", thread_number(block), 31), span)
    yield n.Declare(line, ir.binary("shr", lane, 2), span)
    type = tile.type
    assert isinstance(type, Scalar)
    op = "multiply_f16" if type == F16 else "multiply_bf16"

    def element(column: int, inner: n.Expression) -> n.Expression:
        at, start = (0, column) if near else divmod(column, stages.LINE)
        along = ir.add(line, start)
        moved = _permuted(type, along, inner) if near else _permuted(type, inner, along)
        found = _moved(right, ir.add(moved, at * lines * stages.LINE) if at else moved)
        return ir.cast(n.Bitcast(n.Load(found, found.type, span), U16), U32)

    for number, place in enumerate(node.places):
        for part, word in enumerate(words):
            first = ir.add(ir.mul(ir.binary("and", lane, 3), 2), 16 * part)
            factor = n.Variable(names.fresh("tile.factor"), SECOND)
            halves = []
            for start in (0, 8):
                low, high = (element(8 * number, ir.add(first, start + k)) for k in (0, 1))
                halves.append(ir.binary("or", low, ir.binary("shl", high, 16)))
            yield n.Declare(factor, n.Construct(tuple(halves), SECOND), span)
            sums = place if isinstance(place, n.Variable) else n.Load(place, place.type, span)
            total = n.Variable(names.fresh("tile.total"), place.type)
            yield n.Declare(total, None, span)
            yield n.Subgroup(op, (word, factor, sums), total, None, span)
            yield n.Assign(place, total, span)


def _multiply(node: n.Staged, block: Dim3, names: Names) -> Iterator[n.Statement]:
    """A thread adds to its sums, one element of the inner axis after the other."""
    span = node.span
    left, right = (operand.place for operand in node.operands)  # type: ignore[union-attr]
    left_near, right_near = (bool(number) for number in node.numbers)
    thread = n.Variable(names.fresh("tile.thread"), I32)
    row = n.Variable(names.fresh("tile.row"), I32)
    column = n.Variable(names.fresh("tile.column"), I32)
    inner = n.Variable(names.fresh("tile.inner"), I32)
    yield n.Declare(thread, thread_number(block), span)
    warp = ir.binary("and", ir.binary("shr", thread, 5), 3)
    lane = ir.binary("and", thread, 31)
    yield n.Declare(row, ir.add(ir.mul(warp, 16), ir.binary("shr", lane, 2)), span)
    yield n.Declare(column, ir.mul(ir.binary("and", lane, 3), 2), span)

    summed = node.places[0].type
    assert isinstance(summed, Vector)
    kind = node.operands[0].type
    assert isinstance(kind, Scalar)
    wide = stages.line_of(kind)

    def element(place: n.Element, line: n.Expression, near: bool, tile: int) -> n.Expression:
        type = place.type
        assert isinstance(type, Scalar)
        at = _permuted(type, line, inner) if near else _permuted(type, inner, line)
        moved = _moved(place, ir.add(at, tile * wide * wide) if tile else at)
        found: n.Expression = n.Load(moved, type, span)
        if type == F32:
            found = n.Bitcast(ir.binary("and", n.Bitcast(found, U32), stages.TF32_BITS), F32)
        return ir.cast(found, summed.element)

    body: list[n.Statement] = []

    def held(name: str, value: n.Expression) -> n.Variable:
        variable = n.Variable(names.fresh(name), summed.element)
        body.append(n.Declare(variable, value, span))
        return variable

    assert isinstance(left, n.Element)
    assert isinstance(right, n.Element)
    firsts = [
        held("tile.left", element(left, ir.add(row, 8 * half), left_near, 0)) for half in (0, 1)
    ]
    for number, place in enumerate(node.places):
        columns = 8 * number
        tile, start = (0, columns) if right_near else divmod(columns, wide)
        seconds = [
            held("tile.right", element(right, ir.add(column, start + k), right_near, tile))
            for k in (0, 1)
        ]
        sums = n.Variable(names.fresh("tile.sums"), place.type)
        value = place if isinstance(place, n.Variable) else n.Load(place, place.type, span)
        body.append(n.Declare(sums, value, span))
        added = [
            ir.add(ir.extract(sums, component), ir.mul(firsts[i // 2], seconds[i % 2]))
            for i, component in enumerate(COMPONENTS[:4])
        ]
        body.append(n.Assign(place, n.Construct(tuple(added), place.type), span))
    zero, depth = ir.as_expression(0), ir.as_expression(wide)
    yield n.For(inner, zero, depth, 1, tuple(body), span=span)
