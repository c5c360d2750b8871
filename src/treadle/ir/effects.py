"""Which functions do more than compute a value from their arguments and from memory."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.ir import nodes as n
from treadle.ir.traverse import root_of, walk

_EFFECTS: dict[type, str] = {
    n.Atomic: "changes memory",
    n.Barrier: "waits at a barrier",
    n.Fence: "orders memory",
    n.Subgroup: "exchanges values among threads",
    n.OpaqueStore: "changes memory",
    n.Clock: "reads the clock",
    n.Copies: "waits for copies",
    n.Staged: "waits for tiles",
    n.Print: "prints",
    n.Assert: "asserts",
}


def effect_of(statement: n.Statement) -> str | None:
    """What a statement itself does to the world, as a verb for messages; None if nothing."""
    if isinstance(statement, n.Assign):
        return "changes memory" if isinstance(root_of(statement.place), n.Element) else None
    return _EFFECTS.get(type(statement))


def effects(functions: Iterable[n.Function]) -> dict[str, str]:
    """The functions that have an effect, themselves or through those they call, with a verb that
    names it. Callees come before callers in `functions`, as in a kernel. A store to the function's
    own local memory is not an effect: no caller can see it."""
    found: dict[str, str] = {}
    for function in functions:
        own = {memory.name for memory in function.memories if memory.space == "local"}
        for node in walk(function.body):
            if isinstance(node, n.Assign) and _memory_of(node.place) in own:
                continue
            called = isinstance(node, (n.Call, n.CallStatement))
            effect = found.get(node.function) if called else effect_of(node)
            if effect is not None:
                found[function.name] = effect
                break
    return found


def _memory_of(place: n.Place) -> str | None:
    root = root_of(place)
    return root.memory if isinstance(root, n.Element) else None


def ends(body: tuple[n.Statement, ...]) -> bool:
    """Whether control can't fall off the end of a block."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, n.Return):
        return True
    if isinstance(last, n.If):
        return ends(last.then) and ends(last.otherwise)
    if isinstance(last, n.While) and last.condition == n.TRUE:
        return not _breaks(last.body)
    return False


def _breaks(body: tuple[n.Statement, ...]) -> bool:
    """Whether a loop's body breaks out of that loop."""
    for statement in body:
        if isinstance(statement, n.Break):
            return True
        if isinstance(statement, n.If) and (
            _breaks(statement.then) or _breaks(statement.otherwise)
        ):
            return True
    return False
