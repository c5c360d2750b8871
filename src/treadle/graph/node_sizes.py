"""The sizes in nodes: taken out for a graph's key, and put into nodes for a plan with symbols."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from treadle.core.sizes import is_size
from treadle.graph.node import CONSTANT, JOIN, PRODUCT, VIEW, WRITE, Node
from treadle.graph.parts import is_part
from treadle.graph.views import View

_ALIGNED = 4  # elements that GPUs load at once
WITH_SIZES = frozenset({VIEW, WRITE, JOIN, PRODUCT})  # operations with sizes in their details

# The parts of arrays that a graph sees, by array and first element.
Begins = dict[tuple[int, int], int]


def sizes_of(node: Node, source: int, sizes: list[int], begins: Begins) -> Any:
    """Add the sizes in the detail of a node to others, and return the rest of it, for a key. Where
    a part begins is in neither, but which parts of the array of number `source` begin at the same
    element, and how that is aligned."""
    detail, is_of_part = node.detail, node.op in (VIEW, WRITE) and is_part(node)
    rest = sizes_of_detail(node.op, detail, is_of_part, sizes)
    if not is_of_part:
        return rest
    number = begins.setdefault((source, detail.offset), len(begins))
    return rest, number, 0 if node.device.traits.serial_threads else detail.offset % _ALIGNED


def sizes_of_detail(op: str, detail: Any, is_of_part: bool, sizes: list[int]) -> Any:
    """The same for a node that is not of a part, or without where that begins."""
    if op == CONSTANT:
        return key_of_number(detail)
    if op not in WITH_SIZES:
        return detail
    if op in (VIEW, WRITE):
        shape, strides, offset = detail
        if op == WRITE:  # a view's are the node's
            sizes += shape
        sizes += strides
        if not is_of_part:
            sizes.append(offset)
        return len(shape)
    before = len(sizes)
    _flatten(detail, sizes)
    count = len(sizes) - before
    return (count, detail.factors) if op == PRODUCT else count


def key_of_number(number: Any) -> Any:
    """A constant's number in a key. A size is one number, whatever equals it now."""
    return number if is_size(number) else repr(number)  # -0.0 == 0.0


def detail_with_sizes(
    op: str, detail: Any, shape: tuple[Any, ...], is_of_part: bool, numbers: Iterator[Any]
) -> Any:
    """A detail with other sizes, in the order in which they were taken out; `shape` is the node's
    new one."""
    if op not in WITH_SIZES:
        return detail
    if op in (VIEW, WRITE):
        axes = len(detail.shape)
        seen = tuple(islice(numbers, axes)) if op == WRITE else shape
        strides = tuple(islice(numbers, axes))
        return View(seen, strides, detail.offset if is_of_part else next(numbers))
    return filled(detail, numbers)


def _flatten(numbers: tuple[Any, ...], sizes: list[int]) -> None:
    for each in numbers:
        if isinstance(each, tuple):
            _flatten(each, sizes)
        elif type(each) is not str:
            sizes.append(each)


def filled(template: tuple[Any, ...], numbers: Iterator[Any]) -> Any:
    """A (named) tuple of tuples, words and numbers, with other numbers."""
    found = [
        filled(each, numbers)
        if isinstance(each, tuple)
        else each
        if type(each) is str
        else next(numbers)
        for each in template
    ]
    return type(template)(*found) if hasattr(template, "_fields") else tuple(found)
