"""Unrolling of loops that are marked `unroll`.

A `For` with `unroll` set and constant bounds becomes copies of its body, with the loop variable a
constant in each. Variables that the body declares get a name of their own in each copy. A loop
with a `break` or `continue` of its own, or with too many copies, stays a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.opaque import ELEMENTS
from treadle.ir.traverse import rewrite_block, statements_in, walk
from treadle.ir.types import Struct

LARGEST = 4096
"""Statements that one unrolled loop may become."""

_MOST_AROUND_VIEWS = 64  # iterations of a loop that is not marked `unroll`


def unroll(kernel: n.Kernel) -> n.Kernel:
    """The kernel with its loops marked `unroll` unrolled, innermost first."""
    functions = tuple(
        replace(function, body=_unroll_block(function.body, _is_marked))
        for function in kernel.functions
    )
    return replace(kernel, body=_unroll_block(kernel.body, _is_marked), functions=functions)


def unroll_around_views(kernel: n.Kernel) -> n.Kernel:
    """The kernel with those loops of its body unrolled that index local memories which are seen
    as several types, or hold structs. Then such memories can be variables (`split_memories`).
    Opaque matrices are whole values, and those of all lanes may be in one memory, which loops over
    lanes index."""
    local = {m.name: m.element for m in kernel.memories if m.space == "local"}
    structs = {name for name, element in local.items() if isinstance(element, Struct)}
    seen = {name for name in structs if local[name] not in ELEMENTS}
    if local:
        seen |= {
            node.memory
            for node in walk(kernel.body)
            if isinstance(node, n.Element) and local.get(node.memory, node.type) != node.type
        }
    if not seen:
        return kernel

    def is_around(loop: n.For) -> bool:
        if len(iterations(loop) or ()) > _MOST_AROUND_VIEWS:
            return False
        return any(isinstance(node, n.Element) and node.memory in seen for node in walk(loop.body))

    return replace(kernel, body=_unroll_block(kernel.body, is_around))


def _is_marked(loop: n.For) -> bool:
    return loop.unroll


def _unroll_block(block: n.Block, is_wanted: Callable[[n.For], bool]) -> n.Block:
    taken = declared_names(block)

    def change(node: Any) -> Any:
        if isinstance(node, n.For) and is_wanted(node):
            return _copies(node, taken)
        return node

    return rewrite_block(block, change)


def declared_names(block: n.Block) -> set[str]:
    """The variables that a block declares, loop variables too."""
    return {
        node.variable.name for node in statements_in(block) if isinstance(node, (n.Declare, n.For))
    }


def _copies(loop: n.For, taken: set[str]) -> n.For | n.Block:
    values = iterations(loop)
    if values is None or leaves_loop(loop.body):
        return loop
    if len(values) * sum(1 for _ in statements_in(loop.body)) > LARGEST:
        return loop
    result: list[n.Statement] = []
    for value in values:
        constant = n.Constant(value, loop.variable.type, loop.variable.span)  # type: ignore[arg-type]
        # A block of its own would end the life of what the copy declares; names are unique, so
        # letting it live on is harmless.
        result.extend(copy_body(loop.body, loop.variable.name, constant, taken))
    return tuple(result)


def copy_body(body: n.Block, variable: str, value: n.Expression, taken: set[str]) -> n.Block:
    """A loop's body with a value for its variable, and with new names for what it declares."""
    names = {
        node.variable.name: _fresh(node.variable.name, taken)
        for node in statements_in(body)
        if isinstance(node, (n.Declare, n.For))
    }
    return _substitute(body, variable, value, names)


def iterations(loop: n.For) -> range | None:
    """The values that a loop's variable takes, if they are known."""
    if not (isinstance(loop.start, n.Constant) and isinstance(loop.stop, n.Constant)):
        return None
    return range(int(loop.start.value), int(loop.stop.value), loop.step)


def leaves_loop(block: n.Block) -> bool:
    """Whether a `break` or `continue` in the block belongs to the loop around it."""
    for statement in block:
        match statement:
            case n.Break() | n.Continue():
                return True
            case n.If() if leaves_loop(statement.then) or leaves_loop(statement.otherwise):
                return True
    return False


def _fresh(name: str, taken: set[str]) -> str:
    count = 1
    while f"{name}.{count}" in taken:
        count += 1
    taken.add(f"{name}.{count}")
    return f"{name}.{count}"


def _substitute(
    block: n.Block, variable: str, value: n.Expression, names: Mapping[str, str]
) -> n.Block:
    def change(node: Any) -> Any:
        if isinstance(node, n.Variable):
            if node.name == variable:
                return value
            if node.name in names:
                return replace(node, name=names[node.name])
        if isinstance(node, n.Binary):
            return _fold(node)
        return node

    return rewrite_block(block, change)


def _fold(node: n.Binary) -> n.Expression:
    """Index arithmetic on constants, so that the nested loops' elements are known at once."""
    left, right = node.left, node.right
    if not (isinstance(left, n.Constant) and isinstance(right, n.Constant)):
        return node
    if isinstance(left.value, float) or isinstance(right.value, float):
        return node
    operation = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}.get(node.op)
    if operation is None or left.type.bits < 32:
        return node
    value = operation(int(left.value), int(right.value))
    fits = -(2**31) <= value < 2**31
    return replace(left, value=value) if fits and (value >= 0 or left.type.is_signed) else node
