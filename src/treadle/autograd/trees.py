"""Arguments and results of transforms: tensors, nested in tuples, lists, dicts and dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treadle.core.errors import AutogradError, DtypeError, ShapeError
from treadle.graph.history import is_differentiable
from treadle.runtime.devices import Device
from treadle.tensor.compiled.structure import children, is_nested, rebuilt
from treadle.tensor.conversions import is_number
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor


def leaves(tree: Any) -> list[Any]:
    """All values that are not containers, in order.

    >>> leaves((1, [2, {"a": 3}], None))
    [1, 2, 3, None]
    """
    if not is_nested(tree):
        return [tree]
    return [leaf for _, each in children(tree) for leaf in leaves(each)]


def with_values(tree: Any, values: Iterator[Any]) -> Any:
    """The same containers with other leaves.

    >>> with_values((1, [2, {"a": 3}]), iter("xyz"))
    ('x', ['y', {'a': 'z'}])
    """
    if not is_nested(tree):
        return next(values)
    return rebuilt(tree, [with_values(each, values) for _, each in children(tree)])


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same containers with a function's results for their leaves.

    >>> mapped(str, (1, [2]))
    ('1', ['2'])
    """
    return with_values(tree, map(function, leaves(tree)))


def matched(what: str, tree: Any, like: Any) -> list[Any]:
    """The leaves of a tree that must have the containers of another one. ShapeError if not."""
    found = _matched(tree, like)
    if found is None:
        raise ShapeError(f"{what} must be nested as what they belong to: {tree!r:.200}")
    return found


def _matched(tree: Any, like: Any) -> list[Any] | None:
    if not is_nested(like):
        return [tree]
    if not is_nested(tree):
        return None
    mine, theirs = children(tree), children(like)
    if len(mine) != len(theirs):
        return None
    if isinstance(like, dict):
        if not isinstance(tree, dict) or tree.keys() != like.keys():
            return None
        mine = [("", tree[key]) for key in like]
    found: list[Any] = []
    for (_, one), (_, other) in zip(mine, theirs, strict=True):
        inner = _matched(one, other)
        if inner is None:
            return None
        found += inner
    return found


def as_variable(what: str, value: Any, device: Device | None = None) -> Tensor:
    """A tensor that can be differentiated by; of a Python float, one of float32."""
    if isinstance(value, Tensor):
        tensor = value
    elif is_number(value) or hasattr(value, "__array__"):
        made = asarray(value, device=device)
        assert isinstance(made, Tensor)
        tensor = made
    else:
        raise AutogradError(
            f"{what} is a {type(value).__name__}, and gradients are those of tensors: name the "
            "arguments that are tensors with argnums, and pass others besides"
        )
    if not is_differentiable(tensor._cell.value):
        raise DtypeError(
            f"{what} is of {tensor.dtype}, and only floating and complex numbers have gradients: "
            "cast it, x.to(td.float32), or leave it out of argnums"
        )
    return tensor
