"""`td.einsum` and `td.kron`: products of arrays whose axes have names.

`opt_einsum` parses the subscripts and finds the order in which to multiply many arrays; each step
of that order is a product of two arrays, as `tensordot` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import bool_
from treadle.core.errors import ShapeError
from treadle.graph.node import COPY, VIEW, Node, view_of
from treadle.graph.views import View
from treadle.runtime.arrays import packed_strides
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.contraction import contracted
from treadle.tensor.conversions import cast
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.operands import prepare
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import any as any_of
from treadle.tensor.reductions import sum as sum_of
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["einsum", "kron"]


@cast_by_name
def einsum(*operands: Any, optimize: Any = True) -> Tensor:
    """Sums of products, in Einstein's notation: a letter for each axis of each array, and after
    `->` those of the result; all other letters are summed along. Without `->` the result has the
    letters that occur once, in the order of the alphabet. A letter twice in one array is its
    diagonal, `...` stands for axes that broadcast. Arrays alternating with lists of numbers, as in
    `einsum(x, [0, 1], y, [1, 2], [0, 2])`, are accepted as well.

    With `optimize` (True, False, or a strategy of `opt_einsum` as "greedy") three and more arrays
    are multiplied in the order that takes the fewest operations. ShapeError if one letter has two
    extents; axes of 1 element are repeated as needed. The result's dtype is the arrays' common one.

    >>> import treadle as td
    >>> x = td.arange(6.0, device="cpu").reshape(2, 3)
    >>> td.einsum("ij,kj->ik", x, x).tolist()
    [[5.0, 14.0], [14.0, 50.0]]
    >>> td.einsum("ii", td.eye(3, device="cpu")).item()
    3.0
    """
    from opt_einsum import contract_path
    from opt_einsum.parser import parse_einsum_input

    inputs, output, arrays = parse_einsum_input(_known(operands))
    terms = inputs.split(",")
    _, dtype, nodes = prepare("einsum", arrays)
    _check_extents(terms, nodes)
    named = [_diagonal(cast(node, dtype), term) for node, term in zip(nodes, terms, strict=True)]
    if len(named) <= 2:
        order: Sequence[Sequence[int]] = [tuple(range(len(named)))]
    else:
        equation = ",".join(names for _, names in named) + "->" + output
        shapes = [node.shape for node, _ in named]
        order, _ = contract_path(
            equation, *shapes, shapes=True, optimize="auto" if optimize is True else optimize
        )
    for places in order:
        chosen = [named.pop(at) for at in sorted(places, reverse=True)]
        wanted = set(output).union(*(names for _, names in named))
        named.append(_product(chosen[::-1], wanted))
    return _arranged(*named[0], output)


def kron(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Kronecker's product: each element of a times all of b, in its place.

    >>> import treadle as td
    >>> td.kron(td.asarray([1, 10], device="cpu"), td.asarray([1, 2], device="cpu")).tolist()
    [1, 2, 10, 20]
    """
    _, dtype, (left, right) = prepare("kron", (a, b))
    axes = max(len(left.shape), len(right.shape))
    outer = (1,) * (axes - len(left.shape)) + left.shape
    inner = (1,) * (axes - len(right.shape)) + right.shape
    outer_shape = tuple([extent for one in outer for extent in (one, 1)])
    repeated = tuple([extent for one in inner for extent in (1, one)])
    product = apply(
        "multiply",
        from_node(cast(left, dtype)).reshape(outer_shape),
        from_node(cast(right, dtype)).reshape(repeated),
    )
    return product.reshape(tuple([x * y for x, y in zip(outer, inner, strict=True)]))


# --- parts of einsum ----------------------------------------------------------------------


def _known(operands: tuple[Any, ...]) -> list[Any]:
    """The arrays as tensors, whose shapes are known."""
    if len(operands) < 2:
        raise TypeError('einsum takes a text as "ij,jk->ik" and the arrays that it is about')
    if isinstance(operands[0], str):
        text, *arrays = operands
        if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)):
            arrays = list(arrays[0])
        return [text, *[a if type(a) is Tensor else asarray(a) for a in arrays]]
    return [
        value if at % 2 or (at == len(operands) - 1 and len(operands) % 2) else
        value if type(value) is Tensor else asarray(value)
        for at, value in enumerate(operands)
    ]  # fmt: skip


