"""The rules of work on tiles in stages (`ir.stages`)."""

from __future__ import annotations

from collections.abc import Mapping, Set

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir import types as t
from treadle.ir.matrices import FIRST
from treadle.ir.traverse import statements_in, walk

_ELEMENTS = tuple(stages.SUMS)
_NAMES = ", ".join(map(str, _ELEMENTS))
_EIGHT = 8  # bits
_FEW = 24  # columns; of 8-bit elements more are multiples of 16
_INTEGERS = (t.I32, t.I64)


def fault_of(node: n.Staged, shared: Set[str], spaces: Mapping[str, str]) -> str | None:
    """What is wrong with a step, whose parts are right; None if nothing. `shared` are the memories
    that may be shared, `spaces` those of memories that are neither buffers nor parameters."""
    known = stages.OPERATIONS.get(node.op)
    if known is None:
        return f"there is no step {node.op!r} of staged work"
    places = len(node.places) if known.places is None else known.places
    operands = len(node.operands) if known.operands is None else known.operands
    counts = (len(node.places), len(node.operands), len(node.numbers))
    if counts != (places, operands, known.numbers):
        return (
            f"staged {node.op} has {places} places, {operands} operands and {known.numbers} numbers"
        )
    if any(number < 0 for number in node.numbers):
        return f"the numbers of staged {node.op} are not negative"
    if node.op in stages.MULTIPLICATIONS:
        return _multiply(node, shared, spaces)
    if node.op == "take":
        return _take(node, shared, spaces)
    if node.op == "settle" and any(operand.type != t.F32 for operand in node.operands):
        return "staged settle takes numbers of f32"
    barriers = node.places[-1:]
    if barriers and not _is_shared(barriers[0], shared, (t.U64,)):
        return f"staged {node.op} takes an element of a shared memory of u64, without checks"
    if node.op == "prepare":
        return _prepare(node)
    if node.op == "copy":
        return _copy(node, shared, spaces)
    for operand in () if node.op == "settle" else node.operands:
        if operand.type != t.I32:
            return f"staged {node.op} takes its parity as i32, not as {operand.type}"
    return None


def _is_shared(place: n.Place, shared: Set[str], types: tuple[t.Type, ...]) -> bool:
    return (
        isinstance(place, n.Element)
        and not place.checks
        and place.memory in shared
        and place.type in types
    )


def _copy(node: n.Staged, shared: Set[str], spaces: Mapping[str, str]) -> str | None:
    if len(node.operands) not in [3 * axes for axes in stages.AXES]:
        return "staged copy takes a matrix of three to five axes: 9, 12 or 15 operands"
    target, source = node.places[0], node.operands[0]
    if not _is_shared(target, shared, _ELEMENTS):
        return (
            "staged copy goes to an element of shared memory of what is multiplied, without checks"
        )
    from_buffer = isinstance(source, n.Load) and isinstance(source.place, n.Element)
    if not from_buffer or source.place.checks or source.place.memory in spaces:  # type: ignore[union-attr]
        return "staged copy comes from an element of a buffer, without checks"
    if source.type != target.type:
        return f"staged copy goes from {source.type} to {target.type}"
    if any(operand.type not in _INTEGERS for operand in node.operands[1:]):
        return "extents, steps and places of staged copy are i32 or i64"
    lines, shared_by, apart = node.numbers
    if shared_by not in stages.CLUSTERS:
        return f"a box of staged copy is shared by one of {stages.CLUSTERS} blocks, not {shared_by}"
    if apart not in stages.CLUSTERS:
        return f"blocks that share a box are 1, 2, … ranks apart in their cluster, not {apart}"
    if lines % (8 * shared_by) or not 0 < lines <= stages.MOST_LINES:
        return f"staged copy has 8 to {stages.MOST_LINES} lines, a multiple of 8, not {lines}"
    return None


