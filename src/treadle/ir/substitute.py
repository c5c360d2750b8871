"""Putting expressions in the place of variables, and memories in the place of memories."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.traverse import rewrite_block


def substitute(
    block: n.Block, variables: Mapping[str, n.Expression], memories: Mapping[str, str] | None = None
) -> n.Block:
    """The block with every variable named in `variables` replaced by its expression, and every
    memory named in `memories` by the other. A variable that the block declares or assigns can
    only be replaced by another variable: that renames it."""
    return rewrite_block(block, _change(variables, memories or {}))


def assigned_instead(block: n.Block, names: Collection[str]) -> n.Block:
    """The block with assignments in the place of the declarations of some variables, which are
    declared before it, as zeros."""

    def change(node: Any) -> Any:
        if isinstance(node, n.Declare) and node.variable.name in names:
            if node.value is None:
                return ()
            return n.Assign(node.variable, node.value, node.span)
        return node

    return rewrite_block(block, change) if names else block


def _change(variables: Mapping[str, n.Expression], memories: Mapping[str, str]) -> Any:
    def change(node: Any) -> Any:
        kind = node.__class__
        if kind is n.Variable:
            return variables.get(node.name, node)
        if kind is n.Element and node.memory in memories:
            return n.Element(memories[node.memory], node.index, node.type, node.checks, node.span)
        if kind is n.MemoryReference and node.memory in memories:
            return n.MemoryReference(memories[node.memory], node.span)
        return node

    return change
