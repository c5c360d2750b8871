"""`td.vmap`: a function of one example as one of many.

The function is called once, on placeholders; what it returns is made anew for all examples
(`batched.py`). So it costs what the same operations cost on stacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.autograd.batched import Batched, stacked
from treadle.autograd.trees import leaves, with_values
from treadle.core.errors import AutogradError, ShapeError
from treadle.graph.history import recording
from treadle.graph.node import Node, next_serial
from treadle.graph.placeholders import Traced, within
from treadle.tensor.cells import Cell, written
from treadle.tensor.compiled.structure import children, is_nested
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.tensor import Tensor, from_node

Dims = Any  # an axis, None, or these nested as arguments or results are
_RANDOMNESS = ("error", "same", "different")


def vmap(
    f: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that does for many examples at once what `f` does for one.

    `in_dims` says along which axis of each argument the examples lie, None for what all share;
    `out_dims` along which axis of the results they are to lie. Either may be nested as the
    arguments and results are. Arguments by keyword are shared. It nests, and goes together with
    `td.grad` and the other transforms: `td.vmap(td.grad(loss))` gives a gradient for each example.

    `f` sees the shapes of one example, and no values: ValuesUnknown if it reads one, or calls a
    kernel. What it draws at random is refused, unless `randomness` is "same" (one draw for all) or
    "different" (one for each). Kernels that do not work on stacks run once for each example.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.vmap(td.vecdot)(x, x).tolist()
    [5.0, 25.0]
    >>> td.vmap(td.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(x[0], x).tolist()
    [[10.0, 20.0], [66.0, 88.0]]
    """
    if randomness not in _RANDOMNESS:
        raise ValueError(f"vmap: randomness is one of {_RANDOMNESS}, not {randomness!r}")

    @functools.wraps(f)
    def mapped(*args: Any, **keywords: Any) -> Any:
        dims = _dims_for("in_dims", in_dims, args)
        given = leaves(args)
        count = _count(given, dims)
        before = next_serial()
        traced = Traced(count, randomness)
        inside = [
            each if dim is None else from_node(traced.placeholder(_in_front(each, dim)))
            for each, dim in zip(given, dims, strict=True)
        ]
        returned = _traced(f, with_values(args, iter(inside)), keywords, traced, before)
        results = leaves(returned)
        ends = _dims_for("out_dims", out_dims, returned)
        return with_values(returned, iter(_for_all(results, ends, traced)))

    return mapped


def _traced(
    f: Callable[..., Any], args: Any, keywords: dict[str, Any], traced: Traced, before: int
) -> Any:
    """What a function returns for placeholders, which are younger than `before`."""
    noted: dict[Cell, Node] = {}
    token, tokens = within.set(traced), written.set(noted)
    try:
        returned = f(*args, **keywords)
    finally:
        within.reset(token)
        written.reset(tokens)
        is_wrong = _put_back(noted, before, traced)
    if is_wrong:
        raise ValueError(
            "a function within td.vmap wrote values that differ from example to example to a "
            "tensor from outside, which has room for one: return them instead"
        )
    return returned


def _put_back(noted: dict[Cell, Node], before: int, traced: Traced) -> bool:
    """Give tensors from outside what they were, if now they would be another for each example;
    whether there were such."""
    outer, found = written.get(), False
    for cell, old in noted.items():
        if old.serial > before:
            continue
        batched = Batched(traced)
        batched.make([cell.value])
        if batched.has_axis(cell.value):
            cell.value = old
            old.overwritten, found = False, True
        elif outer is not None:
            outer.setdefault(cell, old)
    return found


def _for_all(results: list[Any], ends: list[Any], traced: Traced) -> list[Any]:
    """The results with an axis for the examples."""
    for each in results:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"a function within td.vmap returns tensors, nested as you like, and there is a "
                f"{type(each).__name__} among them"
            )
    batched = Batched(traced)
    batched.make([each._node for each in results])
    found = []
    for each, dim in zip(results, ends, strict=True):
        node = each._node
        made, has_axis = batched[node], batched.has_axis(node)
        if made.history is None and recording.get() and traced.leads_out(node):
            raise AutogradError(
                "td.vmap lost what a result was computed from: this is a fault in treadle; call "
                "the function for one example after another, and report it"
            )
        if dim is None:
            if has_axis:
                raise ValueError(
                    "out_dims says None for a result that is another one for each example: name "
                    "the axis that the examples are to have"
                )
            found.append(each)
            continue
        tensor = from_node(made if has_axis else stacked(made, traced.count))
        if not -tensor.ndim <= dim < tensor.ndim:
            raise ShapeError(
                f"out_dims={dim} for a result of {tensor.ndim} axes with the examples'"
            )
        found.append(tensor if dim == 0 else moveaxis(tensor, 0, dim))
    return found


# --- axes ----------------------------------------------------------------------------------------


def _dims_for(what: str, dims: Dims, tree: Any) -> list[Any]:
    """An axis or None for each leaf."""
    if dims is None or isinstance(dims, int):
        return [dims for _ in leaves(tree)]
    mine = [each for _, each in children(dims)] if is_nested(dims) else None
    if mine is None or not is_nested(tree) or len(mine) != len(children(tree)):
        raise ShapeError(f"{what}={dims!r} is not nested as what it is for: {tree!r:.200}")
    if isinstance(dims, dict):
        mine = [dims[key] for key in tree]
    return [
        dim
        for one, (_, part) in zip(mine, children(tree), strict=True)
        for dim in _dims_for(what, one, part)
    ]


def _count(given: list[Any], dims: list[Any]) -> int:
    """The number of examples."""
    counts: dict[int, tuple[int, ...]] = {}
    for each, dim in zip(given, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(each, Tensor):
            raise TypeError(
                f"in_dims says that examples lie along axis {dim} of a {type(each).__name__}: say "
                "None for what all share, and use tensors for the others"
            )
        if not -each.ndim <= dim < each.ndim:
            raise ShapeError(f"in_dims={dim} for an argument of shape {each.shape}")
        counts[each.shape[dim]] = each.shape
    if len(counts) > 1:
        raise ShapeError(
            "the arguments of a function within td.vmap must have as many examples, and they have "
            f"{sorted(counts)}, with shapes {list(counts.values())}"
        )
    if not counts:
        raise ShapeError("in_dims names no axis with examples: at least one argument must have one")
    return next(iter(counts))


def _in_front(tensor: Tensor, dim: int) -> Node:
    return moveaxis(tensor, dim, 0)._node if dim else tensor._node