def _prepare(node: n.Staged) -> str | None:
    _, cluster, sharing, apart = node.numbers
    if cluster not in stages.CLUSTERS:
        return f"a cluster has one of {stages.CLUSTERS} blocks, not {cluster}"
    if sharing not in stages.CLUSTERS or sharing > cluster:
        return f"{sharing} blocks of a cluster of {cluster} cannot share boxes"
    fewest, most = stages.FEWEST_REGISTERS, stages.MOST_REGISTERS
    if apart > 1 and not (fewest <= apart <= most and apart % stages.REGISTER_STEP == 0):
        return (
            f"copies have threads of the groups (0), a warp (1), or leave each thread of these "
            f"{fewest} to {most} registers, a multiple of {stages.REGISTER_STEP}, not {apart}"
        )
    return None


def _take(node: n.Staged, shared: Set[str], spaces: Mapping[str, str]) -> str | None:
    source, rank = node.operands
    types = tuple(t.Vector(kind, lanes) for kind in (t.F32, t.I32) for lanes in (2, 4))
    if not isinstance(source, n.Load) or not _is_shared(source.place, shared, types):
        return "staged take takes elements of a shared memory of vec2s or vec4s of f32 or i32"
    if rank.type != t.I32:
        return f"staged take takes its rank as i32, not as {rank.type}"
    for place in node.places:
        own = not isinstance(place, n.Element) or spaces.get(place.memory) == "local"
        if place.type != source.type or not own:
            return "staged take goes to variables of the thread's own, of the elements' type"
    return None if node.places else "staged take goes somewhere"


def _multiply(node: n.Staged, shared: Set[str], spaces: Mapping[str, str]) -> str | None:
    columns = 8 * len(node.places)
    if not 0 < columns <= stages.MOST_COLUMNS:
        return f"staged multiply has 8 to {stages.MOST_COLUMNS} columns, not {columns}"
    tiles = _tiles(node)
    for operand in node.operands[: -len(tiles)]:
        held_at = _own(operand)
        local = isinstance(held_at, n.Variable) or (
            isinstance(held_at, n.Element) and spaces.get(held_at.memory) == "local"
        )
        if operand.type != FIRST or not local:
            return "staged multiply_held takes vec4<u32>s of the thread's own"
    for operand in tiles:
        if not isinstance(operand, n.Load) or not _is_shared(operand.place, shared, _ELEMENTS):
            return f"staged multiply takes elements of shared memory of {_NAMES}"
    first, second = tiles[0].type, tiles[-1].type
    assert isinstance(first, t.Scalar)
    assert isinstance(second, t.Scalar)
    if first != second and not first.bits == second.bits == _EIGHT:
        return "staged multiply takes two tiles of one type, or of 8-bit integers"
    for place in node.places:
        own = not isinstance(place, n.Element) or spaces.get(place.memory) == "local"
        if place.type != t.Vector(stages.SUMS[first], 4) or not own:
            return f"staged multiply adds to vec4<{stages.SUMS[first]}>s of the thread's own"
    if first.bits == _EIGHT and columns > _FEW and columns % (2 * _EIGHT):
        return f"staged multiply of 8-bit integers has a multiple of 16 columns, not {columns}"
    held = node.op == "multiply_held"
    near = node.numbers[:1] if held else node.numbers
    if held and (fault := _held(node, first)):
        return fault
    if first.bits != stages.TURNED_BITS and not all(near):
        return f"staged multiply of {first} has the inner axis near in both tiles"
    by_columns = not near[-1]
    wide = stages.line_of(second)
    if by_columns and columns % wide:
        return (
            f"staged multiply of tiles by inner axis has a multiple of {wide} columns, "
            f"not {columns}"
        )
    if any(number not in (0, 1) for number in near):
        return "the numbers of staged multiply say whether the inner axis is near: 0 or 1"
    return None


def check_order(body: n.Block) -> None:
    """CompileError where stages are not prepared once and before they are used, or where a
    block could end while others of its cluster still write to its memory."""
    steps = [node for node in statements_in(body) if isinstance(node, n.Staged)]
    if not steps:
        return
    first, last = steps[0], body[-1]
    if first.op != "prepare" or first not in body or sum(s.op == "prepare" for s in steps) > 1:
        raise CompileError("stages are prepared once, before all other steps", first.span)
    _, cluster, sharing, _ = first.numbers
    for node in steps:
        if node.op == "copy" and node.numbers[1] * node.numbers[2] > sharing:
            raise CompileError(
                f"a box is shared by more blocks than the {sharing} that share some", node.span
            )
        if node.op == "leave" and node is not last:
            raise CompileError("staged leave is the last statement of a kernel", node.span)
    if cluster > 1 and not (isinstance(last, n.Staged) and last.op == "leave"):
        raise CompileError(
            "blocks of a cluster wait for each other before they end: staged leave is the last "
            "statement", last.span,
        )  # fmt: skip


