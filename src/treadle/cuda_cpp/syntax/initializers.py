"""Initializers and arguments: values, and lists of them."""

from __future__ import annotations

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.cursor import Cursor


def value(c: Cursor) -> tree.Expression | tree.InitializerList:
    """An initializer-clause: an expression without commas, or a braced list."""
    return braces(c) if c.texts[c.index] == "{" else c.grammar.assignment(c)


def braces(c: Cursor) -> tree.InitializerList:
    """`{a, {b, c}, .x = d}`."""
    span = c.span
    c.index += 1
    c.deeper()
    outside, c.in_angles = c.in_angles, False
    items: list[tree.Expression | tree.InitializerList] = []
    designators: list[str | None] = []
    while c.texts[c.index] != "}":
        designator = None
        if c.texts[c.index] == "." and c.kinds[c.index + 1] == IDENTIFIER:
            designator = c.texts[c.index + 1]
            c.index += 2
            if c.texts[c.index] != "{":
                c.expect("=", "after the member's name")
        designators.append(designator)
        items.append(expanded(c, value(c)))
        if not c.accept(","):
            break
    c.expect("}", "at the end of the list")
    c.in_angles = outside
    c.levels -= 1
    some = any(designator is not None for designator in designators)
    return tree.InitializerList(tuple(items), tuple(designators) if some else (), span)


def expanded(
    c: Cursor, item: tree.Expression | tree.InitializerList
) -> tree.Expression | tree.InitializerList:
    """The item, or its pack expansion if `...` follows."""
    if c.texts[c.index] != "..." or isinstance(item, tree.InitializerList):
        return item
    span = c.span
    c.index += 1
    return tree.PackExpansion(item, span)


def arguments(c: Cursor, close: str) -> tuple[tree.Expression | tree.InitializerList, ...]:
    """Arguments up to the closing bracket, which is consumed."""
    found: list[tree.Expression | tree.InitializerList] = []
    if c.texts[c.index] == close:
        c.index += 1
        return ()
    outside, c.in_angles = c.in_angles, False
    while True:
        found.append(expanded(c, value(c)))
        text = c.texts[c.index]
        if text == ",":
            c.index += 1
            continue
        if text != close:
            raise c.problem(f"expected ',' or '{close}' after the argument, found {c.found()}")
        c.index += 1
        c.in_angles = outside
        return tuple(found)
