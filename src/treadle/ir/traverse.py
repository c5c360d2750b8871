"""Walking and rewriting kernels without writing the walk again in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, get_args

from treadle.ir import nodes as n

Node = Any  # a statement, an expression, a place, a check, an argument

_PARTS = (n.Check, n.MemoryReference, n.Formatted)  # of expressions, places and statements
_NODES = frozenset((*get_args(n.Expression), *get_args(n.Place), *get_args(n.Statement), *_PARTS))
_CHILDLESS = frozenset((n.Constant, n.Variable, n.Builtin, n.MemoryReference))
_LEAVES = frozenset(
    {"span", "type", "name", "op", "memory", "function", "message", "scope", "spec", "end"}
)


@cache
def _child_fields(kind: type) -> tuple[str, ...]:
    if kind in _CHILDLESS:
        return ()
    return tuple(f.name for f in fields(kind) if f.name not in _LEAVES)


# Every pass goes through these functions, many times a kernel: they ask for exact types, which is
# several times quicker than `isinstance` with so many classes.


def children(node: Node) -> list[Node]:
    """The nodes directly inside a node, in evaluation order (blocks flattened)."""
    found: list[Node] = []
    for name in _child_fields(type(node)):  # type: ignore[arg-type]
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple:
            found += [part for part in value if type(part) in _NODES]
        elif kind in _NODES:
            found.append(value)
    return found


def walk(root: Node | n.Block) -> Iterator[Node]:
    """A node (or every statement of a block) and everything inside it, outermost first."""
    stack = list(reversed(root)) if isinstance(root, tuple) else [root]
    pop, push, nodes, values = stack.pop, stack.append, _NODES, _values_reversed
    while stack:
        node = pop()
        yield node
        kind = type(node)
        if kind in _CHILDLESS:
            continue
        get = values(kind)  # type: ignore[arg-type]
        if get is not None:
            for value in get(node):
                kind = type(value)
                if kind in nodes:
                    push(value)
                elif kind is tuple:
                    stack += [part for part in value[::-1] if type(part) in nodes]


@cache
def _values_reversed(kind: type) -> Callable[[Node], tuple[Any, ...]] | None:
    """What gets the values of the fields that may have children, the last one first."""
    names = _child_fields(kind)[::-1]
    if not names:
        return None
    if len(names) == 1:
        return lambda node: (getattr(node, names[0]),)
    return attrgetter(*names)


def statements_in(block: n.Block) -> Iterator[n.Statement]:
    """Every statement of a block, those inside others too, outermost first. Much quicker than
    `walk`: expressions are not entered."""
    stack = list(reversed(block))
    while stack:
        statement = stack.pop()
        yield statement
        match statement:
            case n.If():
                stack.extend(reversed((*statement.then, *statement.otherwise)))
            case n.For():
                stack.extend(reversed(statement.body))
            case n.While():
                stack.extend(reversed((*statement.body, *statement.update)))


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with `change` applied to the nodes directly inside it, in evaluation order; the
    same node if nothing changed. In a block, a tuple from `change` is spliced in."""
    own = type(node)
    if own in _CHILDLESS:
        return node
    updates: dict[str, Any] | None = None
    for name in _child_fields(own):  # type: ignore[arg-type]
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple:
            new = _map_tuple(value, change) if value else value
        elif kind in _NODES:
            new = change(value)
        else:
            continue
        if new is not value:
            if updates is None:
                updates = {}
            updates[name] = new
    return node if updates is None else replace(node, **updates)


def _map_tuple(parts: tuple[Any, ...], change: Callable[[Node], Node]) -> tuple[Any, ...]:
    result: list[Any] = []
    changed = False
    for part in parts:
        new = change(part) if type(part) in _NODES else part
        changed = changed or new is not part
        if isinstance(new, tuple):
            result.extend(new)
        else:
            result.append(new)
    return tuple(result) if changed else parts


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with `change` applied to every node inside it and then to itself.

    `change` gets each node after its children were rewritten, and returns it or another in its
    place. For a statement it may return a tuple of statements, which is spliced into the block.
    """
    return _visitor(change)(node)


def rewrite_block(block: tuple[Any, ...], change: Callable[[Node], Node]) -> tuple[Any, ...]:
    """Every node of a tuple rewritten as `rewrite` does; the same tuple if nothing changed."""
    return _map_tuple(block, _visitor(change))


def _visitor(change: Callable[[Node], Node]) -> Callable[[Node], Node]:
    childless = _CHILDLESS

    def visit(node: Node) -> Node:
        if type(node) in childless:
            return change(node)
        return change(map_children(node, visit))

    return visit


def rewrite_kernel(kernel: n.Kernel, change: Callable[[Node], Node]) -> n.Kernel:
    """The kernel with `rewrite` applied to its body and to the bodies of its functions."""
    functions = tuple(
        replace(function, body=rewrite_block(function.body, change))
        for function in kernel.functions
    )
    return replace(kernel, body=rewrite_block(kernel.body, change), functions=functions)


def root_of(place: n.Place) -> n.Variable | n.Element:
    """The variable or memory element that a place is a part of."""
    while isinstance(place, (n.Member, n.Item)):
        place = place.base
    return place
