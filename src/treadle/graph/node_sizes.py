"""The sizes in nodes: taken out for a graph's key, and put into nodes for a plan with symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from treadle.graph.node import CONSTANT, JOIN, PRODUCT, VIEW, WRITE, Node
from treadle.graph.parts import is_part
from treadle.graph.views import View

_ALIGNED = 4  # elements that GPUs load at once

# The parts of arrays that a graph sees, by array and first element.
Begins = dict[tuple[int, int], int]


def _of_view(node: Node, sizes: list[int], source: int, begins: Begins) -> Any:
    """Where a part begins is neither a size nor in the key, but which parts begin at the same
    element and how that is aligned."""
    shape, strides, offset = node.detail
    if node.op == WRITE:
        sizes += shape
    sizes += strides
    if is_part(node):
        number = begins.setdefault((source, offset), len(begins))
        aligned = 0 if node.device.traits.serial_threads else offset % _ALIGNED
        return len(shape), number, aligned
    sizes.append(offset)
    return len(shape)


def _of_numbers(node: Node, sizes: list[int], source: int, begins: Begins) -> Any:
    before = len(sizes)
    _flatten(node.detail, sizes)
    return len(sizes) - before


def _flatten(numbers: tuple[Any, ...], sizes: list[int]) -> None:
    for each in numbers:
        if isinstance(each, tuple):
            _flatten(each, sizes)
        else:
            sizes.append(each)


# The operations with sizes in their details. The functions add the sizes of a node to others, and
# return the rest of the detail, for a key.
WITH_SIZES: dict[str, Callable[[Node, list[int], int, Begins], Any]] = {
    VIEW: _of_view,
    WRITE: _of_view,
    JOIN: _of_numbers,
    PRODUCT: _of_numbers,
}


def with_sizes(node: Node, numbers: Iterator[Any]) -> tuple[tuple[Any, ...], Any]:
    """The shape and the detail of a pending node with other numbers, in the order of a key."""
    shape = tuple(islice(numbers, len(node.shape)))
    detail = node.detail
    if node.op == CONSTANT or node.op not in WITH_SIZES:
        return shape, detail
    if node.op in (VIEW, WRITE):
        axes = len(detail.shape)
        seen = tuple(islice(numbers, axes)) if node.op == WRITE else shape
        strides = tuple(islice(numbers, axes))
        return shape, View(seen, strides, detail.offset if is_part(node) else next(numbers))
    return shape, _filled(detail, numbers)


def _filled(template: tuple[Any, ...], numbers: Iterator[Any]) -> Any:
    """A (named) tuple of tuples and numbers, with others."""
    found = [
        _filled(each, numbers) if isinstance(each, tuple) else next(numbers) for each in template
    ]
    return type(template)(*found) if hasattr(template, "_fields") else tuple(found)
