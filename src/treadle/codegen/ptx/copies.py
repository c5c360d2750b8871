"""Copies from global to shared memory that happen while the thread goes on: `cp.async`, since
compute capability 8.0. Older cards copy at once, and wait for nothing."""

from __future__ import annotations

from treadle.codegen.nvidia import COPIES_SINCE, copied_from
from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.expressions import Expressions
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import align_of, size_of

_SINCE = (COPIES_SINCE, (7, 0))
_WHOLE_LINES = 16  # bytes, that pass the first cache by


def copied(body: Expressions, node: n.Assign) -> bool:
    """Print a later copy. False for what the card does not copy later: an older card, a value that
    is not an element of a buffer (or zeros, by a condition), one that is not aligned."""
    source, condition = copied_from(node.value)
    size = size_of(node.value.type)
    assert isinstance(node.place, n.Element)
    if source is None or align_of(node.value.type) < size or body.must_wait(source):
        return False
    if node.place.checks:
        return False
    root = root_of(source)
    assert isinstance(root, n.Element)
    storage = body.storage(root)
    if storage.space != "global" or storage.volatile or storage.acquired:
        return False
    e = body.e
    if not e.module.has(*_SINCE):
        return False
    operands = [str(size)]
    guards = [
        guard for guard in (body.guard(source), condition and body.scalar(condition)) if guard
    ]
    if guards:
        inside = guards[0] if len(guards) == 1 else e.op("pred", "and.pred", *guards)
        operands.append(e.op("b32", "selp.b32", str(size), "0", inside))
    places = [memory.operand(e, body.address(place)) for place in (node.place, source)]
    cached = "cg" if size == _WHOLE_LINES else "ca"
    e.do(f"cp.async.{cached}.shared.global", *places, *operands)
    return True


def group(e: Emitter, node: n.Copies) -> None:
    """End a group of copies, or wait for groups."""
    if not e.module.has(*_SINCE):
        return
    if node.left is None:
        e.do("cp.async.commit_group")
    else:
        e.do("cp.async.wait_group", str(node.left))