def _held(node: n.Staged, element: t.Scalar) -> str | None:
    if element.bits != stages.TURNED_BITS:
        return f"staged multiply_held takes 16-bit floats, not {element}"
    inner, (near, lines) = stages.INNER * (len(node.operands) - 1), node.numbers
    most = stages.LINE if near else lines
    if lines % 8 or not 0 < lines <= stages.MOST_LINES:
        return (
            f"tiles of staged multiply_held have 8 to {stages.MOST_LINES} lines, a multiple of 8, "
            f"not {lines}"
        )
    if not 0 < inner <= most:
        return f"staged multiply_held takes words of 1 to {most} elements, not {inner}"
    return None


def _tiles(node: n.Staged) -> tuple[n.Expression, ...]:
    """The tiles that a multiplication takes."""
    return node.operands[-1:] if node.op == "multiply_held" else node.operands


def _own(operand: n.Expression) -> n.Place | None:
    """Where a word of a held factor lies."""
    if isinstance(operand, n.Variable):
        return operand
    return operand.place if isinstance(operand, n.Load) else None


# The memories and variables that multiplications may still write or read, each with how many were
# begun since the last of them, at least.
_Pending = Mapping[str, int]


def check_sums(body: n.Block) -> None:
    """CompileError where something touches the sums, or the words of a held factor, of a
    multiplication that may not be done."""
    if any(isinstance(node, n.Staged) for node in statements_in(body)):
        _pending(body, {})


def _pending(block: n.Block, pending: _Pending) -> _Pending:
    """What is pending after a block."""
    for node in block:
        match node:
            case n.Staged() if node.op in stages.MULTIPLICATIONS:
                held = map(_own, node.operands[: -len(_tiles(node))])
                begun = {_name(place) for place in (*node.places, *held) if place is not None}
                pending = {name: age + 1 for name, age in pending.items()} | dict.fromkeys(begun, 0)
            case n.Staged(op="settle", numbers=(left,)):
                _check(node.operands, pending, node.span)
                pending = {name: age for name, age in pending.items() if age < left}
            case n.If():
                _check((node.condition,), pending, node.span)
                pending = _either(_pending(node.then, pending), _pending(node.otherwise, pending))
            case n.For():
                _check((node.start, node.stop), pending, node.span)
                pending = _repeated(node.body, pending)
            case n.While():
                pending = _repeated((*node.body, *node.update), pending)
                _check((node.condition,), pending, node.span)
            case _:
                _check((node,), pending, node.span)
    return pending


def _either(one: _Pending, other: _Pending) -> _Pending:
    both = {**one, **other}
    return {name: min(one.get(name, age), other.get(name, age)) for name, age in both.items()}


def _repeated(body: n.Block, pending: _Pending) -> _Pending:
    """What is pending after any number of rounds. Ages only fall, so this ends."""
    while True:
        again = _either(pending, _pending(body, pending))
        if again == pending:
            return pending
        pending = again


def _check(parts: tuple[object, ...], pending: _Pending, span: Span) -> None:
    if not pending:
        return
    for part in parts:
        for each in walk(part):
            if not isinstance(each, (n.Element, n.Variable, n.MemoryReference)):
                continue
            name = each.memory if isinstance(each, n.MemoryReference) else _name(each)
            if name in pending:
                raise CompileError(
                    f"`{name}` belongs to a multiplication that may not be done: wait for "
                    "it (settle) first",
                    span,
                )


def _name(place: n.Place) -> str:
    while isinstance(place, (n.Member, n.Item)):
        place = place.base
    return place.memory if isinstance(place, n.Element) else place.name