def rearranged(operands: list[Any]) -> Tensor | None:
    """What `einsum` makes of one array, if it only exchanges axes or takes diagonals, as a view of
    it, which it is for other libraries; else None."""
    from opt_einsum.parser import parse_einsum_input

    if len(operands) > 3 or (len(operands) == 3) is isinstance(operands[0], str):
        return None
    names, output, (x,) = parse_einsum_input(operands)
    if len(names) != len(x.shape) or len(set(output)) < len(output) or set(output) != set(names):
        return None
    seen = x._where
    extents: dict[str, int] = {}
    strides: dict[str, int] = dict.fromkeys(names, 0)
    for name, extent, stride in zip(names, seen.shape, seen.strides, strict=True):
        if extents.setdefault(name, extent) != extent:
            return None
        strides[name] += stride
    shape = tuple([extents[name] for name in output])
    made: Tensor = x._seen_through(View(shape, tuple(map(strides.get, output)), seen.offset))  # type: ignore[arg-type]
    return made


def _check_extents(terms: Sequence[str], nodes: Sequence[Node]) -> None:
    known: dict[str, tuple[int, Node]] = {}
    for term, node in zip(terms, nodes, strict=True):
        if len(term) != len(node.shape):
            raise ShapeError(
                f"einsum: {term!r} names {len(term)} axes, and an array of shape {node.shape} has "
                f"{len(node.shape)}"
            )
        for name, extent in zip(term, node.shape, strict=True):
            other, where = known.setdefault(name, (extent, node))
            if extent != other and 1 not in (extent, other):
                raise ShapeError(
                    f"einsum: {name!r} is an axis of {other} elements in shape {where.shape}, and "
                    f"of {extent} in shape {node.shape}"
                )
            if other == 1:
                known[name] = extent, node


def _diagonal(node: Node, names: str) -> tuple[Node, str]:
    """An array with distinct names: the diagonal along those that occur twice."""
    unique = "".join(dict.fromkeys(names))
    if len(unique) == len(names):
        return node, names
    extents: dict[str, int] = {}
    strides: dict[str, int] = dict.fromkeys(unique, 0)
    for name, extent, stride in zip(names, node.shape, packed_strides(node.shape), strict=True):
        extents[name] = max(extent, extents.get(name, 1)) if extent else 0
        strides[name] += stride if extent != 1 else 0
    view = View(tuple(extents.values()), tuple(strides.values()), 0)
    return view_of(node, view), unique


def _product(parts: Sequence[tuple[Node, str]], wanted: set[str]) -> tuple[Node, str]:
    """The product of all arrays, two at a time, summed along all but the wanted names."""
    so_far, *rest = parts
    for at, part in enumerate(rest, 1):
        needed = wanted.union(*(names for _, names in parts[at + 1 :]))
        first = _summed(*so_far, needed | set(part[1]))
        second = _summed(*part, needed | set(so_far[1]))
        names = dict.fromkeys(first[1] + second[1])
        kept = "".join(name for name in names if name in needed)
        so_far = contracted(first, second, kept)._node, kept
    return _summed(*so_far, wanted)


def _summed(node: Node, names: str, wanted: set[str]) -> tuple[Node, str]:
    axes = tuple([at for at, name in enumerate(names) if name not in wanted])
    if not axes:
        return node, names
    x = from_node(node)
    total = any_of(x, axis=axes) if node.dtype is bool_ else sum_of(x, axis=axes, dtype=node.dtype)
    return total._node, "".join(name for name in names if name in wanted)


def _arranged(node: Node, names: str, output: str) -> Tensor:
    """The axes in the order of the output, in new memory."""
    if names != output:
        steps = dict(zip(names, packed_strides(node.shape), strict=True))
        extents = dict(zip(names, node.shape, strict=True))
        view = View(
            tuple([extents[name] for name in output]), tuple([steps[name] for name in output]), 0
        )
        node = view_of(node, view)
    if node.array is not None or node.op == VIEW:
        node = Node(COPY, (node,), node.shape, node.dtype, node.device)
    return from_node(node)
