"""Local arrays that become variables.

An array that a thread indexes with anything but constants lives in memory; one whose every index
is a constant can live in registers. Compilers for GPUs often miss that, so it is done here: each
element of such an array becomes a variable of its own. Run it after unrolling and folding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.opaque import ELEMENTS
from treadle.ir.passes.split_memories import split_memories
from treadle.ir.traverse import rewrite_block, walk
from treadle.ir.types import Scalar, Type, Vector

LARGEST = 512
"""Elements of an array that may become variables."""


def scalarize(kernel: n.Kernel) -> n.Kernel:
    """The kernel with its constantly indexed local arrays as variables `name.0`, `name.1`, …"""
    body, memories = _scalarize(kernel.body, kernel.memories)
    functions = []
    for function in kernel.functions:
        inner, kept = _scalarize(function.body, function.memories)
        functions.append(replace(function, body=inner, memories=kept))
    kernel = replace(kernel, body=body, memories=memories, functions=tuple(functions))
    return split_memories(kernel)


def _scalarize(
    block: n.Block, memories: tuple[n.Memory, ...]
) -> tuple[n.Block, tuple[n.Memory, ...]]:
    chosen = {
        memory.name: memory for memory in memories if memory.space == "local" and memory.length
    }
    chosen = {name: m for name, m in chosen.items() if m.length and m.length <= LARGEST}
    for node in walk(block):
        if isinstance(node, n.Element) and node.memory in chosen:
            if not _is_constant_access(node, chosen[node.memory]):
                del chosen[node.memory]
        elif isinstance(node, n.MemoryReference):
            chosen.pop(node.memory, None)
        elif isinstance(node, n.Atomic):
            root = _root(node.place)
            if isinstance(root, n.Element):
                chosen.pop(root.memory, None)
        elif isinstance(node, n.Item) and isinstance(_root(node), n.Element):
            chosen.pop(_root(node).memory, None)
    if not chosen:
        return block, memories
    taken = {node.name for node in walk(block) if isinstance(node, n.Variable)}
    taken |= {memory.name for memory in memories}
    variables = {memory.name: _variables(memory, taken) for memory in chosen.values()}
    declarations = tuple(
        n.Declare(variable, span=variable.span)
        for elements in variables.values()
        for variable in elements
    )

    def change(node: Any) -> Any:
        if isinstance(node, n.Element) and node.memory in chosen:
            assert isinstance(node.index, n.Constant)
            return replace(variables[node.memory][int(node.index.value)], span=node.span)
        if isinstance(node, n.Load):
            return _as_value(node.place) or node
        return node

    return (*declarations, *rewrite_block(block, change)), tuple(
        memory for memory in memories if memory.name not in chosen
    )


def _is_constant_access(element: n.Element, memory: n.Memory) -> bool:
    if element.type != memory.element or not _fits_variables(memory.element):
        return False
    if not isinstance(element.index, n.Constant):
        return False
    if not 0 <= element.index.value < (memory.length or 0):
        return False
    return all(
        isinstance(check.index, n.Constant)
        and isinstance(check.bound, n.Constant)
        and 0 <= check.index.value < check.bound.value
        for check in element.checks
    )


def _fits_variables(type: Type) -> bool:
    """Whether values are whole: what may have fields is left in memory."""
    return isinstance(type, (Scalar, Vector)) or type in ELEMENTS


def _variables(memory: n.Memory, taken: set[str]) -> list[n.Variable]:
    """A variable for each element, of a name that nothing else has: another function's variable
    that was inlined may be called as an element would be."""
    found: list[n.Variable] = []
    for index in range(memory.length or 0):
        name = f"{memory.name}.{index}"
        while name in taken:
            name += ".own"
        taken.add(name)
        found.append(n.Variable(name, memory.element, memory.span))
    return found


def _root(place: Any) -> Any:
    while isinstance(place, (n.Member, n.Item)):
        place = place.base
    return place


def _as_value(place: Any) -> n.Expression | None:
    """The value at a place that has become (a component of) a variable; None for memory."""
    if isinstance(place, n.Variable):
        return place
    if isinstance(place, n.Member):
        base = _as_value(place.base)
        return base and n.Extract(base, place.name, place.type, place.span)
    return None
