"""The rules of work on tiles in stages (`ir.stages`)."""

from __future__ import annotations

from collections.abc import Mapping, Set

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir import types as t
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
    counts = (len(node.operands), len(node.numbers))
    places = len(node.places) if known.places is None else known.places
    if counts != (known.operands, known.numbers) or places != len(node.places):
        return (
            f"staged {node.op} has {known.places} places, {known.operands} operands and "
            f"{known.numbers} numbers"
        )
    if any(number < 0 for number in node.numbers):
        return f"the numbers of staged {node.op} are not negative"
    if node.op == "multiply":
        return _multiply(node, shared, spaces)
    if node.op == "take":
        return _take(node, shared, spaces)
    barriers = node.places[-1:]
    if barriers and not _is_shared(barriers[0], shared, (t.U64,)):
        return f"staged {node.op} takes an element of a shared memory of u64, without checks"
    if node.op == "prepare":
        return _prepare(node)
    if node.op == "copy":
        return _copy(node, shared, spaces)
    for operand in node.operands:
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
    if apart > 1:
        return "whether copies have threads of their own is 0 or 1"
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
    for operand in node.operands:
        if not isinstance(operand, n.Load) or not _is_shared(operand.place, shared, _ELEMENTS):
            return f"staged multiply takes elements of shared memory of {_NAMES}"
    first, second = (operand.type for operand in node.operands)
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
    if first.bits != stages.TURNED_BITS and not all(node.numbers):
        return f"staged multiply of {first} has the inner axis near in both tiles"
    by_columns = not node.numbers[1]
    wide = stages.line_of(second)
    if by_columns and columns % wide:
        return (
            f"staged multiply of tiles by inner axis has a multiple of {wide} columns, "
            f"not {columns}"
        )
    if any(number not in (0, 1) for number in node.numbers):
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


def check_sums(body: n.Block) -> None:
    """CompileError where something touches the sums of a multiplication that may not be done."""
    if any(isinstance(node, n.Staged) for node in statements_in(body)):
        _pending(body, frozenset())


def _pending(block: n.Block, pending: frozenset[str]) -> frozenset[str]:
    """The memories and variables that a multiplication may still write after a block."""
    for node in block:
        match node:
            case n.Staged(op="multiply"):
                pending |= {_name(place) for place in node.places}
            case n.Staged(op="settle", numbers=(0,)):
                pending = frozenset()
            case n.If():
                _check((node.condition,), pending, node.span)
                pending = _pending(node.then, pending) | _pending(node.otherwise, pending)
            case n.For():
                _check((node.start, node.stop), pending, node.span)
                pending = _repeated(node.body, pending)
            case n.While():
                pending = _repeated((*node.body, *node.update), pending)
                _check((node.condition,), pending, node.span)
            case _:
                _check((node,), pending, node.span)
    return pending


def _repeated(body: n.Block, pending: frozenset[str]) -> frozenset[str]:
    again = pending | _pending(body, pending)
    return again | _pending(body, again)


def _check(parts: tuple[object, ...], pending: frozenset[str], span: Span) -> None:
    if not pending:
        return
    for part in parts:
        for each in walk(part):
            if isinstance(each, (n.Element, n.Variable)) and _name(each) in pending:
                raise CompileError(
                    f"`{_name(each)}` holds sums of a multiplication that may not be done: wait "
                    "for it (settle 0) first",
                    span,
                )


def _name(place: n.Place) -> str:
    while isinstance(place, (n.Member, n.Item)):
        place = place.base
    return place.memory if isinstance(place, n.Element) else place.name
